"""What the rows and the columns of one layer's map stand for, where they are not simply all tokens.

A layer attends within one window or several. `rows` and `cols` number the tokens in each window;
a place that holds no token, because the model padded its grid, has the number -1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import floor
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnviz.errors import BadOption, UnknownName
from attnviz.tokens import Query, TokenLayout

Share = tuple[float, float, float, float]
"""(left, top, right, bottom) as shares of the input's width and height."""

WHOLE: Share = (0.0, 0.0, 1.0, 1.0)

EDGE = 1e-9
"""Of a cell: what lies as little before an edge lies on it."""


@dataclass(frozen=True, eq=False)
class Geometry:
    """The tokens that ask in one layer, those that answer, and who meets whom."""

    queries: TokenLayout
    keys: TokenLayout
    kind: str = "all tokens"
    """How the layer attends, in words: `"class attention"`, `"windows of 7 × 7"`."""
    rows: Int[Tensor, "window query"] | None = None
    """The token that asks at each place of each window; None: all, in order, in one window."""
    cols: Int[Tensor, "window key"] | None = None
    """The token that answers at each place; None: all, in order, in one window."""
    branch: str = ""
    """Which of several streams of tokens it works on, in words; layers add up within one."""
    place: Share = WHOLE
    """Where the grid of keys lies on the input."""
    asks_at: Share | None = None
    """Where the grid of queries lies; None: grids that differ are the same place, in proportion."""
    apart: Bool[Tensor, "window query key"] | None = None
    """Pairs in a window that a mask keeps apart, as in one that was moved round the edge."""
    run: int = 1
    """How many places of `cols`, one after the other, share one column of the map."""
    every: int | None = None
    """The cell (row, col) of the queries is made of the keys' (every · row, every · col)."""
    widths: tuple[int, int] | None = None
    """How many cells of the record's layout a query and a key are wide; None: in proportion.

    Grids whose last row or column reaches beyond the picture are not in proportion.
    """

    @property
    def turned(self) -> Geometry:
        """The other way round, as of the map's transpose: the keys ask who attends to them."""
        same = self.queries.grid == self.keys.grid
        return replace(
            self,
            queries=self.keys,
            keys=self.queries,
            rows=self.cols,
            cols=self.rows,
            apart=None if self.apart is None else self.apart.mT,
            place=self.place if self.asks_at is None and same else self.asks_at or WHOLE,
            asks_at=None if same else self.place,
            widths=None if self.widths is None else self.widths[::-1],
            every=None,
            run=1,
        )

    @property
    def is_plain(self) -> bool:
        """Whether all tokens attend to all."""
        return self.rows is None and self.cols is None and self.queries == self.keys

    @property
    def in_windows(self) -> bool:
        """Whether its map is one of windows, or of a part of the tokens."""
        return self.rows is not None or self.cols is not None

    @property
    def pairs(self) -> int:
        """How many weights a head's map has: those of its windows, or of every query and key."""
        rows = self.queries.tokens if self.rows is None else self.rows.shape[-1]
        cols = self.keys.tokens if self.cols is None else self.cols.shape[-1] // self.run
        windows = next((len(at) for at in (self.rows, self.cols) if at is not None), 1)
        return windows * rows * cols

    @property
    def asks(self) -> Bool[Tensor, " query"]:
        """Which tokens have a row; the others pass the layer as they are."""
        return _met(self.rows, self.queries.tokens)

    @property
    def answers(self) -> Bool[Tensor, " key"]:
        """Which tokens have a column."""
        return _met(self.cols, self.keys.tokens)

    @property
    def padded(self) -> bool:
        """Whether some of the attention may go to padding, which has no place in the picture."""
        return self.cols is not None and bool((self.cols < 0).any())

    @property
    def default_query(self) -> str:
        """The layout's own, or the mean over patches where that token does not ask."""
        named = self.queries.default_query
        asked = self.asks[self.queries.query_tokens(named).start] if named != "mean" else True
        return named if asked else "mean"

    def asked(self, query: Query, layout: TokenLayout) -> Query:
        """A query of the record's `layout` as one of this layer: the patch at the same place."""
        if isinstance(query, str) or layout.grid == self.queries.grid:
            return query
        layout.query_tokens(query)  # refuses what is no patch of that layout
        if self.widths is not None:
            row, col = (place // self.widths[0] for place in query)
            return row, col
        if self.asks_at is None:
            return self.queries.same_place(query, layout)
        found = cell_at(_centre(query, layout.grid, WHOLE), self.queries.grid, self.asks_at)
        if found is None:
            raise BadOption(
                f"The {layout.query_label(query)} lies where none of this layer's"
                f" {_grid(self.queries)} cells does: its keys leave a rest of the picture out."
                " Choose another patch or another layer."
            )
        return found

    def takes(self, query: Query, layout: TokenLayout) -> bool:
        """Whether a query of the record's `layout`, or a part of it, asks here."""
        try:
            tokens = self.queries.query_tokens(self.asked(query, layout))
        except (UnknownName, BadOption):  # the layer has no such token, or none at that place
            return False
        return bool(self.asks[tokens.start : tokens.stop].any())

    def here(self, query: Query, layout: TokenLayout) -> str:
        """Where a patch of the record's `layout` is on this layer's grid, in words; "" if there."""
        if isinstance(query, str) or layout.grid == self.queries.grid:
            return ""
        row, col = self.queries.cell(self.queries.query_tokens(self.asked(query, layout)).start)
        return "row {}, column {} of {} × {}".format(row, col, *self.queries.grid)

    def key_of(self, cell: tuple[int, int]) -> tuple[int, int] | None:
        """The cell of the keys at the place of one of the queries; None where there is none."""
        if self.every is not None:
            self.queries.token(*cell)
            return cell[0] * self.every, cell[1] * self.every
        if self.asks_at is not None and self.widths is None:
            self.queries.token(*cell)
            return cell_at(
                _centre(cell, self.queries.grid, self.asks_at), self.keys.grid, self.place
            )
        if self.widths is None:
            return self.keys.same_place(cell, self.queries)
        asks, answers = self.widths
        # Of a last cell that reaches beyond the picture, the middle may lie there.
        row, col = (
            min(int((place + 0.5) * asks / answers), count - 1)
            for place, count in zip(cell, self.keys.grid, strict=True)
        )
        return row, col

    def reach(self, query: range) -> Bool[Tensor, " key"]:
        """Which tokens the query could attend to: those of its windows that no mask excludes."""
        if self.rows is None or self.cols is None:
            return self.answers
        asked = (self.rows >= query.start) & (self.rows < query.stop)
        if self.apart is None:
            return _met(self.cols[asked.any(-1)], self.keys.tokens)
        window, place = asked.nonzero(as_tuple=True)
        return _met(self.cols[window][~self.apart[window, place]], self.keys.tokens)

    def shares_tokens(self, other: Geometry) -> bool:
        """Whether both attend from and to the same tokens, so that their maps can be multiplied."""
        layouts = {self.queries, self.keys, other.queries, other.keys}
        return len(layouts) == 1 and self.branch == other.branch


def asks_not(layer: str, kind: str) -> BadOption:
    """What is said of a query in a layer, by its name and its geometry's kind, that has no row."""
    return BadOption(
        f"In layer {layer} that token does not ask: it is a layer of {kind}."
        " Choose another query or another layer."
    )


def read_by(settled: Mapping[str, Any], of_layer: Callable[[int], Geometry]) -> Geometry:
    """What a method with these options reads: a layer, a span's last one, or the features.

    `of_layer` gives that of a layer by its number; -1 is the last.
    """
    if {"layer", "last_layer"} & settled.keys():
        read = of_layer(settled.get("layer", settled.get("last_layer")))
        return read.turned if settled.get("direction") == "to" else read
    last = of_layer(-1).queries
    return Geometry(last, last)


def _centre(cell: tuple[int, int], grid: tuple[int, int], place: Share) -> tuple[float, float]:
    """The middle of a cell as (x, y), in shares of the input."""
    (row, col), (rows, cols), (left, top, right, bottom) = cell, grid, place
    return left + (right - left) * (col + 0.5) / cols, top + (bottom - top) * (row + 0.5) / rows


def cell_at(
    point: tuple[float, float], grid: tuple[int, int], place: Share
) -> tuple[int, int] | None:
    """The cell of a grid in a place that a point lies in; an edge is of the cell that begins there.

    A billionth of a cell beside an edge is on it: so far does rounding carry a point.
    """
    (x, y), (rows, cols), (left, top, right, bottom) = point, grid, place
    down, across = (y - top) / (bottom - top) * rows, (x - left) / (right - left) * cols
    row, col = floor(down + EDGE), floor(across + EDGE)
    return (row, col) if 0 <= row < rows and 0 <= col < cols else None


def _grid(layout: TokenLayout) -> str:
    rows, cols = layout.grid
    return f"{rows} × {cols}"


def _met(numbers: Int[Tensor, "*places"] | None, tokens: int) -> Bool[Tensor, " token"]:
    if numbers is None:
        return torch.ones(tokens, dtype=torch.bool)
    met = torch.zeros(tokens, dtype=torch.bool)
    met[numbers[numbers >= 0]] = True
    return met


def one_window(
    layout: TokenLayout, rows: range, cols: range, kind: str = "all tokens", branch: str = ""
) -> Geometry:
    """Some tokens of a layout ask, and some answer."""
    return Geometry(layout, layout, kind, _row(rows), _row(cols), branch)


def _row(tokens: range) -> Int[Tensor, "1 place"]:
    return torch.arange(tokens.start, tokens.stop)[None]
