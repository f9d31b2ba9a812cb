"""Attention flow: how much of an input can reach the query, where attention is what edges hold."""

from __future__ import annotations

from math import ceil

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from attnviz.contract import Progress
from attnviz.errors import BadOption
from attnviz.methods import network, span
from attnviz.methods.gradients import query_row
from attnviz.methods.method import Method
from attnviz.methods.options import Option
from attnviz.methods.values import Estimate, Values, in_words
from attnviz.record import AttentionRecord, LayerAttention

OPTIONS = {
    **span.OPTIONS,
    "pool": Option(
        14, "side", "patches are pooled to a grid of at most this many rows and columns"
    ),
    "limit": Option(
        3600.0,
        "seconds",
        "seconds it may take; what could take longer is refused",
        idle=lambda settled: True,  # of no effect on the values
    ),
}


def flow(
    record: AttentionRecord,
    query: range,
    *,
    first_layer: int,
    last_layer: int,
    pool: int | None,
    limit: float,
    progress: Progress | None,
) -> Values:
    """For each input token on its own the maximum flow from the query to it, over their sum.

    A node is a token at a level, 0 being the input. An edge from token i of level l to token j of
    level l − 1 holds `Â_l[i, j]`, where `Â_l = ½ mean_h A_l + ½ I`. The source gives 1 to the query
    at level L; several query tokens get an equal part of it each. No flow exceeds 1, nor the column
    sum of the first layer's Â. Shares sum to 1 over all tokens (prefix included).
    `network.largest_flows` says how each is proven.

    Through many layers every flow often reaches one of these two bounds. The map is then that of
    the first layer, whoever asks; a note on the figure says so.

    With `pool`, patches are first pooled to a grid of at most so many rows and columns, of parts
    equal in size: A is summed over the keys in a part and averaged over its queries, each patch by
    how much of it lies there, so that rows still sum to 1. Whatever parts the query lies in ask for
    it, and a patch gets the flow of the parts that it lies in. Prefix tokens stay as they are.

    Raises `BadOption` where it could take longer than `limit` seconds, by `estimate`.
    Source: Abnar & Zuidema 2020, section 3.
    """
    layers = span.layers_between(record, first_layer, last_layer)
    whole = record.geometry(layers[-1]).queries
    layout = whole.pooled(pool)
    _refuse(network.estimate(len(layers), layout.tokens), limit, len(layers), layout.tokens)
    parts = None if pool is None else whole.parts(layout)
    supply = query_row(layers[-1], query).cpu().double()
    supply /= supply.sum()  # 1 in float64 too
    supply = supply if parts is None else supply @ parts
    capacities, found = [], []
    for layer in layers:
        if progress is not None:
            progress(0, layout.tokens)
        capacities.append(_capacities(layer, parts))
    for proof in network.largest_flows(capacities, supply.numpy()):
        found.append(proof)
        if progress is not None:
            progress(len(found), layout.tokens)
    flows = torch.tensor([proof.cut for proof in found], dtype=torch.float64)
    notes = []
    if parts is not None:
        flows, (rows, cols) = parts @ flows, layout.grid
        notes.append(
            f"the patches were pooled to {rows} × {cols} for the flow, and its values laid back"
            " over them"
        )
    if all(proof.outer for proof in found):
        notes.append(
            "every flow is limited by 1 or by the first layer alone, so this map says nothing of"
            " the query; a flow through fewer layers may"
        )
    return Values(flows / flows.sum(), tuple(notes))


def estimate(
    record: AttentionRecord,
    *,
    first_layer: int,
    last_layer: int,
    pool: int | None,
    **_: object,
) -> Estimate:
    """How long the flows of one query take: `most` where all of the network is needed for each."""
    layers = span.layers_between(record, first_layer, last_layer)
    layout = record.geometry(layers[-1]).queries.pooled(pool)
    return network.estimate(len(layers), layout.tokens)


def _refuse(needed: Estimate, limit: float, layers: int, tokens: int) -> None:
    if needed.most > limit:
        raise BadOption(
            f"The flow through {layers} layers of {tokens} tokens takes {needed}, and the limit is"
            f" {in_words(limit)}. Pool to a smaller grid (pool=14), take fewer layers (first_layer,"
            f" last_layer), or allow it with limit={ceil(needed.most)}."
        )


def _capacities(
    layer: LayerAttention, parts: Float64[Tensor, "token part"] | None
) -> Float64[np.ndarray, "part part"]:
    """½ mean_h A + ½ I, of what the tokens are pooled to; what does not ask passes whole."""
    mean = torch.cat([rows.mean(0) for rows in layer.blocks()]).cpu().double()
    mean += torch.diag(~layer.asks.cpu()).to(mean)
    if parts is not None:
        mean = (parts / parts.sum(0)).mT @ mean @ parts
    capacities: np.ndarray = ((mean + torch.eye(len(mean), dtype=mean.dtype)) / 2).numpy()
    return capacities


METHOD = Method(
    label="Attention flow",
    unit="share of flow",
    summary="How much of each patch can reach the query, where attention is what edges hold.",
    formula="maximum flow from the query at level L to each input alone, over their sum;"
    " the edge from i at level l to j at level l − 1 holds Â_l[i, j]",
    source="Abnar & Zuidema, Quantifying attention flow in transformers, 2020",
    compute=flow,
    options=OPTIONS,
    is_share=lambda settled: True,
    keeps_itself=lambda settled: True,
    estimate=estimate,
)
