"""Modules of other libraries than timm, and a user's own, as `contract.LoadedViT` asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import torch
from PIL import Image
from torch import Tensor, nn

from attnviz.contract import AttentionSite, Prediction, Readout, View
from attnviz.errors import BadOption
from attnviz.tokens import TokenLayout
from models import (
    hf_modules,
    open_clip_modules,
    own_modules,
    torchvision_modules,
    vit_pytorch_modules,
)
from models.labels import top_classes
from models.locks import lock_of
from models.preprocess import Recipe, noise, require_input, view_of_input, view_of_picture
from models.sizes import Size, as_size, require_multiples
from models.torch_plan import Asked, Plan, named, probe_size

PLANS: Mapping[str, Callable[[nn.Module, str, Asked], Plan | None]] = {
    "transformers": hf_modules.plan_of,
    "torchvision": torchvision_modules.plan_of,
    "open_clip": open_clip_modules.plan_of,
    "vit_pytorch": vit_pytorch_modules.plan_of,
}
"""Package → what it knows of a module of its own; None where it does not know that class."""


def plan_of(module: nn.Module, name: str, asked: Asked) -> Plan:
    """The plan of a module of a known library, or else of a user's own."""
    package = type(module).__module__.partition(".")[0]
    known = PLANS[package](module, name, asked) if package in PLANS else None
    if known is None:
        return own_modules.plan_of(module, name, asked)
    classes = named(asked.classes)
    if asked.classes is not None and len(classes) != len(known.classes):
        raise BadOption(
            f"{len(classes)} classes came, but {name} has {len(known.classes)}: give as many, or"
            " leave them out."
        )
    return replace(known, classes=classes or known.classes)


@dataclass(frozen=True, eq=False)
class TorchViT:
    """A module that is ready to be observed, by a plan of it."""

    module: nn.Module
    name: str
    weights: str
    image_size: Size
    recipe: Recipe
    plan: Plan
    random: bool = False

    def at(self, image_size: object) -> TorchViT:
        """The same model, module and lock, with pictures fitted to another size.

        `image_size` is a number or (rows, cols), in pixels.

        Raises:
            BadOption: it is no such size, no multiple of the patch, or the model takes only one.
        """
        size = as_size(image_size)
        self.layout(*size)
        return replace(self, image_size=size)

    @property
    def any_size(self) -> bool:
        """Whether any multiple of the patch will do; otherwise only one size does."""
        return self.plan.any_size

    @property
    def patch_size(self) -> Size:
        """(rows, cols) in pixels of one patch."""
        return self.plan.patch

    @property
    def step_size(self) -> Size:
        """(rows, cols) in pixels that sizes are multiples of."""
        return self.plan.patch

    @property
    def lock(self) -> AbstractContextManager[object]:
        """The module's own, re-entrant."""
        return lock_of(self.module)

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return self._like.device

    @property
    def sites(self) -> tuple[AttentionSite, ...]:
        """Its attention modules, in the order of a pass."""
        return self.plan.sites

    @property
    def readout(self) -> Readout:
        """How its output is read from its tokens, as far as that is known."""
        return self.plan.readout

    @property
    def classes(self) -> tuple[str, ...]:
        """What its outputs are called; () where they are no classes, or not known to be."""
        return self.plan.classes

    def layout(self, height: int, width: int) -> TokenLayout:
        """The tokens of an input of that size.

        Raises:
            BadOption: the module does not take that size; the message names one that it does.
        """
        native = self.plan.native
        if not self.any_size and (height, width) != native:
            raise BadOption(
                f"{self.name} takes only {native[0]} × {native[1]} pixels, but {height} × {width}"
                " came: resize the picture."
            )
        require_multiples((height, width), self.patch_size)
        return self.plan.layout((height, width))

    def view(self, image: Image.Image, fit: str) -> View:
        """Fit a picture to the model's size, or with `aspect` to as many patches as that has.

        Raises:
            BadOption: `aspect`, but the model takes only one size.
            UnknownName: there is no such `fit`.
        """
        step = self.step_size if self.any_size else None
        view = view_of_picture(
            image, fit, name=self.name, size=self.image_size, step=step, recipe=self.recipe
        )
        return replace(view, tensor=self._to_device(view.tensor))

    def view_of_tensor(self, tensor: Tensor) -> View:
        """A ready input, (1, 3, rows, cols) and normalised; its box is the input itself.

        Raises:
            BadOption: it has another shape or type, is not finite, or does not suit the model.
        """
        require_input(tensor)
        self.layout(*tensor.shape[2:])
        view = view_of_input(tensor, self.recipe)
        return replace(view, tensor=self._to_device(tensor))

    def run(self, pictures: Tensor) -> Tensor:
        """The module's own forward pass, and what stands for its output."""
        return self.plan.run(pictures)

    def probe(self) -> Tensor:
        """Noise, always the same, of 3 × 5 patches where any size will do and windows do not."""
        windowed = any(site.geometry is not None for site in self.sites)
        size = probe_size(self.plan.native, self.patch_size, self.any_size and not windowed)
        return self._to_device(noise(3, *size))

    def predictions(self, output: Tensor) -> tuple[Prediction, ...]:
        """The five most probable classes; empty where there are none."""
        return top_classes(output, self.classes)

    @property
    def _like(self) -> Tensor:
        return next(self.module.parameters(), torch.empty(0))

    def _to_device(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self._like.device, self._like.dtype)
