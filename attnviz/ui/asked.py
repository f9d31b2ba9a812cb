"""Which token asks: a name, or a place in the picture, which outlives a change of the grid."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from attnviz.contract import Box
from attnviz.record import AttentionRecord
from attnviz.tokens import Query, TokenLayout


@dataclass(frozen=True)
class Ground:
    """A model's tokens, and where their grid lies in the picture."""

    layout: TokenLayout
    box: Box

    @classmethod
    def of(cls, record: AttentionRecord) -> Ground:
        """A record's, without the record: callbacks keep it for as long as the session lasts."""
        return cls(record.layout, record.view.box)

    @property
    def query(self) -> Query:
        """What asks on the page; the default where that does not exist on this ground."""
        wish = st.session_state.get("asked")
        if isinstance(wish, str) and wish in self.layout.query_names:
            return wish
        cell = self.cell_at(wish) if isinstance(wish, tuple) else None
        return self.layout.default_query if cell is None else cell

    def ask(self, query: Query | None) -> None:
        """Make another token the query; None stands for the default."""
        st.session_state.asked = query if isinstance(query, str | None) else self.centre(query)

    def centre(self, cell: tuple[int, int]) -> tuple[float, float]:
        """The middle of a patch, as (x, y) in pixels of the picture."""
        (left, top, right, bottom), (rows, cols) = self.box, self.layout.grid
        row, col = cell
        return (
            left + (right - left) * (col + 0.5) / cols,
            top + (bottom - top) * (row + 0.5) / rows,
        )

    def cell_at(self, point: tuple[float, float]) -> tuple[int, int] | None:
        """The patch that a point lies in."""
        (left, top, right, bottom), (rows, cols) = self.box, self.layout.grid
        x, y = point
        if not (left <= x < right and top <= y < bottom):
            return None
        row = int((y - top) / (bottom - top) * rows)
        col = int((x - left) / (right - left) * cols)
        return min(row, rows - 1), min(col, cols - 1)


def forget_place() -> None:
    """Let the default ask instead of a place in the picture; a token with a name goes on asking."""
    if isinstance(st.session_state.get("asked"), tuple):
        st.session_state.asked = None
