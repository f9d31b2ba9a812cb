"""This project's own `models.vit.ViT`, as `attnviz.contract.LoadedViT` asks for it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from attnviz.contract import AttentionSite, Loading, Prediction, Readout, View
from attnviz.errors import BadOption, UnsupportedModel
from attnviz.tokens import TokenLayout
from models.labels import class_names, top_classes
from models.locks import lock_of
from models.preprocess import Recipe, noise, require_input, view_of_input, view_of_picture
from models.sizes import Size, as_size
from models.vit import ViT


@dataclass(frozen=True, eq=False)
class OwnViT:
    """A `ViT` that is ready to be observed; it takes the one size that it was made for."""

    module: ViT
    name: str
    weights: str
    random: bool = False
    recipe: Recipe = field(default_factory=Recipe)
    labels: tuple[str, ...] = ()
    """The names of its classes, if they have any."""
    loading: Loading | None = None

    def __post_init__(self) -> None:
        if self.module.input_shape[0] not in (1, 3):
            raise UnsupportedModel(
                f"{self.name} takes {self.module.input_shape[0]} channels; a picture has 3, or 1"
                " when it is grey."
            )
        outputs = len(self._unlabelled)
        if self.labels and len(self.labels) != outputs:
            raise BadOption(
                f"{len(self.labels)} classes came, but {self.name} has {outputs}: give as many, or"
                " leave them out."
            )

    @property
    def image_size(self) -> Size:
        """(rows, cols) in pixels."""
        return self.module.input_shape[1:]

    @property
    def any_size(self) -> bool:
        """Never: its positions were learned for one size, and are not resampled."""
        return False

    @property
    def patch_size(self) -> Size:
        """(rows, cols) in pixels of one patch."""
        return self.module.patch_size, self.module.patch_size

    @property
    def step_size(self) -> Size:
        """(rows, cols) in pixels that sizes are multiples of."""
        return self.patch_size

    def at(self, image_size: object) -> OwnViT:
        """The model itself, if `image_size`, a number or (rows, cols) in pixels, is its own.

        Raises:
            BadOption: it is another size, or none.
        """
        self.layout(*as_size(image_size))
        return self

    @property
    def lock(self) -> AbstractContextManager[object]:
        """The module's own, re-entrant."""
        return lock_of(self.module)

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return self.module.pos_embed.device

    @property
    def sites(self) -> tuple[AttentionSite, ...]:
        """Each block's attention; it has no fused kernel to switch off."""
        blocks: Any = self.module.blocks  # torch's types do not know a module's children
        return tuple(
            AttentionSite(
                name=f"blocks.{index}.attn",
                module=block.attn,
                heads=block.attn.heads,
                after_mix=block.attn.after_mix,
                block=block,
                projection=block.attn.projection,
            )
            for index, block in enumerate(blocks)
        )

    @property
    def readout(self) -> Readout:
        """The norm of the pooled tokens, then the head."""
        return Readout(norm=self.module.norm, head=self.module.head, classify=self.module.head)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of its outputs; () without a classifier."""
        return self.labels or self._unlabelled

    def layout(self, height: int, width: int) -> TokenLayout:
        """The module's own layout.

        Raises:
            BadOption: another size than the module's came.
        """
        if (height, width) != self.image_size:
            raise BadOption(
                f"{self.name} takes only {self.image_size[0]} × {self.image_size[1]} pixels, but"
                f" {height} × {width} came: give it the size that it was made for."
            )
        return self.module.layout

    def view(self, image: Image.Image, fit: str) -> View:
        """Fit a picture to the model's size; a model with one channel sees it in grey.

        Raises:
            BadOption: `aspect`, which needs a model that takes any size.
            UnknownName: there is no such `fit`.
        """
        if self._channels == 1:
            image = image.convert("L")
        view = view_of_picture(
            image, fit, name=self.name, size=self.image_size, step=None, recipe=self.recipe
        )
        return replace(view, tensor=self._to_device(view.tensor[:, : self._channels]))

    def view_of_tensor(self, tensor: Tensor) -> View:
        """A ready input, normalised; its box is the input itself.

        Raises:
            BadOption: it has another shape or type than the module's, or is not finite.
        """
        require_input(tensor, channels=self._channels)
        self.layout(*tensor.shape[2:])
        view = view_of_input(tensor, self.recipe)
        return replace(view, tensor=self._to_device(tensor))

    def run(self, pictures: Tensor) -> Tensor:
        """The module's own forward pass."""
        output: Tensor = self.module(pictures)
        return output

    def probe(self) -> Tensor:
        """Noise of the one size that it takes, always the same."""
        return self._to_device(noise(*self.module.input_shape))

    def predictions(self, output: Tensor) -> tuple[Prediction, ...]:
        """The five most probable classes; empty without a classifier."""
        return top_classes(output, self.classes)

    @property
    def _unlabelled(self) -> tuple[str, ...]:
        head = self.module.head
        return class_names(head.out_features) if isinstance(head, nn.Linear) else ()

    @property
    def _channels(self) -> int:
        return self.module.input_shape[0]

    def _to_device(self, tensor: Tensor) -> Tensor:
        positions = self.module.pos_embed
        return tensor.detach().to(positions.device, positions.dtype)
