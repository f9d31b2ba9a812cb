"""The shape of a manifest that `replay` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnviz.shapes import (
    Shape,
    distinct,
    either,
    is_flag,
    is_name,
    is_none,
    is_number,
    is_origin,
    is_plain,
    is_query,
    items,
    named,
    table,
)

MOST_MAPS = 1000

MOST_METRICS = 100
"""Of one plot; there are fewer, with those of the prefix tokens."""

FLAGS = ("caption", "original", "letters")
"""Options of a drawing that are on or off. True is a number to Python, and no other is any."""

_REQUEST: dict[str, Shape] = {
    "from": is_origin,
    "picture": table({"name": either(is_none, is_name), "sha256": is_name}),
}
_ASKED: dict[str, Shape] = {
    "method": is_name,
    "query": is_query,
    # None of them is a flag. What `explain` itself is called with can be no option of a method.
    "options": named(is_plain, never=frozenset({"record", "method", "query", "progress"})),
}
_MAP = {**_REQUEST, **_ASKED}
_SCALE = table({"low": is_number, "high": is_number, "name": is_name})
_DRAWN = named(
    either(is_plain, _SCALE),
    never=frozenset({"figure", "kind"}),
    others=dict.fromkeys(FLAGS, is_flag),
)


def _again(request: Mapping[str, Shape], most: int = 1, **more: Shape) -> Shape:
    return table({"maps": items(table(request), 1, most), "options": _DRAWN, **more})


_NAMES = items(is_name, 0, MOST_MAPS)
_AGAIN = {
    "map": _again(_MAP),
    "film": _again(_MAP),
    "row": _again(_MAP, MOST_MAPS, names=_NAMES),
    "heads": _again({**_REQUEST, "query": is_query}),
    "metrics": _again(_REQUEST, metrics=distinct(items(is_name, 1, MOST_METRICS))),
}
_FILE = table({"kind": is_name, "sha256": is_name})


def fits(said: Mapping[str, Any]) -> bool:
    """Whether all that is read of a manifest is there and of its kind; of a kind that there is."""
    kind, file = said.get("kind"), said.get("file")
    return (
        isinstance(kind, str)
        and kind in _AGAIN
        and named(is_name)(said.get("versions"))
        and _AGAIN[kind](said.get("again"))
        and (file is None or _FILE(file))
    )
