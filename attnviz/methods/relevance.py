"""Relevance: attention that matters to a target, added up over the layers."""

from __future__ import annotations

import torch
from einops import rearrange, repeat
from jaxtyping import Float
from torch import Tensor

from attnviz.methods import span
from attnviz.methods.gradients import attention_and_gradient, query_row
from attnviz.methods.method import Method
from attnviz.record import AttentionRecord


def relevance(
    record: AttentionRecord, query: range, *, first_layer: int, last_layer: int
) -> Float[Tensor, " token"]:
    """Row `query` of R, where `R ← R + Ā_l R` from the first layer up and `R_0 = I`.

    `Ā_l = mean_h relu(∂y/∂A_l ⊙ A_l)`, with no normalisation of rows. Of R only that row is formed:
    `r ← r + r Ā_l`, from the last layer down. It is the query itself, and sums of products of Ā: a
    target of twice the score counts ways through n layers 2ⁿ-fold.

    Source: Chefer et al. 2021, "Generic attention-model explainability", equations 5 and 6.
    """
    layers = span.layers_between(record, first_layer, last_layer)
    row = query_row(layers[-1], query)
    for layer in reversed(layers):
        added = torch.zeros_like(row)
        for at, attention, gradient in attention_and_gradient(layer, row):
            kept = gradient.mul_(attention).relu_()
            # As one product of a row with a matrix: an einsum would first copy the piece.
            weights = repeat(row[at] / layer.heads, "query -> (head query)", head=layer.heads)
            added += weights @ rearrange(kept, "head query key -> (head query) key")
        row = row + added
    return row


METHOD = Method(
    label="Relevance",
    unit="relevance",
    summary="Which attention speaks for the target, added up over the layers.",
    formula="R ← R + Ā R with Ā = mean over heads of relu(∂y/∂A ⊙ A), R = I at first; the query's"
    " row",
    source="Chefer et al., Generic attention-model explainability, ICCV 2021, equations 5 and 6",
    compute=relevance,
    options=span.OPTIONS,
    needs_gradient=True,
    keeps_itself=lambda settled: True,
)
