"""Whether the parts of a dataclass are of the types that it declares, where a file gave them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from attnviz.shapes import is_flag, is_number, is_whole, is_words


def require_types(made: Any) -> None:
    """TypeError where a part of a dataclass is of another type than it says, or no finite number.

    Arrays are asked for their axes and kind of number, not for their values.
    """
    hints = get_type_hints(type(made))
    for each in fields(made):
        if not _is(getattr(made, each.name), hints[each.name]):
            raise TypeError(f"{type(made).__name__}.{each.name} is of another type")


SIMPLE = {bool: is_flag, int: is_whole, float: is_number, str: is_words}
"""Types → the values of them that a file may give."""


def _is(value: Any, hint: Any) -> bool:
    if hint is None or hint is type(None):
        return value is None
    if hint in SIMPLE:
        return SIMPLE[hint](value)
    form, parts = get_origin(hint), get_args(hint)
    if form in (Union, UnionType):
        return any(_is(value, part) for part in parts)
    if form is Literal:
        return isinstance(value, str) and value in parts
    if form is tuple:
        if not isinstance(value, tuple):
            return False
        if parts[-1:] == (Ellipsis,):
            return all(_is(each, parts[0]) for each in value)
        return len(value) == len(parts) and all(map(_is, value, parts))
    if form is not None and issubclass(form, Mapping):
        return isinstance(value, Mapping)
    return isinstance(value, hint)  # arrays too: the annotation counts axes and knows their numbers
