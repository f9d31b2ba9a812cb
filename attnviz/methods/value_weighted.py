"""Value-weighted attention: what a key really contributes, not only its weight."""

from __future__ import annotations

from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from attnviz.errors import BadOption
from attnviz.methods.method import Method
from attnviz.methods.options import LAYER, Option
from attnviz.record import AttentionRecord, LayerAttention


def value_weighted(
    record: AttentionRecord, query: range, *, layer: int, head: int | None
) -> Float[Tensor, " token"]:
    """`‖Σ_h A_h[query, j] · v_hj W_h‖` for each key j; of one head, its term alone.

    v are the values with their bias, W the rows of the output projection that the head has. Over
    several query tokens the rows are averaged first.

    Raises BadOption where values do not go straight through one matrix, or the record kept none.
    Source: Kobayashi et al. 2020, "Attention is not only a weight", section 3.
    """
    chosen = record.layers[layer]
    if chosen.projection is None:
        raise _no_matrix(chosen)
    if chosen.values is None:
        raise BadOption(
            'This record keeps no values: observe the picture with keep="auto" or keep="maps".'
        )
    weights = rearrange(
        chosen.projection.float(), "out (head channel) -> head channel out", head=chosen.heads
    )
    weighted = einsum(
        chosen.rows(query), chosen.values.float(), "head key, head key ch -> head key ch"
    )
    if head is not None:
        weighted, weights = weighted[head : head + 1], weights[head : head + 1]
    return einsum(weighted, weights, "head key ch, head ch out -> key out").norm(dim=-1)


def require_matrix(record: AttentionRecord) -> None:
    """Raises BadOption where map × values go straight through one matrix in no layer."""
    if all(layer.projection is None for layer in record.layers):
        raise _no_matrix(record.layers[-1])


def _no_matrix(layer: LayerAttention) -> BadOption:
    return BadOption(
        f"In layer {layer.name} map × values do not go straight through one matrix, so there are"
        " no vectors whose length could be drawn. Choose another method."
    )


METHOD = Method(
    label="Value-weighted attention",
    unit="length of weighted value",
    summary="How much each key really adds to the query: its weight times what it says.",
    formula="length of Σ over heads of A[query, key] v[key] W",
    source="Kobayashi et al., Attention is not only a weight, EMNLP 2020, section 3",
    compute=value_weighted,
    requires=require_matrix,
    options={
        "layer": LAYER,
        "head": Option(
            None,
            "head",
            "which head, counted from 0; all of them, added, if left out",
            unset=("heads", "all, added"),
        ),
    },
)
