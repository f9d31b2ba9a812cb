"""The printed plot of a metric against depth, as figure 7 of Dosovitskiy et al. 2021."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from attnviz.board import letter_of
from attnviz.colour import DOT
from attnviz.metrics import DEPTH, HeadMetrics, Metric
from attnviz.sheet import GAP, LINE, Sheet, printable_facts, printed
from attnviz.typeset import TYPE, wrap
from attnviz.venue import PlotPaper

HEIGHT = 0.62
"""Of the plot, axes and all, over its width."""
NARROWEST_MM = 59.0
"""Of one of several plots; three stand in two columns of a journal."""
LEAST = 110.0
"""And at least, in points: labels need their room."""


def draw_depth(
    metrics: HeadMetrics, names: Sequence[str], paper: PlotPaper, *, kind: str, manifest: str
) -> bytes:
    """One dot a head and the mean over each layer's heads, as `"png"`, `"svg"` or `"pdf"`.

    Several metrics are plots beside each other, as many as are `NARROWEST_MM` wide in a line.
    """
    title, fonts = metrics.caption(*names)[0], printable_facts(metrics.facts)[1]
    return printed(
        lambda: _figure(metrics, names, paper), kind, paper.dpi, title, manifest, fonts=fonts
    )


def _figure(metrics: HeadMetrics, names: Sequence[str], paper: PlotPaper) -> Figure:
    """The plots above their caption, on whole pixels, all text wrapped to fit."""
    scale = paper.dpi / 72
    gap, step = round(GAP * scale), round(LINE * scale)
    width = round(paper.width_mm / 25.4 * paper.dpi)
    columns = min(len(names), max(1, int(paper.width_mm // NARROWEST_MM)))
    lines = -(-len(names) // columns)
    each = width // columns, max(round(width / columns * HEIGHT), round(LEAST * scale))
    high = lines * each[1]
    facts = printable_facts(metrics.facts)[0]
    texts = metrics.caption(*names, facts=facts) if paper.caption else []
    below = [line for text in texts for line in wrap(text, (width - 2 * gap) / scale)]
    height = high + step * len(below) + (gap if below else 0)
    upper = (0.0, 1 - high / height, 1.0, high / height)
    layout = ConstrainedLayoutEngine(rect=upper, w_pad=GAP / 72, h_pad=GAP / 72)
    sheet = Sheet(Figure(layout=layout), width, height, paper.dpi)
    for number, name in enumerate(names):
        axes = sheet.figure.add_subplot(lines, columns, number + 1)
        _plot(axes, metrics, name, (each[0] / scale, each[1] / scale))
        if paper.letters:
            _letter(axes, letter_of(number))
    for index, text in enumerate(below):
        sheet.text(gap, high + step * index, text, "left")
    return sheet.figure


def _letter(axes: Axes, letter: str) -> None:
    """Left of the axis, where no legend is."""
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(letter, (0, 1), (-2.5 * TYPE, 2), ha="right", fontweight="bold", **place)


def _plot(axes: Axes, metrics: HeadMetrics, name: str, room: tuple[float, float]) -> None:
    """Dots, line and labels; `room` is (width, height) of all in points."""
    table = metrics.table()
    axes.plot(metrics.layer_means(name), color="black", linewidth=0.8, label="mean over heads")
    axes.plot(
        [row["layer"] for row in table],
        [row[name] for row in table],
        linestyle="none",
        marker="o",
        markersize=3,
        markeredgewidth=0,
        color=DOT,
        alpha=0.75,
        clip_on=False,  # a dot at 0 is a whole one
        label="one head",
    )
    axes.set_xlim(-0.5, len(metrics.heads) - 0.5)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(int(room[0] / (3 * TYPE)), integer=True))
    axes.set_xlabel(DEPTH)
    axes.set_ylabel("\n".join(_label(metrics.describe(name), room[1] - 8 * TYPE)))
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set_linewidth(0.5)
    axes.tick_params(width=0.5, length=2)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, borderpad=0)


def _label(metric: Metric, room: float) -> list[str]:
    """Label and unit in one line if they fit, else each in its own."""
    whole = wrap(metric.axis, room)
    return (
        whole if len(whole) == 1 else [*wrap(metric.label, room), *wrap(f"({metric.unit})", room)]
    )
