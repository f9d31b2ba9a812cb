"""Attention in networks that are convolutional for the rest: what it is, and where it lies."""

from functools import cache

import numpy as np
import pytest
import timm
import torch
from timm.models._efficientnet_builder import decode_arch_def
from timm.models.byobnet import ByoBlockCfg, ByobNet, ByoModelCfg
from timm.models.efficientformer import EfficientFormer
from timm.models.efficientformer_v2 import EfficientFormerV2
from timm.models.efficientvit_msra import EfficientVitMsra
from timm.models.fastvit import FastVit
from timm.models.iformer import IFormer
from timm.models.levit import Levit, LevitDistilled
from timm.models.metaformer import (
    Attention,
    LayerNorm2dNoBias,
    LayerNormNoBias,
    MetaFormer,
    SepConv,
)
from timm.models.mobilenetv3 import MobileNetV3
from timm.models.mobilenetv5 import MobileNetV5, MobileNetV5Encoder
from timm.models.nextvit import NextViT
from timm.models.shvit import SHViT

import attnviz
import models
from attnviz.errors import BadOption, UnsupportedModel
from attnviz.tokens import TokenLayout
from attnviz.verify import verify
from attnviz.windows import in_windows, on_grid
from models.timm_names import resolve
from tests.random_models import seen_by

LEVIT = {"embed_dim": (16, 24, 32), "key_dim": 8, "depth": (1, 1, 1), "num_heads": (2, 3, 4)}
SMALL = {"num_classes": 5}


def mobile() -> list:
    """Blocks of MobileNetV4's kind: keys on a halved grid in one stage, on the whole in the next."""
    return decode_arch_def(
        [
            ["er_r1_k3_s2_e1_c8"],
            ["er_r1_k3_s2_e1_c8", "mqa_r1_k3_h2_s1_v2_d8_c8", "uir_r1_a3_k3_s1_e2_c8"],
            ["uir_r1_a3_k3_s2_e2_c8", "mqa_r2_k3_h3_s1_d8_c8", "uir_r1_a3_k3_s1_e2_c8"],
        ]
    )


def own_blocks(attention: str, *, size=(64, 96), **options) -> ByobNet:
    """A small network of timm's blocks: two stages attend, and their first block halves the grid."""
    stages = (
        ByoBlockCfg("bottle", d=1, c=16, s=1, gs=0, br=0.5),
        ByoBlockCfg("self_attn", d=2, c=16, s=2, gs=0, br=0.5),
        ByoBlockCfg("self_attn", d=1, c=32, s=2, gs=0, br=0.5),
    )
    config = ByoModelCfg(
        blocks=stages, stem_chs=8, stem_pool="maxpool", fixed_input_size=True,
        self_attn_layer=attention, self_attn_kwargs={"num_heads": 2, **options},
    )  # fmt: skip
    module = ByobNet(config, img_size=size, num_classes=5)
    module.pretrained_cfg = {"input_size": (3, *size)}
    return module


# name -> (how it is made, size of the picture, layers, the finest grid)
MODELS = {
    "LeViT": (lambda: LevitDistilled((80, 112), **LEVIT, **SMALL), (80, 112), 5, (5, 7)),
    "LeViT, convolutions": (lambda: Levit((80, 112), **LEVIT, use_conv=True, **SMALL), (80, 112), 5, (5, 7)),
    "MobileNetV4": (lambda: MobileNetV3(mobile(), **SMALL), (80, 112), 3, (10, 14)),
    "MobileNetV5": (lambda: MobileNetV5(mobile(), **SMALL), (80, 112), 3, (10, 14)),
    "MobileNetV5's encoder": (lambda: MobileNetV5Encoder(mobile()), (80, 112), 3, (10, 14)),
    "FastViT": (
        lambda: FastVit(layers=(1, 1, 1, 2), embed_dims=(16, 16, 16, 64),
                        token_mixers=("repmixer",) * 3 + ("attention",), **SMALL),
        (96, 160), 2, (3, 5),
    ),
    "MobileViT": (lambda: timm.create_model("mobilevit_xxs", **SMALL), (64, 96), 9, (8, 12)),
    "CAFormer": (
        lambda: MetaFormer(depths=(1, 1, 1, 2), dims=(8, 16, 32, 64),
                           token_mixers=[SepConv, SepConv, Attention, Attention],
                           norm_layers=[LayerNorm2dNoBias] * 2 + [LayerNormNoBias] * 2, **SMALL),
        (80, 112), 3, (5, 7),
    ),
    "EfficientFormer": (
        lambda: EfficientFormer(depths=(1, 1, 1, 2), embed_dims=(8, 8, 8, 16), num_vit=2, **SMALL),
        (224, 224), 2, (7, 7),
    ),
    "EfficientFormer V2": (
        lambda: EfficientFormerV2(depths=(1, 1, 2, 1), embed_dims=(8, 8, 16, 16), num_vit=1,
                                  img_size=(128, 192), **SMALL),
        (128, 192), 3, (8, 12),
    ),
    "Next-ViT": (
        lambda: NextViT(3, depths=(1, 1, 5, 1), stem_chs=(8, 8, 8), **SMALL), (96, 160), 3, (12, 20),
    ),
    "EfficientViT": (
        lambda: EfficientVitMsra(img_size=(112, 144), embed_dim=(16, 24, 24), key_dim=(4, 4, 4),
                                 depth=(1, 1, 1), num_heads=(2, 3, 3), window_size=(3, 3, 7), **SMALL),
        (112, 144), 3, (7, 9),
    ),
    "SHViT": (
        lambda: SHViT(embed_dim=(16, 24, 32), partial_dim=(8, 8, 12), depth=(1, 1, 1), **SMALL),
        (80, 112), 3, (5, 7),
    ),
    "iFormer": (
        lambda: IFormer(dims=(8, 12, 16, 24), depths=(1, 1, 4, 4), attn_groups=(0, 0, 1, 1),
                        distillation=True, **SMALL),
        (80, 112), 2, (5, 7),
    ),
    "bottleneck": (lambda: own_blocks("bottleneck"), (64, 96), 3, (16, 24)),
    "halo": (lambda: own_blocks("halo", block_size=4, halo_size=1), (64, 96), 3, (16, 24)),
    "halo, odd": (lambda: own_blocks("halo", size=(96, 144), block_size=3, halo_size=2), (96, 144), 3, (24, 36)),
}  # fmt: skip


def small(name: str):
    """One of `MODELS`, random, its maps far from uniform, and wrapped."""
    make, size, _, _ = MODELS[name]
    with torch.random.fork_rng():
        torch.manual_seed(3)
        module = make().eval()
        for part, parameter in module.named_parameters():
            if parameter.ndim > 1:
                wide = 1.0 if "biases" in part else 0.5 * parameter[0].numel() ** -0.5
                torch.nn.init.normal_(parameter, std=wide)
            else:
                torch.nn.init.normal_(parameter, mean=0.7, std=0.3)
    vit = models.wrap(module)
    return vit.at(size) if vit.any_size else vit


def seen(name: str, **options):
    """It, a picture, and the record of that."""
    return seen_plain(name) if not options else observed(name, **options)


def observed(name: str, **options):
    return seen_by(small(name), **options)


seen_plain = cache(observed)


@pytest.mark.parametrize("name", MODELS)
def test_each_is_what_it_says(name):
    _, size, layers, grid = MODELS[name]
    vit, x, record = seen(name)
    assert vit.image_size == size
    assert vit.layout(*size) == TokenLayout((), grid)
    assert len(vit.sites) == layers
    checks = verify(vit, x)
    assert max(check.output_error for check in checks) < 1e-5
    mixed = {site.name for site in vit.sites if site.mixed}
    assert bool(mixed) == (name == "EfficientFormer V2")
    assert max(c.row_sum_error for c in checks if c.name not in mixed) < 1e-5
    rebuilt = attnviz.observe(vit, x, keep="factors")
    for one, other in zip(record.layers, rebuilt.layers, strict=True):
        torch.testing.assert_close(one.probs(), other.probs(), atol=1e-4, rtol=1e-4)
        assert record.geometry(one).asks.all()
        if one.is_share:
            total = torch.ones(one.heads, one.tokens)
            torch.testing.assert_close(one.probs().sum(-1), total, atol=1e-5, rtol=0)


def halves(cell):
    return cell[0] // 2, cell[1] // 2


def same(cell):
    return cell


# model, layer, whose output is the grid as the layer's module is fed with it (None: that module's
# own input), a cell of that, and the cell of the keys that it is
PLACES = [
    ("LeViT", 0, None, (3, 5), same),
    ("LeViT", 1, None, (4, 6), same),  # 3 × 4 ask 5 × 7
    ("LeViT, convolutions", 1, None, (2, 3), same),
    ("LeViT, convolutions", 4, None, (1, 0), same),
    ("MobileNetV4", 0, None, (6, 12), halves),  # 10 × 14 ask 5 × 7
    ("MobileNetV4", 1, None, (4, 6), same),
    ("MobileNetV5", 0, None, (0, 8), halves),
    ("FastViT", 0, None, (2, 3), same),
    ("MobileViT", 0, "stages.2.1.conv_1x1", (5, 10), same),
    ("MobileViT", 2, "stages.3.1.conv_1x1", (2, 3), same),
    ("CAFormer", 0, None, (4, 2), same),
    ("CAFormer", 2, None, (2, 3), same),
    ("EfficientFormer", 1, None, (6, 1), same),
    ("EfficientFormer V2", 0, None, (6, 10), halves),  # 8 × 12 is halved and then attends
    ("EfficientFormer V2", 1, None, (5, 11), same),  # 4 × 6 ask 8 × 12
    ("Next-ViT", 2, None, (2, 4), same),
    ("EfficientViT", 0, "stages.0.blocks.0.ffn0", (6, 8), same),  # padded to 9 × 9
    ("EfficientViT", 1, "stages.1.blocks.0.ffn0", (1, 4), same),
    ("SHViT", 1, "stages.1.blocks.0.mixer.m.pre_norm", (2, 3), same),
    ("iFormer", 0, None, (4, 6), same),
    ("bottleneck", 0, None, (15, 5), same),
    ("bottleneck", 1, None, (7, 11), same),
    ("halo", 0, None, (7, 20), same),
    ("halo", 1, None, (4, 11), same),
    ("halo, odd", 0, None, (3, 35), same),
]


def written(stream: torch.Tensor, grid, cell) -> torch.Tensor:
    """The same, with other features in one cell of what is (1, channel, row, col) or (1, n, c).

    What is on another grid, as the picture on which a model is verified, stays as it is.
    """
    rows, cols = grid
    stream = stream.clone()
    if stream.ndim == 4 and stream.shape[2:] == grid:
        at = stream[0, :, cell[0], cell[1]]
    elif stream.ndim == 3 and stream.shape[1] == rows * cols:
        at = stream[0, cell[0] * cols + cell[1]]
    else:
        return stream
    at.copy_(torch.randn(at.shape, generator=torch.Generator().manual_seed(1)) * 3)
    return stream


def planted(vit, x, number: int, path: str | None, grid, cell):
    """The record of the same picture, with one cell of one layer's stream written anew."""

    def before(_, given):
        return (written(given[0], grid, cell), *given[1:])

    def after(_, __, stream):
        return written(stream, grid, cell)

    if path is None:
        hook = vit.sites[number].module.register_forward_pre_hook(before)
    else:
        hook = vit.module.get_submodule(path).register_forward_hook(after)
    record = attnviz.observe(vit, x)
    hook.remove()
    return record


def strange(plain, other, number: int, query: int) -> int:
    """The key whose logarithm in the first head's row shifts most against the others'."""
    rows = [each.layers[number].rows(query)[0] for each in (plain, other)]
    reached = plain.geometry(plain.layers[number]).reach(range(query, query + 1))
    shift = (rows[1].log() - rows[0].log())[reached]
    return int(reached.nonzero()[(shift - shift.median()).abs().argmax()])


@pytest.mark.parametrize(("name", "number", "path", "cell", "of_keys"), PLACES)
def test_one_cell_of_the_stream_is_one_column_of_the_map(name, number, path, cell, of_keys):
    """Only its value changes, and its weight for a query that can see it, but for no other."""
    vit, x, plain = seen(name)
    layer = plain.layers[number]
    geometry = plain.geometry(layer)
    queries, keys = geometry.queries, geometry.keys
    grid = keys.grid if of_keys is same else plain.layout.grid
    other = planted(vit, x, number, path, grid, cell)
    # Of heads in turn, those after the first are fed with what it makes of all cells.
    values = [record.layers[number].values[0] for record in (plain, other)]
    changed = (values[0] - values[1]).abs().amax(-1) > 1e-6
    key = keys.token(*of_keys(cell))
    assert changed.nonzero().flatten().tolist() == [key]
    can = [t for t in range(queries.tokens) if geometry.reach(range(t, t + 1))[key]]
    cannot = sorted({*range(queries.tokens)} - {*can})
    far = max(can, key=lambda token: abs(token - key * queries.tokens / keys.tokens))
    if not layer.mixed:  # a mixed map may be negative, and has no logarithm
        assert strange(plain, other, number, far) == key
    for token in cannot[:1] + cannot[-1:]:
        before, after = (record.layers[number].rows(token)[0] for record in (plain, other))
        torch.testing.assert_close(before, after, atol=1e-6, rtol=1e-4)
    assert bool(cannot) == (geometry.rows is not None)


@pytest.mark.parametrize("convolved", [False, True])
@pytest.mark.parametrize("grid", [(5, 7), (4, 6)])
def test_a_query_of_a_coarser_grid_is_asked_at_the_cell_that_it_was_made_of(grid, convolved):
    """LeViT takes every other row and column; its own module says which those are."""
    rows, cols = grid
    module = Levit((16 * rows, 16 * cols), **LEVIT, use_conv=convolved, **SMALL)
    vit = models.wrap(module.eval())
    record = attnviz.observe(vit, torch.randn(1, 3, *vit.image_size))
    geometry = record.geometry(record.layers[1])
    assert geometry.keys.grid == grid
    assert geometry.queries.grid == (-(-rows // 2), -(-cols // 2))
    numbers = torch.arange(float(rows * cols))
    numbers = numbers.reshape(1, 1, *grid) if convolved else numbers[None, :, None]
    made_of = vit.sites[1].module.q.down(numbers).flatten().long().tolist()
    for token, source in enumerate(made_of):
        assert geometry.keys.token(*geometry.key_of(geometry.queries.cell(token))) == source
    heat = attnviz.explain(record, layer=1, query=(2, 5))
    assert heat.grid == grid and heat.query_cell == (2, 4)
    high, wide = geometry.queries.grid
    said = f"{high} × {wide} tokens, for the next stage, ask all {rows} × {cols}"
    assert heat.fact("attends to") == said


def test_a_patch_is_one_of_a_coarser_grid_that_reaches_beyond_the_picture():
    """5 rows make 3, and these 2: row 4 lies in the last of them, by halves and not in proportion."""
    _, _, record = seen("MobileNetV4")
    heat = attnviz.explain(record, layer=0, query=(9, 12))
    assert (heat.grid, heat.query_cell) == ((5, 7), (4, 6))
    record = seen("LeViT")[2]
    assert attnviz.explain(record, layer=2, query=(4, 5)).query_cell == (2, 2)  # of 3 × 4
    assert attnviz.explain(record, layer=4, query=(3, 3)).query_cell == (0, 0)  # of 2 × 2


def test_mobilevits_windows_are_the_cells_at_one_place_of_each_patch():
    _, _, record = seen("MobileViT")
    heat = attnviz.explain(record, layer=0, query=(3, 4))
    expected = np.zeros((8, 12), dtype=bool)
    expected[1::2, 0::2] = True
    assert np.array_equal(heat.filled, expected)
    assert heat.drawn.sum() == pytest.approx(1, abs=1e-5)


def test_mobilevit_resamples_a_grid_that_its_patches_do_not_tile():
    """3 × 5 cells of 8 pixels become 4 × 6 tokens over the same 24 × 40 pixels."""
    vit = small("MobileViT").at((24, 40))
    record = attnviz.observe(vit, torch.randn(1, 3, 24, 40))
    heat = attnviz.explain(record, layer=0)
    assert heat.grid == (4, 6)
    assert heat.box == pytest.approx((0, 0, 40, 24))


def test_a_halo_reaches_beyond_its_block():
    """Blocks of 4 × 4 with 1 more around: the block of (5, 6) is rows 4 to 7, columns 4 to 7."""
    _, _, record = seen("halo")
    geometry = record.geometry(record.layers[1])
    token = geometry.queries.token(5, 6)
    reach = geometry.keys.to_grid(geometry.reach(range(token, token + 1)))
    expected = torch.zeros(8, 12, dtype=torch.bool)
    expected[3:9, 3:9] = True
    assert torch.equal(reach, expected)
    corner = attnviz.explain(record, layer=1, query=(0, 0))
    assert corner.filled.sum() == 25
    assert any("padding" in note for note in corner.notes)


def test_a_block_that_halves_the_grid_asks_at_every_other_cell():
    """Blocks of 4 × 4 keys hold 2 × 2 queries: query (3, 5) is key (6, 10), in the block at (4, 8)."""
    _, _, record = seen("halo")
    geometry = record.geometry(record.layers[0])
    assert (geometry.queries.grid, geometry.keys.grid) == ((8, 12), (16, 24))
    heat = attnviz.explain(record, layer=0, query=(6, 10))
    assert heat.query_cell == (6, 10)
    expected = np.zeros((16, 24), dtype=bool)
    expected[3:9, 7:13] = True
    assert np.array_equal(heat.filled, expected)


def test_where_blocks_cannot_be_halved_the_result_is():
    _, _, record = seen("halo, odd")
    geometry = record.geometry(record.layers[0])
    assert geometry.queries.grid == geometry.keys.grid == (24, 36)


def test_a_key_that_is_the_mean_of_a_run_is_drawn_on_all_of_it():
    """Next-ViT: 12 × 20 cells, each 16 of them, one after the other along the rows, one key."""
    vit, x, record = seen("Next-ViT")
    layer = record.layers[0]
    geometry = record.geometry(layer)
    assert geometry.queries.grid == geometry.keys.grid == (12, 20)
    row = layer.rows(100)
    runs = row.unflatten(1, (15, 16))
    torch.testing.assert_close(runs, runs[:, :, :1].expand_as(runs))
    torch.testing.assert_close(row.sum(-1), torch.ones(layer.heads))
    # It is what each cell's own value is multiplied with: the values of single cells, by hand.
    attn, seen_by = vit.sites[0].module, []
    hooks = [
        attn.register_forward_pre_hook(lambda _, given: seen_by.append(given[0])),
        attn.proj.register_forward_pre_hook(lambda _, given: seen_by.append(given[0])),
    ]
    with torch.no_grad():
        vit.module(x)
        stream, mixed = seen_by
        values = attn.v(attn.norm(stream.mT).mT)[0].unflatten(1, (layer.heads, -1))
    for hook in hooks:
        hook.remove()
    ours = torch.einsum("hqk,khc->qhc", layer.probs(), values).flatten(1)
    torch.testing.assert_close(ours, mixed[0], atol=1e-5, rtol=1e-4)
    changed = planted(vit, x, 0, None, (12, 20), (11, 3)).layers[0].values[0] != layer.values[0]
    assert changed.any(-1).nonzero().flatten().tolist() == list(range(208, 224))


def test_a_gradient_of_a_run_is_the_same_on_all_of_it():
    _, _, record = seen("Next-ViT", target=2)
    gradient = record.layers[0].gradient.block(0, 5)
    runs = gradient.unflatten(2, (15, 16))
    assert runs.any()
    torch.testing.assert_close(runs, runs[..., :1].expand_as(runs))
    geometry = record.geometry(record.layers[0])
    flat = torch.rand(2, 240, 15)
    whole = in_windows(flat, geometry, divided=False).block(0, 240)
    torch.testing.assert_close(whole[..., 3 * 16], flat[..., 3])
    assert on_grid(torch.rand(2, 15, 4), geometry).shape == (2, 240, 4)


def test_heads_in_turn_are_those_of_a_slow_twin():
    """EfficientViT: each head is fed with its channels and the outcome of the head before."""
    vit = small("EfficientViT").at((112, 112))
    x = torch.randn(1, 3, 112, 112, generator=torch.Generator().manual_seed(0))
    record = attnviz.observe(vit, x)
    attn, fed = vit.sites[2].module, []
    hook = attn.register_forward_pre_hook(lambda _, given: fed.append(given[0]))
    with torch.no_grad():
        vit.module(x)
    hook.remove()
    stream, outcome, maps = fed[0].double(), 0, []
    for head, channels in enumerate(stream.chunk(attn.num_heads, dim=1)):
        attn.double()
        with torch.no_grad():
            q, k, v = (
                part.flatten(2)[0] if number else attn.dws[head](part).flatten(2)[0]
                for number, part in enumerate(
                    attn.qkvs[head](channels + outcome).split([4, 4, attn.val_dim], dim=1)
                )
            )
            bias = attn.attention_biases[head, attn.attention_bias_idxs]
        maps.append((q.T @ k / 4**0.5 + bias).softmax(-1))
        outcome = (v @ maps[-1].T).unflatten(1, stream.shape[2:])[None]
    torch.testing.assert_close(
        record.layers[2].probs().double(), torch.stack(maps), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_target_reaches_every_layer_by_both_routes(name):
    if name == "MobileNetV5's encoder":
        return  # it has no classes, and no one feature
    vit, x, kept = seen(name, target=2, keep="maps")
    rebuilt = attnviz.observe(vit, x, target=2, keep="factors")
    for one, other in zip(kept.layers, rebuilt.layers, strict=True):
        whole = [
            torch.cat([each.gradient.block(*span) for span in each.spans()], dim=1)
            for each in (one, other)
        ]
        assert whole[0].shape == (one.heads, one.tokens, one.source.shape[2])
        assert whole[0].any()
        torch.testing.assert_close(*whole, rtol=1e-2, atol=1e-3 * float(whole[0].abs().max()))


@pytest.mark.parametrize("name", ["LeViT, convolutions", "iFormer", "EfficientViT"])
def test_the_gradient_of_a_map_is_what_a_change_of_it_does(name):
    """Also where values are multiplied from the left, or heads come in turn: by differences."""
    vit, x, record = seen(name, target=2, keep="maps")
    number, (head, query, key) = len(record.layers) - 1, (0, 1, 2)
    geometry = record.geometry(record.layers[number])
    asked, answered = (
        place if cells is None else int(cells[0, place])
        for place, cells in ((query, geometry.rows), (key, geometry.cols))
    )
    gradient = record.layers[number].gradient.block(asked, asked + 1)[head, 0, answered]
    site = vit.sites[number]
    vit.module.double()
    softmax, step = torch.Tensor.softmax, 1e-4
    scores = []
    for change in (-step, step):
        calls = []

        def shifted(tensor, *args, change=change, calls=calls, **kwargs):
            calls.append(result := softmax(tensor, *args, **kwargs))
            if len(calls) == 1:
                result = result.clone()
                result.view(-1, *result.shape[-2:])[0, query, key] += change
            return result

        def on(*_, shifted=shifted):
            torch.Tensor.softmax = shifted

        def off(*_):
            torch.Tensor.softmax = softmax

        hooks = [site.module.register_forward_pre_hook(on), site.module.register_forward_hook(off)]
        if site.fused_switch:
            setattr(site.module, site.fused_switch, False)
        with torch.no_grad():
            scores.append(float(vit.module(x.double())[0, 2]))
        for hook in hooks:
            hook.remove()
    expected = (scores[1] - scores[0]) / (2 * step)
    assert float(gradient) == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_rollout_runs_through_layers_with_nothing_but_tokens_between_them():
    record = seen("EfficientFormer")[2]
    assert attnviz.explain(record, "rollout").fact("first layer") == "0 (of 2, counted from 0)"
    for name in ("iFormer", "FastViT"):  # the same grid, but convolutions lie between
        record = seen(name)[2]
        assert attnviz.explain(record, "rollout").fact("first layer").startswith("1 (of 2")
        with pytest.raises(BadOption, match="convolutions between"):
            attnviz.explain(record, "rollout", first_layer=0)


def test_the_norm_in_caformers_head_is_that_of_its_tokens():
    vit, x, record = seen("CAFormer", target=1)
    with torch.no_grad():
        output = vit.module(x)
    stream = []
    hook = vit.module.stages[3].register_forward_hook(lambda _, __, out: stream.append(out))
    with torch.no_grad():
        vit.module(x)
    hook.remove()
    pooled = stream[0].mean((2, 3))
    with torch.no_grad():
        torch.testing.assert_close(vit.readout.classify(vit.readout.norm(pooled)), output)
    assert record.features.shape == (12, 64)


# The smallest of each family by timm's names and one of another shape, some with fewer layers.
NAMES = [
    ("levit_128s", {}),
    ("levit_conv_256d", {"depth": (1, 1, 1)}),
    ("levit_384_s8", {"depth": (1, 1, 1), "img_size": (64, 96)}),
    ("mobilenetv4_hybrid_medium_075", {}),
    ("mobilenetv4_hybrid_large_075", {}),
    ("fastvit_sa12", {"layers": (1, 1, 1, 2)}),
    ("fastvit_mci3", {"layers": (1, 1, 1, 1, 1)}),
    ("mobilevit_xxs", {}),
    ("mobilevit_xs", {}),
    ("caformer_s18", {}),
    ("caformer_s36", {}),
    ("efficientformer_l1", {}),
    ("efficientformer_l3", {}),
    ("efficientformerv2_s0", {}),
    ("efficientformerv2_s2", {"img_size": (128, 160)}),
    ("nextvit_small", {"depths": (1, 1, 5, 1)}),
    ("nextvit_base", {"depths": (1, 2, 5, 2)}),
    ("efficientvit_m0", {}),
    ("efficientvit_m5", {}),
    ("shvit_s1", {}),
    ("shvit_s4", {}),
    ("iformer_t", {}),
    ("iformer_m_distilled", {}),
    ("botnet26t_256", {}),
    ("sebotnet33ts_256", {"img_size": (128, 192)}),
    ("halonet26t", {}),
    ("haloregnetz_b", {}),
    ("lamhalobotnet50ts_256", {}),
    ("vitamin_small_224", {"depth": 2}),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "options"), NAMES, ids=[name for name, _ in NAMES])
def test_timms_own_models_are_verified(name, options):
    vit = models.wrap(timm.create_model(name, num_classes=3, **options))
    checks = verify(vit)
    assert {check.name for check in checks} == {site.name for site in vit.sites}
    assert max(check.output_error - check.rounding for check in checks) < 1e-5
    assert max(check.output_error for check in checks) < 1e-4
    record = attnviz.observe(vit, vit.probe())
    assert attnviz.explain(record).values.any()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("mobilenetv3_small_050", "MobileNetV4's hybrids"),
        ("mobilenetv4_conv_small_035", "MobileNetV4's hybrids"),
        ("fastvit_t8", "the larger ones attend"),
        ("fastvit_s12", "the larger ones attend"),
        ("mobilevitv2_050", "one weight a token"),
        ("poolformer_s12", "pooling or convolution"),
        ("convformer_s18", "pooling or convolution"),
        ("lambda_resnet26t", "one matrix"),
        ("swiftformer_xs", "all queries to one"),
        ("gcresnet33ts", "no token asks another"),
        ("sequencer2d_s", "LSTMs"),
        ("focalnet_tiny_srf", "not by attention"),
        ("starnet_s1", "convolutional"),
    ],
)
def test_what_has_no_map_is_refused_for_good(name, why):
    """By name, and by what the module is, which has no layer that is known to attend."""
    with pytest.raises(UnsupportedModel, match=why) as error:
        resolve(name)
    assert "For now" not in str(error.value)
    with pytest.raises(UnsupportedModel, match=f"{why}|tokens attend to tokens") as error:
        models.wrap(timm.create_model(name, device="meta"))
    assert "For now" not in str(error.value)
