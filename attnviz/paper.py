"""The printed figure of one map: picture, colour bar with its numbers, caption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attnviz.board import Bar, Board, Panel
from attnviz.colour import require_alpha, stretched
from attnviz.facts import Facts, with_colours
from attnviz.heatmap import Heatmap
from attnviz.legend import legend, swallowed
from attnviz.mass import MassMask, mass_mask, require_mass
from attnviz.scale import Scale, choose_scale, require_clip
from attnviz.sheet import printable_facts, printed
from attnviz.venue import COLUMN, check_flags, check_size, width_of

TALLEST_MM = 150.0
"""The picture is narrowed rather than made higher than this: it has to fit on a page."""
ORIGINAL = "picture"
"""What stands above the picture alone, where it is beside its map."""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """How a figure is drawn and how large it is printed; the options of `save`.

    The first five are those of `colour.overlay`; `mass` outlines the fewest patches that hold that
    share of the map. `venue`, one of `venue.VENUES`, stands for a width; the size of letters is
    always the same. `original` puts the picture alone beside its map, and `letters` a, b … before
    panels. `caption` prints method, facts and notes below; the colour bar, or the words that stand
    for it, is always there, with its numbers, unit, scale and smoothing.
    """

    alpha: float = 0.5
    colormap: str = "inferno"
    scale: str | Scale = "own"
    clip: float | None = None
    interpolation: str = "nearest"
    mass: float | None = None
    width_mm: float = COLUMN
    venue: str | None = None
    dpi: int = 450
    caption: bool = True
    original: bool = False
    letters: bool = False

    def __post_init__(self) -> None:
        """Settle the width, and check all numbers and flags before a map is there."""
        object.__setattr__(self, "width_mm", width_of(self.width_mm, self.venue, COLUMN))
        check_size(self.width_mm, self.dpi)
        check_flags(self)
        require_alpha(self.alpha)
        require_clip(self.clip)
        if self.mass is not None:
            require_mass(self.mass)

    def mask(self, heat: Heatmap) -> MassMask | None:
        """What is outlined, if anything is."""
        return None if self.mass is None else mass_mask(heat.values, self.mass)

    @property
    def colours(self) -> dict[str, Any]:
        """What a legend is made of."""
        names = ("colormap", "scale", "clip", "interpolation")
        return {name: getattr(self, name) for name in names}


def draw(heat: Heatmap, paper: Paper, *, kind: str, manifest: str) -> bytes:
    """The figure as a file of that kind: `"png"`, `"svg"` or `"pdf"`, with the manifest inside."""
    fonts = printable_facts(heat.facts)[1]
    return printed(
        lambda: _board(heat, paper).drawn(kind),
        kind,
        paper.dpi,
        heat.summary,
        manifest,
        fonts=fonts,
    )


def texts_of(heat: Heatmap, paper: Paper, facts: Facts | None = None) -> list[str]:
    """What the caption says; `facts` stand for the map's own, where some can't be printed."""
    words = heat.caption(paper.alpha, paper.mask(heat), facts=facts)
    return [*words, *as_notes(remarks_on(heat, paper))]


def words_of(heat: Heatmap, paper: Paper) -> list[str]:
    """All words of the figure, those of the colour bar too."""
    return with_colours(texts_of(heat, paper), legend(heat, **paper.colours)[1])


def bar_of(heat: Heatmap, paper: Paper, **changed: Any) -> Bar:
    """The colour bar of one map; of the paper's own scale unless `changed`."""
    scale, said = legend(heat, **paper.colours | changed)
    return Bar(said=said, scale=scale, values=None if scale is None else heat.drawn)


def remarks_on(heat: Heatmap, paper: Paper) -> list[str]:
    """What has to be said of how it is drawn."""

    def scales_by(clip: float | None) -> list[Scale]:
        return [choose_scale(heat.drawn, paper.scale, clip=clip)]

    ready = isinstance(paper.scale, Scale)
    (who,), done = swallowed([heat], scales_by, paper.clip, ready=ready)
    return [*stretches([heat]), *([f"{who} {done}"] if who else [])]


def stretches(heats: Sequence[Heatmap]) -> list[str]:
    """What has to be said of pictures that are drawn in another shape, each once."""
    return [note for note in dict.fromkeys(stretched(heat.image.size) for heat in heats) if note]


def as_notes(remarks: Sequence[str]) -> list[str]:
    """Remarks as a caption's lines."""
    return [f"Note: {remark}." for remark in remarks]


def _board(heat: Heatmap, paper: Paper) -> Board:
    mask = paper.mask(heat)
    texts = texts_of(heat, paper, printable_facts(heat.facts)[0]) if paper.caption else []
    name = (heat.title,) if paper.original else ()
    panel = Panel(
        image=heat.image,
        heat=heat,
        scale=paper.scale,
        clip=paper.clip,
        mask=mask,
        above=name,
    )
    alone = [Panel(image=heat.image, above=(ORIGINAL,))] if paper.original else []
    return board_of([*alone, panel], paper, bar=bar_of(heat, paper), caption=texts)


def board_of(
    panels: Sequence[Panel], paper: Paper, *, caption: Sequence[str], bar: Bar | None = None
) -> Board:
    """Panels in one line, drawn as the paper says."""
    return Board(
        panels=tuple(panels),
        columns=len(panels),
        bar=bar,
        caption=tuple(caption),
        letters=paper.letters,
        width_mm=paper.width_mm,
        dpi=paper.dpi,
        tallest_mm=TALLEST_MM,
        alpha=paper.alpha,
        colormap=paper.colormap,
        interpolation=paper.interpolation,
    )
