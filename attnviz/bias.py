"""What is added to scores before the softmax: whole, or as the two parts that it is a sum of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

PIECE = 2**22
"""So many weights at once, where a whole map's would be too many."""


@dataclass(frozen=True)
class Crossed:
    """A bias that is the sum of two: one by the key's row of the grid, one by its column."""

    rows: Float[Tensor, "head query row"]
    cols: Float[Tensor, "head query col"]

    def block(self, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """Those of the queries from `start` up to `stop`, added up in their own precision."""
        rows = rearrange(self.rows[:, start:stop], "head query row -> head query row 1")
        cols = rearrange(self.cols[:, start:stop], "head query col -> head query 1 col")
        return rearrange(rows + cols, "head query row col -> head query (row col)")

    def makes(self, whole: Float[Tensor, "head query key"]) -> bool:
        """Whether that is this one, to the last bit."""
        heads, queries, keys = self.rows.shape[0], self.rows.shape[1], whole.shape[-1]
        if whole.shape != (heads, queries, self.rows.shape[2] * self.cols.shape[2]):
            return False
        step = max(1, PIECE // (heads * keys))
        starts = range(0, queries, step)
        return all(
            torch.equal(whole[:, start : start + step], self.block(start, start + step))
            for start in starts
        )

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.rows.nbytes + self.cols.nbytes


def is_crossed(result: Tensor, *parts: object) -> bool:
    """Whether it is (head, row, col, row of keys, 1) + (head, row, col, 1, column of keys)."""
    shapes = [part.shape for part in parts if isinstance(part, Tensor)]
    if result.ndim != 5 or [len(shape) for shape in shapes] != [5, 5]:
        return False
    *places, rows, cols = result.shape
    return shapes == [torch.Size((*places, rows, 1)), torch.Size((*places, 1, cols))]


def as_bias(
    mask: Tensor, queries: torch.Size, sums: Sequence[tuple[Tensor, ...]]
) -> Tensor | Crossed:
    """A mask as (window · head, query, key) numbers added to the scores; False is −infinity.

    One that is a sum of two, spread over the grid of keys, is kept as these.
    """
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, float("-inf"))
    mask = mask.detach()
    if len(queries) == 4:
        mask = mask[(None,) * (4 - mask.ndim)]
        if queries[0] > 1:
            mask = mask.expand(queries[0], queries[1], -1, -1)
            return rearrange(mask, "window head query key -> (window head) query key")
        mask = mask[0]
    for rows, cols in sums:
        flat = "head high wide row col -> head (high wide) (row col)"
        crossed = Crossed(rearrange(rows, flat).detach(), rearrange(cols, flat).detach())
        if crossed.makes(mask):
            return crossed
    return mask
