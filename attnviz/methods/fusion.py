"""Several heads become one map."""

from __future__ import annotations

from typing import Literal, get_args

from jaxtyping import Float
from torch import Tensor

from attnviz.errors import unknown

HeadFusion = Literal["mean", "max", "min"]
HEAD_FUSIONS: tuple[HeadFusion, ...] = get_args(HeadFusion)


def fuse(attention: Float[Tensor, "head *rest"], how: HeadFusion) -> Float[Tensor, "*rest"]:
    """The mean, maximum or minimum over heads; only the mean keeps rows summing to 1."""
    if how == "mean":
        return attention.mean(0)
    if how == "max":
        return attention.amax(0)
    if how == "min":
        return attention.amin(0)
    raise unknown("head fusion", how, HEAD_FUSIONS)
