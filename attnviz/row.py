"""Maps beside each other on paper: methods, models, pictures or queries, told apart by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnviz.apart import by_place, differing, pictures_of, says, telling, told_apart, varies
from attnviz.board import Bar, Board, Panel, columns_for
from attnviz.errors import BadOption
from attnviz.facts import Facts, called, said, with_colours, with_notes
from attnviz.fonts import FONT
from attnviz.heatmap import Heatmap, shared_scale
from attnviz.legend import legend, swallowed
from attnviz.mass import MassMask
from attnviz.paper import ORIGINAL, Paper, as_notes, stretches
from attnviz.scale import Scale, choose_scale
from attnviz.sheet import printable_facts, printed
from attnviz.venue import TALLEST

UNPRINTED = "its name is in letters that no font here prints"
"""Noted of a map that is called by its place instead."""


@dataclass(frozen=True, eq=False)
class Row:
    """Several maps, each with a name; raises BadOption for none, or for other names than maps."""

    heats: tuple[Heatmap, ...]
    names: tuple[str, ...] = ()
    """What stands above each, of 255 letters at most; if left out, what tells them apart."""

    def __post_init__(self) -> None:
        """Name them, and check that there is something to show."""
        object.__setattr__(self, "heats", tuple(self.heats))
        if not self.heats:
            raise BadOption("A row needs at least one map; none came.")
        names = texts(self.names) or told_apart(self.heats)
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise BadOption(f"Names tell maps apart; {', '.join(map(repr, twice))} came twice.")
        if len(names) != len(self.heats):
            raise BadOption(
                f"Each map has one name; {len(names)} names came for {len(self.heats)} maps."
            )
        object.__setattr__(self, "names", names)

    @property
    def facts(self) -> Facts:
        """What is true of every map."""
        every = [frozenset(heat.facts) for heat in self.heats]
        return tuple(fact for fact in self.heats[0].facts if all(fact in each for each in every))

    @property
    def apart(self) -> tuple[str, ...]:
        """What is not true of every map and not said by its name, map by map: `name: words`.

        Weights are told where another map is of a model of the same name with others.
        """
        every = [telling(heat) for heat in self.heats]
        differ = differing(every)
        words = [] if "picture" in differ or self._pictures_told else ["of different pictures"]
        for name, heat, each in zip(self.names, self.heats, every, strict=True):
            left = [(of, each[of]) for of in differ if of in each and not says(name, of, each[of])]
            left = [fact for fact in left if fact in heat.facts or varies(fact[0], every)]
            title, *rest = said(heat.title, tuple(left))
            own = [title] if ("method", title) in left else []
            own += rest
            like = [other for other in every if other.get("model") == each.get("model")]
            if varies("weights", like):
                own += [f"{of}: {value}" for of, value in left if of == "weights"]
            words += [f"{name}: {', '.join(own)}"] if own else []
        return tuple(words)

    @property
    def _pictures_told(self) -> bool:
        """Whether all maps are of one picture, or each of one that its name numbers."""
        count = pictures_of(self.heats)
        return count == 1 or (count == len(self.heats) and self.names == by_place(self.heats))

    @property
    def title(self) -> str:
        """The method, where all maps are of one; else the names of all."""
        titles = dict.fromkeys(heat.title for heat in self.heats)
        return next(iter(titles)) if len(titles) == 1 else ", ".join(self.names)

    @property
    def notes(self) -> tuple[str, ...]:
        """Each warning once, with the names of the maps that it is of, if not of all."""
        told: dict[str, list[str]] = {}
        for name, heat in zip(self.names, self.heats, strict=True):
            for note in heat.notes:
                told.setdefault(note, []).append(name)
        return tuple(
            note if len(of) == len(self.heats) else f"{', '.join(of)}: {note}"
            for note, of in told.items()
        )

    @property
    def beside(self) -> str:
        """The names of all maps in words; empty where the title is these."""
        return "" if self.title == ", ".join(self.names) else " beside ".join(self.names)

    @property
    def summary(self) -> str:
        """What it shows in one line."""
        words = "; ".join([*said(self.title, self.facts), *self.apart])
        return f"{self.beside}: {words}" if self.beside else words


def texts(names: object) -> tuple[str, ...]:
    """Names as any file takes them, in their order; BadOption for what are none."""
    listed = names if isinstance(names, Sequence) and not isinstance(names, str) else (None,)
    if not all(isinstance(name, str) for name in listed):  # a set has no order
        raise BadOption(f"Names of maps are texts, one for each map; {names!r} came.")
    return tuple(map(called, listed))


def draw_row(row: Row, paper: Paper, *, kind: str, manifest: str) -> bytes:
    """The row as a file of that kind: `"png"`, `"svg"` or `"pdf"`, with the manifest inside.

    `scale` is `"own"` or `"zero"`, each map's own with a bar of its own; `"shared"`, or a ready
    one, of all: then there is one bar.
    """
    shown, fonts = printable_row(row)
    board = board_of_row(shown, paper)
    return printed(lambda: board.drawn(kind), kind, paper.dpi, row.summary, manifest, fonts=fonts)


def printable_row(row: Row) -> tuple[Row, list[str]]:
    """The same without facts that no font here can print, and the fonts that the rest takes.

    A map whose name none can print is called by its place, and a note says so.
    """
    names, heats, fonts, places = [], [], [FONT], by_place(row.heats)
    for name, place, heat in zip(row.names, places, row.heats, strict=True):
        left, found = printable_facts((("name", name), *heat.facts))
        fonts += [font for font in found if font not in fonts]
        can = ("name", name) in left
        names.append(name if can else place)
        notes = heat.notes if can else (*heat.notes, UNPRINTED)
        heats.append(replace(heat, facts=left[1:] if can else left, notes=notes))
    if len(set(names)) < len(names):  # one is called as the place of another is
        names = [*places]
    return replace(row, heats=tuple(heats), names=tuple(names)), fonts


def common_scale(row: Row, paper: Paper) -> Scale | None:
    """The scale of all maps, if they share one; raises BadOption where they can't.

    A ready one has its ends already, and takes no clip.
    """
    if isinstance(paper.scale, Scale):
        shared_scale(row.heats)  # refused for maps in different units
        return choose_scale(row.heats[0].drawn, paper.scale, clip=paper.clip)
    return shared_scale(row.heats, clip=paper.clip) if paper.scale == "shared" else None


def board_of_row(row: Row, paper: Paper) -> Board:
    """Panels in as many lines as it takes."""
    shared = common_scale(row, paper)
    panels, pictures = [], []
    for name, heat in zip(row.names, row.heats, strict=True):
        if paper.original and heat.image not in pictures:
            pictures.append(heat.image)
            panels.append(Panel(image=heat.image, above=(heat.fact("picture") or ORIGINAL,)))
        panels.append(_panel(name, heat, paper, shared))
    if paper.original and len(pictures) == 1:
        panels[0] = replace(panels[0], above=(ORIGINAL,))
    told = said(row.title, printable_facts(row.facts)[0])
    bar = None
    if shared is not None:
        every = np.concatenate([heat.drawn for heat in row.heats])
        bar = Bar(said=_legend(row.heats[0], paper, shared)[1], scale=shared, values=every)
    return Board(
        panels=tuple(panels),
        columns=columns_for(len(panels), paper.width_mm),
        bar=bar,
        caption=tuple(_texts(row, paper, told)) if paper.caption else (),
        letters=paper.letters,
        width_mm=paper.width_mm,
        dpi=paper.dpi,
        tallest_mm=TALLEST,
        alpha=paper.alpha,
        colormap=paper.colormap,
        interpolation=paper.interpolation,
    )


def words_of(row: Row, paper: Paper) -> list[str]:
    """All words of the figure, those of its colour bars and the names of its maps too."""
    shared, (title, *facts) = common_scale(row, paper), said(row.title, row.facts)
    bars = {
        name: _legend(heat, paper, shared)[1]
        for name, heat in zip(row.names, row.heats, strict=True)
    }
    first, *others = dict.fromkeys(bars.values())
    if others:
        first = "; ".join(f"{name}: {words}" for name, words in bars.items())
    elif shared is None and len(row.heats) > 1:
        first = f"each map on a scale of its own: {first}"
    beside = [f"{title}: {row.beside}" if row.beside else title, *facts]
    return with_colours(_texts(row, paper, beside), first)


def _texts(row: Row, paper: Paper, told: Sequence[str]) -> list[str]:
    """The caption's lines: what is told of all maps, of each, how they are drawn, each warning."""
    masks = [paper.mask(heat) for heat in row.heats]
    drawn = [f"opacity {paper.alpha:g}", *_outlined(row.names, masks)]
    notes = as_notes(remarks_on(row, paper))
    return [*with_notes([*told, *row.apart, *drawn], row.notes), *notes]


def remarks_on(row: Row, paper: Paper) -> list[str]:
    """What has to be said of how the maps are drawn, as `paper.remarks_on` of one."""

    def scales_by(clip: float | None) -> list[Scale]:
        shared = common_scale(row, replace(paper, clip=clip))
        if shared is not None:
            return [shared] * len(row.heats)
        return [choose_scale(heat.drawn, paper.scale, clip=clip) for heat in row.heats]

    ready = isinstance(paper.scale, Scale)
    told, done = swallowed(row.heats, scales_by, paper.clip, ready=ready)
    named = zip(row.names, told, strict=True)
    return [*stretches(row.heats), *(f"{name}: {who} {done}" for name, who in named if who)]


def _legend(heat: Heatmap, paper: Paper, shared: Scale | None = None) -> tuple[Scale | None, str]:
    """A colour bar's scale and its words, of one map or, where `shared` came, of all."""
    chosen: dict[str, Any] = {"interpolation": paper.interpolation}
    if shared is not None:
        chosen["scale"] = shared
    elif not heat.in_colour:
        chosen |= {"colormap": paper.colormap, "scale": paper.scale, "clip": paper.clip}
    return legend(heat, **chosen)


def _outlined(names: Sequence[str], masks: Sequence[MassMask | None]) -> list[str]:
    """What the outlines mean, with the names of their maps where there are several."""
    told = [(name, mask.summary) for name, mask in zip(names, masks, strict=True) if mask]
    return [words if len(names) == 1 else f"{name}: {words}" for name, words in told]


def _panel(name: str, heat: Heatmap, paper: Paper, shared: Scale | None) -> Panel:
    """One map with its own bar, unless all have one."""
    mask = paper.mask(heat)
    if shared is not None:
        return Panel(image=heat.image, heat=heat, scale=shared, mask=mask, above=(name,))
    scale, words = _legend(heat, paper)
    bar = Bar(said=words, scale=scale, values=None if scale is None else heat.drawn)
    drawn = scale if scale is not None else "own"
    return Panel(image=heat.image, heat=heat, scale=drawn, mask=mask, above=(name,), bar=bar)
