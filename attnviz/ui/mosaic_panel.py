"""All heads of all layers at once; picking one opens it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st
from einops import rearrange
from jaxtyping import Bool, Float

from attnviz.methods import METHODS
from attnviz.mosaic import mosaic, tiles_there
from attnviz.scale import Scale, choose_scale
from attnviz.ui.bar import show_bar, show_own_bars
from attnviz.ui.go_to import go_to_head
from attnviz.ui.look_panel import Look, offer_cut
from attnviz.ui.map_panel import reveal_map
from attnviz.ui.picker import pick_cell, picked_cell
from attnviz.ui.ranking import Ranking

WIDTH = 860
"""Pixels on a wide screen: the tiles of one layer are seen at a glance."""

HEIGHT = 800
"""And as high as one can look at at once."""

GAP = 2

NAMED = 4
"""So many of the first heads in an order are named above them."""

UNIT = METHODS["attention"].unit


def columns_for(layers: int, heads: int, tile: tuple[int, int]) -> int:
    """Tiles in a line so that each patch of a (rows, cols) tile has a pixel, if that can be.

    A layer's heads where they fit. Else several layers in a line, or several lines a layer: the
    nearest to that which fits, or the one that comes closest to it.
    """
    rows, cols = tile

    def room(columns: int) -> float:
        across, down = columns * (cols + GAP), layers * heads // columns * (rows + GAP)
        return min(WIDTH / across, HEIGHT / down, 1.0)

    together = [heads * n for n in range(1, layers + 1) if layers % n == 0]
    apart = [heads // n for n in range(1, heads + 1) if heads % n == 0]
    return max([*together, *apart], key=lambda columns: (room(columns), -abs(columns - heads)))


def show_mosaic(
    tiles: Float[np.ndarray, "layer head row col"],
    look: Look,
    shared: Scale | None,
    chosen: tuple[int, int] | None,
    asker: str,
    by: Ranking | None = None,
) -> None:
    """One tile a head: layers downwards, heads across; or all in one order."""
    layers, heads = tiles.shape[:2]
    there = tiles_there(tiles)
    count, few = int(there.sum()), _counts(there)
    if not count:
        st.caption(f"The **{asker}** asks in no layer, so no head has a map of it.")
        return
    laid = _laid_out(tiles) if by is None else _in_order(tiles, by)
    st.caption(
        f"What each of the {f'{layers} × {heads}' if there.all() else count} heads makes the "
        f"**{asker}** attend to, "
        + ("first layer on top. " if by is None else f"by {by.label}, the {by.first} first: ")
        + ("" if by is None else f"{_first(laid)} … They are ranked by all patches as queries. ")
        + ("" if there.all() else f"There are {few} a layer; a place without a head is empty. ")
        + (
            f"One scale for all: {shared.low:.3g} to {shared.high:.3g}. "
            if shared
            else "Each tile has its own scale. "
        )
        + "**Pick a tile** to see it by itself."
    )
    drawn = mosaic(
        laid.tiles,
        scale=shared or "own",
        clip=None if shared else look.clip,
        colormap=look.colormap,
        gap=GAP,
        columns=laid.columns,
    )
    offer_cut(tiles[there], shared, look, "tiles")
    empty = ~tiles_there(laid.tiles)
    rows, cols = tiles.shape[2:]
    with st.container(width=WIDTH):
        pick_cell(
            drawn.image,
            grid=(laid.lines, laid.columns),
            box=None,
            chosen=laid.place_of(chosen),
            key="mosaic",
            alt=f"The attention maps of {layers} layers with {few} heads each",
            values=_in_lines(laid.tiles.max((2, 3)), laid.columns),
            empty=_in_lines(empty, laid.columns),
            unit="at its highest patch",
            show_grid=False,
            row_names=laid.row_names,
            col_names=laid.col_names,
            cell_names=_in_lines(laid.names, laid.columns).tolist(),
            cell_word="head",
            crisp=True,
            least=(laid.columns * cols, laid.lines * rows),
            hint="Here a patch of a tile is smaller than a pixel: open a head to see every patch.",
            on_pick=partial(_open_picked, laid.heads, laid.columns),
        )
        if shared:
            show_bar(shared, look.colormap, unit=UNIT, values=tiles[there])
        else:
            own = [choose_scale(tile, clip=look.clip) for tile in tiles[there]]
            show_own_bars(own, look.colormap, unit=UNIT, of="tile")


@dataclass(frozen=True, eq=False)
class _Layout:
    """Where each head's tile lies."""

    tiles: Float[np.ndarray, "line head row col"]
    heads: Sequence[tuple[int, int]]
    """(layer, head) of each tile, line by line."""
    names: np.ndarray
    columns: int
    row_names: list[str] | None = None
    col_names: list[str] | None = None

    @property
    def lines(self) -> int:
        return self.tiles.shape[0] * self.tiles.shape[1] // self.columns

    def place_of(self, chosen: tuple[int, int] | None) -> tuple[int, int] | None:
        """The (line, column) of a head's tile."""
        return None if chosen is None else divmod(self.heads.index(chosen), self.columns)


def _laid_out(tiles: Float[np.ndarray, "layer head row col"]) -> _Layout:
    """Layer by layer."""
    layers, heads, rows, cols = tiles.shape
    columns = columns_for(layers, heads, (rows, cols))
    lines = layers * heads // columns
    each = [(layer, head) for layer in range(layers) for head in range(heads)]
    names = rearrange(np.array([_name(*one) for one in each]), "(l h) -> l h", h=heads)
    across = [f"H{i % heads}" for i in range(columns)] if columns >= heads else None
    return _Layout(tiles, each, names, columns, row_names(heads, columns, lines), across)


def _in_order(tiles: Float[np.ndarray, "layer head row col"], by: Ranking) -> _Layout:
    """By a number each, line by line; those without one last."""
    layers, heads, rows, cols = tiles.shape
    number = rearrange(by.values, "l h -> (l h)")
    order = np.argsort(-number if by.descending else number, kind="stable")  # NaN last
    flat = rearrange(tiles, "l h row col -> (l h) row col")[order]
    each = [divmod(int(one), heads) for one in order]
    names = np.array([f"{_name(*one)}: {by.values[one]:.3g} {by.unit}" for one in each])
    columns = columns_for(layers, heads, (rows, cols))
    return _Layout(
        rearrange(flat, "(l h) row col -> l h row col", h=heads),
        each,
        rearrange(names, "(l h) -> l h", h=heads),
        columns,
    )


def _first(laid: _Layout) -> str:
    return ", ".join(f"L{layer} H{head}" for layer, head in laid.heads[:NAMED])


def _name(layer: int, head: int) -> str:
    return f"L{layer}, H{head}"


def _counts(there: Bool[np.ndarray, "layer head"]) -> str:
    """How many heads a layer has, in words; a layer in which the token does not ask counts none."""
    low, high = int(there.sum(1).min()), int(there.sum(1).max())
    return f"{high}" if low == high else f"{low} to {high}"


def _in_lines(of_heads: np.ndarray, columns: int) -> np.ndarray:
    """One thing a head, (layer, head), as the tiles lie: (line, column)."""
    return rearrange(rearrange(of_heads, "l h -> (l h)"), "(line col) -> line col", col=columns)


def row_names(heads: int, columns: int, lines: int) -> list[str]:
    """What stands in a line: a layer, several, or some heads of one."""
    together = columns // heads
    if together == 1:
        return [f"L{i}" for i in range(lines)]
    if together > 1:
        return [f"L{i * together}–{(i + 1) * together - 1}" for i in range(lines)]
    firsts = [divmod(i * columns, heads) for i in range(lines)]
    last = columns - 1
    return [f"L{layer} H{head}" + (f"–{head + last}" if last else "") for layer, head in firsts]


def _open_picked(heads: Sequence[tuple[int, int]], columns: int) -> None:
    if (cell := picked_cell("mosaic")) is not None:
        layer, head = heads[cell[0] * columns + cell[1]]
        go_to_head(layer, head)
        reveal_map()
