"""Sizes of pictures in pixels: which ones a model takes, and which one suits a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnviz.errors import BadOption

Size = tuple[int, int]
"""(rows, cols): in pixels, or in cells where a grid or a window is meant."""


def pair(size: Any) -> Size:
    """(rows, cols) of what networks keep as one number or as two."""
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def as_size(image_size: object) -> Size:
    """A number or (rows, cols), in pixels, as the pair.

    Raises:
        BadOption: it is neither, or not positive.
    """
    pair = image_size if isinstance(image_size, tuple | list) else (image_size, image_size)
    if len(pair) == 2 and all(type(side) is int and side > 0 for side in pair):
        return pair[0], pair[1]
    raise BadOption(
        f"An image_size is a number of pixels or a pair (rows, cols), such as 224 or (224, 336);"
        f" {image_size!r} came."
    )


def require_multiples(size: Size, patch: Size, what: str = "the patch") -> None:
    """Refuse a size that patches, or `what`, do not tile, and name the nearest ones."""
    if all(side > 0 and side % step == 0 for side, step in zip(size, patch, strict=True)):
        return
    near = [
        sorted({max(1, side // step) * step, max(1, -(-side // step)) * step})
        for side, step in zip(size, patch, strict=True)
    ]
    words = (" or ".join(map(str, sides)) for sides in near)
    raise BadOption(
        f"{size[0]} × {size[1]} pixels are no multiple of {what}, {patch[0]} × {patch[1]}."
        f" The nearest that are: {next(words)} rows, {next(words)} columns."
    )


def aspect_size(picture: Size, *, patch: Size, patches: int) -> Size:
    """The size of at most `patches` patches that is as near as can be to the picture's shape.

    Minimises |log of the change of shape| + ½ log(patches / patches used). Keeping the shape comes
    first, but a very long picture gets two rows rather than one and few patches.
    """
    # Columns for one row at the picture's own shape; patches need not be square.
    wanted = (picture[1] / patch[1]) / (picture[0] / patch[0])
    rows = np.arange(1, patches + 1)
    most = patches // rows
    cols = np.stack([np.floor(rows * wanted), np.ceil(rows * wanted)]).clip(1, most)
    cost = np.abs(np.log(cols / rows / wanted)) + np.log(patches / (rows * cols)) / 2
    rounding, row = np.unravel_index(cost.argmin(), cost.shape)
    return int(rows[row]) * patch[0], int(cols[rounding, row]) * patch[1]
