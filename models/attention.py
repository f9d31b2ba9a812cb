"""The two attention blocks; softmax is a child module, so a plain forward hook sees the map."""

from __future__ import annotations

from math import prod

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz.errors import BadOption


class MultiHeadSelfAttention(nn.Module):
    """Self-attention with separate projections: `dense(concat_h softmax(Q Kᵀ / √width) V)`.

    Each head is `attn_head_size = hidden_size // num_heads` wide, so the projections are
    `head_size = num_heads · attn_head_size` wide: 32 with 3 heads gives 30.
    Vaswani et al. 2017, section 3.2.2.

    Raises:
        BadOption: a size is below 1, or there are more heads than features.
    """

    def __init__(self, num_heads: int, hidden_size: int) -> None:
        """Make the projections `Q`, `K`, `V` and `dense`, all with bias."""
        super().__init__()
        self.heads = num_heads
        self.attn_head_size = head_width(num_heads, hidden_size)
        self.head_size = num_heads * self.attn_head_size
        self.Q = nn.Linear(hidden_size, self.head_size)
        self.K = nn.Linear(hidden_size, self.head_size)
        self.V = nn.Linear(hidden_size, self.head_size)
        self.softmax = nn.Softmax(dim=-1)
        self.dense = nn.Linear(self.head_size, hidden_size)

    @property
    def after_mix(self) -> nn.Module:
        """The submodule fed with map × values, heads concatenated."""
        return self.dense

    @property
    def projection(self) -> nn.Linear:
        """The matrix that map × values go through."""
        return self.dense

    def tp_attn(
        self, x: Float[Tensor, "batch token head_size"]
    ) -> Float[Tensor, "batch {self.heads} token {self.attn_head_size}"]:
        """Split the features into heads, the first head's features first."""
        return rearrange(x, "batch token (head width) -> batch head token width", head=self.heads)

    def forward(
        self, x: Float[Tensor, "batch token hidden"]
    ) -> Float[Tensor, "batch token hidden"]:
        """Let every token attend to every token."""
        query, key, value = (self.tp_attn(part(x)) for part in (self.Q, self.K, self.V))
        attn = self.softmax(query @ key.mT / self.attn_head_size**0.5)
        out: Tensor = self.dense(_join_heads(attn @ value))
        return out


class Attention(nn.Module):
    """Self-attention with one projection to queries, keys and values, and an optional mask.

    `to_out(concat_h softmax(Q Kᵀ · dim_head^−½) V)`, where `to_out` is a linear layer back to
    `dim` and then dropout, or the identity when there is one head of width `dim`.
    With the defaults, dim 1024 and 65 tokens: x (1, 65, 1024) → q, k, v (1, 16, 65, 64)
    → map (1, 16, 65, 65) → output (1, 65, 1024). Dosovitskiy et al. 2021, appendix A.

    Raises:
        BadOption: a size is below 1, or dropout is not between 0 and 1.
    """

    def __init__(self, dim: int, heads: int = 16, dim_head: int = 64, dropout: float = 0.0) -> None:
        """Make `to_qkv`, without bias, and `to_out`, with bias."""
        super().__init__()
        require_positive(dim=dim, heads=heads, dim_head=dim_head)
        if not 0 <= dropout <= 1:
            raise BadOption(f"dropout is {dropout}: give a probability between 0 and 1.")
        inner = heads * dim_head
        self.heads = heads
        self.scale = dim_head**-0.5
        self.to_qkv = nn.Linear(dim, 3 * inner, bias=False)
        self.softmax = nn.Softmax(dim=-1)
        self.to_out: nn.Module = (
            nn.Identity()
            if heads == 1 and dim_head == dim
            else nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))
        )

    @property
    def after_mix(self) -> nn.Module:
        """The submodule fed with map × values, heads concatenated."""
        return self.to_out

    @property
    def projection(self) -> nn.Linear | None:
        """The matrix that map × values go through, if there is one."""
        first = next(self.to_out.children(), None)
        return first if isinstance(first, nn.Linear) else None

    def forward(
        self,
        x: Float[Tensor, "batch token dim"],
        mask: Shaped[Tensor, "*batch_and_patches"] | None = None,
    ) -> Float[Tensor, "batch token dim"]:
        """Let every token attend to every token that the mask keeps.

        `mask` is boolean, (batch, …) flattened to (batch, patch): true keeps a patch. The class
        token, first in `x`, is always kept. A masked query attends to all tokens alike.

        Raises:
            BadOption: the mask is not boolean, or does not fit the batch and its patches.
        """
        query, key, value = rearrange(
            self.to_qkv(x),
            "batch token (qkv head width) -> qkv batch head token width",
            qkv=3,
            head=self.heads,
        )
        scores = query @ key.mT * self.scale
        if mask is not None:
            # The most negative finite number, not −inf: a row without a key must not become NaN.
            scores = scores.masked_fill(~_kept_pairs(mask, x), torch.finfo(scores.dtype).min)
        out: Tensor = self.to_out(_join_heads(self.softmax(scores) @ value))
        return out


def require_positive(**sizes: int) -> None:
    """Raise BadOption for the first size that is below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise BadOption(f"{name} is {size}: give a whole number of at least 1.")


def head_width(num_heads: int, hidden_size: int) -> int:
    """Features a head gets, `hidden_size // num_heads`; BadOption where that is none."""
    require_positive(num_heads=num_heads, hidden_size=hidden_size)
    if hidden_size < num_heads:
        raise BadOption(
            f"hidden_size is {hidden_size} for {num_heads} heads, which leaves a head no feature:"
            f" give a hidden_size of at least {num_heads}, or fewer heads."
        )
    return hidden_size // num_heads


def _join_heads(
    mixed: Float[Tensor, "batch head token width"],
) -> Float[Tensor, "batch token head_width"]:
    return rearrange(mixed, "batch head token width -> batch token (head width)")


def _kept_pairs(
    mask: Shaped[Tensor, "*batch_and_patches"], x: Float[Tensor, "batch token dim"]
) -> Bool[Tensor, "batch 1 token token"]:
    """True where query and key are both kept; the class token in front always is."""
    batch, tokens, _ = x.shape
    got = (len(mask), prod(mask.shape[1:])) if mask.ndim > 1 else tuple(mask.shape)
    if mask.dtype != torch.bool or got != (batch, tokens - 1):
        raise BadOption(
            f"The mask is {mask.dtype} of shape {tuple(mask.shape)}; expected torch.bool of"
            f" (batch, patches) = {(batch, tokens - 1)}, one value for each of the {tokens - 1}"
            " patches and none for the class token."
        )
    kept = F.pad(rearrange(mask, "batch ... -> batch (...)"), (1, 0), value=True)
    return rearrange(kept, "batch query -> batch 1 query 1") & rearrange(
        kept, "batch key -> batch 1 1 key"
    )
