"""How wide a figure is printed, and where: the columns of journals and conferences."""

from __future__ import annotations

from dataclasses import dataclass

from attnviz.errors import BadOption, unknown
from attnviz.manifest_shape import FLAGS
from attnviz.scale import within
from attnviz.shapes import is_flag

COLUMN, PAGE = 89.0, 183.0
"""Millimetres of one column of a journal, and of two."""

TALLEST = 220.0
"""Millimetres that all maps of a figure are high at most: they have to fit on a page."""

VENUES = {
    "column": COLUMN,
    "page": PAGE,
    "neurips": 139.7,
    "iclr": 139.7,
    "cvpr": 82.55,
    "cvpr-wide": 174.625,
}
"""Where a figure is printed → its width in millimetres: NeurIPS 5.5 in, CVPR 3.25 and 6.875 in."""

NOTEBOOK = {"width_mm": COLUMN, "dpi": 150}
"""How large a notebook shows a map."""

WIDE = {"width_mm": PAGE, "dpi": 100}
"""And what has many panels."""

FINE = {**WIDE, "dpi": 200}
"""And every head's map, each patch of which takes a dot."""


@dataclass(frozen=True, kw_only=True)
class PlotPaper:
    """How large a plot is printed; the options of `save_depth` and `save_curves`.

    `venue`, one of `VENUES`, stands for a width. `caption` prints what is drawn, the facts and the
    notes below; `letters` puts a, b, c … before plots that stand beside each other.
    """

    width_mm: float = COLUMN
    venue: str | None = None
    dpi: int = 450
    caption: bool = True
    letters: bool = False

    def __post_init__(self) -> None:
        """Settle and check the size, and the flags."""
        object.__setattr__(self, "width_mm", width_of(self.width_mm, self.venue, COLUMN))
        check_size(self.width_mm, self.dpi)
        check_flags(self)


def width_of(width_mm: float, venue: str | None, usual: float) -> float:
    """The width, or that of the venue where one is given and the width is the `usual` one.

    Raises UnknownName for a venue that is none, BadOption for two widths that differ.
    """
    if venue is None:
        return width_mm
    if venue not in VENUES:
        raise unknown("venue", venue, VENUES)
    if width_mm not in (usual, VENUES[venue]):
        raise BadOption(
            f"The venue {venue} is {VENUES[venue]:g} mm wide, and width_mm={width_mm!r} came: give"
            " one of them."
        )
    return VENUES[venue]


def check_size(width_mm: float, dpi: float) -> None:
    """Refuse a figure of a width or with dots that nobody prints."""
    for name, value, low, high in (("width_mm", width_mm, 50, 400), ("dpi", dpi, 72, 1200)):
        if not within(value, low, high):
            raise BadOption(f"{name} is from {low} to {high}; {value!r} came.")


def check_flags(paper: object) -> None:
    """Refuse a flag that is neither True nor False: a manifest could not say it."""
    for name in FLAGS:
        value = getattr(paper, name, False)
        if not is_flag(value):
            raise BadOption(f"{name} is True or False; {value!r} came.")
