"""One cell, planted where a layer reads its stream, is one column and one row of the map."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import timm
import torch
from timm.models.maxxvit import MaxxVit, model_cfgs
from timm.models.swin_transformer import SwinTransformer
from timm.models.swin_transformer_v2 import SwinTransformerV2
from timm.models.swin_transformer_v2_cr import SwinTransformerV2Cr
from timm.models.tiny_vit import TinyVit
from timm.models.visformer import Visformer
from timm.models.volo import VOLO

import attnviz
import models
from attnviz.verify import verify
from tests.planting import what_changed
from tests.random_models import picture, random_module

SWIN = {
    "img_size": (64, 96), "embed_dim": 8, "depths": (2, 2), "num_heads": (2, 2), "num_classes": 5,
    "window_size": 4,
}  # fmt: skip
TINY = {"depths": (1, 1, 1, 1), "embed_dims": (8, 8, 8, 8), "num_heads": (2, 2, 2, 2)}
VISFORMER = {"img_size": (64, 96), "init_channels": 8, "embed_dim": 16, "num_heads": 2}
VOLO_ = {
    "img_size": (32, 48), "patch_size": 8, "embed_dims": [24, 24], "num_heads": [3, 3],
    "stem_hidden_dim": 8, "outlook_attention": [True, False], "downsamples": [True, False],
    "mlp_ratio": (2.0, 2.0), "post_layers": ("ca", "ca"), "layers": [1, 1],
}  # fmt: skip


def maxvit(name):
    return timm.create_model(name, img_size=(96, 160), num_classes=5)


def parallel_maxvit():
    cfg = replace(model_cfgs["test_maxvit"], block_type=("PM",) * 4)
    return MaxxVit(cfg, img_size=(96, 160), num_classes=5)


MODELS = {
    "MaxViT, parallel": parallel_maxvit,
    "MaxViT": lambda: maxvit("test_maxvit"),
    "CoAtNet": lambda: maxvit("test_coatnet"),
    "TinyViT": lambda: TinyVit(**TINY, window_sizes=(7, 4, 3, 5), num_classes=5),
    "Visformer": lambda: Visformer(**VISFORMER, depth=(0, 1, 1), attn_stage="011", num_classes=5),
    "VOLO": lambda: VOLO(**VOLO_, num_classes=5),
    "Swin": lambda: SwinTransformer(**SWIN),
    "Swin v2": lambda: SwinTransformerV2(**SWIN),
    "Swin v2 CR": lambda: SwinTransformerV2Cr(**SWIN),
}


def small(name):
    """One of `MODELS`, random and wrapped, for 96 × 160 pixels where it does not say."""
    module = random_module(MODELS[name], 0.2)
    if name == "TinyViT":
        module.pretrained_cfg = {"input_size": (3, 96, 160)}
    return models.wrap(module)


def whole(one, other, grid):
    return True


def block(high, wide):
    return lambda one, other, grid: (one[0] // high, one[1] // wide) == (
        other[0] // high, other[1] // wide
    )  # fmt: skip


def spread(high, wide):
    """Of a strided window of high × wide cells: those that lie rows / high and cols / wide apart."""
    return lambda one, other, grid: all(
        (a - b) % (side // count) == 0
        for a, b, side, count in zip(one, other, grid, (high, wide), strict=True)
    )


# model, layer, the block that reads the stream, how that lies in memory, its grid, a cell, and
# which cells see it, by hand
PLACES = [
    ("MaxViT", 0, "stages.0.blocks.0.attn_block", "NHWC", (24, 40), (4, 21), block(3, 5)),
    ("MaxViT", 1, "stages.0.blocks.0.attn_grid", "NHWC", (24, 40), (4, 21), spread(3, 5)),
    ("MaxViT", 1, "stages.0.blocks.0.attn_grid", "NHWC", (24, 40), (23, 6), spread(3, 5)),
    ("MaxViT", 3, "stages.1.blocks.0.attn_grid", "NHWC", (12, 20), (7, 18), spread(3, 5)),
    ("MaxViT", 5, "stages.2.blocks.0.attn_grid", "NHWC", (6, 10), (1, 9), spread(3, 5)),
    ("MaxViT, parallel", 0, "stages.0.blocks.0.attn", "NHWC", (24, 40), (4, 21), block(3, 5)),
    ("MaxViT, parallel", 1, "stages.0.blocks.0.attn", "NHWC", (24, 40), (4, 21), spread(3, 5)),
    ("MaxViT, parallel", 4, "stages.2.blocks.0.attn", "NHWC", (6, 10), (5, 8), block(3, 5)),
    ("MaxViT, parallel", 5, "stages.2.blocks.0.attn", "NHWC", (6, 10), (1, 9), spread(3, 5)),
    ("CoAtNet", 1, "stages.2.blocks.1", "NCHW", (6, 10), (2, 7), whole),
    ("TinyViT", 0, "stages.1.blocks.0", "NHWC", (12, 20), (9, 13), block(4, 4)),
    ("TinyViT", 1, "stages.2.blocks.0", "NHWC", (6, 10), (5, 9), block(3, 3)),  # padded
    ("TinyViT", 2, "stages.3.blocks.0", "NHWC", (3, 5), (2, 1), block(5, 5)),  # padded
    ("Visformer", 0, "stage2.0", "NCHW", (4, 6), (1, 5), whole),
    ("Visformer", 1, "stage3.0", "NCHW", (2, 3), (1, 0), whole),
    ("VOLO", 0, "network.2.0", "NHWC", (2, 3), (1, 2), whole),
    ("VOLO", 1, "post_network.0", "NLC", (2, 3), (0, 2), None),
    ("VOLO", 2, "post_network.1", "NLC", (2, 3), (1, 0), None),
]


def plant(strength, order, grid, cell, _, given):
    """Noise in place of the stream, so that keys differ, and more of it in one cell."""
    seeded = torch.Generator().manual_seed(1)
    stream = torch.randn(given[0].shape, generator=seeded)
    channels = stream.shape[1] if order == "NCHW" else stream.shape[-1]
    more = strength * torch.randn(channels, generator=seeded)
    if order == "NLC":
        stream[0, -grid[0] * grid[1] :][cell[0] * grid[1] + cell[1]] += more
    elif order == "NHWC":
        assert stream.shape[1:3] == grid
        stream[0, cell[0], cell[1]] += more
    else:
        assert stream.shape[2:] == grid
        stream[0, :, cell[0], cell[1]] += more
    return (stream, *given[1:])


def layer_with(vit, number, path, *planted):
    hook = vit.module.get_submodule(path).register_forward_pre_hook(partial(plant, *planted))
    record = attnviz.observe(vit, picture(vit))
    hook.remove()
    return record.geometry(record.layers[number]), record.layers[number]


@pytest.mark.parametrize(("name", "number", "path", "order", "grid", "cell", "sees"), PLACES)
def test_one_cell_is_its_own_column_and_its_own_row(name, number, path, order, grid, cell, sees):
    vit = small(name)
    (geometry, first), (_, second) = (
        layer_with(vit, number, path, strength, order, grid, cell) for strength in (0.0, 4.0)
    )
    assert geometry.keys.grid == geometry.queries.grid == grid
    token = geometry.keys.token(*cell)
    if sees is None:  # class attention: the class token's own query stays as it was
        assert what_changed(first, second) == ({token}, set())
        assert geometry.asks.nonzero().flatten().tolist() == [0]
        return
    assert what_changed(first, second) == ({token}, {token})
    cells = geometry.queries.cells.tolist()
    prefix = len(geometry.queries.prefix)
    expected = [prefix + at for at, other in enumerate(cells) if sees(cell, other, grid)]
    seen = first.probs()[:, :, token].any(0).nonzero().flatten().tolist()
    assert seen == expected


def test_layers_side_by_side_are_verified_and_do_not_add_up():
    """Both read the same tokens, and each makes half of the channels: neither sees the other's."""
    vit = small("MaxViT, parallel")
    x = picture(vit)
    assert max(check.output_error for check in verify(vit, x)) < 1e-5
    record = attnviz.observe(vit, x)
    names = [layer.name.partition(".attn.")[2] for layer in record.layers]
    assert names == ["attn_block", "attn_grid"] * 4
    assert [record.shared_from(last) for last in range(8)] == list(range(8))
    in_turn = attnviz.observe(small("MaxViT"), x)
    assert [in_turn.shared_from(last) for last in range(8)] == [0, 0, 2, 2, 4, 4, 6, 6]
    assert attnviz.explain(record, layer=1).fact("attends to") == (
        "windows of 3 × 5 cells, spread over the grid"
    )


# A moved window that goes round the edge, by hand: moved by 2, the window of the last 2 rows holds
# the first 2 as well, and so for columns; the mask keeps them apart.
APART = [
    ((15, 9), (slice(14, 16), slice(6, 10))),
    ((0, 9), (slice(0, 2), slice(6, 10))),
    ((7, 23), (slice(6, 10), slice(22, 24))),
    ((15, 23), (slice(14, 16), slice(22, 24))),
    ((1, 0), (slice(0, 2), slice(0, 2))),
    ((5, 9), (slice(2, 6), slice(6, 10))),
]


@pytest.mark.parametrize("name", ["Swin", "Swin v2", "Swin v2 CR"])
@pytest.mark.parametrize(("query", "reached"), APART)
def test_the_far_side_of_a_moved_window_is_blank(name, query, reached):
    vit = small(name)
    record = attnviz.observe(vit, picture(vit))
    heat = attnviz.explain(record, layer=1, query=query)
    expected = np.zeros((16, 24), dtype=bool)
    expected[reached] = True
    assert np.array_equal(heat.filled, expected)
    assert heat.drawn.sum() == pytest.approx(1, abs=1e-5)
    assert heat.values[~expected].max() < 1e-6


@pytest.mark.parametrize("name", ["Swin", "Swin v2", "Swin v2 CR"])
def test_a_mask_that_does_not_keep_apart_is_not_said_to(name):
    """timm subtracts 100 from a score, and no more: what is attended all the same is drawn."""
    vit = small(name)
    mask = vit.module.get_submodule(vit.sites[1].name.rpartition(".")[0]).attn_mask
    mask.mul_(0.001)
    record = attnviz.observe(vit, picture(vit))
    heat = attnviz.explain(record, layer=1, query=(15, 23))
    assert heat.filled.sum() == 16
    assert heat.drawn.sum() == pytest.approx(1, abs=1e-5)
    assert heat.values[0, 0] > 1e-3


def test_a_mean_of_queries_reaches_what_any_of_them_does():
    vit = small("Swin")
    geometry = attnviz.observe(vit, picture(vit)).layers[1].geometry
    assert geometry.reach(range(geometry.queries.tokens)).all()
    corner = geometry.reach(range(1))
    assert corner.sum() == 4
