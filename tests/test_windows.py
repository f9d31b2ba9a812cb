"""Layers that attend in windows or to pooled keys: each map lies where the model's tokens do."""

import re

import numpy as np
import pytest
import timm
import torch
from timm.models.davit import DaVit
from timm.models.gcvit import GlobalContextVit
from timm.models.nest import Nest
from timm.models.pvt_v2 import PyramidVisionTransformerV2
from timm.models.swin_transformer import SwinTransformer
from timm.models.swin_transformer_v2 import SwinTransformerV2
from timm.models.swin_transformer_v2_cr import SwinTransformerV2Cr
from timm.models.twins import Twins
from timm.models.vision_transformer_sam import VisionTransformerSAM

import attnviz
import models
from attnviz import export
from attnviz.errors import BadOption, CaptureFailed, UnknownName
from attnviz.geometry import Geometry
from attnviz.head_maps import tiles_of
from attnviz.paper import Paper
from attnviz.sinks import swallowed_by
from attnviz.tokens import TokenLayout
from attnviz.verify import verify
from attnviz.windows import in_windows
from models.cells import windows
from tests import oracles
from tests.random_models import random_module, seen_by

STAGES = {"depths": (2, 2), "num_heads": (2, 4), "num_classes": 5}
SWIN = {"img_size": (64, 96), "embed_dim": 12, **STAGES}
FOUR = {"depths": (1, 1, 1, 1), "embed_dims": (8, 16, 16, 16), "num_heads": (2, 2, 2, 2)}

# name -> (how it is made, layers)
MODELS = {
    "Swin": (lambda: SwinTransformer(**SWIN, window_size=4), 4),
    "Swin, padded": (lambda: SwinTransformer(**SWIN, window_size=5), 4),
    "Swin v2": (lambda: SwinTransformerV2(**SWIN, window_size=4), 4),
    "Swin v2, padded": (lambda: SwinTransformerV2(**SWIN, window_size=(5, 7)), 4),
    "Swin v2 CR": (lambda: SwinTransformerV2Cr(**SWIN, window_size=(5, 4)), 4),
    "SAM": (
        lambda: VisionTransformerSAM(
            img_size=96, embed_dim=24, depth=2, num_heads=3, window_size=4, global_attn_indexes=(1,),
            use_rel_pos=True, neck_chans=8, num_classes=5,
        ),
        2,
    ),
    "GCViT": (
        lambda: GlobalContextVit(embed_dim=8, depths=(2, 2, 2, 2), num_heads=(2, 2, 2, 2), num_classes=5),
        8,
    ),
    "DaViT": (lambda: DaVit(**FOUR, num_classes=5), 4),
    "NesT": (
        lambda: Nest(img_size=64, embed_dims=(12, 12), num_levels=2, num_heads=(2, 3), depths=(1, 1),
                     num_classes=5),
        2,
    ),
    "PVT v2": (lambda: PyramidVisionTransformerV2(**FOUR, num_classes=5), 4),
    "PVT v2, 7 × 7 keys": (lambda: PyramidVisionTransformerV2(**FOUR, linear=True), 4),
    "Twins": (
        lambda: Twins(**{**FOUR, "depths": (2, 2, 1, 1)}, img_size=(96, 128), wss=(5, 4, 4, 4)), 6,
    ),
    "Twins, pooled": (lambda: Twins(**FOUR, img_size=(96, 128), sr_ratios=(5, 4, 2, 1)), 4),
}  # fmt: skip


def small(name: str):
    """One of `MODELS`, random, and wrapped."""
    return models.wrap(random_module(MODELS[name][0], 0.15))


def seen(name: str, **options):
    return seen_by(small(name), **options)


@pytest.mark.parametrize("name", MODELS)
def test_each_is_verified_and_its_rows_are_those_of_its_windows(name):
    vit, x, record = seen(name)
    checks = verify(vit, x)
    assert len(vit.sites) == len(record.layers) == MODELS[name][1]
    assert max(check.output_error for check in checks) < 1e-5
    assert max(check.row_sum_error for check in checks) < 1e-5
    for layer in record.layers:
        geometry = record.geometry(layer)
        middle = geometry.queries.tokens // 2 + 1
        row = layer.rows(middle)
        assert row[:, ~geometry.reach(range(middle, middle + 1))].sum() < 1e-6
        assert bool((row.sum(-1) <= 1 + 1e-5).all())
        if not geometry.padded:
            torch.testing.assert_close(row.sum(-1), torch.ones(layer.heads), atol=1e-5, rtol=0)
        assert geometry.asks.all()


# model, layer, the module whose input (or output) is the grid as the model has it, how that lies
# in memory, and a cell of that grid
PLACES = [
    ("Swin", 0, "layers.0.blocks.0", "NHWC", (13, 9)),
    ("Swin", 1, "layers.0.blocks.1", "NHWC", (1, 23)),  # moved: its window goes round the edge
    ("Swin", 3, "layers.1.blocks.1", "NHWC", (6, 2)),
    ("Swin, padded", 0, "layers.0.blocks.0", "NHWC", (15, 23)),
    ("Swin, padded", 1, "layers.0.blocks.1", "NHWC", (2, 1)),
    ("Swin v2", 1, "layers.0.blocks.1", "NHWC", (15, 3)),
    ("Swin v2, padded", 1, "layers.0.blocks.1", "NHWC", (4, 22)),
    ("Swin v2 CR", 1, "stages.0.blocks.1", "NHWC", (9, 20)),
    ("SAM", 0, "blocks.0", "NHWC", (5, 2)),
    ("SAM", 1, "blocks.1", "NHWC", (5, 2)),
    ("GCViT", 0, "stages.0.blocks.0", "NHWC", (3, 27)),
    ("GCViT", 1, "stages.0.blocks.1", "NHWC", (12, 7)),
    ("DaViT", 0, "stages.0.blocks.0.0.norm1", "NLC", (50, 3)),
    ("DaViT", 3, "stages.3.blocks.0.0.norm1", "NLC", (2, 6)),
    ("NesT", 0, "levels.0", "NCHW", (5, 14)),
    ("PVT v2", 0, "stages.0.blocks.0", "NLC", (30, 9)),
    ("PVT v2", 3, "stages.3.blocks.0", "NLC", (5, 1)),
    ("Twins", 0, "blocks.0.0", "NLC", (23, 31)),
    ("Twins", 1, "blocks.0.1", "NLC", (16, 8)),
    ("Twins, pooled", 0, "blocks.0.0", "NLC", (11, 3)),
]


def at(stream: torch.Tensor, order: str, grid: tuple[int, int], cell: tuple[int, int]):
    """The features of one cell, to be written on."""
    row, col = cell
    if order == "NLC":
        assert stream.shape[1] == grid[0] * grid[1]
        return stream[0, row * grid[1] + col]
    rows, cols = (1, 2) if order == "NHWC" else (2, 3)
    assert (stream.shape[rows], stream.shape[cols]) == grid
    return stream[0, row, col] if order == "NHWC" else stream[0, :, row, col]


@pytest.mark.parametrize(("name", "number", "path", "order", "cell"), PLACES)
def test_one_cell_of_the_stream_is_one_column_of_the_map(name, number, path, order, cell):
    """Only its value changes, and its weight for a query that can see it, but for no other."""
    vit, x, plain = seen(name)
    geometry = plain.geometry(plain.layers[number])

    def plant(_, given):
        stream = given[0].clone()
        target = at(stream, order, geometry.queries.grid, cell)
        target.copy_(torch.randn(target.shape, generator=torch.Generator().manual_seed(1)) * 3)
        return (stream, *given[1:])

    hook = vit.module.get_submodule(path).register_forward_pre_hook(plant)
    planted = attnviz.observe(vit, x)
    hook.remove()
    first, second = (record.layers[number].values for record in (plain, planted))
    changed = (first - second).abs().amax((0, 2)) > 1e-6
    asked = geometry.queries.token(*cell)
    rows, cols = geometry.keys.grid
    high, wide = (a // b for a, b in zip(geometry.queries.grid, (rows, cols), strict=True))
    if name == "Twins, pooled":
        high = wide = 5  # of 24 × 32 cells the last 4 rows and 2 columns are in no key
    assert changed.nonzero().flatten().tolist() == [
        geometry.keys.token(cell[0] // high, cell[1] // wide)
    ]
    assert geometry.reach(range(asked, asked + 1))[changed].all()
    # A query of another window, where there is one, does not notice.
    far = [
        t for t in range(geometry.queries.tokens) if not geometry.reach(range(t, t + 1))[changed]
    ]
    if far:
        before, after = (record.layers[number].rows(far[0]) for record in (plain, planted))
        torch.testing.assert_close(before, after, atol=1e-6, rtol=1e-4)


def test_a_query_sees_its_own_window_and_all_else_is_blank():
    _, _, record = seen("Swin")
    heat = attnviz.explain(record, layer=0, query=(5, 9))
    expected = np.zeros((16, 24), dtype=bool)
    expected[4:8, 8:12] = True
    assert np.array_equal(heat.filled, expected)
    assert heat.drawn.size == 16
    assert heat.drawn.sum() == pytest.approx(1, abs=1e-5)
    assert heat.fact("attends to") == "windows of 4 × 4"
    picture = np.asarray(heat.image)
    over = np.asarray(heat.overlay(alpha=1.0))
    shown = np.kron(expected, np.ones((4, 4), dtype=bool))
    assert np.array_equal(over[~shown], picture[~shown])
    for drawn in (heat.overlay(alpha=1.0, interpolation="bilinear"), heat.overlay(alpha=0.3)):
        assert np.array_equal(np.asarray(drawn)[~shown], picture[~shown])


def test_a_moved_window_is_undone():
    """Moved by 2: the window of (5, 9) reaches from row 2 to 5 and from column 6 to 9."""
    _, _, record = seen("Swin")
    heat = attnviz.explain(record, layer=1, query=(5, 9))
    expected = np.zeros((16, 24), dtype=bool)
    expected[2:6, 6:10] = True
    assert np.array_equal(heat.filled, expected)


def test_a_coarser_stage_is_asked_by_place():
    _, _, record = seen("Swin")
    heat = attnviz.explain(record, layer=2, query=(5, 9))  # of 8 × 12 cells, this is (2, 4)
    assert heat.grid == (8, 12)
    assert heat.query_cell == (2, 4)
    # What is to be typed again, and where that is on this layer's grid.
    assert heat.fact("query") == "patch (row 5, column 9)"
    assert heat.fact("here") == "row 2, column 4 of 8 × 12"
    assert "query: patch (row 5, column 9); here: row 2, column 4 of 8 × 12" in heat.summary
    facts = export.manifest(heat, Paper())["facts"]
    typed = tuple(map(int, re.findall(r"\d+", facts["query"])))
    again = attnviz.explain(record, layer=2, query=typed)
    assert np.array_equal(again.values, heat.values) and again.facts == heat.facts
    assert attnviz.explain(record, layer=0, query=(5, 9)).fact("here") is None
    assert attnviz.explain(record, layer=2, query="mean").fact("here") is None
    assert attnviz.explain(record, "rollout", query=(5, 9)).fact("here") == heat.fact("here")


def test_a_target_s_patch_is_counted_on_the_first_grid_as_a_query_is():
    """The last stage has 7 × 7 cells, each of 8 × 8 of the first: (20, 47) lies in its (2, 5)."""
    vit, tensor, _ = seen("PVT v2")
    record = attnviz.observe(vit, tensor, target=attnviz.similarity_to((20, 47)))
    said = "similarity to the patch (row 20, column 47), here row 2, column 5 of 7 × 7"
    assert record.target == said
    assert torch.allclose(record.reference, record.features[2 * 7 + 5], atol=1e-6)
    with pytest.raises(UnknownName, match="no patch at row 56"):
        attnviz.observe(vit, tensor, target=attnviz.similarity_to((56, 0)))
    with pytest.raises(BadOption, match="two whole numbers; 5 came"):
        attnviz.explain(record, query=5)


def test_padding_takes_its_share_and_is_named():
    _, _, record = seen("Swin, padded")
    heat = attnviz.explain(record, layer=0, query=(15, 23))
    assert heat.drawn.sum() < 1
    assert not heat.share_of_all
    assert any("padding" in note for note in heat.notes)


def test_rollout_stays_within_a_stage():
    """By hand: the two dense maps of the last stage, multiplied."""
    _, _, record = seen("Swin")
    heat = attnviz.explain(record, "rollout", query=(5, 9))
    assert heat.fact("first layer") == "2 (of 4, counted from 0)"
    first, last = (layer.probs().mean(0).double() for layer in record.layers[2:])
    eye = torch.eye(96, dtype=torch.float64)
    expected = ((eye + last) / 2) @ ((eye + first) / 2)
    np.testing.assert_allclose(heat.values.ravel(), expected[2 * 12 + 4], rtol=1e-4, atol=1e-7)
    with pytest.raises(BadOption, match="start at layer 2"):
        attnviz.explain(record, "rollout", first_layer=1)
    _, _, record = seen("PVT v2")
    with pytest.raises(BadOption, match="different tokens"):
        attnviz.explain(record, "rollout", first_layer=0, last_layer=0)


def test_pooled_keys_are_drawn_where_they_lie():
    """24 × 32 cells pooled by 5: 4 × 6 keys, of 20 × 30 cells; the rest of the grid has none."""
    _, _, record = seen("Twins, pooled")
    heat = attnviz.explain(record, layer=0, query=(11, 3))
    assert heat.grid == (4, 6)
    assert heat.box == pytest.approx((0, 0, 120, 80))
    assert heat.query_cell == (2, 0)  # rows 10 to 14 of 24
    assert attnviz.explain(record, layer=0, query=(22, 3)).query_cell is None


@pytest.mark.parametrize("name", ["Swin", "GCViT", "PVT v2", "Twins"])
def test_a_target_reaches_every_layer(name):
    _, _, record = seen(name, target=1)
    for layer in record.layers:
        assert layer.gradient.block(0, 3).shape == (layer.heads, 3, layer.source.shape[2])
    heat = attnviz.explain(record, "attention_gradcam", layer=0)
    assert np.isfinite(heat.values).all()
    if name == "Swin":
        with pytest.raises(BadOption, match="LeGrad needs"):
            attnviz.explain(record, "legrad")


def test_a_target_reaches_maps_that_values_are_multiplied_with_from_the_left():
    module = timm.create_model("test_coatnet", num_classes=3).eval()
    vit = models.wrap(module)
    assert all(site.values_left for site in vit.sites)
    record = attnviz.observe(vit, vit.probe(), target=1)
    assert all(layer.gradient.block(0, 9).any() for layer in record.layers)


def test_windows_by_hand():
    assert windows((2, 4), (2, 2)).tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert windows((2, 4), (2, 2), strided=True).tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert windows((2, 3), (2, 2)).tolist() == [[0, 1, 3, 4], [2, -1, 5, -1]]
    assert windows((2, 4), (2, 2), shift=(0, 1)).tolist() == [[1, 2, 5, 6], [3, 0, 7, 4]]


def test_a_map_that_does_not_fit_its_windows_is_refused():
    layout = TokenLayout((), (2, 4))
    places = windows((2, 4), (2, 2))
    with pytest.raises(CaptureFailed, match="2 windows"):
        in_windows(torch.zeros(4, 3, 4), Geometry(layout, layout, "", places, places))


def test_the_branches_of_crossvit_have_a_grid_each():
    """240 pixels in patches of 12, and 224 of them in patches of 16, cut out or resampled."""
    for cropped, box in ((False, (0, 0, 240, 240)), (True, (8, 8, 232, 232))):
        torch.manual_seed(0)
        module = timm.create_model(
            "crossvit_tiny_240", depth=((1, 1, 1),), crop_scale=cropped, num_classes=3
        )
        vit = models.wrap(module.eval())
        record = attnviz.observe(vit, vit.probe())
        assert record.layout == TokenLayout(("cls",), (20, 20))
        grids = [record.geometry(layer).keys.grid for layer in record.layers]
        assert grids == [(20, 20), (14, 14), (14, 14), (20, 20)]
        assert attnviz.explain(record, layer=1).box == pytest.approx(box)
        fused = attnviz.explain(record, layer=2)
        assert fused.fact("attends to").endswith("branch 0 asks branch 1")
        assert fused.box == pytest.approx(box)
        assert attnviz.explain(record, "rollout").fact("first layer") == "3 (of 4, counted from 0)"


NAMES = [
    ("swin_tiny_patch4_window7_224", {"depths": (2, 2)}),
    ("swin_s3_tiny_224", {"depths": (1, 1, 1, 1)}),
    ("swinv2_tiny_window8_256", {"depths": (2, 2)}),
    ("swinv2_cr_tiny_ns_224", {"depths": (2, 2)}),
    ("swinv2_cr_tiny_384", {"depths": (2, 2)}),
    ("samvit_base_patch16_224", {"depth": 3}),
    ("gcvit_xxtiny", {}),
    ("gcvit_xtiny", {}),
    ("davit_tiny", {}),
    ("maxvit_rmlp_nano_rw_256", {}),
    ("maxvit_pico_rw_256", {}),
    ("coatnet_nano_rw_224", {}),
    ("coatnext_nano_rw_224", {}),
    ("nest_tiny", {}),
    ("pvt_v2_b0", {}),
    ("pvt_v2_b2_li", {"depths": (1, 1, 1, 1)}),
    ("visformer_tiny", {}),
    ("tiny_vit_5m_224", {}),
    ("tiny_vit_21m_384", {"depths": (1, 1, 1, 1)}),
    ("crossvit_tiny_240", {}),
    ("crossvit_9_dagger_240", {}),
    ("twins_svt_small", {"depths": (2, 2, 2, 1)}),
    ("twins_pcpvt_small", {"depths": (1, 1, 1, 1)}),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "options"), NAMES, ids=[name for name, _ in NAMES])
def test_timms_own_models_are_verified(name, options):
    vit = models.wrap(timm.create_model(name, num_classes=3, **options))
    checks = verify(vit)
    assert max(check.output_error - check.rounding for check in checks) < 1e-5
    assert max(check.output_error for check in checks) < 1e-4
    record = attnviz.observe(vit, vit.probe())
    assert attnviz.explain(record).values.any()
    assert attnviz.explain(record, layer=0).values.any()


def test_the_mosaic_of_stages_is_on_one_grid():
    """Each stage's cells are as large as they are; a stage has no more heads than it has."""
    _, _, record = seen("Swin")
    tiles = tiles_of(record, (5, 9))
    assert tiles.shape == (4, 4, 16, 24)
    assert np.isnan(tiles[:2, 2:]).all() and not np.isnan(tiles[:2, :2]).any()
    last = record.layers[3].rows(2 * 12 + 4)
    grid = last.unflatten(1, (8, 12)).numpy()
    assert np.array_equal(tiles[3], grid.repeat(2, 1).repeat(2, 2))


def windowed():
    return seen("Swin")[2]


def staged():
    vit = models.load("pit_ti_224", pretrained=False)
    return attnviz.observe(
        vit, torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    )


OTHERS = [(windowed, "windows of 4 × 4"), (staged, "stage")]


@pytest.mark.parametrize(("made", "words"), OTHERS)
def test_metrics_refuse_layers_that_would_not_compare_and_say_how_they_attend(made, words):
    with pytest.raises(BadOption, match=f"({words}).*heads' maps"):
        attnviz.head_metrics(made())


@pytest.mark.parametrize("made", [windowed, staged])
def test_flow_goes_through_the_last_stage_as_the_slow_twin_does(made):
    record = made()
    first = record.shared_from()
    assert 0 < first < len(record.layers) - 1
    geometry = record.geometry(record.layers[-1])
    heat = attnviz.explain(record, "flow", query=(1, 1))
    assert heat.grid == geometry.keys.grid != record.layout.grid
    assert heat.fact("pool") is None  # that grid is coarse enough
    maps = [layer.probs().double().numpy() for layer in record.layers[first:]]
    asked = geometry.queries.token(*geometry.asked((1, 1), record.layout))
    cells = [(0, 0), geometry.asked((1, 1), record.layout), (3, 4), (6, 6)]
    targets = [geometry.keys.token(*cell) for cell in cells]
    expected = oracles.flow(maps, tokens=[asked], targets=targets)
    found = np.array([heat.values[cell] for cell in cells])
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), atol=1e-5)


@pytest.mark.parametrize("made", [windowed, staged])
def test_methods_of_features_work_on_the_last_stage_or_say_why_not(made):
    record = made()
    for method in ("similarity", "pca"):
        if record.features is None:
            with pytest.raises(BadOption, match="no features of single tokens"):
                attnviz.explain(record, method)
        else:
            heat = attnviz.explain(record, method)
            assert heat.grid == record.last_layout.grid
            rows, cols = heat.grid
            assert heat.fact("grid") == f"{rows} rows × {cols} columns of patches"


@pytest.mark.parametrize("layer", [0, -1])
def test_faithfulness_refuses_a_map_that_orders_only_some_patches(layer):
    vit, _, record = seen("Swin")
    heat = attnviz.explain(record, layer=layer, query=(1, 1))
    with pytest.raises(BadOption, match=r"leaves .* patches blank|a map of that grid"):
        attnviz.faithfulness(vit, record, heat)


def test_a_head_exists_where_its_layer_has_it():
    record = seen("Swin")[2]
    assert attnviz.explain(record, layer=-1, head=3, query=(1, 1)).fact("head") == "3"
    with pytest.raises(attnviz.errors.UnknownName, match="no head 3"):
        attnviz.explain(record, layer=0, head=3, query=(1, 1))


def test_blank_patches_have_no_say_in_scales_ticks_and_sinks():
    record = seen("Swin")[2]
    heat = attnviz.explain(record, layer=0, query=(1, 1))
    assert heat.blank is not None and heat.drawn.size == heat.filled.sum() == 16
    assert heat.drawn.min() > 0 == heat.values.min()
    peak = np.where(heat.filled, np.float32(1), np.float32(0))
    peak[1, 1] = 8.0  # 8 times the others; over the 384 cells' mean of 0.06, 134 times
    assert swallowed_by(peak) == ((1, 1),)
    assert swallowed_by(peak, heat.filled) == ()
