"""Attention Grad-CAM: one layer's heads, each weighted by what it does for a target."""

from __future__ import annotations

from einops import einsum
from jaxtyping import Float
from torch import Tensor

from attnviz.methods.gradients import gradient_of
from attnviz.methods.method import Method
from attnviz.methods.options import LAYER
from attnviz.record import AttentionRecord


def attention_gradcam(
    record: AttentionRecord, query: range, *, layer: int
) -> Float[Tensor, " token"]:
    """`relu(mean_h w_h A_h)`, the query's row, where `w_h` is the mean of `∂y/∂A_h` over the map.

    In windows that is the mean over the queries and keys that meet. Over several query tokens the
    rows are averaged first, and the relu is of their mean.

    Source: Grad-CAM (Selvaraju et al. 2017) on attention maps, as in Chefer et al. 2021.
    """
    chosen = record.layers[layer]
    weights = gradient_of(chosen).mean
    rows = chosen.rows(query)
    return einsum(weights, rows, "head, head key -> key").div(chosen.heads).relu()


METHOD = Method(
    label="Attention Grad-CAM",
    unit="attention weighted by gradient",
    summary="One layer's heads, each weighted by what it does for the target.",
    formula="relu(mean over heads of w A), the query's row, with w a head's mean of ∂y/∂A",
    source="Selvaraju et al., Grad-CAM, ICCV 2017, on attention as in Chefer et al., ICCV 2021",
    compute=attention_gradcam,
    options={"layer": LAYER},
    needs_gradient=True,
)
