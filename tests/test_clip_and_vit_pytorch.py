"""open_clip's towers and vit-pytorch's models: proved, and asked for what they do not keep."""

from functools import partial

import numpy as np
import pytest
import torch
from open_clip import CLIP
from open_clip.model import set_model_preprocess_cfg
from open_clip.timm_model import TimmModel
from open_clip.transformer import VisionTransformer
from torch import nn
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.deepvit import DeepViT
from vit_pytorch.parallel_vit import ViT as ParallelViT
from vit_pytorch.recorder import Recorder
from vit_pytorch.simple_flash_attn_vit import SimpleViT as FlashViT
from vit_pytorch.simple_vit_with_qk_norm import SimpleViT as NormedViT
from vit_pytorch.simple_vit_with_register_tokens import SimpleViT as RegisterViT

import attnviz
import models
from attnviz.errors import BadOption, UnsupportedModel
from attnviz.tokens import TokenLayout
from attnviz.verify import verify

TOWER = {"image_size": (16, 40), "patch_size": 8, "width": 24, "layers": 2, "heads": 4, "mlp_ratio": 2, "output_dim": 10}  # fmt: skip
tower = partial(VisionTransformer, **TOWER)
PLAIN = {"image_size": (16, 40), "patch_size": 8, "num_classes": 4, "dim": 24, "depth": 2, "heads": 3, "mlp_dim": 32, "dim_head": 8}  # fmt: skip

# name -> (how it is made, options of wrap, prefix)
MODELS = {
    "CLIP": (tower, {}, ("cls",)),
    "CLIP, mean": (partial(tower, pool_type="avg", final_ln_after_pool=True), {}, ("cls",)),
    "CLIP, tokens too": (partial(tower, output_tokens=True, ls_init_value=0.5), {}, ("cls",)),
    "CLIP, normed": (partial(tower, qk_norm=True, scale_attn_inner=True, scale_attn=True, scale_fc=True), {}, ("cls",)),
    "CLIP, pooled": (partial(tower, attentional_pool=True, attn_pooler_queries=5, attn_pooler_heads=2), {}, ("cls",)),
    "ViT": (partial(ViT, **PLAIN), {"image_size": (16, 40)}, ("cls",)),
    "ViT, mean": (partial(ViT, **PLAIN, pool="mean"), {"layout": TokenLayout((), (2, 5))}, ()),
    "ViT, one head": (partial(ViT, **PLAIN | {"heads": 1, "dim_head": 24}), {"image_size": (16, 40)}, ("cls",)),
    "SimpleViT": (partial(SimpleViT, **PLAIN), {}, ()),
    "normed": (partial(NormedViT, **PLAIN), {"layout": TokenLayout((), (2, 5)), "image_size": (16, 40)}, ()),
    "parallel": (partial(ParallelViT, **PLAIN), {"layout": TokenLayout(("cls",), (2, 5)), "image_size": (16, 40)}, ("cls",)),
    "flash": (partial(FlashViT, **PLAIN), {"layout": TokenLayout((), (2, 5)), "image_size": (16, 40)}, ()),
}  # fmt: skip


def made(name: str) -> nn.Module:
    torch.manual_seed(6)
    module = MODELS[name][0]().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


def picture() -> torch.Tensor:
    return torch.randn(1, 3, 16, 40, generator=torch.Generator().manual_seed(0))


@pytest.mark.filterwarnings("ignore:.*sdp_kernel")  # the flash model's own
@pytest.mark.parametrize("name", MODELS)
def test_each_is_verified_and_lies_where_it_says(name):
    _, options, prefix = MODELS[name]
    vit = models.wrap(made(name), **options)
    assert vit.layout(16, 40) == TokenLayout(prefix, (2, 5))
    assert len(vit.sites) == (4 if name == "parallel" else 2)
    for check in verify(vit):
        assert max(check.row_sum_error, check.output_error) < 1e-5
    x = picture()
    changed = x.clone()
    changed[..., 8:16, 24:32] *= -3
    for keep in ("maps", "factors"):
        first, second = (attnviz.observe(vit, each, keep=keep) for each in (x, changed))
        moved = (first.layers[0].values != second.layers[0].values).any(-1).any(0)
        assert moved.nonzero().flatten().tolist() == [first.layout.token(1, 3)]


@pytest.mark.parametrize("name", ["ViT", "ViT, mean", "SimpleViT"])
def test_the_maps_are_those_of_their_own_recorder(name):
    vit = models.wrap(made(name), **MODELS[name][1])
    record = attnviz.observe(vit, picture(), target=1)
    own = made(name)
    if name == "SimpleViT":  # the recorder knows the other's attention only
        expected = []
        for attention, _ in own.transformer.layers:
            attention.attend.register_forward_hook(lambda *seen: expected.append(seen[-1]))
        own(picture())
    else:
        expected = Recorder(own)(picture())[1].unbind(1)
    assert len(expected) == len(record.layers) == 2
    for layer, said in zip(record.layers, expected, strict=True):
        torch.testing.assert_close(layer.probs(), said[0].detach(), atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        logits = made(name)(picture())[0]
        torch.testing.assert_close(vit.readout.classify(record.feature[None])[0], logits)
    assert record.score == pytest.approx(float(logits[1]), abs=1e-5)
    pooled = record.features[0] if record.layout.prefix else record.features.mean(0)
    torch.testing.assert_close(pooled, record.feature, atol=1e-5, rtol=1e-4)
    for method in ("relevance", "attention_gradcam", "pca"):
        assert np.isfinite(attnviz.explain(record, method).values).all()


@pytest.mark.parametrize("name", ["CLIP", "CLIP, mean", "CLIP, tokens too", "CLIP, normed"])
def test_a_towers_feature_is_its_embedding_and_so_are_its_tokens(name):
    module = made(name)
    vit = models.wrap(module)
    record = attnviz.observe(vit, picture(), target=attnviz.similarity_to((1, 1)))
    with torch.no_grad():
        said = module(picture())
    said = said[0] if isinstance(said, tuple) else said
    torch.testing.assert_close(record.feature, said[0])
    if name != "CLIP, mean":  # its norm comes after the mean
        torch.testing.assert_close(record.features[0], record.feature, atol=1e-5, rtol=1e-4)
    for method in ("relevance", "gradcam", "legrad", "similarity"):
        assert np.isfinite(attnviz.explain(record, method).values).all()
    assert vit.classes == ()


def test_a_tower_that_is_pooled_by_attention_has_no_score_of_single_layers():
    record = attnviz.observe(models.wrap(made("CLIP, pooled")), picture())
    other = attnviz.observe(
        models.wrap(made("CLIP, pooled")), -picture(), target=attnviz.similarity_to(record)
    )
    assert np.isfinite(attnviz.explain(other, "relevance").values).all()
    with pytest.raises(BadOption, match="LeGrad needs"):
        attnviz.explain(other, "legrad")


def test_scaled_heads_are_refused_since_nothing_proves_them():
    torch.manual_seed(0)
    module = tower(scale_heads=True)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    with pytest.raises(UnsupportedModel, match="map × values reach no module"):
        models.wrap(module)


def test_a_tower_of_timms_is_drawn_as_timms_are():
    torch.manual_seed(0)
    module = TimmModel("test_vit", embed_dim=10, image_size=160, pool="", proj="linear").eval()
    vit = models.wrap(module)
    assert vit.layout(160, 160) == TokenLayout(("cls",), (10, 10))
    assert vit.sites[0].name == "trunk.blocks.0.attn"
    assert max(check.output_error for check in verify(vit)) < 1e-5
    x = torch.randn(1, 3, 160, 160)
    record = attnviz.observe(vit, x, target=attnviz.similarity_to("cls"))
    with torch.no_grad():
        torch.testing.assert_close(vit.run(x), module(x))
        torch.testing.assert_close(record.feature[None], module.trunk(x))
    assert np.isfinite(attnviz.explain(record, "relevance").values).all()
    module.trunk = nn.Sequential(nn.Conv2d(3, 4, 4))
    with pytest.raises(UnsupportedModel, match="Sequential"):
        models.wrap(module)


def test_a_tower_says_how_it_wants_its_pictures_or_openais_way_is_taken():
    module = tower()
    vit = models.wrap(module)
    assert "OpenAI's CLIP" in vit.weights and vit.recipe.mean[0] == pytest.approx(0.48145466)
    assert "OpenAI" not in models.wrap(module, mean=(0, 0, 0), std=(1, 1, 1)).weights
    set_model_preprocess_cfg(
        module,
        {
            "mean": (0.1, 0.2, 0.3),
            "std": (1, 1, 1),
            "interpolation": "bilinear",
            "resize_mode": "squash",
        },
    )
    vit = models.wrap(module)
    assert vit.recipe.mean == (0.1, 0.2, 0.3) and "OpenAI" not in vit.weights
    assert (vit.recipe.interpolation, vit.recipe.crop_mode) == ("bilinear", "squash")


def test_a_whole_clip_names_its_image_tower():
    text = {"context_length": 8, "vocab_size": 20, "width": 24, "heads": 3, "layers": 1}
    vision = {"image_size": 32, "patch_size": 8, "width": 64, "layers": 1}
    with pytest.raises(UnsupportedModel, match=r"wrap its \.visual"):
        models.wrap(CLIP(embed_dim=10, vision_cfg=vision, text_cfg=text))


def test_a_vit_does_not_keep_its_grid_and_is_asked():
    """10 patches may be 2 × 5, 5 × 2, 1 × 10 or 10 × 1."""
    with pytest.raises(BadOption, match=r"10 patches of ViT make .* give image_size"):
        models.wrap(made("ViT"))
    vit = models.wrap(made("ViT"), image_size=(40, 16))  # it cannot be told from 16 × 40
    assert vit.layout(40, 16).grid == (5, 2)
    with pytest.raises(UnsupportedModel, match="failed in its own forward pass"):
        models.wrap(made("ViT"), image_size=(32, 40))
    with pytest.raises(BadOption, match="leave it out"):
        models.wrap(made("ViT"), layout=TokenLayout((), (2, 5)))
    assert (
        models.wrap(made("ViT"), image_size=(16, 40), classes=("a", "b", "c", "d")).classes[1]
        == "b"
    )


def test_simple_vit_keeps_its_grid_in_its_positions():
    for size, grid in (
        ((16, 40), (2, 5)),
        ((40, 16), (5, 2)),
        ((8, 48), (1, 6)),
        ((48, 8), (6, 1)),
    ):
        module = SimpleViT(**PLAIN | {"image_size": size})
        assert models.wrap(module).layout(*size).grid == grid


def test_heads_that_are_mixed_again_are_drawn_as_they_are_used():
    torch.manual_seed(0)
    module = DeepViT(**{**PLAIN, "image_size": 32}).eval()
    vit = models.wrap(module, layout=TokenLayout(("cls",), (4, 4)), image_size=32)
    assert max(check.output_error for check in verify(vit)) < 1e-5
    record = attnviz.observe(vit, torch.randn(1, 3, 32, 32))
    assert record.layers[0].mixed == "the map is changed after the softmax"


def test_registers_behind_the_patches_are_no_prefix():
    module = RegisterViT(**PLAIN, num_register_tokens=2)
    with pytest.raises(BadOption, match=r"that token follows the patch at row 0, column 2"):
        models.wrap(module, layout=TokenLayout(("reg1", "reg2"), (2, 5)), image_size=(16, 40))
