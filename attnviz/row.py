"""Maps beside each other on paper: methods, models, pictures or queries, told apart by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnviz.board import Bar, Board, Panel, columns_for
from attnviz.errors import BadOption
from attnviz.facts import CHOSEN, USUAL, Facts, called, in_name, said, with_colours, with_notes
from attnviz.fonts import FONT
from attnviz.heatmap import Heatmap, shared_scale
from attnviz.legend import legend
from attnviz.mass import MassMask
from attnviz.paper import ORIGINAL, Paper, notes_on
from attnviz.scale import Scale, choose_scale
from attnviz.sheet import printable_facts, printed
from attnviz.venue import TALLEST

TOLD = ("method", "model", "picture", *CHOSEN)
"""Facts that tell maps apart where they differ; any other does where none of these do."""

NAMED = 2
"""Facts that make a name at most; captions tell the others."""

ITSELF = ("method", "model", "picture", "query", "target")
"""Facts whose values stand in a name by themselves."""

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
        given: Any = self.names
        if isinstance(given, str) or not all(isinstance(name, str) for name in given):
            raise BadOption(f"Names of maps are texts, one for each map; {given!r} came.")
        names = tuple(map(called, self.names)) or _told_apart(self.heats)
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
        every = [_telling(heat) for heat in self.heats]
        differ = _differing(every)
        words = []
        for name, heat, each in zip(self.names, self.heats, every, strict=True):
            left = [(of, each[of]) for of in differ if of in each and not _says(name, of, each[of])]
            left = [fact for fact in left if fact in heat.facts or _varies(fact[0], every)]
            title, *rest = said(heat.title, tuple(left))
            own = [title] if ("method", title) in left else []
            own += rest
            like = [other for other in every if other.get("model") == each.get("model")]
            if _varies("weights", like):
                own += [f"{of}: {value}" for of, value in left if of == "weights"]
            words += [f"{name}: {', '.join(own)}"] if own else []
        return tuple(words)

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


def _varies(name: str, every: Sequence[Mapping[str, str]]) -> bool:
    """Whether two maps have this fact and differ in it; what is usual goes without saying else."""
    return len({each[name] for each in every if name in each}) > 1


def _told_apart(heats: Sequence[Heatmap]) -> tuple[str, ...]:
    """The facts in which maps differ, or their places where they differ in none.

    Facts that all have come first; those that some have, as a head where others have the mean of
    all heads, are named where these do not do. So are those that are not in `TOLD`, as an option of
    one method.
    """
    every = [_telling(heat) for heat in heats]
    differ = [name for name in _differing(every) if name != "weights"]  # which are no short name
    for pool in ([name for name in TOLD if name in differ], differ):
        for enough in (all, any):
            telling = [name for name in pool if enough(name in each for each in every)][:NAMED]
            names = [
                ", ".join(short(name, each[name]) for name in telling if name in each)
                for each in every
            ]
            if len(set(names)) == len(names) and all(names):
                return tuple(map(called, names))
    return tuple(_by_place(number, heats) for number in range(len(heats)))


def _differing(every: Sequence[dict[str, str]]) -> list[str]:
    """The names of facts in which maps differ, those of `TOLD` first."""
    known = dict.fromkeys([*TOLD, *(name for each in every for name in each)])
    return [name for name in known if len({each.get(name) for each in every}) > 1]


def _telling(heat: Heatmap) -> dict[str, str]:
    """A map's facts and its method; what a query looks at is its direction unless one is told."""
    facts = dict(heat.facts) | {"method": heat.title}
    return {"direction": USUAL["direction"], **facts} if "query" in facts else facts


def _by_place(number: int, heats: Sequence[Heatmap]) -> str:
    """What a map without a name is called: alone by its title, else by a number.

    Letters are the panels', of which the picture may be one.
    """
    if len(heats) == 1:
        return called(heats[0].title)
    pictures = any(heat.image != heats[0].image for heat in heats)
    return f"{'picture' if pictures else 'map'} {number + 1}"


def short(name: str, value: str) -> str:
    """A fact as a panel's name says it: a query, a target or a model by itself."""
    return value if name in ITSELF else in_name(name, value)


def _says(called_so: str, name: str, value: str) -> bool:
    """Whether a panel's name has that fact whole: of a layer, also how many there are."""
    told = short(name, value)
    return value in told and f", {told}, " in f", {called_so}, "


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
    names, heats, fonts = [], [], [FONT]
    for number, (name, heat) in enumerate(zip(row.names, row.heats, strict=True)):
        left, found = printable_facts((("name", name), *heat.facts))
        fonts += [font for font in found if font not in fonts]
        can = ("name", name) in left
        names.append(name if can else _by_place(number, row.heats))
        notes = heat.notes if can else (*heat.notes, UNPRINTED)
        heats.append(replace(heat, facts=left[1:] if can else left, notes=notes))
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
    return [*with_notes([*told, *row.apart, *drawn], row.notes), *notes_on(row.heats)]


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
