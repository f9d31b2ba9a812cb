"""Head metrics: how far, how widely, at what, and how alike the heads of each layer look.

Every metric is a mean over the patches as queries: prefix tokens are no place, so nothing is far
from them. A layer's map is read once, in blocks of rows, and never held whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import log
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Float, Float64
from PIL import Image
from torch import Tensor

from attnviz.errors import BadOption, unknown
from attnviz.facts import Facts, said, with_notes, with_picture
from attnviz.record import AttentionRecord, LayerAttention
from attnviz.tokens import TokenLayout


@dataclass(frozen=True)
class Metric:
    """What one number of a head means."""

    label: str
    unit: str
    description: str
    """The formula, and where it comes from."""

    @property
    def axis(self) -> str:
        """Label and unit, as an axis carries them."""
        return f"{self.label} ({self.unit})"


METRICS: Mapping[str, Metric] = {
    "distance": Metric(
        "Mean attention distance, patches only",
        "input pixels",
        "Σ over patches k of A[q, k] · distance(q, k) between the patches' centres. What goes to"
        " prefix tokens counts as no distance at all: weights are not renormalised. Dosovitskiy et"
        " al. 2021, figure 7, as most published code computes it.",
    ),
    "distance_renormalised": Metric(
        "Mean attention distance, renormalised",
        "input pixels",
        "The same, each row divided by what it gives to patches (renormalised), so that a head that"
        " looks at the class token does not pass for a local one. A row that gives nothing to"
        " patches is left out.",
    ),
    "entropy": Metric(
        "Attention entropy",
        "nats",
        "-Σ over all tokens k of A[q, k] · log A[q, k]: 0 for one token, log N for all N alike.",
    ),
    "relative_entropy": Metric(
        "Relative attention entropy",
        "share of log N",
        "The entropy divided by log N, N tokens: comparable between input sizes.",
    ),
    "to_prefix": Metric(
        "Attention to prefix tokens",
        "share of attention",
        "Σ over prefix tokens k of A[q, k]; of one of them by its name, such as to_cls.",
    ),
    "agreement": Metric(
        "Head agreement",
        "share of full agreement",
        "1 - KL(A_h ‖ mean over heads) / log H, over all tokens: 1 where the head is like the"
        " layer's mean, 0 where it looks only where no other of the H heads does. The mean over"
        " heads is 1 - JS / log H with JS the generalised Jensen-Shannon divergence of all heads"
        " (Lin 1991). A single head agrees: 1.",
    ),
}
"""The metrics by name, each a mean over the patches as queries; and one for each prefix token."""


DEPTH = "Network depth (layer)"
"""What the axis says that metrics are plotted along."""

_TINY = torch.finfo(torch.float32).tiny
"""Stands for 0 in a logarithm, whose product with 0 is then 0."""


@dataclass(frozen=True, eq=False)
class HeadMetrics:
    """The metrics of a record, read-only, and what says where they come from."""

    values: Mapping[str, Float64[np.ndarray, "layer head"]]
    """By name; layers of fewer heads than the others end in NaN."""
    about: Mapping[str, Metric]
    """What each name of `values` means: `METRICS`, and one for each prefix token."""
    heads: tuple[int, ...]
    """How many heads each layer has."""
    received: Float64[np.ndarray, "layer token"]
    """What each token gets: A averaged over heads and patch queries. Each layer sums to 1."""
    layout: TokenLayout
    facts: Facts
    notes: tuple[str, ...] = ()
    request: Mapping[str, Any] | None = None
    """What it takes to compute them again, in plain values."""
    picture: Image.Image | None = None

    def __getitem__(self, name: str) -> Float64[np.ndarray, "layer head"]:
        """One metric by its name; `UnknownName` for any other."""
        self.describe(name)
        return self.values[name]

    def describe(self, name: str) -> Metric:
        """Label, unit and description of one metric; `UnknownName` for any other."""
        if name not in self.about:
            raise unknown("metric", name, self.about)
        return self.about[name]

    def layer_means(self, name: str) -> Float64[np.ndarray, " layer"]:
        """The mean over each layer's heads; NaN where none has a value."""
        return torch.tensor(self[name]).nanmean(-1).numpy()

    def table(self) -> list[dict[str, int | float]]:
        """One row a head, by layer and head, for CSV or a data frame."""
        return [
            {"layer": layer, "head": head}
            | {name: float(values[layer, head]) for name, values in self.values.items()}
            for layer, count in enumerate(self.heads)
            for head in range(count)
        ]

    def caption(self, *names: str, facts: Facts | None = None) -> list[str]:
        """What a plot of metrics says below it: what a dot is, facts, then each warning.

        `facts` stand for its own, where some of those cannot be printed.
        """
        labels = "; ".join(self.describe(name).label for name in names)
        title, *rest = said(labels, self.facts if facts is None else facts)
        dot = "each dot a head, mean over the patches as queries; line: mean over heads"
        return with_notes([title, dot, *rest], self.notes)

    def named(self, picture: str) -> Self:
        """The same with the picture's name among its facts."""
        return replace(self, facts=with_picture(self.facts, picture))


def head_metrics(record: AttentionRecord) -> HeadMetrics:
    """Every metric of every head, in one pass over the blocks of each layer.

    Distances are in pixels of the model's input. Sums run in float32 over one row, in float64 over
    rows.

    Raises BadOption where a layer is not one of all tokens attending to all of the record's: its
    distances, entropies and shares would not compare with those of others.
    """
    _require_plain(record)
    layout = record.layout
    about = {**METRICS, **_prefix_metrics(layout)}
    heads = tuple(layer.heads for layer in record.layers)
    values = {name: np.full((len(heads), max(heads)), np.nan) for name in about}
    received = np.empty((len(heads), layout.tokens))
    for number, layer in enumerate(record.layers):
        of_heads, received[number] = _measure(layer, layout, _patch_size(record))
        for name, numbers in of_heads.items():
            values[name][number, : heads[number]] = numbers
    for array in (*values.values(), received):
        array.setflags(write=False)
    notes = ("random weights: these numbers mean nothing",) if record.random else ()
    request = None if record.origin is None else {"from": record.origin}
    return HeadMetrics(
        values, about, heads, received, layout, record.facts, notes, request, record.image
    )


def _require_plain(record: AttentionRecord) -> None:
    for layer in record.layers:
        geometry = record.geometry(layer)
        if not geometry.is_plain or geometry.queries != record.layout or layer.mixed:
            attends = layer.mixed or f"tokens attend by {geometry.kind}"
            raise BadOption(
                f"Heads in numbers compare layers in which all tokens attend to all, but in layer"
                f" {layer.name} of {record.model} {attends}. Look at the heads' maps instead."
            )


def _prefix_metrics(layout: TokenLayout) -> dict[str, Metric]:
    return {
        f"to_{name}": Metric(
            f"Attention to the {layout.query_label(name)}", "share of attention", "A[q, k] of it."
        )
        for name in layout.prefix
    }


def _patch_size(record: AttentionRecord) -> tuple[float, float]:
    """(height, width) of a patch in pixels of the model's input."""
    (height, width), (rows, cols) = record.view.tensor.shape[-2:], record.layout.grid
    return height / rows, width / cols


def _measure(
    layer: LayerAttention, layout: TokenLayout, patch_size: tuple[float, float]
) -> tuple[dict[str, Float[Tensor, " head"]], Float[Tensor, " token"]]:
    """One layer's metrics by name, and what each of its tokens received."""
    centres = (layout.cells * torch.tensor(patch_size)).to(layer.device)
    pieces, received = [], torch.zeros(layout.tokens, dtype=torch.float64)
    for start, rows in _patch_rows(layer, len(layout.prefix)):
        down, across = (centres[start : start + rows.shape[1], None] - centres).unbind(-1)
        mean = rows.mean(0)
        pieces.append(_of_rows(rows, mean, torch.hypot(down, across)).cpu().double())
        received += mean.sum(0).cpu().double() / layout.patches
    entropy, far, mass, divergence, *shares = torch.cat(pieces, -1)
    to_prefix = {f"to_{n}": s.mean(-1) for n, s in zip(layout.prefix, shares, strict=True)}
    return {
        "distance": far.mean(-1),
        "distance_renormalised": (far / mass).nanmean(-1),  # 0 / 0: nothing goes to patches
        "entropy": entropy.mean(-1),
        "relative_entropy": entropy.mean(-1) / max(log(layout.tokens), _TINY),
        "to_prefix": sum(to_prefix.values(), torch.zeros(layer.heads)),
        "agreement": (1 - divergence.mean(-1) / max(log(layer.heads), _TINY)).clamp(0, 1),
        **to_prefix,
    }, received


def _patch_rows(
    layer: LayerAttention, prefix: int
) -> Iterator[tuple[int, Float[Tensor, "head query key"]]]:
    """The rows of the patches, block by block, each with the number of its first patch."""
    start = -prefix
    for rows in layer.blocks():
        skipped = max(0, -start)
        if rows.shape[1] > skipped:
            yield start + skipped, rows[:, skipped:]
        start += rows.shape[1]


def _of_rows(
    rows: Float[Tensor, "head query key"],
    mean: Float[Tensor, "query key"],
    distance: Float[Tensor, "query patch"],
) -> Float[Tensor, "sum head query"]:
    """For each row: entropy, Σ A·distance, Σ A over patches, KL(A ‖ mean), A of each prefix token.

    Products are summed over the last axis in place of one `einsum`, which is six times slower here.
    """
    logs = rows.clamp_min(_TINY).log()
    prefix = rows.shape[-1] - distance.shape[-1]
    patches = rows[..., prefix:]
    return torch.stack(
        [
            -(rows * logs).sum(-1),
            (patches * distance).sum(-1),
            patches.sum(-1),
            (rows * (logs - mean.clamp_min(_TINY).log())).sum(-1),
            *rows[..., :prefix].unbind(-1),
        ]
    )
