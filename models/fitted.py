"""Models that pictures are fitted to: what timm's and other libraries' have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Self

import torch
from PIL import Image
from torch import Tensor, nn

from attnviz.contract import Loading, View
from attnviz.tokens import TokenLayout
from models.locks import lock_of
from models.preprocess import Recipe, require_input, view_of_input, view_of_picture
from models.sizes import Size, as_size


class Fitted(ABC):
    """A frozen dataclass with these fields, of which some models take any size and some one."""

    module: nn.Module
    name: str
    image_size: Size
    recipe: Recipe
    loading: Loading | None

    @property
    @abstractmethod
    def any_size(self) -> bool:
        """Whether any multiple of the step will do; otherwise only one size does."""

    @property
    @abstractmethod
    def step_size(self) -> Size:
        """(rows, cols) in pixels that sizes are multiples of."""

    @abstractmethod
    def layout(self, height: int, width: int) -> TokenLayout:
        """The tokens of an input of that size; BadOption where the model does not take it."""

    def at(self, image_size: object) -> Self:
        """The same model, module and lock, with pictures fitted to another size.

        `image_size` is a number or (rows, cols), in pixels.

        Raises:
            BadOption: it is no such size, no multiple of the patch, or the model takes only one.
        """
        size = as_size(image_size)
        self.layout(*size)
        same: Any = self  # a dataclass, which this class cannot say
        loading = self.loading and replace(self.loading, image_size=size)
        resized: Self = replace(same, image_size=size, loading=loading)
        return resized

    @property
    def lock(self) -> AbstractContextManager[object]:
        """The module's own, re-entrant."""
        return lock_of(self.module)

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return self._like.device

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

    @property
    def _like(self) -> Tensor:
        return next(self.module.parameters(), torch.empty(0))

    def _to_device(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self._like.device, self._like.dtype)
