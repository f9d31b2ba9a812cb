"""Several maps on one figure: any of them beside each other, or every head's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attnviz import head_maps, plate_export
from attnviz.errors import BadOption
from attnviz.heatmap import Heatmap
from attnviz.record import AttentionRecord
from attnviz.row import Row, texts
from attnviz.tokens import Query
from attnviz.venue import FINE, WIDE


class Beside(Row):
    """Maps beside each other that can save themselves."""

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write .png, .svg, .pdf, .npz or .csv; options as in `plate_export.save_plate`."""
        return plate_export.save_plate(self, path, **options)

    def _repr_png_(self) -> bytes:
        """What a notebook shows: the printed figure."""
        return plate_export.render_plate(self, ".png", **WIDE)


class HeadGrid(head_maps.HeadMaps):
    """Every head's map, which can save themselves."""

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write .png, .svg, .pdf, .npz or .csv; options as in `plate_export.save_plate`."""
        return plate_export.save_plate(self, path, **options)

    def _repr_png_(self) -> bytes:
        """What a notebook shows: the printed figure."""
        return plate_export.render_plate(self, ".png", **FINE)


def beside(heats: Iterable[Heatmap], names: Sequence[str] = ()) -> Beside:
    """Maps as the panels of one figure: of several methods, models, pictures or queries.

    `names` stand above them, of 255 letters at most; if left out, what tells the maps apart. One in
    letters that no font here prints is printed as "map 1", or alone as its title, with a note.
    Raises BadOption for no maps, or for other names than maps.
    """
    if not isinstance(heats, Iterable):
        raise BadOption(f"Maps are put in a row as a list; {type(heats).__name__} came.")
    every = tuple(heats)  # which may come one by one, and only once
    for heat in every:
        if not isinstance(heat, Heatmap):
            raise BadOption(f"Maps that explain gave are put in a row; {type(heat).__name__} came.")
    return Beside(every, texts(names))


def heads(record: AttentionRecord, *, query: Query | None = None) -> HeadGrid:
    """What a query attends to in every head of every layer, as one figure.

    Raises UnknownName for a query that does not exist, BadOption for one that asks in no layer.
    """
    query = record.layout.default_query if query is None else query
    return HeadGrid.of(record, query, head_maps.tiles_of(record, query))
