"""What a file says so that it can be made again: requests, options, pictures, versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from attnviz.errors import BadOption, unknown
from attnviz.scale import Scale
from attnviz.shapes import is_flag
from attnviz.trace import FORMAT, picture_sum, versions

EXACT = 2**53
"""Whole numbers under it, on both sides, are the same as fractions."""

_Paper = TypeVar("_Paper")

Shown = tuple[Mapping[str, Any] | None, Image.Image | None, str | None]
"""What it takes to compute one map, its picture, and what that is called."""


def again(kind: str, shown: Sequence[Shown], paper: object, **more: Any) -> dict[str, Any]:
    """What `replay` reads; without the part to repeat where a map takes more than names.

    `kind` is what the file shows: `"map"`, `"film"`, `"row"`, `"heads"`, `"metrics"` or `"curves"`;
    `paper` the record of options that it was drawn with.
    """
    said: dict[str, Any] = {"format": FORMAT, "kind": kind, "versions": dict(versions())}
    maps = []
    sums: dict[int, str] = {}  # of this call only: a picture may be changed in place, or go
    for request, image, name in shown:
        if image is None or request is None:
            return said | {"again": None}
        if id(image) not in sums:
            sums[id(image)] = picture_sum(image)
        maps.append({**request, "picture": {"name": name, "sha256": sums[id(image)]}})
    return said | {"again": {"maps": maps, "options": options_of(paper), **more}}


def chosen_options(kind: Callable[..., _Paper], options: Mapping[str, Any]) -> _Paper:
    """The options as one record of that kind; UnknownName for one that it does not have.

    Equal numbers become one, of the type that the record declares: the same request has the same
    bytes.
    """
    record: Any = kind
    known = {field.name: str(field.type) for field in fields(record)}
    for name in options:
        if name not in known:
            raise unknown("option of a saved figure", name, known)
    return kind(**{name: _declared(plain(value), known[name]) for name, value in options.items()})


def _declared(value: Any, declared: str) -> Any:
    """A number as one of the declared type, where it is the same number; all else as it is."""
    if not isinstance(value, Real) or is_flag(value):
        return value
    number: Any = value
    if not abs(number) < EXACT:
        return value
    if declared.startswith("float"):
        return float(number)
    return int(number) if declared.startswith("int") and number == int(number) else value


def options_of(paper: Any) -> dict[str, Any]:
    """The options that are not as usual, in plain values; a venue is its width."""
    chosen = {
        each.name: getattr(paper, each.name)
        for each in fields(paper)
        if each.name != "venue" and getattr(paper, each.name) != each.default
    }
    return {
        name: {"low": value.low, "high": value.high, "name": value.name}
        if isinstance(value, Scale)
        else plain(value)
        for name, value in chosen.items()
    }


def plain(value: Any) -> Any:
    """A number, a flag or a name of NumPy's as Python's, which JSON can hold; all else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def options_from(written: Mapping[str, Any]) -> dict[str, Any]:
    """The same, as options are given; BadOption for a scale that is none."""
    options = dict(written)
    scale = options.get("scale")
    if isinstance(scale, Mapping):
        try:
            options["scale"] = Scale(float(scale["low"]), float(scale["high"]), str(scale["name"]))
        except (KeyError, TypeError, ValueError):
            raise BadOption(f"A scale has low, high and name; {dict(scale)} came.") from None
    return options
