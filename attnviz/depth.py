"""The printed plot of a metric against depth, as figure 7 of Dosovitskiy et al. 2021."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from attnviz.colour import DOT
from attnviz.metrics import DEPTH, HeadMetrics, Metric
from attnviz.paper import GAP, LINE, PlotPaper, Sheet, printed
from attnviz.typeset import TYPE, wrap

HEIGHT = 0.62
"""Of the plot, axes and all, over its width."""
LEAST = 110.0
"""And at least, in points: labels need their room."""


def draw_depth(
    metrics: HeadMetrics, name: str, paper: PlotPaper, *, kind: str, manifest: str
) -> bytes:
    """One dot a head and the mean over each layer's heads, as `"png"`, `"svg"` or `"pdf"`."""
    title = metrics.caption(name)[0]
    return printed(lambda: _figure(metrics, name, paper), kind, paper.dpi, title, manifest)


def _figure(metrics: HeadMetrics, name: str, paper: PlotPaper) -> Figure:
    """The plot above its caption, on whole pixels, all text wrapped to fit."""
    scale = paper.dpi / 72
    gap, step = round(GAP * scale), round(LINE * scale)
    width = round(paper.width_mm / 25.4 * paper.dpi)
    high = max(round(width * HEIGHT), round(LEAST * scale))
    texts = metrics.caption(name) if paper.caption else []
    lines = [line for text in texts for line in wrap(text, (width - 2 * gap) / scale)]
    height = high + step * len(lines) + (gap if lines else 0)
    upper = (0.0, 1 - high / height, 1.0, high / height)
    layout = ConstrainedLayoutEngine(rect=upper, w_pad=GAP / 72, h_pad=GAP / 72)
    sheet = Sheet(Figure(layout=layout), width, height, paper.dpi)
    _plot(sheet.figure.add_subplot(), metrics, name, (width / scale, high / scale))
    for index, text in enumerate(lines):
        sheet.text(gap, high + step * index, text, "left")
    return sheet.figure


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
