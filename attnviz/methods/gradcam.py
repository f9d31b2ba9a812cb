"""Grad-CAM on tokens: the last layer's activations, weighted by what they do for a target."""

from __future__ import annotations

from einops import einsum
from jaxtyping import Float
from torch import Tensor

from attnviz.errors import BadOption
from attnviz.methods.method import Method
from attnviz.record import AttentionRecord


def gradcam(record: AttentionRecord, query: range) -> Float[Tensor, " token"]:
    """`relu(Σ_c w_c x_c)` of each token, where `w_c` is the mean of `∂y/∂x_c` over the patches.

    x is what the last layer's attention is fed with: the output of the last block's first norm.
    The map is of the target, not of a query.

    Raises BadOption where the record holds no activations.
    Source: Selvaraju et al. 2017, equations 1 and 2, with tokens for the places of a feature map.
    """
    if record.activations is None:
        raise _nothing_to_weight(record)
    prefix = len(record.last_layout.prefix)
    weights = record.activations.gradient[prefix:].mean(0)
    return einsum(weights, record.activations.values, "channel, token channel -> token").relu()


def require_one_piece(record: AttentionRecord) -> None:
    """Raises BadOption where the last layer is not fed with all tokens at once."""
    if not record.fed_whole:
        raise _nothing_to_weight(record)


def _nothing_to_weight(record: AttentionRecord) -> BadOption:
    return BadOption(
        f"{record.model} gave no activations to weight: Grad-CAM needs a target and a last layer"
        " that attends to tokens in one piece. Choose another method."
    )


METHOD = Method(
    label="Grad-CAM on tokens",
    unit="activation weighted by gradient",
    summary="Where the last layer's activations speak for the target.",
    formula="relu(Σ over channels of w x) with x after the last block's first norm, w its mean"
    " gradient over patches",
    source="Selvaraju et al., Grad-CAM, ICCV 2017, equations 1 and 2",
    compute=gradcam,
    requires=require_one_piece,
    needs_gradient=True,
    asks=False,
)
