"""Which of a drawing's options change which kind of file."""

from __future__ import annotations

from collections.abc import Mapping

from attnviz.export import LEVELS, MASK
from attnviz.writing import kind_of

_COLOURS = frozenset({"alpha", "colormap", "scale", "clip", "interpolation", "caption"})
_PRINTED = _COLOURS | {"mass", "venue", "width_mm", "dpi", "original", "letters", "columns"}
_MOVING = _COLOURS | {"width_px", "seconds"}
_BARE: frozenset[str] = frozenset()

USED: Mapping[str, frozenset[str]] = {
    ".png": _PRINTED,
    ".svg": _PRINTED,
    ".pdf": _PRINTED,
    ".zip": _PRINTED,  # which holds printed ones too, and none that moves
    ".gif": _MOVING,
    ".webp": _MOVING,
    ".npz": _BARE,
    ".csv": _BARE,
    LEVELS: _BARE,
    MASK: frozenset({"mass"}),
}
"""Suffix → the options of a drawing that change such a file."""

EVERY = frozenset().union(*USED.values())
"""All options of drawings."""


def used_by(output: str) -> frozenset[str]:
    """Those that change a file of that name; of a kind that is not known, all."""
    return USED.get(kind_of(output, USED), EVERY)
