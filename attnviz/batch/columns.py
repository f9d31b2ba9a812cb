"""What a table says of each picture: its columns, one by one."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float

from attnviz.errors import BadOption
from attnviz.facts import as_text
from attnviz.heatmap import Heatmap
from attnviz.mass import MASS, mass_mask
from attnviz.metrics import METRICS, HeadMetrics
from attnviz.record import AttentionRecord
from attnviz.sinks import swallowed_by

_FLOATS = pa.list_(pa.float32())

COLUMNS: Mapping[str, tuple[pa.DataType, str]] = {
    "picture": (pa.string(), "the file, as it was named"),
    "sha256": (pa.string(), "of the file"),
    "width": (pa.int32(), "of the upright picture, in pixels"),
    "height": (pa.int32(), "of the upright picture, in pixels"),
    "left": (pa.float64(), "where the map lies in the picture, in its pixels; may reach past it"),
    "top": (pa.float64(), "the same"),
    "right": (pa.float64(), "the same"),
    "bottom": (pa.float64(), "the same"),
    "rows": (pa.int32(), "of the map"),
    "columns": (pa.int32(), "of the map"),
    "heat": (_FLOATS, "the map, row by row (three values a cell in colour); NaN: no value there"),
    "low": (pa.float64(), "the map's lowest value"),
    "high": (pa.float64(), "the map's highest value"),
    "total": (pa.float64(), "the sum of its values: of a share, what is not on prefix tokens"),
    "entropy": (pa.float64(), "of the map over its sum, in nats; null for one with signs"),
    "area": (pa.float64(), f"the share of the cells that hold {MASS} of it; null as above"),
    "swallowed": (pa.bool_(), "whether a few cells, but the query's own, leave nothing to see"),
    "label": (pa.string(), "the most probable class; null without classes"),
    "probability": (pa.float64(), "of that class"),
    "score": (pa.float64(), "the value of the gradient's target; null without one"),
    "notes": (pa.list_(pa.string()), "what has to be said of the map"),
}
"""Column → its type, and what it holds."""

HEADS: Mapping[str, tuple[pa.DataType, str]] = {
    f"heads_{name}": (_FLOATS, f"{metric.axis}, layer by layer, head by head; NaN: no such head")
    for name, metric in METRICS.items()
}
"""The same of head metrics, where they are asked for."""


def row_of(record: AttentionRecord, heat: Heatmap, metrics: HeadMetrics | None) -> dict[str, Any]:
    """A picture's row, in values that JSON can write; floats of arrays as base64 of float32."""
    left, top, right, bottom = heat.box
    rows, cols = heat.grid
    values = heat.values if heat.blank is None else np.where(heat.blank, np.nan, heat.values)
    best = record.predictions[0] if record.predictions else (None, None, None)
    row = {
        "width": record.image.width,
        "height": record.image.height,
        "left": left,
        "top": top,
        "right": right,
        "bottom": bottom,
        "rows": rows,
        "columns": cols,
        "heat": packed(values),
        **_measures(heat),
        "label": best[0],
        "probability": best[2],
        "score": record.score,
        "notes": list(heat.notes),
    }
    if metrics is not None:
        row |= {f"heads_{name}": packed(metrics[name]) for name in METRICS}
    return row


def packed(values: Float[np.ndarray, "..."]) -> str:
    """An array as text: base64 of its float32 values, little-endian."""
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def unpacked(text: str) -> Float[np.ndarray, " value"]:
    """The values again."""
    return np.frombuffer(base64.b64decode(text), "<f4")


def schema(*, head_metrics: bool, about: Mapping[str, str]) -> pa.Schema:
    """The table's columns, each with what it holds, and what the whole table is of."""
    columns = {**COLUMNS, **(HEADS if head_metrics else {})}
    return pa.schema(
        [pa.field(name, kind, metadata={"about": said}) for name, (kind, said) in columns.items()],
        metadata=dict(about),
    )


def _measures(heat: Heatmap) -> dict[str, float | bool | None]:
    """What can be said of a map in numbers, from the cells that hold a value."""
    held = heat.values[heat.filled].astype(np.float64)
    total = float(held.sum())
    spread = bool(not heat.in_colour and held.min() >= 0 and total > 0)
    shares = held / total if spread else held
    return {
        "low": float(held.min()),
        "high": float(held.max()),
        "total": total,
        "entropy": float(-(shares * np.log(shares, where=shares > 0, out=shares * 0)).sum())
        if spread
        else None,
        "area": _area(heat) if spread else None,
        "swallowed": spread and bool(swallowed_by(heat.values, heat.filled, itself=heat.itself)),
    }


def _area(heat: Heatmap) -> float | None:
    try:
        return int(mass_mask(heat.values, MASS).kept.sum()) / int(heat.filled.sum())
    except BadOption:
        return None


def written(name: str) -> str:
    """A file's name as text that any reader takes: bytes that are no text are escaped."""
    return as_text(PurePath(name).as_posix())
