"""Weights of families beyond the plain ViT: read whole, with the classes that the file has."""

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file
from timm.models.vision_transformer import VisionTransformer

import models
from attnviz.errors import BadOption
from attnviz.tokens import TokenLayout
from models.timm_names import resolve
from models.timm_radio import renaming

# Where each keeps its classifier: head.fc, two heads, a layer in the head, beside batch norms.
NAMES = (
    "gcvit_xxtiny",
    "crossvit_tiny_240",
    "cpubone_nano",
    "visformer_tiny",
    "xcit_nano_12_p16_224",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_has_the_classes_that_it_has(tmp_path, name):
    saved = timm.create_model(name, num_classes=7).state_dict()
    save_file(
        {key: value.contiguous() for key, value in saved.items()}, tmp_path / "own.safetensors"
    )
    vit = models.load(name, checkpoint=tmp_path / "own.safetensors")
    assert vit.module.num_classes == 7
    loaded = vit.module.state_dict()
    assert loaded.keys() == saved.keys()
    assert all(torch.equal(loaded[key], saved[key]) for key in saved)


def bilinear(grid, side, aligned):
    """(row, col, channel) resampled to side × side as the textbook has it, in float64."""
    rows = grid.shape[0]
    found = np.empty((side, side, grid.shape[2]))
    for row in range(side):
        for col in range(side):
            at = [
                place * (rows - 1) / (side - 1) if aligned else (place + 0.5) * rows / side - 0.5
                for place in (row, col)
            ]
            (top, left), value = np.clip(np.floor(at), 0, rows - 1).astype(int), 0.0
            for high in (0, 1):
                for wide in (0, 1):
                    share = abs(1 - high - (at[0] - top)) * abs(1 - wide - (at[1] - left))
                    value = (
                        value + share * grid[min(top + high, rows - 1), min(left + wide, rows - 1)]
                    )
            found[row, col] = value
    return found


@pytest.mark.parametrize(
    ("name", "aligned"),
    [("vit_base_patch16_radio_v3", True), ("vit_large_patch16_radio_v3", False)],
)
def test_radios_own_files_become_positions_by_radios_own_rule(name, aligned):
    """8 × 8 positions to a square of 3 × 3, of which the upper 2 × 3 are kept."""
    module = VisionTransformer(
        img_size=(32, 48), patch_size=16, embed_dim=8, depth=0, num_heads=2, num_classes=0,
        no_embed_class=True, reg_tokens=2, final_norm=False,
    )  # fmt: skip
    seeded = torch.Generator().manual_seed(0)
    part = "radio_model.model.patch_generator."
    state = {
        f"{part}embedder.weight": torch.randn(8, 3 * 16 * 16, generator=seeded),
        f"{part}pos_embed": torch.randn(1, 64, 8, generator=seeded),
        f"{part}cls_token.token": torch.randn(3, 8, generator=seeded),
        "radio_model.summary_idxs": torch.zeros(2),
    }
    found = renaming(name)(state, module)
    grid = state[f"{part}pos_embed"].double().numpy().reshape(8, 8, 8)
    expected = bilinear(grid, 3, aligned)[:2].reshape(6, 8)
    np.testing.assert_allclose(found["pos_embed"][0], expected, atol=1e-5)
    module.load_state_dict(found, strict=True)


def test_radio_as_a_plain_vit_keeps_to_its_size_and_names_the_one_that_does_not():
    found = resolve("vit_base_patch16_radio_v3")
    vit = models.wrap(found.blank())
    assert (vit.image_size, vit.any_size, vit.layout(512, 512).grid) == (
        (512, 512),
        False,
        (32, 32),
    )
    with pytest.raises(BadOption, match="load naflexvit_base_patch16_radio_v3"):
        models.load("vit_base_patch16_radio_v3", image_size=(256, 512))
    twin = models.wrap(resolve("naflexvit_base_patch16_radio_v3").blank())
    assert (twin.image_size, twin.any_size) == ((512, 512), True)
    assert twin.layout(256, 512) == TokenLayout(vit.layout(512, 512).prefix, (16, 32))
