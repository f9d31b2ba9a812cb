"""timm's plain Vision Transformers, as `attnviz.contract.LoadedViT` asks for them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from PIL import Image
from timm.data import resolve_data_config
from timm.layers import AttentionPoolLatent
from timm.models import get_arch_pretrained_cfgs
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from attnviz.contract import AttentionSite, Prediction, Readout, View, as_fit
from attnviz.errors import BadOption
from attnviz.tokens import TokenLayout, prefix_names
from models.labels import class_names, imagenet_subset, top_classes
from models.locks import lock_of
from models.preprocess import Recipe, fit_image, noise, normalise, pixels_of, require_input
from models.sizes import Size, as_size, aspect_size, require_multiples


@dataclass(frozen=True, eq=False)
class TimmViT:
    """A timm `VisionTransformer` that is ready to be observed."""

    module: VisionTransformer
    name: str
    weights: str
    random: bool
    image_size: Size
    recipe: Recipe

    def at(self, image_size: object) -> TimmViT:
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
        return bool(self.module.dynamic_img_size)

    @property
    def lock(self) -> AbstractContextManager[object]:
        """The module's own, re-entrant."""
        return lock_of(self.module)

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return self._kernel.device

    @property
    def sites(self) -> tuple[AttentionSite, ...]:
        """Each block's attention; its `norm`, mostly the identity, is fed with map × values."""
        blocks: Any = self.module.blocks  # torch's types do not know a module's children
        return tuple(
            AttentionSite(
                name=f"blocks.{index}.attn",
                module=block.attn,
                heads=block.attn.num_heads,
                after_mix=block.attn.norm,
                fused_switch="fused_attn",
                block=block,
                projection=_plain_projection(block.attn),
            )
            for index, block in enumerate(blocks)
        )

    @property
    def readout(self) -> Readout:
        """timm's pooling by token or mean, or by attention; then its last norm and its head."""
        module, pool = self.module, self.module.attn_pool
        pooled = isinstance(pool, AttentionPoolLatent)

        def norm(tokens: Tensor) -> Tensor:
            tokens = module.norm(tokens)
            # Where the model pools by attention, this one is of what is pooled.
            normed: Tensor = tokens if pooled else module.fc_norm(tokens)
            return normed

        def classify(feature: Tensor) -> Tensor:
            heads = [module.head, getattr(module, "head_dist", module.head)]
            first, second = (head(feature) for head in heads)
            return (first + second) / 2

        return Readout(
            norm=norm,
            head=module.head,
            classify=classify,
            pooler=_pooler(pool) if pooled else None,
            pool=lambda tokens: module.fc_norm(module.pool(tokens)),
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """ImageNet's names where the outputs are as many; () for a headless model or a projection.

        The one output of a regression is no class, but can be a target: its name is "output".
        """
        count = self.module.num_classes
        if not count or count in self._projections:
            return ()
        return class_names(count)

    def layout(self, height: int, width: int) -> TokenLayout:
        """The class, distillation and register tokens that the model has, then the patches.

        Raises:
            BadOption: the model does not take that size; the message names one that it does.
        """
        require_multiples((height, width), self.patch_size)
        native = native_size(self.module)
        if not self.any_size and (height, width) != native:
            raise BadOption(
                f"{self.name} takes only {native[0]} × {native[1]} pixels, but"
                f" {height} × {width} came: make it with dynamic_img_size=True, or resize."
            )
        prefix = prefix_names(
            cls=self.module.has_class_token,
            dist=hasattr(self.module, "dist_token"),
            registers=self.module.num_reg_tokens,
        )
        return TokenLayout(prefix, (height // self.patch_size[0], width // self.patch_size[1]))

    def view(self, image: Image.Image, fit: str) -> View:
        """Fit a picture to the model's size, or with `aspect` to as many patches as that has.

        Raises:
            BadOption: `aspect`, but the model takes only one size.
            UnknownName: there is no such `fit`.
        """
        size, fit = self.image_size, as_fit(fit)
        if fit == "aspect":
            if not self.any_size:
                raise BadOption(
                    f"{self.name} takes only {size[0]} × {size[1]} pixels, so the fit 'aspect' does"
                    " not work: use 'pad', 'squash' or 'crop'."
                )
            patches = self.layout(*size).patches
            size = aspect_size((image.height, image.width), patch=self.patch_size, patches=patches)
        pixels, box = fit_image(image, size, fit=fit, recipe=self.recipe)
        return View(self._placed(normalise(pixels, self.recipe)), pixels, box, fit)

    def view_of_tensor(self, tensor: Tensor) -> View:
        """A ready input, (1, 3, rows, cols) and normalised; its box is the input itself.

        Raises:
            BadOption: it has another shape or type, is not finite, or does not suit the model.
        """
        require_input(tensor)
        height, width = tensor.shape[2:]
        self.layout(height, width)
        pixels = pixels_of(tensor, self.recipe)
        return View(self._placed(tensor), pixels, (0.0, 0.0, float(width), float(height)), None)

    def probe(self) -> Tensor:
        """Noise, always the same, of 3 × 5 patches where any size will do."""
        rows, cols = self.patch_size
        height, width = (3 * rows, 5 * cols) if self.any_size else native_size(self.module)
        return self._placed(noise(3, height, width))

    def predictions(self, output: Tensor) -> tuple[Prediction, ...]:
        """The five most probable classes, by ImageNet's names where their number is ImageNet's.

        Empty where there is no classifier: the head of a CLIP tower is a projection.
        """
        outputs = output.shape[-1]
        if output.ndim != 2 or self.module.num_classes == 0 or outputs in self._projections:
            return ()
        return top_classes(output, class_names(outputs))

    @property
    def _kernel(self) -> Tensor:
        return self.module.patch_embed.proj.weight

    @property
    def patch_size(self) -> Size:
        """(rows, cols) in pixels of one patch."""
        rows, cols = self.module.patch_embed.patch_size
        return rows, cols

    @property
    def _projections(self) -> set[int]:
        """Widths of the embeddings that image-text towers of this architecture end in."""
        config: Any = getattr(self.module, "pretrained_cfg", {})
        architecture = config.get("architecture", "")
        if "_clip_" not in architecture:
            return set()
        configs = get_arch_pretrained_cfgs(architecture).values()
        return {config.num_classes for config in configs if not imagenet_subset(config.num_classes)}

    def _placed(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self.device, self._kernel.dtype)


def _pooler(pool: AttentionPoolLatent) -> AttentionSite:
    return AttentionSite("attn_pool", pool, pool.num_heads, pool.proj, "fused_attn")


def _plain_projection(attn: Any) -> nn.Linear | None:
    """What map × values go through, if it is one matrix and nothing else."""
    plain = isinstance(attn.norm, nn.Identity) and getattr(attn, "gate", None) is None
    return attn.proj if plain and isinstance(attn.proj, nn.Linear) else None


def recipe_of(config: dict[str, Any]) -> Recipe:
    """How timm's `config` prepares pictures, ImageNet's way where it is silent."""
    data = resolve_data_config(args={"in_chans": 3}, pretrained_cfg=config)
    chosen = ("mean", "std", "interpolation", "crop_pct", "crop_mode")
    return Recipe(**{name: data[name] for name in chosen})


def native_size(module: VisionTransformer) -> Size:
    """The size that its learned positions were made for.

    Not quite the size of the training where that was no multiple of the patch: a convolution drops
    the rest, so 384 pixels in patches of 14 are 378.
    """
    grid, patch = module.patch_embed.grid_size, module.patch_embed.patch_size
    return grid[0] * patch[0], grid[1] * patch[1]
