"""Which tokens a sequence holds: prefix tokens first, then the patches, row by row.

This is the only file that turns a token's index into a (row, col) of the patch grid, or back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from einops import rearrange
from jaxtyping import Float64, Int, Shaped
from torch import Tensor, arange, block_diag, cartesian_prod, eye, float64, kron

from attnviz.errors import BadOption, UnknownName, unknown
from attnviz.shapes import as_whole

Query = str | tuple[int, int]
"""`"cls"`, `"mean"` (all patches), a prefix token's name, or a patch as (row, col)."""

QUERY_WORDS = {
    "cls": "class token",
    "dist": "distillation token",
    "mean": "mean of all patches",
}

_PLACE = re.compile(r"\W*\d+\W+\d+\W*")
"""What could be read as the (row, col) of a patch."""


def prefix_names(*, cls: bool, dist: bool = False, registers: int = 0) -> tuple[str, ...]:
    """The names of prefix tokens, in the order that timm's models and this project's have."""
    numbered = (f"reg{number}" for number in range(1, registers + 1))
    return (*(["cls"] if cls else []), *(["dist"] if dist else []), *numbered)


@dataclass(frozen=True)
class TokenLayout:
    """The order of a model's tokens: `prefix` names, then a `grid` of (rows, cols) patches.

    Raises BadOption for names that are no words, come twice, or would be read as another query.
    """

    prefix: tuple[str, ...]
    grid: tuple[int, int]

    def __post_init__(self) -> None:
        names = self.prefix
        words = all(isinstance(name, str) for name in names)
        if isinstance(names, str) or not words:  # type: ignore[redundant-expr]
            raise BadOption(f'Prefix names are a tuple of words, such as ("cls",); {names!r} came.')
        for name in names:
            if not name.strip() or name == "mean" or _PLACE.fullmatch(name):
                raise BadOption(
                    f"{name!r} cannot be the name of a prefix token, as a query by it would be"
                    ' empty, "mean" (all patches) or a patch: give it a word of its own.'
                )
            if names.count(name) > 1:
                raise BadOption(
                    f"{names.count(name)} prefix tokens are called {name!r}: give each a name of"
                    " its own."
                )

    @property
    def patches(self) -> int:
        """How many patch tokens there are."""
        rows, cols = self.grid
        return rows * cols

    @property
    def tokens(self) -> int:
        """How many tokens there are: prefix and patches."""
        return len(self.prefix) + self.patches

    @property
    def default_query(self) -> str:
        """The class token, or the mean over patches where a model has none."""
        return "cls" if "cls" in self.prefix else "mean"

    @property
    def query_names(self) -> tuple[str, ...]:
        """The queries that have a name; any patch as (row, col) is one as well."""
        return (*self.prefix, *(["mean"] if self.patches else []))

    def token(self, row: int, col: int) -> int:
        """The index of the patch at (row, col)."""
        rows, cols = self.grid
        if not (0 <= row < rows and 0 <= col < cols):
            raise UnknownName(
                f"There is no patch at row {row}, column {col}: the grid has rows 0 to {rows - 1}"
                f" and columns 0 to {cols - 1}."
            )
        return len(self.prefix) + row * cols + col

    def cell(self, token: int) -> tuple[int, int]:
        """The (row, col) of a patch token."""
        if not len(self.prefix) <= token < self.tokens:
            raise UnknownName(
                f"Token {token} is not a patch: patches are tokens {len(self.prefix)}"
                f" to {self.tokens - 1}."
            )
        return divmod(token - len(self.prefix), self.grid[1])

    @property
    def cells(self) -> Int[Tensor, "patch 2"]:
        """The (row, col) of every patch, in the order of their tokens."""
        rows, cols = self.grid
        return cartesian_prod(arange(rows), arange(cols))

    def pooled(self, side: int | None) -> TokenLayout:
        """The layout with patches pooled to at most `side` rows and columns, as near its shape."""
        share = 1.0 if side is None else min(1.0, side / max(self.grid))
        rows, cols = (max(1, round(count * share)) for count in self.grid)
        return TokenLayout(self.prefix, (rows, cols))

    def parts(self, pooled: TokenLayout) -> Float64[Tensor, "token part"]:
        """How much of each token lies in each token of a pooled layout: the area, for patches.

        Parts are equal in size, so that a patch may lie in two or four. Prefix tokens stay as they
        are.
        """
        down, across = map(_overlaps, self.grid, pooled.grid)
        return block_diag(eye(len(self.prefix), dtype=float64), kron(down, across))

    def query_tokens(self, query: object) -> range:
        """The tokens whose rows a query averages: one token, or every patch for `"mean"`."""
        if isinstance(query, str):
            if query == "mean" and self.patches:
                return range(len(self.prefix), self.tokens)
            if query not in self.prefix:
                raise unknown("query", query, [*self.query_names, "a patch as (row, col)"])
            token = self.prefix.index(query)
        else:
            token = self.token(*_as_cell(query))
        return range(token, token + 1)

    def query_label(self, query: object) -> str:
        """The query in words, as figures and file names carry it."""
        self.query_tokens(query)
        if isinstance(query, str):
            return QUERY_WORDS.get(query, re.sub(r"^reg(\d+)$", r"register \1", query))
        row, col = _as_cell(query)
        return f"patch (row {row}, column {col})"

    def token_label(self, token: int) -> str:
        """One token in words: a prefix token's, or a patch's with its row and column."""
        named = 0 <= token < len(self.prefix)
        return self.query_label(self.prefix[token] if named else self.cell(token))

    def same_place(self, cell: tuple[int, int], other: TokenLayout) -> tuple[int, int]:
        """The patch here that holds the middle of a patch of another layout of the same picture.

        A middle on the edge of two lies in the one that begins there.
        """
        other.token(*cell)
        row, col = (
            (2 * place + 1) * ours // (2 * theirs)
            for place, theirs, ours in zip(cell, other.grid, self.grid, strict=True)
        )
        return row, col

    def to_grid(self, values: Shaped[Tensor, "*lead token"]) -> Shaped[Tensor, "*lead row col"]:
        """Drop the prefix tokens and lay the patches out as the grid."""
        if values.shape[-1] != self.tokens:
            rows, cols = self.grid
            raise BadOption(
                f"{values.shape[-1]} values came for {self.tokens} tokens"
                f" ({len(self.prefix)} prefix + {rows} × {cols} patches)."
            )
        patches = values[..., len(self.prefix) :]
        return rearrange(patches, "... (row col) -> ... row col", row=self.grid[0])


def _overlaps(count: int, parts: int) -> Float64[Tensor, "count parts"]:
    """How much of each of `count` unit lengths lies in each of as many equal parts."""
    start = rearrange(arange(count, dtype=float64), "count -> count 1")
    edges = arange(parts + 1, dtype=float64) * count / parts
    return ((start + 1).minimum(edges[1:]) - start.maximum(edges[:-1])).clamp_min(0)


def _as_cell(query: object) -> tuple[int, int]:
    if isinstance(query, Sequence) and len(query) == 2:
        try:
            return as_whole(query[0]), as_whole(query[1])
        except TypeError:
            pass
    raise BadOption(
        f"A query is a name or a patch as (row, col), two whole numbers; {query!r} came."
    )
