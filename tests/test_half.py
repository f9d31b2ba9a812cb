"""Models in bfloat16 and float16: what they show is finite, and near what float32 shows."""

import copy

import pytest
import timm
import torch
from timm.models.crossvit import CrossVit
from timm.models.deit import VisionTransformerDistilled
from timm.models.gcvit import GlobalContextVit
from timm.models.naflexvit import NaFlexVit, NaFlexVitCfg
from timm.models.vision_transformer import VisionTransformer
from torch.overrides import TorchFunctionMode

import attnviz
import models
from attnviz.errors import CaptureFailed
from attnviz.verify import verify
from models.timm_families import FAMILIES
from tests import (
    test_encoders,
    test_families,
    test_hybrids,
    test_planted_windows,
    test_pooled,
    test_windows,
)
from tests.test_families import VIT

BITS = {torch.bfloat16: 8, torch.float16: 11}
"""Of a number's first digits: rounding changes it by one part in 2 to so many."""


def chosen(table, *names):
    """How some of a table's models are made."""
    return {name: row[0] if isinstance(row := table[name], tuple) else row for name in names}


def hybrid():
    return timm.create_model("vit_tiny_r_s16_p8_224", depth=1, dynamic_img_size=True)


MADE = {
    "plain": lambda: VisionTransformer(**VIT),
    "distilled": lambda: VisionTransformerDistilled(**VIT),
    "hybrid": hybrid,
    "RADIO": lambda: NaFlexVit(
        NaFlexVitCfg(patch_size=16, embed_dim=24, depth=2, num_heads=3, pos_embed_grid_size=(4, 4),
                     pos_embed_interp_mode="bilinear", pos_embed_ar_preserving=True, reg_tokens=2,
                     pos_embed_antialias=False, class_token=True, final_norm=False), num_classes=0),
    "CrossViT": lambda: CrossVit(img_size=48, img_scale=(1.0, 48 / 48), patch_size=(8, 16),
                                 embed_dim=(24, 24), depth=((1, 1, 1),), num_heads=(3, 3)),
    "GCViT": lambda: GlobalContextVit(
        img_size=(96, 160), embed_dim=8, depths=(2, 2, 2, 2), num_heads=(2, 2, 2, 2), num_classes=5,
    ),
    "Hiera, abswin": test_pooled.MODELS["Hiera, two poolings"][0],
    **chosen(test_families.FAMILIES, "registers", "EVA-02", "BEiT", "relative positions", "NaFlex",
             "CaiT", "ConViT", "XCiT", "VOLO", "TNT", "PiT"),
    **chosen(test_windows.MODELS, "Swin", "Swin v2", "Swin v2, padded", "Swin v2 CR", "SAM", "DaViT",
             "NesT", "PVT v2", "Twins"),
    **chosen(test_pooled.MODELS, "MViT", "Hiera", "SAM 2"),
    **chosen(test_encoders.MODELS, "DeepSeek", "DeepSeek's encoder", "Qwen3", "Qwen3's encoder",
             "Gemma 4", "Gemma 4's encoder", "CPUBone", "LowFormer", "CSATv2"),
    **chosen(test_planted_windows.MODELS, "MaxViT", "TinyViT", "Visformer"),
    **chosen(test_hybrids.MODELS, *test_hybrids.MODELS),
}  # fmt: skip
"""One small model of every family, and more."""

NARROW = {"Next-ViT": 0.05}
"""How wide weights are spread in networks that are so wide that 0.1 would be too much."""

LARGE_SCORES = ("Swin v2", "Swin v2, padded", "Swin v2 CR", "Gemma 4", "Gemma 4's encoder")
"""Scores that no weight makes small: cosines × 10 with a bias of about 8, and normed q · k, unscaled.

bfloat16 has 8 bits, so that a score between 8 and 16 is moved by up to 1/32.
"""

SIZED = {"GCViT": (96, 160), "TinyViT": (96, 160), "DaViT": (64, 96), "PVT v2": (64, 96)}
"""Those that do not say what pictures they take."""

CANNOT = {
    ("Hiera, abswin", torch.bfloat16): "no 'compute_index_ranges_weights' for bfloat16 on cpu",
    ("Hiera, abswin", torch.float16): "no 'compute_index_ranges_weights' for float16 on cpu",
    # Cosines of the zeros that it pads with: 1e-12, which it adds to lengths, is 0 in float16.
    ("Swin v2, padded", torch.float16): "not finite.*float16 ends at 65504",
}
"""What does not run so, and what is said of it."""


def made(name):
    """One of `MADE` with random weights, for its own small picture."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        module = MADE[name]().eval()
        for label, parameter in module.named_parameters():
            if parameter.ndim > 1 and not label.endswith("logit_scale"):
                torch.nn.init.normal_(parameter, std=NARROW.get(name, 0.1))
    if name in SIZED:
        module.pretrained_cfg = {"input_size": (3, *SIZED[name])}
    return module


@pytest.mark.parametrize(
    "dtype",
    [torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.long)],
    ids=["bfloat16", "float16"],
)
@pytest.mark.parametrize("name", MADE)
def test_maps_in_half_precision_are_near_those_of_float32(name, dtype):
    """To 2e-2, but for families whose own scores are too large for bfloat16's 8 bits."""
    module = made(name)
    vit = models.wrap(module)
    x = vit.probe()
    whole = attnviz.observe(vit, x)
    half = models.wrap(copy.deepcopy(module).to(dtype))
    if (name, dtype) in CANNOT:
        with pytest.raises(CaptureFailed, match=CANNOT[name, dtype]):
            attnviz.observe(half, x.to(dtype))
        return
    checks = verify(half, x.to(dtype))
    assert max(check.output_error - check.rounding for check in checks) < 2e-2
    record = attnviz.observe(half, x.to(dtype))
    assert record.layers[0].values.dtype == dtype
    allowed = 6e-2 if name in LARGE_SCORES and dtype == torch.bfloat16 else 2e-2
    for one, other in zip(whole.layers, record.layers, strict=True):
        assert torch.isfinite(other.probs()).all()
        torch.testing.assert_close(one.probs(), other.probs(), atol=allowed, rtol=0)
        if not (one.mixed or (one.geometry and one.geometry.padded)):
            sums = other.probs()[:, other.asks].sum(-1)
            torch.testing.assert_close(sums, torch.ones_like(sums), atol=5e-3, rtol=0)


class Softmaxes(TorchFunctionMode):
    """The softmax of each layer's scores in float64, and as the model had it where it has it."""

    def __init__(self):
        super().__init__()
        self.exact, self.own = [], []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        called = getattr(func, "__name__", "")
        if called == "softmax" and result.ndim == 4:
            self.exact.append(args[0].double().softmax(-1))
            self.own.append(result.double())
        if called == "scaled_dot_product_attention":
            assert kwargs.get("attn_mask") is None
            queries, keys = (part.double() for part in args[:2])
            scale = kwargs.get("scale") or queries.shape[-1] ** -0.5
            self.exact.append((queries @ keys.mT * scale).softmax(-1))
            self.own.append(self.exact[-1])  # a kernel never has it
        return result


@pytest.mark.parametrize("name", [*LARGE_SCORES, "plain", "registers"])
def test_a_map_in_half_precision_is_the_softmax_of_the_scores_that_the_model_has(name):
    """How far it is from float32's is the model's own rounding of these, and nothing of ours."""
    half = models.wrap(made(name).bfloat16())
    x = half.probe()
    records = [attnviz.observe(half, x, keep=keep) for keep in ("maps", "factors")]
    with torch.no_grad(), Softmaxes() as seen:
        half.module(x)
    for record in records:
        for layer, exact, own in zip(record.layers, seen.exact, seen.own, strict=True):
            kept = layer.source.map if record.keep == "maps" else layer.probs()
            kept = kept.double().reshape(exact.shape)
            torch.testing.assert_close(kept, exact, atol=1e-6, rtol=0)
            torch.testing.assert_close(kept, own, atol=2e-3, rtol=0)  # half of the last of 8 bits


@pytest.mark.parametrize("fused", [True, False])
def test_a_model_in_half_precision_runs_with_its_kernels_as_they_are(fused):
    """They round otherwise than their modules do, and later layers would attend otherwise."""
    half = models.wrap(made("Gemma 4").bfloat16())
    x = half.probe()
    attnviz.observe(half, x)  # verified once
    for site in half.sites:
        site.fuse(fused)
    with torch.no_grad():
        logits = half.module(x)[0].float()
        for site in half.sites:
            site.fuse(not fused)
        other = half.module(x)[0].float()
        for site in half.sites:
            site.fuse(fused)
    assert not torch.equal(logits, other)
    record = attnviz.observe(half, x, keep="maps")
    expected = logits.softmax(-1)
    for _, number, chance in record.predictions:
        assert chance == pytest.approx(float(expected[number]), abs=1e-6)
    assert [site.setting for site in half.sites] == [fused] * len(half.sites)


def test_every_family_has_a_model_here():
    """A family without one: add a small model of it to `MADE`, or to the table of its own test."""
    missing = {kind.__name__ for kind in FAMILIES} - {
        type(make()).__name__ for make in MADE.values()
    }
    assert missing == set()
