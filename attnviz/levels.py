"""A map's bare numbers: as a 16-bit PNG, one pixel a patch, or as a table of its patches."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from io import BytesIO, StringIO
from typing import Any

import numpy as np
from PIL import Image

from attnviz.errors import BadOption
from attnviz.heatmap import Heatmap
from attnviz.legend import CHANNELS
from attnviz.scale import Scale
from attnviz.sheet import png_words
from attnviz.trace import text_of

STEPS = 65535
"""Of equal size, from the lowest value to the highest."""


def render_levels(heat: Heatmap, told: Mapping[str, Any] | None = None) -> bytes:
    """The bytes; value = low + (high − low) · level / 65535, with low and high in the metadata.

    There they stand beside what the manifest `told` says. A level map is 0 throughout, a cell
    without a value too. Raises BadOption for three components.
    """
    if heat.in_colour:
        raise BadOption("A 16-bit picture holds one value a patch; three came: draw one component.")
    values, ends = heat.values.astype(np.float64), ends_of(heat)
    low, high = ends.low, ends.high
    share = (values - low) / (high - low) if high > low else np.zeros(heat.grid)
    levels = np.rint(np.where(heat.filled, share, 0).clip(0, 1) * STEPS).astype(np.uint16)
    said = {"low": low, "high": high, "unit": heat.unit, "box": list(heat.box)}
    said["facts"] = dict(heat.facts)
    file = BytesIO()
    words = png_words(heat.summary, text_of({**(told or {}), **said}))
    Image.fromarray(levels).save(file, "PNG", pnginfo=words)
    return file.getvalue()


def ends_of(heat: Heatmap) -> Scale:
    """From which value to which the levels run."""
    values = heat.values[heat.filled]
    return Scale(float(values.min()), float(values.max()), "lowest to highest value")


def render_cells(heat: Heatmap) -> bytes:
    """Each patch's value as CSV: row, col, value, or red, green, blue; those without have no line.

    Values are written so that reading them back gives the same float32.
    """
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("row", "col", *(CHANNELS if heat.in_colour else ("value",))))
    for row, col in np.argwhere(heat.filled).tolist():
        values = np.atleast_1d(heat.values[row, col])
        writer.writerow((row, col, *(repr(float(value)) for value in values)))
    return file.getvalue().encode()
