"""A whole Vision Transformer, built on either attention block; einops cuts the patches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

import torch
from einops import rearrange, repeat
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.errors import BadOption, unknown
from attnviz.tokens import TokenLayout, prefix_names
from models.attention import Attention, MultiHeadSelfAttention, head_width, require_positive
from models.timm_state import from_timm

BLOCKS: dict[str, Callable[[int, int], nn.Module]] = {
    "separate": MultiHeadSelfAttention,
    "fused": lambda heads, width: Attention(width, heads=heads, dim_head=head_width(heads, width)),
}
"""Attention blocks by name, made from (heads, hidden size)."""


class Block(nn.Module):
    """One pre-norm layer: `x ← x + attn(norm1(x))`, then `x ← x + mlp(norm2(x))`."""

    def __init__(self, attn: nn.Module, hidden_size: int, mlp_size: int) -> None:
        """Put `attn` beside an MLP with one hidden layer of `mlp_size` and GELU."""
        super().__init__()
        self.norm1 = nn.LayerNorm(hidden_size, eps=1e-6)
        self.attn = attn
        self.norm2 = nn.LayerNorm(hidden_size, eps=1e-6)
        fc1, fc2 = nn.Linear(hidden_size, mlp_size), nn.Linear(mlp_size, hidden_size)
        self.mlp = nn.Sequential(OrderedDict(fc1=fc1, act=nn.GELU(), fc2=fc2))

    def forward(
        self, x: Float[Tensor, "batch token hidden"]
    ) -> Float[Tensor, "batch token hidden"]:
        """Add what the attention and the MLP have to say."""
        x = x + self.attn(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x


class ViT(nn.Module):
    """The Vision Transformer of Dosovitskiy et al. 2021, with registers (Darcet et al. 2024).

    Token order: class token, registers, patches row by row, as `layout` says. The head reads the
    final norm of the class token, or of the mean of the patches where there is none.

    Raises:
        BadOption: a size is below 1, or the patches do not tile the image.
        UnknownName: there is no such `block`.
    """

    def __init__(
        self,
        *,
        image_size: tuple[int, int],
        patch_size: int,
        channels: int = 3,
        hidden_size: int,
        depth: int,
        num_heads: int,
        mlp_ratio: float = 4.0,
        block: str = "separate",
        class_token: bool = True,
        registers: int = 0,
        classes: int | None = None,
    ) -> None:
        """Take `image_size` as (rows, cols) in pixels; `classes=None` leaves out the classifier."""
        super().__init__()
        height, width = image_size
        mlp_size, outputs = int(hidden_size * mlp_ratio), 1 if classes is None else classes
        require_positive(height=height, width=width, patch_size=patch_size, channels=channels)
        require_positive(hidden_size=hidden_size, depth=depth, mlp_size=mlp_size, classes=outputs)
        if height % patch_size or width % patch_size or registers < 0:
            raise BadOption(
                f"An image of {height} × {width} pixels in patches of {patch_size} with"
                f" {registers} registers came: give multiples of the patch and 0 or more registers."
            )
        if block not in BLOCKS:
            raise unknown("block", block, BLOCKS)
        prefix = prefix_names(cls=class_token, registers=registers)
        self.layout = TokenLayout(prefix, (height // patch_size, width // patch_size))
        self.input_shape, self.patch_size = (channels, height, width), patch_size

        def learned(tokens: int) -> nn.Parameter:
            values = torch.empty(1, tokens, hidden_size)
            return nn.Parameter(nn.init.trunc_normal_(values, std=0.02))

        self.patch_embed = nn.Linear(channels * patch_size**2, hidden_size)
        self.cls_token = learned(1) if class_token else None
        self.reg_token = learned(registers) if registers else None
        self.pos_embed = learned(self.layout.tokens)
        attns = (BLOCKS[block](num_heads, hidden_size) for _ in range(depth))
        self.blocks = nn.Sequential(*(Block(attn, hidden_size, mlp_size) for attn in attns))
        self.norm = nn.LayerNorm(hidden_size, eps=1e-6)
        self.head = nn.Linear(hidden_size, classes) if classes else nn.Identity()

    def forward(self, x: Float[Tensor, "batch channel height width"]) -> Float[Tensor, "batch out"]:
        """Give the logits, or the normed features where there is no classifier."""
        if x.shape[1:] != self.input_shape:
            expected = ", ".join(map(str, self.input_shape))
            raise BadOption(f"An input of {tuple(x.shape)} came; expected (batch, {expected}).")
        side = self.patch_size
        x = rearrange(x, "b chan (row y) (col x) -> b (row col) (chan y x)", y=side, x=side)
        prefix = [token for token in (self.cls_token, self.reg_token) if token is not None]
        prefix = [repeat(token, "1 token hidden -> b token hidden", b=len(x)) for token in prefix]
        x = self.blocks(torch.cat([*prefix, self.patch_embed(x)], dim=1) + self.pos_embed)
        first_patch = len(self.layout.prefix)
        pooled = x[:, first_patch:].mean(dim=1) if self.cls_token is None else x[:, 0]
        out: Tensor = self.head(self.norm(pooled))
        return out

    def load_timm(self, state: Mapping[str, Tensor]) -> None:
        """Fill in the state dict of a timm `VisionTransformer` of the same shape, all or nothing.

        Raises:
            BadWeights: the state dict is of another shape or kind, as `from_timm` says.
        """
        self.load_state_dict(
            from_timm(state, own=self.state_dict(), layout=self.layout, patch_size=self.patch_size)
        )
