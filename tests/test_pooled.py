"""Layers that pool queries and keys, or number their tokens in an order of their own."""

import numpy as np
import pytest
import timm
import torch
from timm.models.hiera import Hiera
from timm.models.hieradet_sam2 import HieraDet
from timm.models.mvitv2 import MultiScaleVit, MultiScaleVitCfg

import attnviz
import models
from attnviz.errors import BadOption, CaptureFailed
from attnviz.tokens import TokenLayout
from attnviz.verify import verify
from models.timm_hiera import unrolled
from tests.planting import what_changed
from tests.random_models import random_module, seen_by

MVIT = {
    "depths": (1, 2), "embed_dim": (8, 16), "num_heads": (1, 2), "stride_q": ((1, 1), (2, 2)),
    "stride_kv_adaptive": (4, 4), "stride_kv": None,
}  # fmt: skip
HIERA = {"img_size": (64, 96), "embed_dim": 8, "num_classes": 5}
DET = {"embed_dim": 8, "num_classes": 5, "stages": (1, 2, 2, 1)}

# name -> (how it is made, layers)
MODELS = {
    "MViT": (lambda: MultiScaleVit(MultiScaleVitCfg(**MVIT), img_size=64, num_classes=5), 3),
    "MViT, class token": (
        lambda: MultiScaleVit(
            MultiScaleVitCfg(**MVIT, use_cls_token=True, residual_pooling=False, expand_attn=False,
                             rel_pos_type="none"),
            img_size=(64, 96), num_classes=5,
        ),
        3,
    ),
    "Hiera": (lambda: Hiera(**HIERA, stages=(1, 2, 2, 1)), 6),
    "Hiera, two poolings": (
        lambda: Hiera(**HIERA, stages=(1, 2, 1, 1), q_pool=2, num_heads=2, abs_win_pos_embed=True), 5,
    ),
    "SAM 2": (lambda: HieraDet(**DET, window_spec=(8, 4, 4, 2), global_att_blocks=(4,)), 6),
    "SAM 2, padded": (lambda: HieraDet(**DET, window_spec=(4, 4, 6, 2), global_att_blocks=()), 6),
}  # fmt: skip


def small(name: str):
    """One of `MODELS`, random, and wrapped; for pictures of 64 × 96 pixels where it takes any."""
    vit = models.wrap(random_module(MODELS[name][0], 0.2))
    return vit.at((64, 96)) if vit.any_size else vit


def seen(name: str, **options):
    return seen_by(small(name), **options)


@pytest.mark.parametrize("name", MODELS)
def test_each_is_verified_by_both_routes(name):
    vit, x, record = seen(name)
    checks = verify(vit, x)
    assert len(vit.sites) == len(record.layers) == MODELS[name][1]
    assert max(check.output_error for check in checks) < 1e-5
    assert max(check.row_sum_error for check in checks) < 1e-5
    factors = attnviz.observe(vit, x, keep="factors")
    for one, other in zip(record.layers, factors.layers, strict=True):
        torch.testing.assert_close(one.probs(), other.probs(), atol=1e-5, rtol=1e-4)
        if not record.geometry(one).padded:
            sums = one.probs().sum(-1)
            torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)


def test_queries_that_are_added_are_part_of_the_proof(monkeypatch):
    """Left out, map × values is not what reached the projection, and the layer is refused."""
    vit = small("MViT")
    honest = type(vit.sites[0].module).forward
    assert max(check.output_error for check in verify(vit)) < 1e-5

    def silent(self, x, feat_size):
        self.residual_pooling = False
        try:
            return honest(self, x, feat_size)
        finally:
            self.residual_pooling = True

    monkeypatch.setattr(type(vit.sites[0].module), "forward", silent)
    with pytest.raises(CaptureFailed, match="misses the layer's own output"):
        verify(vit)


def around(cell, side, step):
    """By hand: which cells 3 × 3 poolings with a step and one cell of padding make of a cell."""
    return {
        (row, col)
        for row in range(side[0])
        for col in range(side[1])
        if abs(row * step - cell[0]) <= 1 and abs(col * step - cell[1]) <= 1
    }


def quarter(cell, side, step):
    return {(cell[0] // step, cell[1] // step)}


# model, layer, the grid that goes into it, a cell of that, how cells are pooled, and how far:
# queries, keys
PLACES = [
    ("MViT", 0, (16, 16), (8, 7), around, 1, 4),
    ("MViT", 0, (16, 16), (4, 12), around, 1, 4),
    ("MViT", 1, (16, 16), (3, 6), around, 2, 2),
    ("MViT", 1, (16, 16), (5, 15), around, 2, 2),
    ("MViT", 2, (8, 8), (4, 7), around, 1, 2),
    ("MViT, class token", 0, (16, 24), (4, 20), around, 1, 4),
    ("MViT, class token", 1, (16, 24), (5, 8), around, 2, 2),
    ("MViT, class token", 2, (8, 12), (2, 9), around, 1, 2),
    ("Hiera", 0, (16, 24), (5, 18), quarter, 1, 1),
    ("Hiera", 1, (16, 24), (13, 9), quarter, 2, 1),
    ("Hiera", 2, (8, 12), (2, 11), quarter, 1, 1),
    ("Hiera", 3, (8, 12), (7, 4), quarter, 2, 1),
    ("Hiera", 4, (4, 6), (1, 4), quarter, 1, 1),
    ("Hiera", 5, (4, 6), (3, 0), quarter, 2, 1),
    ("Hiera, two poolings", 1, (16, 24), (1, 22), quarter, 2, 1),
    ("Hiera, two poolings", 3, (8, 12), (6, 1), quarter, 2, 1),
    ("Hiera, two poolings", 4, (4, 6), (2, 5), quarter, 1, 1),
    ("SAM 2", 0, (16, 24), (9, 20), quarter, 1, 1),
    ("SAM 2", 1, (16, 24), (3, 13), quarter, 2, 1),
    ("SAM 2", 2, (8, 12), (4, 9), quarter, 1, 1),
    ("SAM 2", 3, (8, 12), (6, 5), quarter, 2, 1),
    ("SAM 2", 4, (4, 6), (1, 4), quarter, 1, 1),
    ("SAM 2", 5, (4, 6), (3, 2), quarter, 2, 1),
    ("SAM 2, padded", 3, (8, 12), (7, 10), quarter, 2, 1),
    ("SAM 2, padded", 4, (4, 6), (3, 4), quarter, 1, 1),
]  # fmt: skip


def index_of(vit, number, grid, cell, stream):
    """Where a cell lies in the stream that goes into a layer, by the model's own way back."""
    flat = cell[0] * grid[1] + cell[1]
    if not isinstance(vit.module, Hiera):
        return flat + len(vit.layout(*vit.image_size).prefix)
    numbers = torch.arange(stream.shape[1], dtype=torch.float32)[None, :, None]
    if number == 0:
        return int((vit.module.unroll(numbers) == flat).nonzero()[0, 1])
    return int(vit.module.reroll(numbers, number - 1)[0, cell[0], cell[1], 0])


def block_of(vit, number):
    return vit.module.get_submodule(vit.sites[number].name.rpartition(".")[0])


@pytest.mark.parametrize(
    ("name", "number", "grid", "cell", "pooling", "asking", "answering"), PLACES
)
def test_one_cell_of_the_stream_is_its_own_column_and_its_own_row(
    name, number, grid, cell, pooling, asking, answering
):
    """Only the columns that it is pooled into get another value, and only its rows ask anew."""
    vit, x, plain = seen(name)

    def plant(_, given):
        stream = given[0].clone()
        flat = stream if stream.ndim == 3 else stream.flatten(1, 2)
        place = index_of(vit, number, grid, cell, flat)
        made = torch.randn(flat.shape[-1], generator=torch.Generator().manual_seed(1))
        flat[0, place] = 4 * made
        return (flat.unflatten(1, stream.shape[1:-1]), *given[1:])

    hook = block_of(vit, number).register_forward_pre_hook(plant)
    planted = attnviz.observe(vit, x)
    hook.remove()
    geometry = plain.geometry(plain.layers[number])
    first, second = (record.layers[number] for record in (plain, planted))
    expected = {geometry.keys.token(*at) for at in pooling(cell, geometry.keys.grid, answering)}
    asked = {geometry.queries.token(*at) for at in pooling(cell, geometry.queries.grid, asking)}
    assert what_changed(first, second) == (expected, asked)
    assert expected and asked
    if geometry.in_windows:
        assert geometry.reach(range(min(asked), min(asked) + 1))[list(expected)].all()
        assert all(first.source.block(t, t + 1).any() for t in range(geometry.queries.tokens))


def test_hieras_order_by_hand():
    """4 × 4 cells, pooled twice: the corners of the 2 × 2 blocks come first."""
    once = [0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15]
    assert unrolled((4, 4), [(2, 2)]).tolist() == once
    assert unrolled((4, 4), [(2, 2), (2, 2)]).tolist() == once
    assert unrolled((2, 4), [(2, 2)]).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert unrolled((2, 3), []).tolist() == [0, 1, 2, 3, 4, 5]


def test_what_pooled_layers_say_of_themselves():
    _, _, record = seen("Hiera")
    said = [record.geometry(layer).kind for layer in record.layers]
    assert said == [
        "windows of 8 × 8",
        "windows of 8 × 8, queries pooled to 8 × 12",
        "windows of 4 × 4",
        "windows of 4 × 4, queries pooled to 4 × 6",
        "all tokens of stage 2",
        "all tokens of stage 3, queries pooled to 2 × 3",
    ]
    heat = attnviz.explain(record, layer=1, query=(5, 9))  # asked by row 2, column 4 of 8 × 12
    expected = np.zeros((16, 24), dtype=bool)
    expected[:8, 8:16] = True
    assert np.array_equal(heat.filled, expected)
    assert heat.values.shape == (16, 24)
    assert heat.fact("query") == "patch (row 5, column 9)"
    assert heat.fact("here") == "row 2, column 4 of 8 × 12"


def test_features_come_row_by_row_or_not_at_all():
    """Where not all poolings are made, Hiera's last tokens are not in the order of the grid."""
    assert seen("Hiera")[2].features is not None
    record = seen("Hiera, two poolings")[2]
    assert record.features is None
    with pytest.raises(BadOption, match="no features of single tokens"):
        attnviz.explain(record, "similarity")


def test_the_class_token_of_mvit_asks_and_answers_in_every_layer():
    _, _, record = seen("MViT, class token")
    assert record.layout == TokenLayout(("cls",), (16, 24))
    grids = [(record.geometry(x).queries.grid, record.geometry(x).keys.grid) for x in record.layers]
    assert grids == [((16, 24), (4, 6)), ((8, 12), (8, 12)), ((8, 12), (4, 6))]
    heat = attnviz.explain(record, layer=0)
    assert heat.fact("query") == "class token"
    assert heat.fact("attends to") == "all tokens of stage 0, to keys pooled to 4 × 6"
    assert heat.box == (0, 0, 96, 64)


def test_a_size_must_suit_the_first_windows_and_all_poolings():
    vit = small("SAM 2")
    assert vit.at((32, 64)).image_size == (32, 64)
    with pytest.raises(BadOption, match="32 × 32"):
        vit.at((36, 64))


@pytest.mark.parametrize("name", MODELS)
def test_a_target_reaches_every_layer(name):
    _, _, record = seen(name, target=2)
    for number, layer in enumerate(record.layers):
        gradient = torch.cat([layer.gradient.block(*span) for span in layer.spans()], dim=1)
        assert gradient.shape == layer.source.shape
        assert gradient.any() and torch.isfinite(gradient).all()
        assert np.isfinite(attnviz.explain(record, "attention_gradcam", layer=number).values).all()


NAMES = [
    ("mvitv2_tiny", {}),
    ("mvitv2_small_cls", {"img_size": 96}),
    ("hiera_tiny_224", {"stages": (1, 2, 1, 1)}),
    ("hiera_small_abswin_256", {"stages": (1, 1, 1, 1)}),
    ("sam2_hiera_tiny", {"stages": (1, 2, 2, 1), "global_att_blocks": (4,)}),
    ("hieradet_small", {"stages": (1, 1, 2, 1)}),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "options"), NAMES, ids=[name for name, _ in NAMES])
def test_timms_own_models_are_verified(name, options):
    vit = models.wrap(timm.create_model(name, **options))
    checks = verify(vit)
    assert {check.name for check in checks} == {site.name for site in vit.sites}
    assert max(check.output_error for check in checks) < 1e-4
    record = attnviz.observe(vit, vit.probe())
    assert attnviz.explain(record).values.any()
    assert attnviz.explain(record, layer=0).values.any()
