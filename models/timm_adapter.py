"""timm's Vision Transformers, as `attnviz.contract.LoadedViT` asks for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from timm.data import resolve_data_config
from timm.layers import AttentionPoolLatent, LayerNorm, LayerNorm2d
from timm.models import get_arch_pretrained_cfgs
from torch import Tensor, nn

from attnviz.contract import AttentionSite, Loading, Prediction, Readout
from attnviz.errors import BadOption
from attnviz.tokens import TokenLayout
from models.fitted import Fitted
from models.labels import class_names, imagenet_subset, top_classes
from models.preprocess import Recipe, noise
from models.sizes import Size
from models.timm_attention import sites_of
from models.timm_families import FAMILIES
from models.timm_family import Family, prefix_of


@dataclass(frozen=True, eq=False)
class TimmViT(Fitted):
    """A model of one of `timm_families.FAMILIES` that is ready to be observed."""

    module: nn.Module
    name: str
    weights: str
    random: bool
    image_size: Size
    recipe: Recipe
    loading: Loading | None = None

    @property
    def any_size(self) -> bool:
        """Whether any multiple of the patch will do; otherwise only one size does."""
        return self._family.any_size(self.module)

    @property
    def sites(self) -> tuple[AttentionSite, ...]:
        """Its attention modules, by what they are."""
        return sites_of(self.module)

    @property
    def _family(self) -> Family:
        return FAMILIES[type(self.module)]

    @property
    def readout(self) -> Readout:
        """timm's pooling by token or mean, or by attention; then its last norm and its head."""
        module: Any = self.module  # torch's types do not know a module's children
        pool = getattr(module, "attn_pool", None)
        head = _head(module)
        pooled = isinstance(pool, AttentionPoolLatent)
        last_norm, fc_norm = _last_norms(module)

        def norm(tokens: Tensor) -> Tensor:
            tokens = last_norm(tokens)
            # Where the model pools by attention, this one is of what is pooled.
            normed: Tensor = tokens if pooled else fc_norm(tokens)
            return normed

        def classify(feature: Tensor) -> Tensor:
            heads = [head, getattr(module, "head_dist", None) or head]
            first, second = (each(feature) for each in heads)
            return (first + second) / 2

        return Readout(
            norm=norm,
            head=head,
            classify=classify,
            pooler=_pooler(pool) if isinstance(pool, AttentionPoolLatent) else None,
            pool=lambda tokens: fc_norm(_pooled(module, tokens)),
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """ImageNet's names where the outputs are as many; () for a headless model or a projection.

        The one output of a regression is no class, but can be a target: its name is "output".
        """
        count = int(getattr(self.module, "num_classes", 0))
        if not count or count in self._projections:
            return ()
        return class_names(count)

    def layout(self, height: int, width: int) -> TokenLayout:
        """The class, distillation and register tokens that the model has, then the patches.

        Raises:
            BadOption: the model does not take that size; the message names one that it does.
        """
        native = native_size(self.module)
        if self.any_size or (height, width) != native:
            self._family.require((height, width), self.module)
        if not self.any_size and (height, width) != native:
            raise BadOption(
                f"{self.name} takes only {native[0]} × {native[1]} pixels, but"
                f" {height} × {width} came: {self._way_out}."
            )
        high, wide = self.patch_size
        grid = (height // high, width // wide)
        if self._family.grid is not None:
            grid = self._family.grid(self.module, (height, width))
        prefix = self._family.prefix
        return TokenLayout(prefix_of(self.module) if prefix is None else prefix, grid)

    @property
    def _way_out(self) -> str:
        if self._family.resizes:
            return "make it with dynamic_img_size=True, or resize"
        return "resize the picture, or load the model with image_size=(rows, cols)"

    def run(self, pictures: Tensor) -> Tensor:
        """The module's own forward pass."""
        output: Tensor = self.module(pictures)
        return output

    def probe(self) -> Tensor:
        """Noise, always the same, of 3 × 5 steps where any size will do."""
        rows, cols = self.step_size
        height, width = (3 * rows, 5 * cols) if self.any_size else native_size(self.module)
        return self._to_device(noise(3, height, width))

    def predictions(self, output: Tensor) -> tuple[Prediction, ...]:
        """The five most probable classes, by ImageNet's names where their number is ImageNet's.

        Empty where there is no classifier: the head of a CLIP tower is a projection.
        """
        outputs = output.shape[-1]
        headless = not getattr(self.module, "num_classes", 0)
        if output.ndim != 2 or headless or outputs in self._projections:
            return ()
        return top_classes(output, class_names(outputs))

    @property
    def patch_size(self) -> Size:
        """(rows, cols) in pixels of one patch."""
        rows, cols = self._family.patch(self.module)
        return rows, cols

    @property
    def step_size(self) -> Size:
        """(rows, cols) in pixels that sizes are multiples of: the patch, mostly."""
        return self._family.step_of(self.module)

    @property
    def _projections(self) -> set[int]:
        """Widths of the embeddings that image-text towers of this architecture end in."""
        config: Any = getattr(self.module, "pretrained_cfg", {})
        architecture = config.get("architecture", "")
        if not re.search("_clip_|_mci|vitamin", architecture):
            return set()
        configs = get_arch_pretrained_cfgs(architecture).values()
        return {config.num_classes for config in configs if not imagenet_subset(config.num_classes)}


def _pooler(pool: AttentionPoolLatent) -> AttentionSite:
    return AttentionSite("attn_pool", pool, pool.num_heads, pool.proj, "fused_attn")


def _head(module: Any) -> nn.Module:
    """What is fed with the one feature; the model itself where nothing is."""
    head: nn.Module = getattr(module, "head", getattr(module, "classifier", module))
    if isinstance(head, nn.ModuleList):  # CrossViT has two features, and so none
        head = module
    for last in ("fc", "classifier"):  # some heads pool as well: it is their last part
        head = getattr(head, last, head)
    return head


class _Last(nn.Module):
    """A norm of (channel, row, col) on (…, channel)."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, tokens: Tensor) -> Tensor:
        return nn.LayerNorm.forward(self.norm, tokens)


def _last_norms(module: Any) -> tuple[nn.Module, nn.Module]:
    """The norm of the tokens and that of what is pooled of them; the identity for none.

    The first is the model's own, or its encoder's, or as in PVT v2 its last stage's; Hiera's is
    in its head, after the pooling.
    """
    if hasattr(module, "encoder"):
        return getattr(module.encoder, "norm", nn.Identity()), module.norm
    holders = [module, *list(getattr(module, "stages", ()))[-1:]]
    norms: list[nn.Module] = [each.norm for each in holders if hasattr(each, "norm")]
    pooled = getattr(getattr(module, "head", None), "norm", nn.Identity())
    if isinstance(pooled, LayerNorm2d):  # of (channel, row, col), CAFormer's; a token's are alike
        pooled = _Last(pooled)
    pooled = pooled if type(pooled) in (nn.LayerNorm, LayerNorm, _Last) else nn.Identity()
    return norms[0] if norms else nn.Identity(), getattr(module, "fc_norm", pooled)


def _pooled(module: Any, tokens: Tensor) -> Tensor:
    pooled: Tensor = module.pool(tokens) if hasattr(module, "pool") else module._pool(tokens)
    return pooled


def recipe_of(config: dict[str, Any]) -> Recipe:
    """How timm's `config` prepares pictures, ImageNet's way where it is silent."""
    data = resolve_data_config(args={"in_chans": 3}, pretrained_cfg=config)
    chosen = ("mean", "std", "interpolation", "crop_pct", "crop_mode")
    return Recipe(**{name: data[name] for name in chosen})


def native_size(module: nn.Module) -> Size:
    """The size that its learned positions were made for."""
    rows, cols = FAMILIES[type(module)].native(module)
    return rows, cols
