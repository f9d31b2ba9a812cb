"""The methods, seen whole: one row each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from attnviz.methods import attention, rollout
from attnviz.methods.options import Option


@dataclass(frozen=True)
class Method:
    """One way to turn a record into a value for each token."""

    label: str
    unit: str
    summary: str
    formula: str
    source: str
    compute: Callable[..., Tensor]
    """(record, query tokens, **options) → one value a token."""
    options: Mapping[str, Option] = field(default_factory=dict)
    needs_gradient: bool = False


METHODS: Mapping[str, Method] = {
    "attention": Method(
        label="Attention",
        unit="attention weight",
        summary="What the query attends to in one layer, by one head or all of them together.",
        formula="A[head, query, key] = softmax over keys of q·k / √d",
        source="Vaswani et al., Attention is all you need, 2017, equation 1",
        compute=attention.attention,
        options=attention.OPTIONS,
    ),
    "rollout": Method(
        label="Attention rollout",
        unit="share of rollout",
        summary="How attention adds up over the layers, each with its residual connection.",
        formula="R = Â_L ⋯ Â_1 with Â = ½ I + ½ mean over heads of A; the query's row",
        source="Abnar & Zuidema, Quantifying attention flow in transformers, 2020",
        compute=rollout.rollout,
        options=rollout.OPTIONS,
    ),
}
