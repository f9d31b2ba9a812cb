"""Which shape plain values from a file must have: said once, asked before any is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from operator import index
from types import MappingProxyType
from typing import Any

Shape = Callable[[Any], bool]
"""Whether a value is of that shape."""

NAME_LETTERS = 255
"""Of a name, as a file system allows: a longer one would take minutes to typeset."""

WORDS_LETTERS = 4096
"""Of a sentence."""

LARGEST_INT = 2**63
"""Whole numbers stay under it on both sides."""


def text(longest: int) -> Shape:
    """Letters that can be written to a file, at most so many."""
    return lambda value: isinstance(value, str) and len(value) <= longest and _encodes(value)


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def is_whole(value: Any) -> bool:
    """A whole number; True is none."""
    return type(value) is int and -LARGEST_INT <= value < LARGEST_INT


def as_whole(value: Any) -> int:
    """What counts as a whole number to Python, but for True and False; TypeError for all else."""
    if is_flag(value):
        raise TypeError(f"{value} is no number")
    return index(value)


def is_number(value: Any) -> bool:
    """A whole number, or any other that is finite."""
    return is_whole(value) or (isinstance(value, float) and isfinite(value))


def is_none(value: Any) -> bool:
    """None itself."""
    return value is None


def is_flag(value: Any) -> bool:
    """True or False."""
    return isinstance(value, bool)


def either(*shapes: Shape) -> Shape:
    """One of these."""
    return lambda value: any(shape(value) for shape in shapes)


def items(shape: Shape, least: int, most: int) -> Shape:
    """A list of that many of the same shape."""
    return lambda value: (
        isinstance(value, list) and least <= len(value) <= most and all(map(shape, value))
    )


def table(parts: Mapping[str, Shape]) -> Shape:
    """A table that has all of these parts, and any others."""
    return lambda value: (
        isinstance(value, Mapping)
        and all(name in value and shape(value[name]) for name, shape in parts.items())
    )


def distinct(shape: Shape) -> Shape:
    """A list of that shape, of names, in which each is once."""
    return lambda value: shape(value) and len(set(value)) == len(value)


def named(
    shape: Shape,
    *,
    never: frozenset[str] = frozenset(),
    others: Mapping[str, Shape] = MappingProxyType({}),
) -> Shape:
    """A table of any names but these, all to values of the same shape, except those of `others`."""
    return lambda value: (
        isinstance(value, Mapping)
        and not never & value.keys()
        and all(is_name(name) and others.get(name, shape)(part) for name, part in value.items())
    )


is_name = text(NAME_LETTERS)
is_words = text(WORDS_LETTERS)
is_size = items(is_whole, 2, 2)
is_query = either(is_name, is_size)
is_plain = either(is_none, is_number, is_name)

is_target = either(
    is_none,
    is_whole,
    is_name,
    table({"similar_to": is_query}),
    table({"similar_to_picture": is_name, "name": either(is_none, is_name)}),
)

is_origin = table(
    {
        "model": is_name,
        "weights": is_words,
        "weights_sha256": is_name,
        "seed": either(is_none, is_whole),
        "checkpoint": either(is_none, is_name),
        "image_size": either(is_none, is_size),
        "device": is_name,
        "fit": is_name,
        "keep": is_name,
        "target": is_target,
    }
)
"""What `trace.origin_of` gives."""
