"""Which of a drawing's options change which kind of file, and how they are typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnviz.writing import LEVELS, MASK, kind_of

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


def used_in(kind: str, drawing: Mapping[str, Any]) -> dict[str, Any]:
    """Of a drawing's options those that change a file of that kind: no other is in its manifest."""
    return {name: value for name, value in drawing.items() if name in USED.get(kind, EVERY)}


def flag_of(option: str) -> str:
    """What an option is called on the command line; what is on unless told otherwise, by "no"."""
    return f"--{'no-' if option in _ON else ''}{option.replace('_', '-')}"


def flag_words(option: str, value: object) -> list[str]:
    """The words that give an option this value, unquoted; none for what is so without a word.

    A patch is its two numbers, and what is on or off is a flag alone.
    """
    if isinstance(value, bool):
        return [] if value is (option in _ON) else [flag_of(option)]
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return [flag_of(option), text]


_ON = frozenset({"caption"})
"""Options that are on unless they are turned off."""
