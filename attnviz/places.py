"""What a request names of a model, checked before a picture passes: layers, heads and tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from attnviz.contract import LoadedViT
from attnviz.errors import BadOption
from attnviz.geometry import Geometry, asks_not, read_by
from attnviz.methods import METHODS
from attnviz.methods.options import check
from attnviz.tokens import Query, TokenLayout


def require_places(
    vit: LoadedViT,
    layout: TokenLayout,
    method: str,
    options: Mapping[str, Any],
    query: Query | None = None,
) -> dict[str, Any]:
    """The method's options in their one form, of a picture of these tokens.

    Raises UnknownName or BadOption where the model has no such layer or head, or what the method
    reads has no such token.
    """
    places: Any = SimpleNamespace(layers=vit.sites, layout=layout)  # as in a record
    found = check(method, METHODS[method].options, options, places)
    if query is not None:
        read = read_by(found, lambda number: vit.sites[number].geometry_on(layout))
        asked = read.queries.query_tokens(read.asked(query, layout))
        turned = found.get("direction") == "to"  # then it need not ask
        if "layer" in found and not turned and not read.asks[asked.start : asked.stop].any():
            raise asks_not(vit.sites[found["layer"]].name, read.kind)
    return found


def require_in_some_layer(
    vit: LoadedViT,
    layout: TokenLayout,
    method: str,
    options: Mapping[str, Any],
    query: Query | None = None,
) -> None:
    """The same where all layers are shown: one of them has the head and the token."""
    most = max(range(len(vit.sites)), key=lambda number: vit.sites[number].heads)
    found = require_places(vit, layout, method, {**options, "layer": most})
    if query is None:
        return
    layout.query_tokens(query)
    reasons = [
        why_not(site.geometry_on(layout), site.heads, layout, query, found) for site in vit.sites
    ]
    if all(reasons):
        raise none_left(reasons)


def why_not(
    geometry: Geometry, heads: int, layout: TokenLayout, query: Query, options: Mapping[str, Any]
) -> str:
    """Why a layer of so many heads has no map of that query, in words; nothing where it has one."""
    head, asker = options.get("head"), layout.query_label(query)
    if options.get("direction") == "to":
        if not geometry.queries.to_grid(geometry.asks).any():
            return "no patch looks at anything there"
        if not geometry.turned.takes(query, layout):
            return f"nothing looks at the {asker} there"
    elif not geometry.takes(query, layout):
        return f"the {asker} does not ask there"
    if head is not None and head >= heads:
        return f"there are {heads} heads, and no head {head}"
    return ""


def none_left(reasons: Iterable[str]) -> BadOption:
    """What is said where no layer has a map, and why each has none."""
    told = "; ".join(dict.fromkeys(reasons))
    return BadOption(f"There is no layer to show: {told}. Choose another query.")
