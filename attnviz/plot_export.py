"""Files of plots: a metric against depth, and curves; or their numbers."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.again import again, chosen_options
from attnviz.curve_paper import draw_curves
from attnviz.curves import Curves
from attnviz.depth import draw_depth
from attnviz.errors import BadOption, unknown
from attnviz.export import RENDERERS
from attnviz.facts import Facts, chosen_words, said
from attnviz.metrics import HeadMetrics
from attnviz.naming import stem_of
from attnviz.trace import text_of
from attnviz.venue import WIDE, PlotPaper
from attnviz.writing import checked_target, kind_of, write_whole

TABLE = ".csv"

DEPTH_KINDS = (".png", ".svg", ".pdf", TABLE)
"""Suffixes of a plot of a metric against depth; a table holds every metric of every head."""


@dataclass(frozen=True, eq=False)
class MetricPlot:
    """Metrics of heads by name, to be plotted; raises UnknownName for one that does not exist."""

    metrics: HeadMetrics
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check the names."""
        if not isinstance(self.metrics, HeadMetrics):
            came = type(self.metrics).__name__
            raise BadOption(f"A plot is of what head_metrics gave; {came} came.")
        if not self.names:
            raise BadOption("A plot needs at least one metric; none came.")
        for name in self.names:
            if not isinstance(name, str):
                raise BadOption(f"Each metric is given by its name; {type(name).__name__} came.")
            self.metrics.describe(name)
            if self.names.count(name) > 1:
                raise BadOption(f"A plot shows each metric once; {name} came more than once.")

    @property
    def title(self) -> str:
        """What is plotted."""
        return "; ".join(self.metrics.describe(name).label for name in self.names)

    @property
    def summary(self) -> str:
        """What it shows in one line."""
        return self.metrics.caption(*self.names)[0]

    @property
    def facts(self) -> Facts:
        """What is true of all of it."""
        return self.metrics.facts

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings."""
        return self.metrics.notes

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write .png, .svg, .pdf or .csv; options as in `venue.PlotPaper`."""
        return save_depth(self.metrics, self.names, path, **options)

    def _repr_png_(self) -> bytes:
        """What a notebook shows: the printed plot."""
        return render_depth(self.metrics, self.names, ".png", **WIDE)


def plot(metrics: HeadMetrics, *names: str) -> MetricPlot:
    """Metrics of heads against depth, side by side, as a figure; the entropy if none is named.

    Raises UnknownName for a metric that does not exist.
    """
    return MetricPlot(metrics, names or ("entropy",))


def save_depth(
    metrics: HeadMetrics,
    names: str | Sequence[str],
    path: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    **options: Any,
) -> Path:
    """Write the plot of a metric, or of several, against depth; `options` are those of `PlotPaper`.

    Raises `BadOption` as `save` does, and `UnknownName` for a metric that doesn't exist.
    """
    chosen_options(PlotPaper, options)
    target = checked_target(path, DEPTH_KINDS, overwrite)
    content = render_depth(metrics, names, kind_of(target, DEPTH_KINDS), **options)
    return write_whole(target, content, overwrite=overwrite)


def render_depth(
    metrics: HeadMetrics, names: str | Sequence[str], kind: str, **options: Any
) -> bytes:
    """The bytes of the file that `save_depth` writes; `kind` is one of `DEPTH_KINDS`."""
    if kind not in DEPTH_KINDS:
        raise unknown("kind of file", kind, DEPTH_KINDS)
    plot = MetricPlot(metrics, (names,) if isinstance(names, str) else tuple(names))
    paper = chosen_options(PlotPaper, options)
    if kind == TABLE:
        return render_table(metrics)
    text, drawn = text_of(depth_manifest(plot, paper)), kind.removeprefix(".")
    return draw_depth(metrics, plot.names, paper, kind=drawn, manifest=text)


def depth_manifest(plot: MetricPlot, paper: PlotPaper) -> dict[str, Any]:
    """All that it takes to know what a plot shows, as plain values."""
    metrics, names = plot.metrics, list(plot.names)
    about = [metrics.describe(name) for name in names]
    shown = (metrics.request, metrics.picture, dict(metrics.facts).get("picture"))
    return {
        "made_by": "attnviz",
        **again("metrics", [shown], paper, metrics=names),
        "title": plot.title,
        "unit": "; ".join(metric.unit for metric in about),
        "description": "\n".join(metric.description for metric in about),
        "facts": dict(metrics.facts),
        "notes": list(metrics.notes),
    }


def render_table(metrics: HeadMetrics) -> bytes:
    """Every metric of every head as CSV, one line a head."""
    file = StringIO()
    rows = metrics.table()
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def table_summary(metrics: HeadMetrics) -> str:
    """What the table holds, in one line."""
    return "; ".join(said("Every metric of every head", metrics.facts))


def table_stem(metrics: HeadMetrics) -> str:
    """A file name without suffix for the table: picture and model."""
    facts = dict(metrics.facts)
    return stem_of([Path(facts.get("picture", "")).stem, facts.get("model"), "heads"])


def depth_stem(metrics: HeadMetrics, *names: str) -> str:
    """A file name without suffix for a plot: picture, model and metrics."""
    facts = dict(metrics.facts)
    labels = [metrics.describe(name).label for name in names]
    words = [Path(facts.get("picture", "")).stem, facts.get("model"), *labels]
    return stem_of(words)


def curves_stem(curves: Curves) -> str:
    """A file name without suffix for curves: picture, model, test, method and what was chosen."""
    fact = dict(curves.facts).get
    words = [Path(fact("picture") or "").stem, fact("model"), curves.mode, curves.title]
    return stem_of([*words, *chosen_words(fact)])


def save_curves(
    curves: Curves, path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> Path:
    """Write the plot of the curves, or their numbers; `options` are those of `PlotPaper`.

    Raises `BadOption` as `save` does.
    """
    target, _ = plan_curves(path, overwrite=overwrite, **options)
    content = render_curves(curves, kind_of(target, RENDERERS), **options)
    return write_whole(target, content, overwrite=overwrite)


def plan_curves(
    path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> tuple[Path, PlotPaper]:
    """Where and how `save_curves` would write; what is wrong with that is known before a test."""
    paper = chosen_options(PlotPaper, options)
    return checked_target(path, RENDERERS, overwrite), paper


def render_curves(curves: Curves, kind: str, **options: Any) -> bytes:
    """The bytes of the file that `save_curves` writes; `kind` is one of those in `RENDERERS`."""
    if kind not in RENDERERS:
        raise unknown("kind of file", kind, RENDERERS)
    paper = chosen_options(PlotPaper, options)
    said = {
        "made_by": "attnviz",
        **again("curves", [(None, None, None)], paper),  # curves are not made again
        "title": curves.title,
        "mode": curves.mode,
        "score": curves.score,
        "facts": dict(curves.facts),
        "notes": list(curves.notes),
        "area": curves.area,
        "random_areas": curves.random_areas.tolist(),
    }
    text = text_of(said)
    if kind != ".npz":
        return draw_curves(curves, paper, kind=kind.removeprefix("."), manifest=text)
    file = BytesIO()
    parts = {name: getattr(curves, name) for name in ("fractions", "scores", "random")}
    np.savez_compressed(file, manifest=np.array(text), **parts)
    return file.getvalue()
