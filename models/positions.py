"""Learned positions kept as a list: a list of the same length may be of another grid."""

from __future__ import annotations

import re
from typing import Any

from torch import nn

from attnviz.errors import BadOption
from models.sizes import Size

LISTED = re.compile(r"(^|\.)(pos_embed|patch_pos)(\.\d+)?$")
"""What timm calls them, (1, token, channel): nothing in their shape says which rows and columns."""


def require_another_count(name: str, native: nn.Module, made: nn.Module, size: Size) -> None:
    """Refuse weights for a model made for another size whose grid has as many patches as its own.

    timm takes them for positions of the new grid, unchanged, though they are those of the old one.

    Raises:
        BadOption: there are as many, so that nothing tells which grid a file's are for.
    """
    of_made: dict[str, Any] = dict(made.named_parameters())
    for path, positions in native.named_parameters():
        alike = path in of_made and of_made[path].shape == positions.shape
        if LISTED.search(path) and positions.ndim == 3 and alike:
            raise BadOption(
                f"{name} keeps {positions.shape[1]} positions in a list, and for"
                f" {size[0]} × {size[1]} pixels it would be as long: those learned for its own"
                " rows and columns would be taken for others. Choose another image_size, or"
                " pretrained=False."
            )
