"""A map in windows, seen on the whole grid: zero where query and key never meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from einops import rearrange
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from attnviz.errors import CaptureFailed
from attnviz.geometry import Geometry

APART = 1e-6
"""A pair is kept apart by a mask if it gets less than this share of the attention."""


@dataclass(frozen=True)
class Windows:
    """A layer's map, or its gradient, kept in windows; rows come on the whole grid.

    A query's row is zero outside its window. A token that does not ask has a row of zeros. What
    goes to padding is left out, so that a row may sum to less than 1.
    """

    map: Float[Tensor, "window head query key"]
    rows: Int[Tensor, "window query"]
    cols: Int[Tensor, "window key"]
    queries: int
    """Tokens of the whole grid that could ask; so many rows."""
    keys: int
    """Tokens that could answer; so many columns."""

    def block(self, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """The rows of the queries from `start` up to `stop`, in float32."""
        window, place = self._places[start:stop].unbind(-1)
        asked = window >= 0
        held = self.map[window[asked], :, place[asked]].float()  # (query, head, key)
        cols = self.cols[window[asked]]
        whole = held.new_zeros(stop - start, held.shape[1], self.keys + 1)  # the last is padding
        at = torch.where(cols < 0, self.keys, cols)[:, None].expand_as(held)
        whole[asked] = whole[asked].scatter_add(-1, at, held)
        return rearrange(whole[..., : self.keys], "query head key -> head query key")

    @cached_property
    def _places(self) -> Int[Tensor, "query 2"]:
        """(window, place in it) of each token; -1 where it does not ask."""
        found = self.rows.new_full((self.queries, 2), -1)
        window, place = (self.rows >= 0).nonzero(as_tuple=True)
        found[self.rows[window, place]] = torch.stack([window, place], dim=-1)
        return found

    @property
    def shape(self) -> tuple[int, int, int]:
        """(head, query, key)."""
        return self.map.shape[1], self.queries, self.keys

    @property
    def mean(self) -> Float[Tensor, " head"]:
        """Each head's mean over all queries and keys that meet."""
        return self.map.float().mean((0, 2, 3))

    def any(self) -> bool:
        """Whether any value is not zero."""
        return bool(self.map.any())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.map.nbytes


def in_windows(
    flat: Float[Tensor, "window_head query key"], geometry: Geometry, *, divided: bool = True
) -> Windows:
    """A map whose first axis runs over windows, and over heads within each, on its whole grid.

    A key that several tokens share is as many columns: each has its part of the weight, or with
    `divided=False`, as a gradient has it, all of it.
    """
    if geometry.run > 1:
        flat = flat.repeat_interleave(geometry.run, -1) / (geometry.run if divided else 1)
    queries, keys = geometry.queries.tokens, geometry.keys.tokens
    windows = next(len(part) for part in (geometry.rows, geometry.cols) if part is not None)
    parts = (geometry.rows, queries), (geometry.cols, keys)
    rows, cols = (torch.arange(n).expand(windows, n) if at is None else at for at, n in parts)
    if len(flat) % windows or flat.shape[1:] != (rows.shape[1], cols.shape[1]):
        raise CaptureFailed(
            f"A map of shape {tuple(flat.shape)} came, which does not fit {windows} windows of"
            f" {rows.shape[1]} queries and {cols.shape[1]} keys. It is not drawn."
        )
    split = rearrange(flat, "(window head) query key -> window head query key", window=windows)
    return Windows(split, rows.to(flat.device), cols.to(flat.device), queries, keys)


def on_grid(
    flat: Shaped[Tensor, "window_head key ch"], geometry: Geometry
) -> Shaped[Tensor, "head token ch"]:
    """What the keys of all windows hold, one row a token; tokens that do not answer hold zeros."""
    if geometry.cols is None:
        return flat
    flat = flat if geometry.run == 1 else flat.repeat_interleave(geometry.run, 1)
    cols = geometry.cols.to(flat.device)
    split = rearrange(flat, "(window head) key ch -> (window key) head ch", window=len(cols))
    tokens = rearrange(cols, "window key -> (window key)")
    whole = flat.new_zeros(geometry.keys.tokens, split.shape[1], flat.shape[-1])
    whole[tokens[tokens >= 0]] = split[tokens >= 0]
    return rearrange(whole, "token head ch -> head token ch")


def as_masked(placed: Windows, geometry: Geometry) -> Geometry:
    """The geometry, with its mask only if that keeps apart what it says.

    A mask is a number that is added to scores, and large scores may outweigh it.
    """
    if geometry.apart is None:
        return geometry
    apart = rearrange(geometry.apart, "window query key -> window 1 query key")
    most = placed.map.masked_fill(~apart.to(placed.map.device), 0).max()
    return geometry if float(most) < APART else replace(geometry, apart=None)
