"""What one pass left behind: each layer's attention and the meaning of its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import index

import torch
from einops import einsum
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from attnviz.contract import Prediction, View
from attnviz.errors import BadOption, CaptureFailed, UnknownName
from attnviz.tokens import TokenLayout

BLOCK_BYTES = 4 * 2**20
"""Rows of a map are rebuilt in blocks of about this size: they stay in the processor's cache."""


@dataclass(frozen=True)
class Maps:
    """A dense map: the softmax that the layer computed, or one rebuilt where it computed none."""

    map: Float[Tensor, "head query key"]

    def block(self, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """The rows of the queries from `start` up to `stop`, in float32."""
        return self.map[:, start:stop].float()

    @property
    def shape(self) -> tuple[int, int, int]:
        """(head, query, key)."""
        heads, queries, keys = self.map.shape
        return heads, queries, keys

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.map.nbytes


@dataclass(frozen=True)
class Factors:
    """What a fused kernel was given; its map is softmax(scale · Q Kᵀ + bias), over keys."""

    queries: Float[Tensor, "head query channel"]
    keys: Float[Tensor, "head key channel"]
    scale: float
    bias: Float[Tensor, "#head #query key"] | None = None

    def block(self, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """The rows of the queries from `start` up to `stop`, rebuilt in float32."""
        queries = self.queries[:, start:stop].float() * self.scale
        scores = queries @ self.keys.float().mT
        if self.bias is not None:
            rows = slice(None) if self.bias.shape[1] == 1 else slice(start, stop)
            scores = scores + self.bias[:, rows].float()
        return scores.softmax(-1)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(head, query, key)."""
        return self.queries.shape[0], self.queries.shape[1], self.keys.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        bias = 0 if self.bias is None else self.bias.nbytes
        return self.queries.nbytes + self.keys.nbytes + bias


@dataclass(frozen=True)
class Product:
    """A map's gradient as its two factors: ∂y/∂A = ∂y/∂(A V) · Vᵀ."""

    outputs: Float[Tensor, "head query channel"]
    """∂y/∂(A V): the gradient at map × values."""
    values: Float[Tensor, "head key channel"]

    def block(self, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """The rows of the queries from `start` up to `stop`, in float32."""
        return self.outputs[:, start:stop].float() @ self.values.float().mT

    @property
    def mean(self) -> Float[Tensor, " head"]:
        """Each head's mean over all queries and keys: of a product, the product of the means."""
        return (self.outputs.float().mean(1) * self.values.float().mean(1)).sum(-1)

    @property
    def nbytes(self) -> int:
        """Bytes held beside the values, which are the layer's."""
        return self.outputs.nbytes


@dataclass(frozen=True)
class LayerAttention:
    """One layer's attention A (head, query, key); its rows sum to 1.

    Dense or rebuilt on demand, the reader cannot tell: all answers come from `source.block`.
    """

    name: str
    source: Maps | Factors
    values: Float[Tensor, "head key channel"] | None = None
    """V: what the map multiplies."""
    projection: Float[Tensor, "out head_channel"] | None = None
    """W: what map × values are multiplied with next; the model's own tensor, no copy."""
    gradient: Product | None = None
    """∂y/∂A for the record's target y."""
    own_gradient: Product | Maps | None = None
    """∂s/∂A for the score s that the model reads from this layer's tokens alone."""

    @property
    def heads(self) -> int:
        """How many heads the layer has."""
        return self.source.shape[0]

    @property
    def tokens(self) -> int:
        """How many tokens attend to each other."""
        return self.source.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes held for this layer."""
        held = (self.source, self.values, self.gradient, self.own_gradient)
        return sum(part.nbytes for part in held if part is not None)

    def spans(self) -> Iterator[tuple[int, int]]:
        """(start, stop) of the queries, in pieces whose rows stay in the processor's cache."""
        heads, queries, keys = self.source.shape
        step = max(1, BLOCK_BYTES // (4 * heads * keys))
        return ((start, min(start + step, queries)) for start in range(0, queries, step))

    def blocks(self) -> Iterator[Float[Tensor, "head query key"]]:
        """A piece by piece, in the order of its rows."""
        return (self.source.block(start, stop) for start, stop in self.spans())

    def probs(self) -> Float[Tensor, "head query key"]:
        """The whole map. Dear at high resolution: 4 · head · token² bytes."""
        return self.source.block(0, self.tokens)

    def rows(self, query: int | range = 0) -> Float[Tensor, "head key"]:
        """The attention paid by one token, or the mean of a range of tokens."""
        asked = query if isinstance(query, range) else _one(query)
        if not asked or asked.start < 0 or asked.stop > self.tokens or asked.step != 1:
            raise UnknownName(
                f"There is no query {query!r}: tokens are numbered 0 to {self.tokens - 1}."
            )
        if len(asked) == 1:
            return self.source.block(asked.start, asked.stop)[:, 0]
        weights = torch.zeros(self.tokens, device=self.device)
        weights[asked.start : asked.stop] = 1 / len(asked)
        return self.pull(weights)

    def pull(self, weights: Float[Tensor, " query"]) -> Float[Tensor, "head key"]:
        """weightsᵀ A for each head: how a weighting of the queries falls on the keys.

        A stretch of queries of weight 0 costs nothing.
        """
        heads, _, keys = self.source.shape
        total = torch.zeros(heads, keys, device=self.device)
        used = weights.nonzero()
        if len(used) == 1:
            token = int(used)
            return weights[token] * self.source.block(token, token + 1)[:, 0]
        for start, stop in self.spans():
            asked = weights[start:stop]
            if asked.any():
                rows = self.source.block(start, stop)
                total += einsum(asked, rows, "query, head query key -> head key")
        return total

    @property
    def device(self) -> torch.device:
        """Where the attention is held."""
        source = self.source
        return source.map.device if isinstance(source, Maps) else source.queries.device


@dataclass(frozen=True)
class Activations:
    """What the last layer's attention was fed with, and the target's gradient there."""

    values: Float[Tensor, "token channel"]
    gradient: Float[Tensor, "token channel"]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.values.nbytes + self.gradient.nbytes


@dataclass(frozen=True)
class AttentionRecord:
    """All that one pass of one picture left behind; methods read it and change nothing."""

    layers: tuple[LayerAttention, ...]
    layout: TokenLayout
    view: View
    image: Image.Image
    """The original picture (for a ready tensor: the pixels recovered from it)."""
    predictions: tuple[Prediction, ...]
    model: str
    weights: str
    """What the weights are, in one sentence."""
    random: bool
    """Whether the weights are random, so that the maps mean nothing."""
    device: str
    features: Float[Tensor, "token channel"] | None = None
    """The last layer's tokens, after the model's own norm."""
    feature: Float[Tensor, " channel"] | None = None
    """The picture's one feature, which the model's head is fed with."""
    target: str | None = None
    """In words, what the gradients are taken of."""
    score: float | None = None
    """The target's value."""
    target_class: int | None = None
    """Which class the target is, where it is one."""
    reference: Float[Tensor, " channel"] | None = None
    """What the target compares the picture's feature with, where that is another one."""
    activations: Activations | None = None

    def __post_init__(self) -> None:
        """Check once that each layer attends over the tokens that the layout names."""
        if not self.layers:
            raise CaptureFailed("The record holds no layer.")
        for layer in self.layers:
            _, queries, keys = layer.source.shape
            if queries != self.layout.tokens or keys != self.layout.tokens:
                raise CaptureFailed(
                    f"Layer {layer.name} attends from {queries} to {keys} tokens, but the layout"
                    f" has {self.layout.tokens}: {len(self.layout.prefix)} prefix tokens and a"
                    f" grid of {self.layout.grid[0]} × {self.layout.grid[1]} patches."
                )

    @property
    def keep(self) -> str:
        """`"maps"` or `"factors"`: what the layers hold."""
        dense = all(isinstance(layer.source, Maps) for layer in self.layers)
        return "maps" if dense else "factors"

    @property
    def input_words(self) -> str:
        """What the model saw, as width × height in pixels, and the picture that it was made of."""
        height, width = self.view.tensor.shape[-2:]
        left, top, right, bottom = self.view.box
        seen = f"{width} × {height} pixels"
        if self.image.size == (width, height):
            return seen
        how = "enlarged" if width > right - left or height > bottom - top else "made smaller"
        return f"{seen}, {how} from {self.image.width} × {self.image.height}"

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """(name, value) in words: where figures of this record say they come from."""
        rows, cols = self.layout.grid
        return (
            ("model", self.model),
            ("weights", self.weights),
            ("input", self.input_words),
            ("grid", f"{rows} rows × {cols} columns of patches"),
            ("fit", self.view.fit or "ready tensor"),
        )

    @property
    def nbytes(self) -> int:
        """Bytes held for all layers and tokens."""
        held = (*self.layers, self.features, self.activations)
        return sum(part.nbytes for part in held if part is not None)


def _one(query: object) -> range:
    try:
        token = index(query)  # type: ignore[arg-type]
    except TypeError:
        raise BadOption(
            f"A query is a token's number or a range of them; {query!r} came."
        ) from None
    return range(token, token + 1)
