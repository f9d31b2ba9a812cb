"""The printed film strip: one small map a layer, in order, with a colour bar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnviz.board import Bar, Board, Panel, columns_for
from attnviz.colour import require_alpha
from attnviz.errors import BadOption
from attnviz.facts import Facts, with_colours
from attnviz.frames import Frames, layers_of
from attnviz.legend import swallowed
from attnviz.paper import ORIGINAL, as_notes, stretches
from attnviz.scale import Scale, require_clip, scale_of_bar, within
from attnviz.shapes import as_whole
from attnviz.sheet import printable_facts, printed
from attnviz.typeset import TIED, wrap
from attnviz.venue import PAGE, TALLEST, check_flags, check_size, width_of


@dataclass(frozen=True, kw_only=True)
class FilmPaper:
    """How a film is drawn; the options of `Film.save`.

    The first five are those of `colour.overlay`, but `scale` can be `"shared"` as well, one for all
    layers; `"own"` and `"zero"` are each layer's own. `width_mm` or `venue`, `dpi`, `columns`,
    `original` (the picture alone, first) and `letters` are of the printed strip (.pdf .svg .png),
    `width_px` and `seconds` (for which a layer stands) of the animation (.gif .webp). `caption`
    prints method, facts and notes below.
    """

    alpha: float = 0.5
    colormap: str = "inferno"
    scale: str | Scale = "own"
    clip: float | None = None
    interpolation: str = "nearest"
    width_mm: float = PAGE
    venue: str | None = None
    dpi: int = 450
    columns: int | None = None
    original: bool = False
    letters: bool = False
    width_px: int = 480
    seconds: float = 0.6
    caption: bool = True

    def __post_init__(self) -> None:
        """Settle and check the sizes, the flags and the colours, and how long a layer stands."""
        object.__setattr__(self, "width_mm", width_of(self.width_mm, self.venue, PAGE))
        check_size(self.width_mm, self.dpi)
        check_flags(self)
        require_alpha(self.alpha)
        require_clip(self.clip)
        if self.columns is not None:
            _whole("columns", self.columns, 1, 100)
        _whole("width_px", self.width_px, 160, 1600)
        if not within(self.seconds, 0.1, 10.0):
            raise BadOption(f"seconds is from 0.1 to 10 for each layer; {self.seconds!r} came.")

    def own_scales(self) -> bool:
        """Whether each layer has a scale of its own."""
        return isinstance(self.scale, str) and self.scale != "shared"


def _whole(name: str, value: object, low: int, high: int) -> None:
    try:
        number = as_whole(value)
    except TypeError:
        number = low - 1
    if not low <= number <= high:
        raise BadOption(f"{name} is a whole number from {low} to {high}; {value!r} came.")


def draw_strip(frames: Frames, paper: FilmPaper, *, kind: str, manifest: str) -> bytes:
    """The strip as a file of that kind: `"png"`, `"svg"` or `"pdf"`, with the manifest inside."""
    return printed(
        lambda: _board(frames, paper).drawn(kind),
        kind,
        paper.dpi,
        frames.summary,
        manifest,
        fonts=fonts_of(frames),
    )


def fonts_of(frames: Frames) -> list[str]:
    """The fonts that print the film's facts."""
    return printable_facts(frames.facts)[1]


def caption_of(frames: Frames, paper: FilmPaper, room: float) -> list[str]:
    """The lines below the maps, at most `room` points wide; nothing if they are not wanted."""
    return [line for text in texts_of(frames, paper) for line in wrap(text, room)]


def texts_of(frames: Frames, paper: FilmPaper) -> list[str]:
    """What the caption says; a fact that no font here can print is left to the metadata."""
    if not paper.caption:
        return []
    return _texts(frames, paper, printable_facts(frames.facts)[0])


def words_of(frames: Frames, paper: FilmPaper) -> list[str]:
    """All words of the film, those of its colour bar too."""
    scales = frames.scales(paper.scale, clip=paper.clip)
    return with_colours(_texts(frames, paper), _said(frames, scales, paper))


def _texts(frames: Frames, paper: FilmPaper, facts: Facts | None = None) -> list[str]:
    """The caption, with `facts` for the film's own where some of those can't be printed."""
    return [*frames.caption(paper.alpha, facts=facts), *as_notes(remarks_on(frames, paper))]


def remarks_on(frames: Frames, paper: FilmPaper) -> list[str]:
    """What has to be said of how its maps are drawn, as `paper.remarks_on` of one."""
    maps, ready = [*frames.maps.values()], isinstance(paper.scale, Scale)

    def scales_by(clip: float | None) -> list[Scale]:
        return frames.scales(paper.scale, clip=clip)

    told, done = swallowed(maps, scales_by, paper.clip, ready=ready)
    hidden = [layer for layer, who in zip(frames.maps, told, strict=True) if who]
    few = [f"{layers_of(hidden)}: a few patches hold {done}"] if hidden else []
    return [*stretches(maps), *few]


def _board(frames: Frames, paper: FilmPaper) -> Board:
    """A map a layer with its name above it, and one bar of all."""
    scales = frames.scales(paper.scale, clip=paper.clip)
    labels = _labels(frames, scales, own=paper.own_scales())
    panels = [
        Panel(image=heat.image, heat=heat, scale=scale, above=tuple(label))
        for heat, scale, label in zip(frames.maps.values(), scales, labels, strict=True)
    ]
    if paper.original:
        panels.insert(0, Panel(image=frames.image, above=(ORIGINAL,)))
    every = np.concatenate([heat.drawn for heat in frames.maps.values()])
    bar = Bar(
        said=_said(frames, scales, paper),
        scale=scale_of_bar(scales),
        values=every,
        ends=("each layer's lower end", "its upper end") if paper.own_scales() else None,
    )
    return Board(
        panels=tuple(panels),
        columns=columns_for(len(panels), paper.width_mm, paper.columns),
        bar=bar,
        caption=tuple(texts_of(frames, paper)),
        letters=paper.letters,
        width_mm=paper.width_mm,
        dpi=paper.dpi,
        tallest_mm=TALLEST,
        alpha=paper.alpha,
        colormap=paper.colormap,
        interpolation=paper.interpolation,
    )


def _labels(frames: Frames, scales: list[Scale], *, own: bool) -> list[list[str]]:
    """What stands above each map: its layer, and its scale's ends where they are its own."""
    names = [[frames.label(layer)] for layer in frames.maps]
    every = zip(names, scales, frames.maps.values(), strict=True)
    if not own:
        return names
    # A range that takes two lines breaks before its "to".
    return [
        [*name, scale.reach_over(heat.drawn).replace(" to ", f" to{TIED}")]
        for name, scale, heat in every
    ]


def _said(frames: Frames, scales: list[Scale], paper: FilmPaper) -> str:
    """The bar's words: unit, scale, and smoothing if there is any."""
    names = list(dict.fromkeys(scale.name for scale in scales))
    each = (
        "each layer on a scale of its own, whose ends stand above it: "
        if paper.own_scales()
        else ""
    )
    smoothed = "" if paper.interpolation == "nearest" else f"; smoothed ({paper.interpolation})"
    return f"{frames.unit}, {each}{' / '.join(names)}{smoothed}"
