"""A kind of attention module of timm's: where its map arises, and where its effect is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Kind:
    """One class of attention module; names are of its attributes.

    What has no docstring here is as in `AttentionSite`, whose field of that name it becomes.
    """

    after_mix: str = "proj"
    """The submodule fed with map × values, heads concatenated: the first that it has of these."""
    projection: str = "proj"
    """What map × values go through, if it is a linear layer and nothing stands between."""
    fused_switch: str | None = "fused_attn"
    is_operand: bool = False
    mixed: str = ""
    channels_first: bool = False
    axes: str = "window head"
    join: str = "(head ch)"
    on_grid: bool = False
    values_left: bool = False
    order: str = "(window query)"
    adds_queries: bool = False
    heads: str = "num_heads"
    """What it calls their number; "" where it has one."""
    in_turn: bool = False
    beside: str | None = None
    alone: Callable[[Any, Tensor, Tensor], Tensor] | None = None
    """As the site's, after the module itself."""


UNFUSED = Kind(fused_switch=None)
