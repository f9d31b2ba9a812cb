"""The printed plot of deletion or insertion curves."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from attnviz.colour import DOT
from attnviz.curves import Curves
from attnviz.fonts import families
from attnviz.sheet import GAP, LINE, Sheet, printable_facts, printed
from attnviz.typeset import wrap
from attnviz.venue import PlotPaper

HEIGHT = 0.6
"""Of the plot with its axes, over its width; the legend comes on top."""

HANDLE = 44.0
"""Points that the axis's numbers and a legend's line take beside a label."""

UNPRINTED = "in letters that no font here prints"
"""Stands for a score whose words hold such a name, as another picture's."""

MAP, RANDOM = DOT, "#777777"
"""The map's curve and the random orders': told apart by anyone, and in grey."""


def draw_curves(curves: Curves, paper: PlotPaper, *, kind: str, manifest: str) -> bytes:
    """The map's curve, and the mean of random orders with a band of their range.

    `kind` is `"png"`, `"svg"` or `"pdf"`.
    """
    fonts = printable_facts(curves.facts)[1]
    return printed(
        lambda: _figure(curves, paper), kind, paper.dpi, curves.summary, manifest, fonts=fonts
    )


def _figure(curves: Curves, paper: PlotPaper) -> Figure:
    """The score's name above the plot above the caption, on whole pixels, all text wrapped."""
    scale = paper.dpi / 72
    gap, step = round(GAP * scale), round(LINE * scale)
    width = round(paper.width_mm / 25.4 * paper.dpi)
    room = (width - 2 * gap) / scale
    score = curves.score if families(curves.score) else UNPRINTED
    above = wrap(f"Score: {score}", room)
    caption = curves.caption(facts=printable_facts(curves.facts)[0]) if paper.caption else []
    below = [line for text in caption for line in wrap(text, room)]
    labels = [wrap(label, room - HANDLE) for label in curves.labels]
    top, high = gap + step * len(above), round(width * HEIGHT) + step * sum(map(len, labels))
    height = top + high + step * len(below) + gap
    plot = (0.0, 1 - (top + high) / height, 1.0, high / height)
    layout = ConstrainedLayoutEngine(rect=plot, w_pad=GAP / 72, h_pad=GAP / 72)
    sheet = Sheet(Figure(layout=layout), width, height, paper.dpi)
    _plot(sheet.figure.add_subplot(), curves, *("\n".join(lines) for lines in labels))
    for first, lines in ((gap, above), (top + high, below)):
        for index, text in enumerate(lines):
            sheet.text(gap, first + step * index, text, "left")
    return sheet.figure


def _plot(axes: Axes, curves: Curves, own: str, random: str) -> None:
    """Curves, band, axes, and a legend that calls the curves `own` and `random`."""
    at, (low, high) = curves.fractions, curves.random_range
    # Not clipped: a dot at an end is a whole one.
    line: dict[str, Any] = {"marker": "o", "markersize": 2, "linewidth": 1.0, "clip_on": False}
    axes.plot(at, curves.scores, **line, color=MAP, label=own, zorder=3)
    axes.plot(at, curves.random_mean, color=RANDOM, linewidth=0.8, linestyle="--", label=random)
    axes.fill_between(at, low, high, color=RANDOM, alpha=0.3, linewidth=0)
    axes.set_xlim(0, 1)
    axes.set_xlabel(curves.axis)
    axes.set_ylabel("score")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set_linewidth(0.5)
    axes.tick_params(width=0.5, length=2)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, borderpad=0)
