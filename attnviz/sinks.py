"""Sinks: the few tokens that collect attention, or stand out by their features, wherever one looks.

They hold no picture content of their own (Darcet et al. 2024, Vision transformers need registers),
and a map that they swallow shows nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from attnviz.errors import BadOption
from attnviz.metrics import HeadMetrics
from attnviz.tokens import TokenLayout

FAR = 20.0
"""A token is far above uniform if it has this many times what an even spread would give it."""
FAR_NORM = 2.0
"""A feature is outlying if it is this many times as long as the patches' median."""
FEW = 0.01
"""At most this share of the patches (but always one) are few."""
FAINT = 0.2
"""What is below this share of the largest value is hardly seen beside it."""
NAMED = 3
"""So many patches are named in a sentence; more are counted."""


@dataclass(frozen=True)
class Sink:
    """One token that collects attention or has an outlying feature."""

    token: int
    name: str
    """Such as `class token` or `patch (row 3, column 20)`."""
    cell: tuple[int, int] | None
    """(row, col) of a patch, None for a prefix token."""
    layer: int
    """Where it collects the most attention."""
    share: float
    """Of all attention that the patches pay in that layer, mean over heads."""
    layers: tuple[int, ...]
    """Where it collects far more than an even spread would give it; none for a mere outlier."""
    norm: float | None
    """Length of its feature over the patches' median, where features were given."""


def find_sinks(
    metrics: HeadMetrics,
    features: Float[Tensor, "token *channel"] | None = None,
    *,
    times: float = FAR,
    norm_times: float = FAR_NORM,
) -> tuple[Sink, ...]:
    """The tokens that receive at least `times` / N of a layer's attention, greediest first.

    Received is the mean of A over heads and patch queries; N tokens share it evenly at 1 / N each.
    So with N < `times` there is no sink by this rule.

    Args:
        metrics: what `head_metrics` gave.
        features: the last layer's tokens before the final norm, or their lengths. With them a
            token is a sink as well if its feature has at least `norm_times` the patches' median
            length. Not `record.features`: the norm has made these about equally long.
        times: how far above uniform.
        norm_times: how far above the median.

    Raises:
        BadOption: features of another number of tokens, or not finite.
    """
    layout, received = metrics.layout, metrics.received
    collects = received * layout.tokens >= times
    norms = None if features is None else _over_median(features, layout)
    found = collects.any(0) if norms is None else collects.any(0) | (norms >= norm_times)
    sinks = [
        Sink(
            token=token,
            name=layout.token_label(token),
            cell=None if token < len(layout.prefix) else layout.cell(token),
            layer=int(received[:, token].argmax()),
            share=float(received[:, token].max()),
            layers=tuple(np.flatnonzero(collects[:, token]).tolist()),
            norm=None if norms is None else float(norms[token]),
        )
        for token in np.flatnonzero(found).tolist()
    ]
    return tuple(sorted(sinks, key=lambda sink: -sink.share))


def _over_median(
    features: Float[Tensor, "token *channel"], layout: TokenLayout
) -> Float64[np.ndarray, " token"]:
    """Each token's length over the median of the patches'."""
    if features.ndim > 2 or len(features) != layout.tokens:
        raise BadOption(
            f"Features of shape {tuple(features.shape)} came; expected are ({layout.tokens},"
            f" channels) or ({layout.tokens},): one vector, or its length, for each token."
        )
    exact = features.detach().cpu().double()
    norms = exact.abs() if exact.ndim == 1 else torch.linalg.vector_norm(exact, dim=-1)
    if not norms.isfinite().all():
        raise BadOption("Features that are not all finite came. Check the weights and the input.")
    median = layout.to_grid(norms).quantile(0.5)
    return (norms / median.clamp_min(torch.finfo(torch.float64).tiny)).numpy()


def own_cells(
    cell: tuple[int, int] | None, grid: tuple[int, int], pool: int | None = None
) -> tuple[tuple[int, int], ...]:
    """The query's cell first, then those that are pooled with it; none of a query without a place.

    What a method that adds the identity leaves with the query lies there, and is no sink.
    """
    if cell is None:
        return ()
    if pool is None:
        return (cell,)
    layout = TokenLayout((), grid)
    lies_in = layout.parts(layout.pooled(pool)) > 0
    pooled = lies_in[:, lies_in[layout.token(*cell)]].any(1)
    others = (layout.cell(int(token)) for token in pooled.nonzero())
    return (cell, *(other for other in others if other != cell))


def swallowed_by(
    values: Float[np.ndarray, "row col"],
    filled: Bool[np.ndarray, "row col"] | None = None,
    *,
    itself: Collection[tuple[int, int]] = (),
) -> tuple[tuple[int, int], ...]:
    """The few patches, (row, col) and largest first, that leave nothing to see of a map; or none.

    A map is swallowed if its largest value is at least `FAR` times the mean, and at most `FEW` of
    all patches have more than `FAINT` of the largest value. Drawn from zero, all others then lie
    in the lowest fifth of the colours. A map with negative values is no spread of mass: none.
    Patches that are not `filled` hold no value, and do not count. Nor do those of `itself`,
    the (row, col) of a query that keeps a part of its own (the I in rollout's and relevance's R):
    that is nothing it collects.

    DINOv2's rollouts are, by what its first layer attends to; from the second layer on they aren't.
    """
    exact = values.astype(np.float64)
    counts = np.ones(exact.shape, dtype=bool) if filled is None else filled.copy()
    for cell in itself:
        counts[cell] = False
    held = exact[counts]
    if not held.size:
        return ()
    largest = held.max()
    if held.min() < 0 or largest < FAR * held.mean() or not largest:
        return ()
    seen = np.argwhere((exact > FAINT * largest) & counts)
    if len(seen) > max(1, FEW * held.size):
        return ()
    cells = [(int(row), int(col)) for row, col in seen]
    return tuple(sorted(cells, key=lambda cell: -exact[cell]))


def in_words(cells: Sequence[tuple[int, int]]) -> str:
    """Patches as the subject of a sentence, with their verb: they hold so much of a map."""
    named = "; ".join(f"row {row}, column {col}" for row, col in cells[:NAMED])
    more = f"; and {len(cells) - NAMED} more" if len(cells) > NAMED else ""
    noun, verb = ("patch", "holds") if len(cells) == 1 else ("patches", "hold")
    return f"{len(cells)} {noun} ({named}{more}) {verb}"
