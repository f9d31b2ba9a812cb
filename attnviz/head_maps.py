"""What one query attends to in every head of every layer, as one array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from jaxtyping import Float
from PIL import Image

from attnviz.contract import Box
from attnviz.errors import BadOption, UnknownName
from attnviz.facts import Facts, said, with_notes, with_picture
from attnviz.methods import METHODS
from attnviz.mosaic import tiles_there
from attnviz.record import AttentionRecord, LayerAttention
from attnviz.tokens import Query
from attnviz.trace import plain_query


@dataclass(frozen=True, eq=False)
class HeadMaps:
    """Every head's map of one query, on the record's grid, and what says where they come from."""

    values: Float[np.ndarray, "layer head row col"]
    """Attention weights, read-only; NaN where a layer has no such head or query."""
    facts: Facts
    notes: tuple[str, ...] = ()
    unit: str = METHODS["attention"].unit
    title: str = "Attention of every head"
    request: Mapping[str, Any] | None = None
    """What it takes to compute it again, in plain values."""
    picture: Image.Image | None = None
    box: Box | None = None
    """Where the grid lies in the picture; may reach past its edges."""

    @classmethod
    def of(
        cls,
        record: AttentionRecord,
        query: Query,
        values: Float[np.ndarray, "layer head row col"],
    ) -> Self:
        """Of what `tiles_of` gave; raises BadOption for a query that asks in no layer."""
        asker = record.layout.query_label(query)
        if not tiles_there(values).any():
            raise BadOption(
                f"There is no head to show: the {asker} asks in no layer. Choose another."
            )
        return cls(
            values,
            (("query", asker), *record.facts),
            ("random weights: these maps mean nothing",) if record.random else (),
            request=record.origin and {"from": record.origin, "query": plain_query(query)},
            picture=record.image,
            box=record.view.box,
        )

    def fact(self, name: str) -> str | None:
        """The value of one fact, or None where it wasn't given."""
        return dict(self.facts).get(name)

    @property
    def summary(self) -> str:
        """What it shows and its facts in one line."""
        return "; ".join(said(self.title, self.facts))

    def caption(self, *, facts: Facts | None = None) -> list[str]:
        """What a figure says below the maps: facts, then each warning.

        `facts` stand for its own, where some of those cannot be printed.
        """
        title, *rest = said(self.title, self.facts if facts is None else facts)
        return with_notes([title, "layers downwards, heads across", *rest], self.notes)

    def named(self, picture: str) -> Self:
        """The same with the picture's name among its facts."""
        return replace(self, facts=with_picture(self.facts, picture))


def head_maps(record: AttentionRecord, *, query: Query | None = None) -> HeadMaps:
    """What a query attends to in each head of each layer; of the record's default if left out.

    Raises UnknownName for a query that does not exist, BadOption for one that asks in no layer.
    """
    query = record.layout.default_query if query is None else query
    return HeadMaps.of(record, query, tiles_of(record, query))


def tiles_of(record: AttentionRecord, query: Query) -> Float[np.ndarray, "layer head row col"]:
    """Every head's row, on the record's grid; NaN where a layer has no such head or query."""
    each = [_tile(record, layer, query) for layer in record.layers]
    heads = max(layer.heads for layer in record.layers)
    values = np.full((len(each), heads, *record.layout.grid), np.nan, np.float32)
    for number, tile in enumerate(each):
        values[number, : len(tile)] = tile
    values.setflags(write=False)
    return values


def _tile(
    record: AttentionRecord, layer: LayerAttention, query: Query
) -> Float[np.ndarray, "head row col"]:
    geometry = record.geometry(layer)
    try:
        rows = layer.rows(geometry.queries.query_tokens(geometry.asked(query, record.layout)))
    except (BadOption, UnknownName):  # the token does not ask here
        return np.full((layer.heads, *record.layout.grid), np.nan, np.float32)
    grid = geometry.keys.to_grid(rows).float().cpu().numpy()
    down, across = (
        np.arange(ours) * theirs // ours
        for ours, theirs in zip(record.layout.grid, geometry.keys.grid, strict=True)
    )
    tile: Float[np.ndarray, "head row col"] = grid.take(down, 1).take(across, 2)
    return tile
