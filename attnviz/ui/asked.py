"""Which token asks: a name, or a place in the picture, which outlives a change of the grid."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from attnviz.contract import Box
from attnviz.geometry import cell_at
from attnviz.record import AttentionRecord
from attnviz.tokens import Query, TokenLayout

ASKED = "asked"
"""Under which the session keeps what asks on the page."""

OTHERS = ("asked/query", "asked/picture")
"""And what asks on the other side, where two are compared: beside the page's own, or instead."""


@dataclass(frozen=True)
class Ground:
    """A model's tokens, and where their grid lies in the picture."""

    layout: TokenLayout
    box: Box
    key: str = ASKED
    """Under which the session keeps what asks: one of `ASKED` and `OTHERS`."""

    @classmethod
    def of(cls, record: AttentionRecord, key: str = ASKED) -> Ground:
        """A record's, without the record: callbacks keep it for as long as the session lasts."""
        return cls(record.layout, record.view.box, key)

    def stretched(self, across: float, down: float) -> Ground:
        """The same on a picture that is so many times as wide and as high."""
        left, top, right, bottom = self.box
        return replace(self, box=(left * across, top * down, right * across, bottom * down))

    def on(self, grid: tuple[int, int], box: Box) -> Ground:
        """The same tokens on a map's cells: a later stage has a grid of its own."""
        return replace(self, layout=replace(self.layout, grid=grid), box=box)

    def of_other(self, key: str) -> Ground:
        """The same tokens, of which another asks."""
        return replace(self, key=key)

    @property
    def usual(self) -> Query | None:
        """What asks where nobody said: None of a second query, which begins with any patch."""
        return None if self.key == OTHERS[0] else self.layout.default_query

    @property
    def query(self) -> Query:
        """What asks on the page; the default where that does not exist on this ground."""
        wish = st.session_state.get(self.key)
        if isinstance(wish, str) and wish in self.layout.query_names:
            return wish
        cell = self.cell_at(wish) if isinstance(wish, tuple) else None
        return self.layout.default_query if cell is None else cell

    def ask(self, query: Query | None) -> None:
        """Make another token the query; None stands for the default."""
        place = query if isinstance(query, str | None) else self.centre(query)
        st.session_state[self.key] = place

    def centre(self, cell: tuple[int, int]) -> tuple[float, float]:
        """The middle of a patch, as (x, y) in pixels of the picture."""
        (left, top, right, bottom), (rows, cols) = self.box, self.layout.grid
        row, col = cell
        return (
            left + (right - left) * (col + 0.5) / cols,
            top + (bottom - top) * (row + 0.5) / rows,
        )

    def cell_at(self, point: tuple[float, float]) -> tuple[int, int] | None:
        """The patch that a point lies in; of several that meet there, the lower right one."""
        return cell_at(point, self.layout.grid, self.box)
