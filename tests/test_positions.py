"""Positions on another grid, also on one of as many patches: resampled rightly, or refused."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from timm.models.deit import VisionTransformerDistilled
from timm.models.eva import Eva
from timm.models.hieradet_sam2 import HieraDet
from timm.models.naflexvit import NaFlexVit, NaFlexVitCfg
from timm.models.qwen3_vit import Qwen3VitClassifier
from timm.models.vision_transformer import VisionTransformer

import models
from attnviz.errors import BadOption

PLAIN = {
    "patch_size": 8, "embed_dim": 12, "depth": 1, "num_heads": 3, "num_classes": 2,
    "dynamic_img_size": True,
}  # fmt: skip
NAFLEX = {"patch_size": 8, "embed_dim": 12, "depth": 1, "num_heads": 3, "reg_tokens": 0}


def cubic(x, a):
    """Keys's kernel (1981), written out."""
    x = np.abs(x)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def linear(x):
    return np.maximum(0, 1 - np.abs(x))


def antialiased(old, new):
    """As Pillow has it: the kernel is widened where there are fewer, and its weights sum to 1."""
    wide = max(old / new, 1)
    centres = (np.arange(new) + 0.5) * old / new
    weights = cubic((np.arange(old) + 0.5 - centres[:, None]) / wide, -0.5)
    return weights / weights.sum(1, keepdims=True)


def at_points(points, old, kernel):
    """Between the old ones at these places; beyond the edge the last one goes on."""
    weights = np.zeros((len(points), old))
    for row, point in enumerate(points):
        for place in range(int(np.floor(point)) - 1, int(np.floor(point)) + 3):
            weights[row, np.clip(place, 0, old - 1)] += kernel(np.array(point - place))
    return weights


def plain_cubic(old, new):
    return at_points((np.arange(new) + 0.5) * old / new - 0.5, old, lambda x: cubic(x, -0.75))


def aligned(old, new):
    return at_points(np.linspace(0, old - 1, new), old, linear)


def plain_linear(old, new):
    return at_points((np.arange(new) + 0.5) * old / new - 0.5, old, linear)


def resampled(grid, size, weights):
    """(row, col, channel) of float64 on another grid, rows and columns each by a matrix."""
    rows, cols = (weights(old, new) for old, new in zip(grid.shape[:2], size, strict=True))
    return np.einsum("ir,jc,rcd->ijd", rows, cols, grid)


def in_list(module):
    return module.pos_embed[0]


def radio(grid, size, weights):
    """To a square as wide as the wider side, of which the upper left is kept."""
    return resampled(grid, (max(size), max(size)), weights)[: size[0], : size[1]]


# name -> (how it is made for a grid, its positions' own grid, its convolution, how they are
# resampled, prefix tokens with positions, pixels of a patch)
FAMILIES = {
    "ViT": (
        lambda g: VisionTransformer(**PLAIN, img_size=(8 * g[0], 8 * g[1])), "patch_embed.proj",
        antialiased, resampled, 1,
    ),
    "DeiT": (
        lambda g: VisionTransformerDistilled(**PLAIN, img_size=(8 * g[0], 8 * g[1])),
        "patch_embed.proj", antialiased, resampled, 2,
    ),
    "registers, positions of patches alone": (
        lambda g: VisionTransformer(
            **PLAIN, img_size=(8 * g[0], 8 * g[1]), reg_tokens=2, no_embed_class=True
        ),
        "patch_embed.proj", antialiased, resampled, 0,
    ),
    "EVA": (
        lambda g: Eva(**PLAIN, img_size=(8 * g[0], 8 * g[1]), use_rot_pos_emb=True),
        "patch_embed.proj", antialiased, resampled, 1,
    ),
    "NaFlex": (
        lambda g: NaFlexVit(NaFlexVitCfg(**NAFLEX, pos_embed_grid_size=g), num_classes=2),
        "embeds.proj", antialiased, resampled, 0,
    ),
    "RADIO": (
        lambda g: NaFlexVit(
            NaFlexVitCfg(**NAFLEX, pos_embed_grid_size=g, pos_embed_interp_mode="bilinear",
                         pos_embed_ar_preserving=True, pos_embed_antialias=False), num_classes=2,
        ),
        "embeds.proj", plain_linear, radio, 0,
    ),
    "Qwen3": (
        lambda g: Qwen3VitClassifier(patch_size=8, embed_dim=12, depth=1, num_heads=3,
                                     pos_embed_grid_size=4, num_classes=2),
        "encoder.patch_embed.proj", aligned, resampled, 0,
    ),
    "SAM 2": (
        lambda g: HieraDet(embed_dim=12, stages=(1, 1), window_spec=(2, 2), q_pool=1, num_heads=3,
                           global_att_blocks=(), global_pos_size=g, patch_kernel=(8, 8),
                           patch_stride=(8, 8), patch_padding=(0, 0), num_classes=2),
        "patch_embed.proj", plain_cubic, resampled, 0,
    ),
}  # fmt: skip
CHANGES = [((2, 8), (4, 4)), ((4, 4), (2, 8)), ((2, 8), (8, 2)), ((4, 4), (4, 4)), ((4, 4), (6, 2))]


def learned(module, grid, prefix):
    """The learned positions of the patches, (row, col, channel), of whatever shape they are."""
    holder = getattr(module, "encoder", getattr(module, "embeds", module))
    positions = holder.pos_embed.detach().double()
    if type(module) is HieraDet:
        return positions[0].permute(1, 2, 0).numpy()
    return positions.reshape(-1, positions.shape[-1])[prefix:].reshape(*grid, -1).numpy()


@pytest.mark.parametrize(("grid", "size"), CHANGES)
@pytest.mark.parametrize("name", FAMILIES)
def test_each_family_resamples_to_any_grid(name, grid, size):
    """With a picture that embeds to nothing, what the first block is fed with are positions."""
    make, convolution, weights, resample, prefix = FAMILIES[name]
    if name == "Qwen3":
        grid = (4, 4)  # always a square
    torch.manual_seed(0)
    module = make(grid).eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    proj = module.get_submodule(convolution)
    proj.weight.data.zero_()
    proj.bias.data.zero_()
    met = []
    blocks = getattr(module, "encoder", module).blocks
    blocks[0].register_forward_pre_hook(lambda _, given: met.append(given[0].detach().double()))
    vit = models.wrap(module).at((8 * size[0], 8 * size[1]))
    assert vit.layout(*vit.image_size).grid == size
    with torch.no_grad():
        module(torch.randn(1, 3, *vit.image_size))
    patches = met[0].reshape(-1, met[0].shape[-1])[-size[0] * size[1] :].reshape(*size, -1).numpy()
    expected = resample(learned(module, grid, prefix), size, weights)
    if name == "SAM 2":
        window = module.pos_embed_window[0].detach().double().permute(1, 2, 0).numpy()
        expected = expected + np.tile(window, (size[0] // 2, size[1] // 2, 1))
    np.testing.assert_allclose(patches, expected, atol=1e-5)


# Positions in a list: of 196 patches, 14 × 14 or 7 × 28.
LISTED = ["cait_xxs24_224", "tnt_s_patch16_224"]


@pytest.mark.parametrize("name", LISTED)
def test_a_list_that_would_fit_another_grid_is_refused_before_it_is_read(
    tmp_path, monkeypatch, name
):
    monkeypatch.setattr(models.zoo.hub, "fetch", lambda repo: pytest.fail("fetched"))
    save_file({"pos_embed": torch.zeros(1)}, tmp_path / "any.safetensors")
    for options in ({}, {"checkpoint": tmp_path / "any.safetensors"}):
        with pytest.raises(BadOption, match=r"19[67] positions in a list.*112 × 448"):
            models.load(name, image_size=(112, 448), **options)


def test_random_positions_are_of_no_grid_yet():
    vit = models.load("tnt_s_patch16_224", pretrained=False, image_size=(112, 448))
    assert vit.layout(112, 448).grid == (7, 28)
