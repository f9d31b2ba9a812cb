"""What a map, or its gradient, is kept as: itself, its factors, or what these are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from attnviz.bias import Crossed
from attnviz.errors import CaptureFailed


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
    def held(self) -> tuple[Tensor, ...]:
        """All tensors that it is made of but a bias."""
        return (self.map,)

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
    bias: Float[Tensor, "#head #query key"] | Crossed | None = None

    def block(self, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """The rows of the queries from `start` up to `stop`, rebuilt in float32."""
        queries = self.queries[:, start:stop].float() * self.scale
        scores = queries @ self.keys.float().mT
        if isinstance(self.bias, Crossed):
            scores = scores + self.bias.block(start, stop).float()
        elif self.bias is not None:
            rows = slice(None) if self.bias.shape[1] == 1 else slice(start, stop)
            scores = scores + self.bias[:, rows].float()
        return scores.softmax(-1)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(head, query, key)."""
        return self.queries.shape[0], self.queries.shape[1], self.keys.shape[1]

    @property
    def held(self) -> tuple[Tensor, ...]:
        """All tensors that it is made of but a bias."""
        return self.queries, self.keys

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        bias = 0 if self.bias is None else self.bias.nbytes
        return self.queries.nbytes + self.keys.nbytes + bias


@dataclass(frozen=True)
class Replayed:
    """What a layer was fed with; the layer itself makes its queries and keys anew when asked."""

    fed: Float[Tensor, "token channel"]
    shape: tuple[int, int, int]
    """(head, query, key)."""
    ask: Callable[[], Factors] = field(repr=False)

    def block(self, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """The rows of the queries from `start` up to `stop`, rebuilt in float32.

        Raises CaptureFailed where the model's weights are not what they were.
        """
        return self.ask().block(start, stop)

    @property
    def held(self) -> tuple[Tensor, ...]:
        """All tensors that it is made of but a bias."""
        return (self.fed,)

    @property
    def nbytes(self) -> int:
        """Bytes held, beside the factors of one layer that were last asked for."""
        return self.fed.nbytes


@dataclass(frozen=True)
class Unkept:
    """A layer of which nothing was kept, because nobody was going to read it."""

    shape: tuple[int, int, int]
    """(head, query, key)."""
    name: str
    """The layer's."""
    held: tuple[Tensor, ...]
    """Nothing, on the layer's device."""
    nbytes: int = 0

    def block(self, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """CaptureFailed, always."""
        raise CaptureFailed(f"Layer {self.name} was not kept: observe the picture by itself.")


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

    def any(self) -> bool:
        """Whether any value is not zero; one of the factors may be zero instead."""
        return bool(self.outputs.any() and self.values.any())

    @property
    def nbytes(self) -> int:
        """Bytes held beside the values, which are the layer's."""
        return self.outputs.nbytes
