"""What a request names of a model, checked before a picture passes: layers, heads and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from attnviz.contract import LoadedViT
from attnviz.geometry import read_by
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
        read.queries.query_tokens(read.asked(query, layout))
    return found


def require_in_some_layer(
    vit: LoadedViT,
    layout: TokenLayout,
    method: str,
    options: Mapping[str, Any],
    query: Query | None = None,
) -> None:
    """The same where all layers are shown: a head that one of them has, a token of the picture."""
    most = max(range(len(vit.sites)), key=lambda number: vit.sites[number].heads)
    require_places(vit, layout, method, {**options, "layer": most})
    if query is not None:
        layout.query_tokens(query)
