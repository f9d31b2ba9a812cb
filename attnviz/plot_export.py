"""Files of plots: a metric against depth, and curves; or their numbers."""

from __future__ import annotations

import csv
import json
import os
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.curve_paper import draw_curves
from attnviz.curves import Curves
from attnviz.depth import draw_depth
from attnviz.errors import unknown
from attnviz.export import RENDERERS, chosen_options, stem_of
from attnviz.metrics import HeadMetrics
from attnviz.paper import PlotPaper
from attnviz.writing import checked_target, write_whole

DEPTH_KINDS = (".png", ".svg", ".pdf")
"""Suffixes of a plot of a metric against depth."""


def save_depth(
    metrics: HeadMetrics,
    name: str,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    **options: Any,
) -> Path:
    """Write the plot of a metric against depth; `options` are those of `PlotPaper`.

    Raises `BadOption` as `save` does, and `UnknownName` for a metric that doesn't exist.
    """
    target = checked_target(path, DEPTH_KINDS, overwrite)
    content = render_depth(metrics, name, target.suffix.lower(), **options)
    return write_whole(target, content, overwrite=overwrite)


def render_depth(metrics: HeadMetrics, name: str, kind: str, **options: Any) -> bytes:
    """The bytes of the file that `save_depth` writes; `kind` is one of `DEPTH_KINDS`."""
    if kind not in DEPTH_KINDS:
        raise unknown("kind of file", kind, DEPTH_KINDS)
    metric = metrics.describe(name)
    said = {
        "made_by": "attnviz",
        "title": metric.label,
        "unit": metric.unit,
        "description": metric.description,
        "facts": dict(metrics.facts),
        "notes": list(metrics.notes),
    }
    text = json.dumps(said, ensure_ascii=False)
    paper = chosen_options(PlotPaper, options)
    return draw_depth(metrics, name, paper, kind=kind.removeprefix("."), manifest=text)


def render_table(metrics: HeadMetrics) -> bytes:
    """Every metric of every head as CSV, one line a head."""
    file = StringIO()
    rows = metrics.table()
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def table_stem(metrics: HeadMetrics) -> str:
    """A file name without suffix for the table: picture and model."""
    facts = dict(metrics.facts)
    return stem_of([Path(facts.get("picture", "")).stem, facts.get("model"), "heads"])


def depth_stem(metrics: HeadMetrics, name: str) -> str:
    """A file name without suffix for a plot: picture, model and metric."""
    facts = dict(metrics.facts)
    words = [Path(facts.get("picture", "")).stem, facts.get("model"), metrics.describe(name).label]
    return stem_of(words)


def save_curves(
    curves: Curves, path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> Path:
    """Write the plot of the curves, or their numbers; `options` are those of `PlotPaper`.

    Raises `BadOption` as `save` does.
    """
    target = checked_target(path, RENDERERS, overwrite)
    content = render_curves(curves, target.suffix.lower(), **options)
    return write_whole(target, content, overwrite=overwrite)


def render_curves(curves: Curves, kind: str, **options: Any) -> bytes:
    """The bytes of the file that `save_curves` writes; `kind` is one of those in `RENDERERS`."""
    if kind not in RENDERERS:
        raise unknown("kind of file", kind, RENDERERS)
    paper = chosen_options(PlotPaper, options)
    said = {
        "made_by": "attnviz",
        "title": curves.title,
        "mode": curves.mode,
        "score": curves.score,
        "facts": dict(curves.facts),
        "notes": list(curves.notes),
        "area": curves.area,
        "random_areas": curves.random_areas.tolist(),
    }
    text = json.dumps(said, ensure_ascii=False)
    if kind != ".npz":
        return draw_curves(curves, paper, kind=kind.removeprefix("."), manifest=text)
    file = BytesIO()
    parts = {name: getattr(curves, name) for name in ("fractions", "scores", "random")}
    np.savez_compressed(file, manifest=np.array(text), **parts)
    return file.getvalue()
