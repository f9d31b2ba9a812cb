"""Small modules as people write them, each with its attention in another way, and their twin."""

from __future__ import annotations

import math

import torch
from einops import einsum
from torch import nn
from torch.nn import functional as F

HIGH, WIDE = 8, 4
GRID = (2, 3)
SIZE = (GRID[0] * HIGH, GRID[1] * WIDE)
WIDTH, HEADS = 12, 3


class Base(nn.Module):
    """Queries, keys and values (1, head, token, channel) out of one projection."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def split(self, x):
        return [
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        ]

    def scores(self, q, k):
        return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])

    def join(self, mixed):
        return mixed.transpose(1, 2).flatten(2)


class Function(Base):
    def forward(self, x):
        q, k, v = self.split(x)
        return self.proj(self.join(torch.softmax(self.scores(q, k), dim=-1) @ v))


class Method(Base):
    def forward(self, x):
        q, k, v = self.split(x)
        return self.proj(self.join(torch.matmul(self.scores(q, k).softmax(-1), v)))


class Functional(Base):
    def forward(self, x):
        q, k, v = self.split(x)
        attn = F.dropout(F.softmax(self.scores(q, k), dim=3), 0.1, self.training)
        return F.linear(self.join(attn @ v), self.proj.weight, self.proj.bias)


class Child(Base):
    def __init__(self) -> None:
        super().__init__()
        self.attend, self.drop = nn.Softmax(dim=-1), nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = self.split(x)
        return self.proj(self.join(self.drop(self.attend(self.scores(q, k))) @ v))


class Einsum(Base):
    """Heads after tokens, as in Flax, and channels before heads when they are joined."""

    def forward(self, x):
        q, k, v = (part.transpose(1, 2) for part in self.split(x))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        mixed = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(dim=-1), v)
        return self.proj(mixed.transpose(2, 3).flatten(2))


class EinopsEinsum(Base):
    def forward(self, x):
        q, k, v = self.split(x)
        attn = self.scores(q, k).softmax(dim=-1)
        return self.proj(self.join(einsum(attn, v, "b h i j, b h j d -> b h i d")))


class Bmm(Base):
    """Heads as a batch, three axes."""

    def forward(self, x):
        q, k, v = (part.flatten(0, 1) for part in self.split(x))
        mixed = torch.bmm(torch.softmax(self.scores(q, k), -1), v)
        return self.proj(self.join(mixed[None]))


class Fused(Base):
    def forward(self, x):
        q, k, v = self.split(x)
        return self.proj(self.join(F.scaled_dot_product_attention(q, k, v)))


class Weights(nn.Module):
    """The map alone; another module multiplies it."""

    def forward(self, scores):
        return scores.softmax(-1)


class Nested(Base):
    def __init__(self) -> None:
        super().__init__()
        self.map = Weights()

    def forward(self, x):
        q, k, v = self.split(x)
        return self.proj(self.join(self.map(self.scores(q, k)) @ v))


class Mha(nn.Module):
    """torch's own, with or without the fused kernel, tokens first."""

    def __init__(self, *, fused: bool, batch_first: bool = True) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=batch_first)
        self.options = {"need_weights": not fused}

    def forward(self, x):
        if not self.attn.batch_first:
            x = x.transpose(0, 1)
        out = self.attn(x, x, x, **self.options)[0]
        return out if self.attn.batch_first else out.transpose(0, 1)


ATTENTIONS = {
    "torch.softmax": Function,
    "Tensor.softmax": Method,
    "F.softmax": Functional,
    "nn.Softmax": Child,
    "einsum": Einsum,
    "einops.einsum": EinopsEinsum,
    "bmm": Bmm,
    "fused": Fused,
    "nested": Nested,
    "nn.MultiheadAttention": lambda: Mha(fused=True),
    "with its weights": lambda: Mha(fused=False),
    "tokens first": lambda: Mha(fused=True, batch_first=False),
}
"""name → an attention (1, token, channel) → (1, token, channel)."""


class Block(nn.Module):
    def __init__(self, attention) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = attention

    def forward(self, x):
        return x + self.attention(self.norm(x))


class Net(nn.Module):
    """Patches, some tokens before them, blocks, a head on the first token or the mean."""

    def __init__(self, attention=Function, *, depth: int = 2, prefix: int = 1, outputs: int = 4):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, (HIGH, WIDE), (HIGH, WIDE))
        self.tokens = nn.Parameter(torch.zeros(1, prefix, WIDTH))
        self.places = nn.Parameter(torch.zeros(1, prefix + GRID[0] * GRID[1], WIDTH))
        self.blocks = nn.Sequential(*(Block(attention()) for _ in range(depth)))
        self.head = nn.Linear(WIDTH, outputs)
        torch.manual_seed(5)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.4)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.tokens, x], dim=1) + self.places if self.tokens.numel() else x
        x = self.blocks(x)
        return self.head(x[:, 0] if self.tokens.numel() else x.mean(1))


class EncoderNet(Net):
    """torch's own encoder layers, which have a fast path of their own."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.4)


def twin(net: Net, x: torch.Tensor) -> list[torch.Tensor]:
    """The maps (head, query, key) of a `Net` of `Function`s, by loops in float64."""
    state = {name: value.double() for name, value in net.state_dict().items()}
    (rows, cols), width = GRID, WIDTH // HEADS
    tokens = [state["tokens"][0, number] for number in range(state["tokens"].shape[1])]
    for row in range(rows):
        for col in range(cols):
            patch = x[0, :, row * HIGH : (row + 1) * HIGH, col * WIDE : (col + 1) * WIDE].double()
            weight = state["patches.weight"]
            tokens.append((weight * patch).sum((1, 2, 3)) + state["patches.bias"])
    stream, maps = torch.stack(tokens) + state["places"][0], []
    for number in range(len(net.blocks)):
        at = f"blocks.{number}."
        centred = stream - stream.mean(-1, keepdim=True)
        normed = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        normed = normed * state[at + "norm.weight"] + state[at + "norm.bias"]
        qkv = normed @ state[at + "attention.qkv.weight"].T + state[at + "attention.qkv.bias"]
        heads, layer = [], []
        for head in range(HEADS):
            q, k, v = (
                qkv[:, part * WIDTH + head * width : part * WIDTH + (head + 1) * width]
                for part in range(3)
            )
            raised = (q @ k.T / math.sqrt(width)).exp()
            layer.append(raised / raised.sum(-1, keepdim=True))
            heads.append(layer[-1] @ v)
        maps.append(torch.stack(layer))
        mixed = torch.cat(heads, dim=-1)
        stream = stream + mixed @ state[at + "attention.proj.weight"].T
        stream = stream + state[at + "attention.proj.bias"]
    return maps
