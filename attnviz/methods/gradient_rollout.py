"""Gradient rollout: rollout over the attention that speaks for a target."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.methods import span
from attnviz.methods.gradients import attention_and_gradient, query_row
from attnviz.methods.method import Method
from attnviz.record import AttentionRecord


def gradient_rollout(
    record: AttentionRecord, query: range, *, first_layer: int, last_layer: int
) -> Float[Tensor, " token"]:
    """Row `query` of `R = Ĝ_last ⋯ Ĝ_first`, `Ĝ_l = (I + G_l)` with each row divided by its sum.

    `G_l = relu(mean_h(A_l ⊙ ∂y/∂A_l))`: the heads are averaged before the relu, so what one head
    says against the target takes from what another says for it. Of R only that row is formed; it
    sums to 1 over all tokens (prefix included).

    Source: the intent of J. Gildenblat's vit-explain, 2020.
    """
    layers = span.layers_between(record, first_layer, last_layer)
    row = query_row(layers[-1], query)
    for layer in reversed(layers):
        passed_on = torch.zeros_like(row)
        for at, attention, gradient in attention_and_gradient(layer, row):
            kept = gradient.mul_(attention).mean(0).relu_()
            share = row[at] / (1 + kept.sum(-1))
            passed_on[at] += share
            passed_on += share @ kept
        row = passed_on
    return row


METHOD = Method(
    label="Gradient rollout",
    unit="share of gradient rollout",
    summary="Rollout over the attention that speaks for the target.",
    formula="R = Ĝ_L ⋯ Ĝ_1 with Ĝ = I + relu(mean over heads of A ⊙ ∂y/∂A), rows divided by their"
    " sums; the query's row",
    source="the intent of J. Gildenblat's vit-explain, 2020",
    compute=gradient_rollout,
    options=span.OPTIONS,
    needs_gradient=True,
    keeps_itself=lambda settled: True,
    is_share=lambda settled: True,
)
