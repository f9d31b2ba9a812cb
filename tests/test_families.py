"""timm's families beyond the plain ViT: what they show is what they used, and lies where it says."""

import math

import numpy as np
import pytest
import timm
import torch
from timm.models.beit import Beit
from timm.models.cait import Cait
from timm.models.convit import ConVit
from timm.models.eva import Eva
from timm.models.naflexvit import NaFlexVit, NaFlexVitCfg
from timm.models.pit import PoolingVisionTransformer
from timm.models.tnt import TNT
from timm.models.vision_transformer import (
    ParallelScalingBlock,
    ParallelThingsBlock,
    VisionTransformer,
)
from timm.models.vision_transformer_relpos import ResPostRelPosBlock, VisionTransformerRelPos
from timm.models.volo import VOLO
from timm.models.xcit import Xcit

import attnviz
import models
from attnviz.errors import BadOption, UnknownName
from attnviz.tokens import TokenLayout
from attnviz.verify import verify
from tests.random_models import picture, random_module

SMALL = {
    "img_size": (32, 48),
    "patch_size": 16,
    "embed_dim": 24,
    "depth": 2,
    "num_heads": 3,
    "num_classes": 5,
}
VIT = {**SMALL, "dynamic_img_size": True}
REGISTERS = ("reg1", "reg2", "reg3", "reg4")

# name -> (how it is made, prefix, grid, layers)
FAMILIES = {
    "parallel": (lambda: VisionTransformer(**VIT, block_fn=ParallelScalingBlock), ("cls",), (2, 3), 2),
    "side by side": (lambda: VisionTransformer(**VIT, block_fn=ParallelThingsBlock), ("cls",), (2, 3), 4),
    "registers": (
        lambda: Eva(**VIT, attn_type="rope", use_rot_pos_emb=True, num_reg_tokens=4),
        ("cls", *REGISTERS), (2, 3), 2,
    ),
    "gated": (
        lambda: NaFlexVit(NaFlexVitCfg(patch_size=16, embed_dim=24, depth=2, num_heads=3,
                                       class_token=True, reg_tokens=0, attn_gated=True, pos_embed_grid_size=(2, 3)), num_classes=5),
        ("cls",), (2, 3), 2,
    ),
    "EVA-02": (
        lambda: Eva(**VIT, use_rot_pos_emb=True, scale_attn_inner=True, qkv_fused=False),
        ("cls",), (2, 3), 2,
    ),
    "grouped queries": (
        lambda: Eva(**{**VIT, "embed_dim": 24, "num_heads": 6}, attn_type="rope", num_kv_heads=2,
                    qkv_fused=False, use_rot_pos_emb=True, class_token=False),
        (), (2, 3), 2,
    ),
    "EVA, post-norm": (lambda: Eva(**VIT, use_post_norm=True, class_token=False), (), (2, 3), 2),
    "pooled by attention": (
        lambda: Eva(**VIT, global_pool="map", attn_type="rope", use_rot_pos_emb=True),
        ("cls",), (2, 3), 2,
    ),
    "BEiT": (lambda: Beit(**SMALL, use_rel_pos_bias=True), ("cls",), (2, 3), 2),
    "BEiT, shared bias": (lambda: Beit(**SMALL, use_shared_rel_pos_bias=True), ("cls",), (2, 3), 2),
    "relative positions": (lambda: VisionTransformerRelPos(**SMALL), (), (2, 3), 2),
    "relative, shared": (
        lambda: VisionTransformerRelPos(
            **SMALL, class_token=True, shared_rel_pos=True, rel_pos_type="bias",
            block_fn=ResPostRelPosBlock,
        ),
        ("cls",), (2, 3), 2,
    ),
    "NaFlex": (
        lambda: NaFlexVit(
            NaFlexVitCfg(patch_size=16, embed_dim=24, depth=2, num_heads=3, class_token=True,
                         reg_tokens=1, pos_embed_grid_size=(2, 3)),
            num_classes=5,
        ),
        ("cls", "reg1"), (2, 3), 2,
    ),
    "CaiT": (lambda: Cait(**SMALL), ("cls",), (2, 3), 4),
    "ConViT": (
        lambda: ConVit(**{**SMALL, "img_size": 48, "embed_dim": 24, "num_heads": 4, "depth": 3},
                       local_up_to_layer=2),
        ("cls",), (3, 3), 3,
    ),
    "XCiT": (lambda: Xcit(**SMALL), ("cls",), (2, 3), 2),
    "VOLO": (
        lambda: VOLO(layers=[1, 1], img_size=(32, 48), num_classes=5, patch_size=8,
                     embed_dims=[24, 24], num_heads=[3, 3], stem_hidden_dim=8,
                     outlook_attention=[True, False], downsamples=[True, False],
                     mlp_ratio=(2.0, 2.0), post_layers=("ca", "ca")),
        ("cls",), (2, 3), 3,
    ),
    "TNT": (
        lambda: TNT(**{k: v for k, v in SMALL.items() if k != "num_heads"}, inner_dim=8,
                    num_heads_inner=2, num_heads_outer=3),
        ("cls",), (2, 3), 4,
    ),
    "PiT": (
        lambda: PoolingVisionTransformer(
            img_size=(48, 64), patch_size=16, stride=8, base_dims=(8, 8, 8), depth=(1, 1, 1),
            heads=(3, 3, 3), mlp_ratio=2, num_classes=5, distilled=True,
        ),
        ("cls", "dist"), (5, 7), 3,
    ),
}  # fmt: skip


def small(name: str, std: float = 0.25):
    """One of `FAMILIES`, random, its maps far from uniform, and wrapped."""
    return models.wrap(random_module(FAMILIES[name][0], std))


@pytest.mark.parametrize("name", FAMILIES)
def test_each_family_is_what_it_says(name):
    _, prefix, grid, layers = FAMILIES[name]
    vit = small(name)
    assert vit.layout(*vit.image_size) == TokenLayout(prefix, grid)
    assert len(vit.sites) == layers
    checks = verify(vit)
    assert max(check.output_error for check in checks) < 1e-5
    mixed = {site.name for site in vit.sites if site.mixed}
    assert (name == "CaiT") == bool(mixed)
    assert max(c.row_sum_error for c in checks if c.name not in mixed) < 1e-5


@pytest.mark.parametrize("name", FAMILIES)
def test_both_ways_to_keep_a_layer_give_the_same_rows(name):
    vit = small(name)
    x = picture(vit)
    dense, rebuilt = (attnviz.observe(vit, x, keep=keep) for keep in ("maps", "factors"))
    for one, other in zip(dense.layers, rebuilt.layers, strict=True):
        torch.testing.assert_close(one.probs(), other.probs(), atol=1e-5, rtol=1e-4)
        whole = one.probs()
        asks = one.asks
        assert not whole[:, ~asks].any()
        if not one.mixed:
            torch.testing.assert_close(
                whole[:, asks].sum(-1), torch.ones(one.heads, int(asks.sum())), atol=1e-5, rtol=0
            )


def lit(vit, cell, *, layer, query, row_px=16, col_px=16):
    """The cell of a layer's map that changes when only one place of the picture does.

    The logarithm of a row shifts alike in all columns but that of the key that changed.
    """
    x = picture(vit)
    (top, left), changed = (cell[0] * row_px, cell[1] * col_px), x.clone()
    changed[..., top : top + row_px, left : left + col_px] *= -3
    maps = [
        attnviz.explain(attnviz.observe(vit, each), layer=layer, query=query).values
        for each in (x, changed)
    ]
    shift = np.log(maps[1] + 1e-30) - np.log(maps[0] + 1e-30)
    strange = np.abs(shift - np.median(shift))
    return np.unravel_index(strange.argmax(), strange.shape)


# A place in the picture -> the layer whose row of that query must show it there.
PLANTED = [
    ("parallel", 0, "cls", (1, 2)),
    ("EVA-02", 0, (0, 0), (1, 2)),
    ("grouped queries", 0, (0, 1), (1, 0)),
    ("BEiT", 0, "cls", (0, 2)),
    ("relative positions", 0, (1, 1), (0, 2)),
    ("NaFlex", 0, "reg1", (1, 0)),
    ("CaiT", 0, (0, 0), (1, 2)),  # only patches attend to patches
    ("ConViT", 0, (0, 0), (1, 2)),
    ("TNT", 2, "cls", (1, 0)),
]


@pytest.mark.parametrize(("name", "layer", "query", "cell"), PLANTED)
def test_a_changed_patch_changes_its_own_cell(name, layer, query, cell):
    vit = small(name, std=0.1)
    if not vit.sites[layer].mixed:  # a mixed map may be negative, and has no logarithm
        assert lit(vit, cell, layer=layer, query=query) == cell
    x = picture(vit)
    changed = x.clone()
    changed[..., 16 * cell[0] :, 16 * cell[1] :][..., :16, :16] += 1
    first, second = (attnviz.observe(vit, each).layers[layer].values for each in (x, changed))
    tokens = (first != second).any(-1).any(0).nonzero().flatten().tolist()
    expected = vit.layout(*vit.image_size).token(*cell)
    assert tokens == [expected]


def test_class_attention_shows_the_cell_that_changed():
    """Without a trunk, the class token of CaiT and XCiT reads the patches as they are embedded."""
    for kind in (Cait, Xcit):
        torch.manual_seed(3)
        module = kind(**{**SMALL, "depth": 0}).eval()
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
        assert lit(models.wrap(module), (1, 2), layer=0, query="cls") == (1, 2)


def test_tnt_parts_of_a_patch_lie_within_it():
    """Its inner layers see 4 × 4 parts of each patch: an 8 × 12 grid, blank outside the patch."""
    vit = small("TNT")
    record = attnviz.observe(vit, picture(vit))
    inner = record.layers[0]
    assert record.geometry(inner).queries == TokenLayout((), (8, 12))
    row = inner.rows(5 * 12 + 10)  # row 5, column 10: in the patch (1, 2)
    seen = (row > 0).any(0).unflatten(0, (8, 12))
    expected = torch.zeros(8, 12, dtype=torch.bool)
    expected[4:8, 8:12] = True
    assert torch.equal(seen, expected)
    # The query is a patch of the record's grid; its middle part asks.
    heat = attnviz.explain(record, layer=0, query=(1, 2))
    assert heat.values.shape == (8, 12)
    assert heat.query_cell == (6, 10)


def test_pit_patches_overlap_and_cells_lie_at_their_centres():
    """Patches of 16 pixels every 8: the first is centred at 8, the last of 7 at 56."""
    vit = small("PiT")
    record = attnviz.observe(vit, picture(vit))
    for layer, grid, box in (
        (0, (5, 7), (4, 4, 60, 44)),
        (1, (3, 4), (0, 0, 64, 48)),
        (2, (2, 2), (-8, -8, 56, 56)),
    ):
        heat = attnviz.explain(record, layer=layer)
        assert heat.grid == grid
        assert heat.box == pytest.approx(box)
    first = attnviz.explain(record, layer=0, query=(4, 6))
    assert attnviz.explain(record, layer=2, query=(4, 6)).query_cell == (1, 1)
    assert first.query_cell == (4, 6)


def test_rollout_goes_as_far_as_layers_share_their_tokens():
    vit = small("PiT")
    record = attnviz.observe(vit, picture(vit))
    heat = attnviz.explain(record, "rollout")
    assert heat.fact("first layer") == "2 (of 3, counted from 0)"
    with pytest.raises(BadOption, match=r"different tokens.*start at layer 2"):
        attnviz.explain(record, "rollout", first_layer=0)
    assert attnviz.explain(record, "rollout", last_layer=1).grid == (3, 4)


def test_rollout_through_class_attention_leaves_patches_alone():
    """CaiT's trunk mixes heads, so only its class attention adds up: by hand."""
    vit = small("CaiT")
    record = attnviz.observe(vit, picture(vit))
    heat = attnviz.explain(record, "rollout")
    assert heat.fact("first layer") == "2 (of 4, counted from 0)"
    first, last = (layer.rows(0).mean(0) for layer in record.layers[2:])
    row = torch.zeros(7)
    row[0] = 0.5
    row = row + 0.5 * last
    expected = row.clone()
    expected[0] = 0.5 * row[0]
    expected = expected + 0.5 * row[0] * first
    np.testing.assert_allclose(heat.values.ravel(), expected[1:], rtol=1e-5)
    with pytest.raises(BadOption, match="mixed after the softmax"):
        attnviz.explain(record, "rollout", first_layer=0)


def test_rollout_does_not_run_through_layers_side_by_side():
    record = attnviz.observe(vit := small("side by side"), picture(vit))
    assert attnviz.explain(record, "rollout").fact("first layer") == "3 (of 4, counted from 0)"


@pytest.mark.parametrize("name", ["CaiT", "XCiT", "VOLO"])
def test_only_the_class_token_asks_in_class_attention(name):
    vit = small(name)
    record = attnviz.observe(vit, picture(vit))
    assert attnviz.explain(record).fact("query") == "class token"
    assert attnviz.explain(record).fact("attends to").startswith("class attention")
    for query in ("mean", (0, 0)):
        with pytest.raises(BadOption, match="class attention"):
            attnviz.explain(record, query=query)


def test_the_class_token_is_not_in_a_trunk_of_patches():
    vit = small("CaiT")
    record = attnviz.observe(vit, picture(vit))
    assert attnviz.explain(record, layer=0).fact("query") == "mean of all patches"
    with pytest.raises(BadOption, match="all patches"):
        attnviz.explain(record, layer=0, query="cls")
    with pytest.raises(UnknownName, match="reg1"):
        attnviz.explain(record, layer=0, query="reg1")


GRADIENTS = ("relevance", "gradient_rollout", "attention_gradcam")


@pytest.mark.parametrize("name", FAMILIES)
def test_methods_of_a_target_reach_every_family(name):
    """Methods of a target reach every family, whatever its layers' tokens are."""
    vit = small(name)
    record = attnviz.observe(vit, picture(vit), target=2)
    assert math.isfinite(record.score)
    asks = record.layers[-1].asks
    query = "mean" if asks[-1] else "cls"  # where the class token is not what is pooled
    for method in GRADIENTS:
        heat = attnviz.explain(record, method, query=query)
        assert np.isfinite(heat.values).all()
    for layer in record.layers:  # a method may clip what a gradient says; the gradient is there
        gradient = torch.cat([layer.gradient.block(*span) for span in layer.spans()], dim=1)
        assert gradient.shape == layer.source.shape
        assert not gradient[:, ~layer.asks].any()
    assert gradient.any()


# The smallest of each family by timm's names, with fewer layers where that can be asked for.
NAMES = [
    ("eva02_tiny_patch14_224", {"depth": 2}),
    ("vit_tiny_patch16_dinov3_qkvb", {"depth": 2}),
    ("vit_small_patch16_dinov3", {"depth": 2, "img_size": (32, 64)}),
    ("vit_pe_core_tiny_patch16_384", {"depth": 2}),
    ("vit_pe_spatial_tiny_patch16_512", {"depth": 2}),
    ("beit_base_patch16_224", {"depth": 1}),
    ("beitv2_base_patch16_224", {"depth": 1, "img_size": (32, 64)}),
    ("test_vit_relpos", {}),
    ("vit_srelpos_small_patch16_224", {"depth": 2, "img_size": (32, 64)}),
    ("vit_tiny_r_s16_p8_224", {"depth": 2}),
    ("vit_small_r26_s32_224", {"depth": 1}),
    ("vit_base_patch16_xp_224", {"depth": 2}),
    ("vit_small_patch16_18x2_224", {"depth": 2}),
    ("naflexvit_base_patch16_map", {"depth": 1}),
    ("cait_xxs24_224", {"depth": 2}),
    ("cait_xxs36_384", {"depth": 1}),
    ("convit_tiny", {}),
    ("convit_small", {"depth": 11}),
    ("xcit_nano_12_p16_224", {"depth": 1}),
    ("xcit_tiny_12_p8_224", {"depth": 1}),
    ("volo_d1_224", {}),
    ("tnt_s_patch16_224", {"depth": 1}),
    ("tnt_s_legacy_patch16_224", {"depth": 1}),
    ("pit_ti_224", {}),
    ("pit_xs_distilled_224", {}),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "options"), NAMES, ids=[name for name, _ in NAMES])
def test_timms_own_models_are_verified(name, options):
    vit = models.wrap(timm.create_model(name, num_classes=3, **options))
    checks = verify(vit)
    assert {check.name for check in checks} == {site.name for site in vit.sites}
    assert max(check.output_error for check in checks) < 1e-5


def test_load_makes_a_family_of_one_size_for_another():
    vit = models.load("pit_ti_224", pretrained=False, image_size=(96, 128))
    assert vit.image_size == (96, 128)
    assert vit.layout(96, 128).grid == (11, 15)
    with pytest.raises(BadOption, match=r"takes only 96 × 128"):
        vit.layout(224, 224)
    with pytest.raises(BadOption):
        models.load("convit_tiny", pretrained=False, image_size=(97, 128))
