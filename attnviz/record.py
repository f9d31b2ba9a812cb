"""What one pass left behind: each layer's attention and the meaning of its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from einops import einsum
from jaxtyping import Bool, Float
from PIL import Image
from torch import Tensor

from attnviz.contract import Prediction, View
from attnviz.errors import BadOption, CaptureFailed, UnknownName
from attnviz.facts import Facts
from attnviz.geometry import Geometry, asks_not, read_by
from attnviz.shapes import as_whole
from attnviz.sources import Factors as Factors
from attnviz.sources import Maps as Maps
from attnviz.sources import Product as Product
from attnviz.sources import Replayed as Replayed
from attnviz.sources import Unkept as Unkept
from attnviz.tokens import TokenLayout
from attnviz.windows import Windows

BLOCK_BYTES = 4 * 2**20
"""Rows of a map are rebuilt in blocks of about this size: they stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class LayerAttention:
    """One layer's attention A (head, query, key); its rows sum to 1.

    Dense or rebuilt on demand, the reader cannot tell: all answers come from `source.block`.
    """

    name: str
    source: Maps | Factors | Replayed | Unkept | Windows
    values: Float[Tensor, "head key channel"] | None = None
    """V: what the map multiplies."""
    projection: Float[Tensor, "out head_channel"] | None = None
    """W: what map × values are multiplied with next; the model's own tensor, no copy."""
    gradient: Product | Windows | None = None
    """∂y/∂A for the record's target y."""
    own_gradient: Product | Maps | Windows | None = None
    """∂s/∂A for the score s that the model reads from this layer's tokens alone."""
    geometry: Geometry | None = None
    """What its rows and columns stand for; None: the record's tokens, all to all."""
    mixed: str = ""
    """Where rows do not sum to 1, as where heads are mixed after the softmax: why, in words."""

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
        """The attention paid by one token, or the mean of a range of tokens.

        Raises:
            UnknownName: there are no such tokens.
            BadOption: none of them asks in this layer, or it is no number and no range.
        """
        asked = query if isinstance(query, range) else _one(query)
        if not asked or asked.start < 0 or asked.stop > self.tokens or asked.step != 1:
            raise UnknownName(
                f"There is no query {query!r}: tokens are numbered 0 to {self.tokens - 1}."
            )
        asks = self.asks[asked.start : asked.stop]
        if not asks.any():
            raise asks_not(self.name, self._kind)
        if len(asked) == 1:
            return self.source.block(asked.start, asked.stop)[:, 0]
        weights = torch.zeros(self.tokens, device=self.device)
        weights[asked.start : asked.stop] = asks / asks.sum()
        return self.pull(weights)

    @property
    def asks(self) -> Bool[Tensor, " query"]:
        """Which tokens have a row; the others pass the layer as they are."""
        if self.geometry is None:
            return torch.ones(self.tokens, dtype=torch.bool, device=self.device)
        return self.geometry.asks.to(self.device)

    @property
    def _kind(self) -> str:
        return "all tokens" if self.geometry is None else self.geometry.kind

    @property
    def is_share(self) -> bool:
        """Whether each row sums to 1 over tokens that have a place or a name."""
        return not self.mixed and (self.geometry is None or not self.geometry.padded)

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
        return source.map.device if isinstance(source, Windows) else source.held[0].device


@dataclass(frozen=True, eq=False)
class Activations:
    """What the last layer's attention was fed with, and the target's gradient there."""

    values: Float[Tensor, "token channel"]
    gradient: Float[Tensor, "token channel"]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.values.nbytes + self.gradient.nbytes


@dataclass(frozen=True, eq=False)
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
    feature: Float[Tensor, " width"] | None = None
    """The picture's one feature, which the model's head is fed with; mostly as wide as a token."""
    fed_whole: bool = True
    """Whether the last layer's attention is fed with all tokens in one piece, as Grad-CAM needs."""
    scored: bool = True
    """Whether the model's head can score the tokens that a layer hands on, as LeGrad needs."""
    target: str | None = None
    """In words, what the gradients are taken of."""
    score: float | None = None
    """The target's value."""
    target_class: int | None = None
    """Which class the target is, where it is one."""
    reference: Float[Tensor, " width"] | None = None
    """What the target compares the picture's feature with, where that is another one."""
    activations: Activations | None = None
    origin: Mapping[str, Any] | None = None
    """What it takes to observe the same again, in plain values; `trace.origin_of` says which."""

    def __post_init__(self) -> None:
        """Check once that each layer attends over the tokens that the layout names."""
        if not self.layers:
            raise CaptureFailed("The record holds no layer.")
        for layer in self.layers:
            _, *sides = layer.source.shape
            geometry = self.geometry(layer)
            for came, layout in zip(sides, (geometry.queries, geometry.keys), strict=True):
                if came != layout.tokens:
                    raise CaptureFailed(
                        f"Layer {layer.name} attends from {sides[0]} to {sides[1]} tokens, but the"
                        f" layout has {layout.tokens}: {len(layout.prefix)} prefix tokens and a"
                        f" grid of {layout.grid[0]} × {layout.grid[1]} patches."
                    )

    @property
    def compares_with_itself(self) -> bool:
        """Whether the target is a similarity that is 1 already, so that it can only fall."""
        return self.reference is not None and self.score is not None and self.score > 1 - 1e-6

    @property
    def gradient_is_zero(self) -> bool:
        """Whether nothing that any layer attends to changes the target, however little."""
        gradients = [layer.gradient for layer in self.layers if layer.gradient is not None]
        return bool(gradients) and not any(gradient.any() for gradient in gradients)

    def geometry(self, layer: LayerAttention) -> Geometry:
        """What the rows and the columns of one of its layers stand for."""
        return layer.geometry or Geometry(self.layout, self.layout)

    def geometry_of(self, settled: Mapping[str, Any]) -> Geometry:
        """What a method with these options reads: a layer, a span's last one, or the features."""
        return read_by(settled, lambda number: self.geometry(self.layers[number]))

    @property
    def last_layout(self) -> TokenLayout:
        """The tokens that the last layer hands on: those of `features` and `activations`."""
        return self.geometry(self.layers[-1]).queries

    def shared_from(self, last: int = -1) -> int:
        """The first layer from which all up to `last` add up: they share their tokens."""
        first = last % len(self.layers)
        end = self.geometry(self.layers[first])
        while first and self._adds_up(self.layers[first - 1], end):
            first -= 1
        return first

    def _adds_up(self, layer: LayerAttention, end: Geometry) -> bool:
        return not layer.mixed and self.geometry(layer).shares_tokens(end)

    @property
    def keep(self) -> str:
        """`"maps"` or `"factors"`: what the layers hold."""
        dense = all(isinstance(layer.source, Maps | Windows) for layer in self.layers)
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
    def facts(self) -> Facts:
        """(name, value) in words: where figures of this record say they come from."""
        return self.facts_on(self.layout)

    def facts_on(self, layout: TokenLayout) -> Facts:
        """The same of a figure on the grid of another layout, as of a later stage."""
        rows, cols = layout.grid
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
        token = as_whole(query)
    except TypeError:
        raise BadOption(
            f"A query is a token's number or a range of them; {query!r} came."
        ) from None
    return range(token, token + 1)
