"""The largest flow through layers of attention into each input token, each proven by a cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64
from scipy.sparse import block_diag, csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from attnviz.methods.values import Estimate

UNIT = 2**30
"""What a capacity of 1 counts in the solver, which knows whole numbers up to 2^31 − 1."""

THIN = 1.5
"""The thin network keeps each token's widest edges, in and out: this times √tokens."""

SECONDS_PER_EDGE = 1e-7
"""The solver's time, on the slow side: 3e-8 to 9e-8 were measured (docs/benchmarks.md)."""

SECONDS_PER_TOKEN = 1e-3
"""What each target takes beside, however few the edges."""

FIRST_TRIES = 8
"""Targets that are tried on the thin network before its successes decide."""

Layer = Float64[np.ndarray, "token token"]


@dataclass(frozen=True)
class Proof:
    """One maximum flow, between the flow that was found and a cut that no flow can pass."""

    flow: float
    """Capacities rounded down to 1 / UNIT; so it is feasible, and the maximum is no less."""
    cut: float
    """The cut's capacity in float64; the maximum is no more."""
    outer: bool
    """Whether the cut is at the source or at the sink: the layers between do not matter."""


def estimate(layers: int, tokens: int) -> Estimate:
    """How long `largest_flows` takes: where the thin network is enough, and where it never is."""
    whole = (layers - 1) * tokens**2
    thin = min(whole, (layers - 1) * 2 * tokens**1.5)
    overhead = SECONDS_PER_TOKEN * tokens
    usual, most = (overhead + SECONDS_PER_EDGE * tokens * edges for edges in (thin, whole))
    return Estimate(usual, most)


def largest_flows(layers: list[Layer], supply: Float64[np.ndarray, " token"]) -> Iterator[Proof]:
    """For each input token in order, the maximum flow from the source into that token alone.

    `layers[l - 1][i, j]` is the capacity from token i of level l to token j of level l − 1, and
    `supply[i]` that from the source to token i of the uppermost level.

    Each is proven: a flow is a lower bound, a cut an upper one, and they meet but for rounding, of
    1e-9 at most for each edge of the cut. Most cuts are at the source or at the sink. To prove one
    of these it takes a flow as large, and what passes the widest edges alone is a flow of the whole
    network too, found many times as fast. Where that falls short, the whole network is solved, and
    its smallest cut read off.

    Source: Ford & Fulkerson 1956; the solver is SciPy's, by Dinic's algorithm.
    """
    tokens = len(supply)
    source = float(np.minimum(supply, layers[-1].sum(1)).sum())
    thin, whole = _Network.of(_thinned(layers[1:], supply), supply), None
    tried = settled = 0
    for column in layers[0].T:
        cut = min(source, float(column.sum()))
        close = cut - tokens / UNIT  # each edge of that cut loses less than 1 / UNIT
        if tried < FIRST_TRIES or 2 * settled >= tried:
            tried += 1
            flow = thin.solve(column).flow_value / UNIT
            if flow >= close:
                settled += 1
                yield Proof(flow, cut, outer=True)
                continue
        whole = whole or _Network.of(layers[1:], supply)  # large, and seldom needed
        found = whole.solve(column)
        flow = found.flow_value / UNIT
        yield Proof(flow, cut, outer=True) if flow >= close else whole.prove(found, column)


@dataclass(frozen=True)
class _Network:
    """Nodes: the source, the levels from the last down to the first, and the sink."""

    edges: csr_array
    """Capacities; the last ones are the sink's, which differ from one target to the next."""

    @classmethod
    def of(cls, inner: list[Layer], supply: Float64[np.ndarray, " token"]) -> _Network:
        """All layers but the first, which has one column for each target."""
        levels = list(reversed(inner))
        if levels:  # nothing reaches the other tokens of the uppermost level
            levels[0] = np.where(supply[:, None] > 0, levels[0], 0)
        # Each level's edges lead to the next one: blocks beside the diagonal.
        blocks = [supply[None], *levels, np.ones((len(supply), 1))]
        steps = block_diag([csr_array(block) for block in blocks], format="csr")
        nodes = steps.shape[0] + 1
        columns, starts = steps.indices + 1, np.append(steps.indptr, steps.nnz)
        return cls(csr_array((steps.data, columns, starts), shape=(nodes, nodes)))

    def solve(self, column: Float64[np.ndarray, " token"]) -> Any:
        """A maximum flow of the rounded network, as SciPy gives it."""
        return maximum_flow(self._counted(column), 0, self.sink, method="dinic")

    def prove(self, found: Any, column: Float64[np.ndarray, " token"]) -> Proof:
        """The cut around all that the source still reaches, which the flow has to fill."""
        exact, left = self._to(column), self._counted(column) - found.flow
        left.data = (left.data > 0).astype(np.int32)
        left.eliminate_zeros()
        inside = np.zeros(self.sink + 1, dtype=bool)
        inside[breadth_first_order(left, 0, return_predecessors=False)] = True
        tails = np.repeat(np.arange(self.sink + 1), np.diff(exact.indptr))
        crossing = inside[tails] & ~inside[exact.indices]
        flow, cut = found.flow_value / UNIT, float(exact.data[crossing].sum())
        if not -1e-12 <= cut - flow <= (crossing.sum() + 1) / UNIT:
            raise ArithmeticError(f"The solver's flow of {flow} does not fill its cut of {cut}.")
        return Proof(flow, cut, outer=False)

    @property
    def sink(self) -> int:
        """The last node."""
        return int(self.edges.shape[0]) - 1

    def _to(self, column: Float64[np.ndarray, " token"]) -> csr_array:
        """With the capacities into one target."""
        edges = self.edges
        capacities = np.concatenate([edges.data[: -len(column)], column])
        return csr_array((capacities, edges.indices, edges.indptr), shape=edges.shape)

    def _counted(self, column: Float64[np.ndarray, " token"]) -> csr_array:
        """The same in the solver's whole numbers, rounded down."""
        edges = self._to(column)
        edges.data = np.floor(edges.data * UNIT).astype(np.int32)
        return edges


def _thinned(inner: list[Layer], supply: Float64[np.ndarray, " token"]) -> list[Layer]:
    """The widest edges alone; but all of a token that has more to give than the one to itself."""
    thin = [np.where(_widest(layer), layer, 0) for layer in inner]
    if thin:
        rich = supply > 0.5
        thin[-1][rich] = inner[-1][rich]
    return thin


def _widest(layer: Layer) -> Bool[np.ndarray, "token token"]:
    """The edges that a thin network keeps: to oneself, and each token's widest in and out."""
    tokens = len(layer)
    count = min(tokens, ceil(THIN * sqrt(tokens)))
    kept = np.eye(tokens, dtype=bool)
    for axis in (0, 1):
        widest = np.argpartition(layer, tokens - count, axis).take(range(-count, 0), axis)
        np.put_along_axis(kept, widest, True, axis)
    return kept
