"""Modules of other libraries than timm, and a user's own, as `contract.LoadedViT` asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from torch import Tensor, nn

from attnviz.contract import AttentionSite, Loading, Prediction, Readout
from attnviz.errors import BadOption
from attnviz.tokens import TokenLayout
from models import (
    hf_modules,
    open_clip_modules,
    own_modules,
    torchvision_modules,
    vit_pytorch_modules,
)
from models.fitted import Fitted
from models.labels import top_classes
from models.preprocess import Recipe, noise
from models.sizes import Size, require_multiples
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
class TorchViT(Fitted):
    """A module that is ready to be observed, by a plan of it."""

    module: nn.Module
    name: str
    weights: str
    image_size: Size
    recipe: Recipe
    plan: Plan
    random: bool = False
    loading: Loading | None = None

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
