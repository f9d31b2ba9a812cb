"""The seam between networks and the rest: what a loaded model must offer, and what it is fed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor, device, nn

from attnviz.errors import unknown
from attnviz.facts import called as called
from attnviz.geometry import Geometry
from attnviz.tokens import TokenLayout

Progress = Callable[[int, int], None]
"""Called with (done, all) after each step of something long; may raise, to stop it."""

Fit = Literal["crop", "squash", "pad", "aspect"]
FITS: tuple[Fit, ...] = get_args(Fit)


def as_fit(name: object) -> Fit:
    """The fit of that name; UnknownName for any other."""
    for fit in FITS:
        if fit == name:
            return fit
    raise unknown("fit", name, FITS)


def usual_fit(any_size: bool) -> Fit:
    """Where none is named: the picture's own shape, if the model takes any size, else a crop."""
    return "aspect" if any_size else "crop"


Box = tuple[float, float, float, float]
"""(left, top, right, bottom) in pixels of the original picture; may reach past its edges."""


@dataclass(frozen=True)
class Loading:
    """How `models.load` gave a model, beside its name."""

    seed: int | None = None
    """Of random weights; None for others."""
    checkpoint: str | None = None
    """The name of the file that the weights are of, without its folder, as `called` gives it."""
    image_size: tuple[int, int] | None = None
    """(rows, cols) in pixels; None for the model's own."""


Prediction = tuple[str, int, float]
"""(label, class index, probability)."""


@dataclass(frozen=True)
class View:
    """What the model was fed, and where it lies in the original picture."""

    tensor: Float[Tensor, "1 channel height width"]
    """The model's input, on its device."""
    pixels: UInt8[np.ndarray, "height width 3"]
    """The picture that the input was made of, before it was normalised."""
    box: Box
    fit: Fit | None
    """How the picture met the model's size; None where a ready tensor was given."""


@dataclass(frozen=True)
class AttentionSite:
    """One attention module: where its map arises and where its effect can be checked."""

    name: str
    """Dotted path in the model, such as `blocks.3.attn`."""
    module: nn.Module
    heads: int
    after_mix: nn.Module
    """The submodule fed with map × values, heads concatenated (the projection, say)."""
    fused_switch: str | None = None
    """The module's attribute that turns its fused kernel on, if it has one."""
    switch_of: object | None = None
    """What has that attribute, if not the module itself: a configuration, say."""
    settings: tuple[object, object] = (False, True)
    """The attribute's value without the kernel, and with it."""
    replays: bool = True
    """Whether the module does the same when it is fed with the same again, by itself."""
    block: nn.Module | None = None
    """The module whose output is the stream of tokens (1, token, channel) after this layer."""
    projection: nn.Linear | None = None
    """The linear layer that map × values go through, where nothing stands between them."""
    geometry: Callable[[TokenLayout], Geometry] | None = None
    """What rows and columns stand for, given the picture's tokens; None: these, all to all."""
    axes: str = "window head"
    """The axes of the module's maps before (query, key), as einops names them; `1` for others.

    `"window_head"` where the module itself has made windows and heads one axis.
    """
    join: str = "(head ch)"
    """How heads and their channels become one axis of what `after_mix` is fed with."""
    on_grid: bool = False
    """Whether that is fed with tokens in the order of the grid, where the map has windows."""
    values_left: bool = False
    """Whether the module multiplies values × mapᵀ, channels before tokens."""
    is_operand: bool = False
    """Whether the map is what the values are multiplied with, not yet what the softmax gives."""
    mixed: str = ""
    """Why rows do not sum to 1, where they do not."""
    channels_first: bool = False
    """Whether `after_mix` is fed with (window, channel, …) rather than (window, …, channel)."""
    order: str = "(window query)"
    """How windows and the places in them become one axis of what `after_mix` is fed with."""
    adds_queries: bool = False
    """Whether the module adds its queries, unscaled, to map × values."""
    in_turn: bool = False
    """Whether heads are computed one after the other, each with a softmax of its own."""
    beside: nn.Module | None = None
    """The submodule whose output goes into what `after_mix` is fed with, beside map × values."""
    alone: Callable[[Tensor, Tensor], Tensor] | None = None
    """Map × values (token, channel) out of what reached `after_mix` and what `beside` gave.

    Without a `beside` the second argument is empty.
    """

    def geometry_on(self, layout: TokenLayout) -> Geometry:
        """What its rows and columns stand for in a picture of these tokens."""
        return self.geometry(layout) if self.geometry else Geometry(layout, layout)

    @property
    def setting(self) -> object:
        """How the switch of its fused kernel stands; None without one."""
        return self.fused_switch and getattr(self.switch_of or self.module, self.fused_switch)

    def set(self, value: object) -> None:
        """Set the switch, if there is one, to one of its settings."""
        if self.fused_switch is not None:
            setattr(self.switch_of or self.module, self.fused_switch, value)

    def fuse(self, fused: bool) -> None:
        """Turn its fused kernel on or off, if there is a switch."""
        self.set(self.settings[fused])


@dataclass(frozen=True)
class Readout:
    """How a model gets from its tokens to its output; what targets and feature methods read."""

    norm: Callable[[Tensor], Tensor]
    """The model's own last norm, of tokens (…, channel)."""
    head: nn.Module
    """The module that is fed with the picture's one feature (1, channel)."""
    classify: Callable[[Tensor], Tensor]
    """A feature (1, channel) → the output (1, output)."""
    pooler: AttentionSite | None = None
    """The attention that makes one feature of all tokens, in models that pool by attention."""
    pool: Callable[[Tensor], Tensor] | None = None
    """In those, normed tokens (1, token, channel) → the feature (1, channel)."""
    of_tokens: bool = True
    """Whether `classify` takes what `norm` makes of a token; not where it wants more than that."""


@runtime_checkable
class LoadedViT(Protocol):
    """A model that is ready to be observed."""

    @property
    def name(self) -> str:
        """The name it was loaded by."""
        ...

    @property
    def weights(self) -> str:
        """What its weights are and where they come from, in one sentence."""
        ...

    @property
    def random(self) -> bool:
        """Whether the weights are random, so that its maps mean nothing."""
        ...

    @property
    def loading(self) -> Loading | None:
        """How it was loaded by its name; None for a module that somebody else made."""
        ...

    @property
    def module(self) -> nn.Module:
        """The torch module itself."""
        ...

    @property
    def image_size(self) -> tuple[int, int]:
        """(rows, cols) in pixels that pictures are fitted to."""
        ...

    @property
    def device(self) -> device:
        """Where the weights lie."""
        ...

    @property
    def sites(self) -> tuple[AttentionSite, ...]:
        """Its attention modules, first layer first."""
        ...

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Held during a pass: a model with hooks on serves one caller at a time.

        Re-entrant, and one a module: however often a module is wrapped, its lock is the same.
        """
        ...

    @property
    def readout(self) -> Readout:
        """How its output is read from its tokens."""
        ...

    @property
    def classes(self) -> tuple[str, ...]:
        """What its outputs are called, in order; () for a model without classes."""
        ...

    def layout(self, height: int, width: int) -> TokenLayout:
        """The tokens of an input of that size in pixels."""
        ...

    def view(self, image: Image.Image, fit: Fit) -> View:
        """Fit a picture to the model's size and normalise it."""
        ...

    def view_of_tensor(self, tensor: Tensor) -> View:
        """Check a ready input and recover the pixels it was made from."""
        ...

    def run(self, pictures: Tensor) -> Tensor:
        """The module's own forward pass, of inputs as `view` makes them: (picture, …)."""
        ...

    def probe(self) -> Tensor:
        """A small input (1, channel, height, width) on which captures are verified."""
        ...

    def predictions(self, output: Tensor) -> tuple[Prediction, ...]:
        """The five most probable classes of an output, or () for a model without classes."""
        ...
