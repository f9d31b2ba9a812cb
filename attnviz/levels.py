"""A map as a 16-bit PNG: one pixel a patch, its values in equal steps of their own range."""

from __future__ import annotations

import json
from io import BytesIO

import numpy as np
from PIL import Image

from attnviz.errors import BadOption
from attnviz.heatmap import Heatmap
from attnviz.sheet import png_words

STEPS = 65535
"""Of equal size, from the lowest value to the highest."""


def render_levels(heat: Heatmap) -> bytes:
    """The bytes; value = low + (high − low) · level / 65535, with low and high in the metadata.

    A level map is 0 throughout, a cell without a value too. Raises BadOption for three components.
    """
    if heat.in_colour:
        raise BadOption("A 16-bit picture holds one value a patch; three came: draw one component.")
    values = heat.values.astype(np.float64)
    low, high = float(values[heat.filled].min()), float(values[heat.filled].max())
    share = (values - low) / (high - low) if high > low else np.zeros(heat.grid)
    levels = np.rint(np.where(heat.filled, share, 0).clip(0, 1) * STEPS).astype(np.uint16)
    said = {"low": low, "high": high, "unit": heat.unit, "box": list(heat.box)}
    file = BytesIO()
    words = png_words(heat.summary, json.dumps(said | {"facts": dict(heat.facts)}))
    Image.fromarray(levels).save(file, "PNG", pnginfo=words)
    return file.getvalue()
