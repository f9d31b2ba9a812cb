"""How a query's attention moves with depth: its map in every layer, by one head or all of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from attnviz import film_export
from attnviz.errors import BadOption, unknown
from attnviz.explain import explain
from attnviz.frames import Frames
from attnviz.methods import METHODS
from attnviz.places import none_left, why_not
from attnviz.record import AttentionRecord
from attnviz.tokens import Query
from attnviz.usage import METHOD
from attnviz.venue import WIDE

FILMED = tuple(name for name, method in METHODS.items() if "layer" in method.options)
"""Methods of one layer, which a film can be made of."""


class Film(Frames):
    """Frames that can save themselves; each of `maps` is an `Explanation`."""

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write .gif .webp .png .svg .pdf .npz or .csv; options as in `strip.FilmPaper`."""
        return film_export.save_film(self, path, **options)

    def _repr_png_(self) -> bytes:
        """What a notebook shows: the printed strip."""
        return film_export.render_film(self, ".png", **WIDE)


def film(
    record: AttentionRecord,
    method: str = METHOD,
    *,
    query: Query | None = None,
    **options: Any,
) -> Film:
    """The same query's map in every layer, each as `explain` gives it.

    Layers in which the token does not ask, or which have no such head, are left out and named.

    Args:
        record: what `observe` gave.
        method: one that reads a single layer, of `FILMED`.
        query: as in `explain`; if left out, the record's default.
        options: the method's own but for `layer`, as `head` or `head_fusion`.

    Raises:
        UnknownName: no such method, query, head or option.
        BadOption: the method does not go layer by layer, or the token asks in no layer.
        CaptureFailed: the values are not finite.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if method not in FILMED:
        raise BadOption(
            f"A film has one map a layer, and {METHODS[method].label} goes through several: choose"
            f" {' or '.join(FILMED)}."
        )
    if "layer" in options:
        raise BadOption("A film goes through all layers: leave layer out.")
    query = record.layout.default_query if query is None else query
    record.layout.query_tokens(query)
    if options.get("head") is not None:
        options["head"] = _head(record, method, options["head"])
    maps, left_out = {}, {}
    for number, layer in enumerate(record.layers):
        why = why_not(record.geometry(layer), layer.heads, record.layout, query, options)
        if why:
            left_out[number] = why
        else:
            maps[number] = explain(record, method, query=query, layer=number, **options)
    if not maps:
        raise none_left(left_out.values())
    return Film(maps=maps, layers=len(record.layers), left_out=left_out)


def _head(record: AttentionRecord, method: str, head: Any) -> int:
    """Its number, counted from 0; of heads counted from the end, in the layer that has the most."""
    most = max(range(len(record.layers)), key=lambda number: record.layers[number].heads)
    known: int = METHODS[method].options["head"].check("head", head, record, most)
    return known
