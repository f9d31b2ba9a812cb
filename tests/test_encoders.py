"""Encoders of language models, and convolutional networks that attend on a coarse grid."""

from functools import partial

import numpy as np
import pytest
import timm
import torch
from timm.models import cpubone, lowformer
from timm.models.cpubone import CPUBone
from timm.models.csatv2 import CSATv2
from timm.models.deepseek_vit import DeepseekVitClassifier, DeepseekVitEncoder
from timm.models.gemma4_vit import Gemma4VitClassifier, Gemma4VitEncoder
from timm.models.lowformer import LowFormer
from timm.models.qwen3_vit import Qwen3VitClassifier, Qwen3VitEncoder

import attnviz
import models
from attnviz.errors import BadOption, UnsupportedModel
from attnviz.tokens import TokenLayout
from attnviz.verify import verify
from tests import test_pooled
from tests.planting import what_changed
from tests.random_models import picture, random_module

PLAIN = {"patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2}
GEMMA = {
    **PLAIN,
    "num_heads": 4,
    "head_dim": 8,
    "intermediate_size": 32,
    "position_embedding_size": 16,
}
QWEN = {**PLAIN, "mlp_ratio": 2.0, "pos_embed_grid_size": 3}
WIDTHS = {"width_list": [8, 8, 8, 120, 120], "depth_list": [0, 1, 1, 1, 1], "head_widths": (16, 24)}
CSAT = {"dims": (8, 8, 12, 12), "depths": (1, 1, 2, 2), "transformer_depths": (0, 0, 1, 1)}

# name -> (how it is made, size that it takes, its grid, layers, whether its tokens are its features)
MODELS = {
    "DeepSeek": (lambda: DeepseekVitClassifier(**PLAIN, num_classes=5), (16, 24), (2, 3), 2, True),
    "DeepSeek, aligned": (
        lambda: DeepseekVitClassifier(**PLAIN, num_classes=5, encoder_pool="align", out_features=16),
        (16, 24), (2, 3), 2, False,
    ),
    "DeepSeek's encoder": (
        lambda: DeepseekVitEncoder(**PLAIN, out_features=16), (16, 24), (2, 3), 2, False,
    ),
    "Qwen3": (lambda: Qwen3VitClassifier(**QWEN, num_classes=5), (16, 24), (2, 3), 2, True),
    "Qwen3, merged": (
        lambda: Qwen3VitClassifier(**QWEN, num_classes=5, encoder_pool="merge", out_features=16),
        (32, 48), (4, 6), 2, False,
    ),
    "Qwen3's encoder": (lambda: Qwen3VitEncoder(**QWEN), (32, 48), (4, 6), 2, False),
    "Gemma 4": (
        lambda: Gemma4VitClassifier(**GEMMA, num_classes=5, use_clipped_linears=True),
        (16, 24), (2, 3), 2, True,
    ),
    "Gemma 4, grouped": (
        lambda: Gemma4VitClassifier(**GEMMA, num_kv_heads=2, num_classes=5), (16, 24), (2, 3), 2, True,
    ),
    "Gemma 4's encoder": (lambda: Gemma4VitEncoder(**GEMMA), (24, 48), (3, 6), 2, False),
    "CPUBone": (
        lambda: CPUBone(**WIDTHS, num_classes=5, small_kernels=True, attn_upsample="nearest"),
        (64, 96), (2, 3), 2, False,
    ),
    "CPUBone, fused": (
        lambda: CPUBone(**WIDTHS, num_classes=5, fused_conv=True), (64, 96), (2, 3), 2, False,
    ),
    "LowFormer": (lambda: LowFormer(**WIDTHS, num_classes=5), (64, 96), (2, 3), 2, False),
    "LowFormer, unfused": (
        lambda: LowFormer(**WIDTHS, num_classes=5, fused_conv=False), (64, 96), (2, 3), 2, False,
    ),
    "CSATv2": (lambda: CSATv2(**CSAT, num_classes=5), (128, 192), (4, 6), 2, False),
}  # fmt: skip


def small(name: str):
    """One of `MODELS`, random, wrapped, and for pictures of the size in the table."""
    make, size, *_ = MODELS[name]
    return models.wrap(random_module(make, 0.2)).at(size)


@pytest.mark.parametrize("name", MODELS)
def test_each_is_what_it_says_by_both_routes(name):
    _, size, grid, layers, whole = MODELS[name]
    vit = small(name)
    x = picture(vit)
    assert vit.layout(*size) == TokenLayout((), grid)
    checks = verify(vit, x)
    assert max(check.output_error - check.rounding for check in checks) < 1e-5
    assert max(check.output_error for check in checks) < 1e-4
    assert max(check.row_sum_error for check in checks) < 1e-5
    dense, rebuilt = (attnviz.observe(vit, x, keep=keep) for keep in ("maps", "factors"))
    assert len(dense.layers) == layers
    for one, other in zip(dense.layers, rebuilt.layers, strict=True):
        torch.testing.assert_close(one.probs(), other.probs(), atol=1e-5, rtol=1e-3)
    assert (dense.features is not None) == whole


ENCODERS = list(MODELS)[:9]


@pytest.mark.parametrize("name", ENCODERS)
def test_a_changed_patch_is_its_own_column_and_its_own_row(name):
    vit = small(name)
    x = picture(vit)
    changed = x.clone()
    changed[..., 8:16, 16:24] = changed[..., 8:16, 16:24] * -3 + 0.5  # row 1, column 2
    first, second = (attnviz.observe(vit, each).layers[0] for each in (x, changed))
    token = vit.layout(*vit.image_size).token(1, 2)
    assert what_changed(first, second) == ({token}, {token})


def only_the_middle(attn):
    """Let the layer's own shrinking read one cell of every 2 × 2, or of all around it."""
    parts = attn.conv_proj.modules()
    kernel = next(part for part in parts if isinstance(part, torch.nn.Conv2d)).weight
    kernel.data.zero_()
    side = kernel.shape[-1]
    middle = side // 2 if side % 2 else side - 1
    kernel.data[..., middle, middle] = 1.0


# model, layer, the module that is fed with the finer or equal grid, that grid, a cell of it that
# the layer reads, and its token
PLACES = [
    ("CPUBone", 0, "stages.2.1.total.0.0.main.1", (4, 6), (1, 5), (0, 2)),
    ("CPUBone", 1, "stages.3.1.total.0.0.main.1", (2, 3), (1, 0), (1, 0)),
    ("CPUBone, fused", 0, "stages.2.1.total.0.0.main.1", (4, 6), (2, 4), (1, 2)),
    ("LowFormer", 0, "stages.2.1.attn.main.1", (4, 6), (2, 2), (1, 1)),
    ("LowFormer", 1, "stages.3.1.attn.main.1", (2, 3), (0, 2), (0, 2)),
    ("LowFormer, unfused", 0, "stages.2.1.attn.main.1", (4, 6), (0, 4), (0, 2)),
    ("CSATv2", 0, "stages.2.2", (4, 6), (2, 3), None),
    ("CSATv2", 1, "stages.3.2", (2, 3), (1, 1), None),
]


@pytest.mark.parametrize(("name", "number", "path", "grid", "cell", "token"), PLACES)
def test_one_cell_of_a_feature_map_is_its_own_column_and_its_own_row(
    name, number, path, grid, cell, token
):
    vit = small(name)
    part = vit.module.get_submodule(path)
    assert number == [site.name.startswith(path) for site in vit.sites].index(True)
    if type(part) in (cpubone.ConvAttention, lowformer.ConvAttention):
        only_the_middle(part)
    else:  # CSATv2 mixes each cell with its neighbours before it attends: not now
        part.pos_embed.proj.weight.data.zero_()

    def plant(strength, _, given):
        """Noise in place of the stream, so that keys differ, and one cell of it."""
        if given[0].shape[2:] != grid:  # the proof on a small input
            return given
        seeded = torch.Generator().manual_seed(1)
        stream = torch.randn(given[0].shape, generator=seeded)
        stream[0, :, cell[0], cell[1]] += strength * torch.randn(stream.shape[1], generator=seeded)
        planted.append(strength)
        return (stream,)

    planted: list[float] = []
    records = []
    for strength in (0.0, 4.0):
        hook = part.register_forward_pre_hook(partial(plant, strength))
        records.append(attnviz.observe(vit, picture(vit)))
        hook.remove()
    assert planted == [0.0, 4.0]
    plain, changed = records
    geometry = plain.geometry(plain.layers[number])
    expected = geometry.keys.token(*(cell if token is None else token))
    first, second = (record.layers[number] for record in (plain, changed))
    assert what_changed(first, second) == ({expected}, {expected})


def test_coarse_grids_lie_where_they_are():
    """Of 3 × 5 cells the next stage halves, one row and one column are left over."""
    vit = small("CSATv2").at((96, 160))
    record = attnviz.observe(vit, picture(vit))
    assert attnviz.explain(record, layer=0).box == (0, 0, 160, 96)
    heat = attnviz.explain(record, layer=1)
    assert (heat.grid, heat.box) == ((1, 2), (0, 0, 128, 64))


def test_layers_that_shrink_the_grid_anew_do_not_add_up():
    vit = models.wrap(timm.create_model("cpubone_b1_dwnorm", num_classes=3).eval()).at(64)
    record = attnviz.observe(vit, vit.probe())
    assert record.geometry(record.layers[0]).kind == "all tokens of stage 2, shrunk to 3 × 5"
    assert record.shared_from() == len(record.layers) - 1  # nor do the others, past convolutions
    assert record.shared_from(1) == 1


def test_sizes_are_multiples_of_what_is_merged():
    for name, side in (("Qwen3, merged", 16), ("Gemma 4's encoder", 24), ("DeepSeek, aligned", 8)):
        vit = small(name)
        with pytest.raises(BadOption, match=f"{side} × {side}"):
            vit.at((side + 4, side))
        assert vit.at((2 * side, side)).image_size == (2 * side, side)


def test_a_head_that_reads_projected_tokens_has_no_gradients_of_single_layers():
    vit = small("Qwen3, merged")
    record = attnviz.observe(vit, picture(vit), target=2)
    assert record.feature.shape == (16,)
    assert np.isfinite(attnviz.explain(record, "attention_gradcam").values).all()
    with pytest.raises(BadOption, match="LeGrad needs"):
        attnviz.explain(record, "legrad")


@pytest.mark.parametrize("name", MODELS)
def test_methods_of_a_target_reach_every_model_with_classes(name):
    vit = small(name)
    if not vit.classes:
        with pytest.raises(BadOption, match="has no"):
            attnviz.observe(vit, picture(vit), target=2)
        return
    record = attnviz.observe(vit, picture(vit), target=2)
    for layer in record.layers:
        assert layer.gradient.block(0, 1).any()
    assert np.isfinite(attnviz.explain(record, "relevance").values).all()


@pytest.mark.parametrize(
    "make", [lambda: test_pooled.small("Hiera"), lambda: small("Qwen3"), lambda: small("Gemma 4")]
)
def test_what_is_read_of_the_tokens_is_what_the_model_reads(make):
    """Where the norm comes after the pooling, LeGrad's score of the last layer is the output."""
    vit = make()
    tokens = []
    hook = vit.sites[-1].block.register_forward_hook(lambda _, __, out: tokens.append(out))
    with torch.no_grad():
        output = vit.module(picture(vit))
        read = vit.readout.classify(vit.readout.norm(tokens[0].mean(1)))
    hook.remove()
    torch.testing.assert_close(read, output)


NAMES = [
    ("csatv2", {}),
    ("csatv2_21m", {"depths": (1, 1, 5, 4)}),
    ("cpubone_nano", {}),
    ("cpubone_b0_bfrobust", {}),
    ("lowformer_b0", {}),
    ("lowformer_e3", {"depth_list": [1, 1, 1, 1, 1]}),
    ("deepseek_vit_412m", {"depth": 1}),
    ("deepseek_vit_412m_enc", {"depth": 1, "out_features": 16}),
    ("qwen3_vit_88m", {"depth": 1}),
    ("qwen3_vit_306m_merge", {"depth": 1, "out_features": 16}),
    ("gemma4_vit_167m", {"depth": 1}),
    ("gemma4_vit_570m_enc", {"depth": 1, "position_embedding_size": 48}),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "options"), NAMES, ids=[name for name, _ in NAMES])
def test_timms_own_models_are_verified(name, options):
    vit = models.wrap(timm.create_model(name, **options))
    checks = verify(vit)
    assert {check.name for check in checks} == {site.name for site in vit.sites}
    assert max(check.output_error for check in checks) < 1e-4
    assert attnviz.explain(attnviz.observe(vit, vit.probe())).values.any()


def test_a_lowformer_without_attention_is_refused():
    with pytest.raises(UnsupportedModel, match="without attention over tokens"):
        models.load("lowformer_e1", pretrained=False)
