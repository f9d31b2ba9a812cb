"""The whole ViT against timm's, which was written by others, and its own promises."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor

import models
from attnviz.errors import AttnVizError, BadOption, BadWeights, UnknownName
from attnviz.tokens import TokenLayout
from models.attention import Attention, MultiHeadSelfAttention
from models.vit import ViT

SMALL: dict[str, Any] = {
    "image_size": (12, 20),
    "patch_size": 4,
    "hidden_size": 24,
    "depth": 3,
    "num_heads": 4,
}
"""A rectangle: 3 rows of 5 patches."""


def small_vit(**changes: Any) -> ViT:
    return ViT(**{**SMALL, "classes": 7, **changes})


def timm_twin(vit_options: dict[str, Any], **timm_options: Any) -> Any:
    """timm's model of the same shape, its weights so large that attention is far from uniform."""
    options = {**SMALL, "classes": 7, **vit_options}
    class_token = options.get("class_token", True)
    twin = VisionTransformer(
        **{
            "img_size": options["image_size"],
            "patch_size": options["patch_size"],
            "in_chans": options.get("channels", 3),
            "num_classes": options["classes"] or 0,
            "global_pool": "token" if class_token else "avg",
            "embed_dim": options["hidden_size"],
            "depth": options["depth"],
            "num_heads": options["num_heads"],
            "mlp_ratio": options.get("mlp_ratio", 4.0),
            "class_token": class_token,
            "reg_tokens": options.get("registers", 0),
            "qkv_bias": options.get("block", "separate") == "separate",
            **timm_options,
        }
    )
    return scramble(twin, seed=0).eval()


def scramble(module: Any, *, seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            values = torch.randn(parameter.shape, generator=generator) * 0.5
            parameter.copy_(values + 1.5 if re.search(r"norm\d?\.weight", name) else values)
    return module


def picture(vit: ViT) -> Tensor:
    return torch.randn(2, *vit.input_shape, generator=torch.Generator().manual_seed(1))


PARITY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # what is odd about it: (our options, further options of timm's)
    "tall, no class token": ({"image_size": (20, 8), "class_token": False}, {}),
    "1 channel": ({"channels": 1}, {}),
    "registers but no class token": ({"class_token": False, "registers": 2}, {}),
    "registers": ({"registers": 4}, {}),
    "registers without a position": ({"registers": 4}, {"no_embed_class": True}),
    "class token without a position": ({}, {"no_embed_class": True}),
    "no qkv bias in separate projections": ({}, {"qkv_bias": False}),
    "fused": ({"block": "fused"}, {}),
    "fused, a register, no class token": (
        {"block": "fused", "registers": 1, "class_token": False},
        {},
    ),
    "fused, registers without a position": (
        {"block": "fused", "registers": 3},
        {"no_embed_class": True},
    ),
    "no classes": ({"classes": None}, {}),
    "no classes, no class token": ({"classes": None, "class_token": False}, {}),
    "one head, one layer, one patch": ({"num_heads": 1, "depth": 1, "image_size": (4, 4)}, {}),
    "narrow MLP": ({"mlp_ratio": 1.3}, {}),
    "square": ({"image_size": (16, 16)}, {}),
    "plain": ({}, {}),
}


@pytest.mark.parametrize(("vit_options", "timm_options"), PARITY.values(), ids=PARITY.keys())
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 1e-5)])
def test_timm_weights_give_timm_logits(
    vit_options: dict[str, Any],
    timm_options: dict[str, Any],
    dtype: torch.dtype,
    tolerance: float,
) -> None:
    twin = timm_twin(vit_options, **timm_options).to(dtype)
    vit = scramble(small_vit(**vit_options), seed=9).to(dtype).eval()
    vit.load_timm(twin.state_dict())
    x = picture(vit).to(dtype)
    with torch.no_grad():
        expected, got = twin(x), vit(x)
    assert expected.std() > 0.1, "the case is too flat to tell anything"
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("block", ["separate", "fused"])
def test_maps_are_those_timm_computes(block: str) -> None:
    options = {"block": block, "registers": 2}
    twin, vit = timm_twin(options).double(), small_vit(**options).double()
    vit.load_timm(twin.state_dict())
    ours: dict[int, Tensor] = {}
    theirs: dict[int, Tensor] = {}
    for layer in range(3):
        softmax = vit.get_submodule(f"blocks.{layer}.attn.softmax")
        softmax.register_forward_hook(lambda _m, _i, out, at=layer: ours.update({at: out}))
        attn = twin.blocks[layer].attn
        attn.fused_attn = False  # only then does timm have a map
        attn.attn_drop.register_forward_hook(lambda _m, i, _o, at=layer: theirs.update({at: i[0]}))
    x = picture(vit).double()
    with torch.no_grad():
        vit(x), twin(x)
    for layer in range(3):
        assert ours[layer].shape == (2, 4, 18, 18)
        assert ours[layer].max() > 0.5
        torch.testing.assert_close(ours[layer], theirs[layer], rtol=0, atol=1e-11)


def test_patches_are_cut_row_by_row() -> None:
    vit = small_vit(image_size=(4, 6), patch_size=2)
    seen: list[Tensor] = []
    vit.patch_embed.register_forward_pre_hook(lambda _m, inputs: seen.append(inputs[0]))
    x = picture(vit)
    vit(x)
    for row in range(2):
        for col in range(3):
            patch = x[:, :, 2 * row : 2 * row + 2, 2 * col : 2 * col + 2]
            token = vit.layout.token(row, col) - len(vit.layout.prefix)
            assert torch.equal(seen[0][:, token], patch.flatten(1))


@pytest.mark.parametrize(
    ("options", "prefix"),
    [
        ({"class_token": False}, ()),
        ({"class_token": False, "registers": 2}, ("reg1", "reg2")),
        ({"registers": 4}, ("cls", "reg1", "reg2", "reg3", "reg4")),
        ({}, ("cls",)),
    ],
)
def test_layout_names_the_tokens_in_order(options: dict[str, Any], prefix: tuple[str, ...]) -> None:
    vit = small_vit(**options)
    assert vit.layout == TokenLayout(prefix, (3, 5))
    assert vit.pos_embed.shape == (1, len(prefix) + 15, 24)


@pytest.mark.parametrize("num_heads", [5, 4])  # 24 features for 5 heads: each is 4 wide
@pytest.mark.parametrize("block", ["separate", "fused"])
def test_block_chooses_the_attention(block: str, num_heads: int) -> None:
    vit = small_vit(block=block, num_heads=num_heads)
    kind = {"separate": MultiHeadSelfAttention, "fused": Attention}[block]
    assert [type(vit.get_submodule(f"blocks.{i}.attn")) for i in range(3)] == [kind] * 3
    assert vit(picture(vit)).shape == (2, 7)


def test_every_weight_takes_part_in_training() -> None:
    vit = small_vit(registers=2)
    vit(picture(vit)).square().sum().backward()
    idle = [n for n, p in vit.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    # A bias on the keys adds the same to a query's every score, which softmax takes away.
    assert [name for name in idle if not name.endswith("attn.K.bias")] == []


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"image_size": (12, 18)}, BadOption, "12 × 18 pixels in patches of 4.*multiples"),
        ({"image_size": (14, 20)}, BadOption, "14 × 20 pixels in patches of 4.*multiples"),
        ({"image_size": (0, 20)}, BadOption, "height is 0"),
        ({"image_size": (12, -4)}, BadOption, "width is -4"),
        ({"patch_size": 0}, BadOption, "patch_size is 0"),
        ({"channels": 0}, BadOption, "channels is 0"),
        ({"depth": 0}, BadOption, "depth is 0"),
        ({"num_heads": 0}, BadOption, "num_heads is 0"),
        ({"num_heads": 25}, BadOption, "hidden_size is 24 for 25 heads"),
        ({"num_heads": 25, "block": "fused"}, BadOption, "hidden_size is 24 for 25 heads"),
        ({"mlp_ratio": 0.0}, BadOption, "mlp_size is 0"),
        ({"registers": -1}, BadOption, "-1 registers"),
        ({"classes": 0}, BadOption, "classes is 0"),
        ({"block": "fussed"}, UnknownName, "no block 'fussed'. Did you mean fused"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], error: type[AttnVizError], message: str
) -> None:
    with pytest.raises(error, match=message):
        small_vit(**options)


@pytest.mark.parametrize("shape", [(1, 3, 20, 12), (1, 1, 12, 20), (1, 3, 12, 24)])
def test_a_picture_of_another_size_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        BadOption, match=rf"{re.escape(str(shape))} came; expected \(batch, 3, 12, 20\)"
    ):
        small_vit()(torch.zeros(shape))


NO_CLS = {"class_token": False, "global_pool": "avg"}
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    # what is wrong: (our options, timm's options, what the error says)
    "a bias for fused": ({"block": "fused"}, {}, "have a bias.*make the ViT with block=.separate"),
    "a projection for one fused head": (
        {"block": "fused", "num_heads": 1},
        {"num_heads": 1, "qkv_bias": False},
        "one head has none: make the ViT with block=.separate",
    ),
    "a class token too many": ({"class_token": False}, {}, "have norm.weight; expected fc_norm"),
    "a class token too few": ({}, NO_CLS, "have fc_norm.weight; expected norm"),
    "mean beside a class token": ({}, {"global_pool": "avg"}, "have fc_norm.weight; expected norm"),
    "norm before the mean": (
        {"class_token": False},
        {**NO_CLS, "fc_norm": False},
        "have norm.weight; expected fc_norm",
    ),
    "no final norm": ({}, {"final_norm": False}, "have no final norm; expected norm.weight"),
    "a class token for a register": (
        {"class_token": False, "registers": 2},
        {"reg_tokens": 1, "fc_norm": True},
        r"cls_token is \(1, 1, 24\), expected absent",
    ),
    "another depth": ({}, {"depth": 2}, r"blocks.2.attn.K.bias is absent, expected \(24,\)"),
    "other classes": ({}, {"num_classes": 5}, r"head.bias is \(5,\), expected \(7,\)"),
    "classes too many": ({"classes": None}, {}, r"head.bias is \(7,\), expected absent"),
    "another grid": ({}, {"img_size": (12, 24)}, r"pos_embed is \(1, 19, 24\), expected \(1, 16"),
    "patches as large, of another shape": (
        {},
        {"img_size": (24, 10), "patch_size": (8, 2)},
        r"patch_embed.weight is \(24, 3, 8, 2\), expected \(24, 48\)",
    ),
    "heads that do not divide": (
        {"num_heads": 5},
        {},
        r"K.weight is \(24, 24\), expected \(20, 24",
    ),
    "layer scale": ({}, {"init_values": 0.1}, r"ls1.gamma is \(24,\), expected absent"),
    "normed queries": ({}, {"qk_norm": True}, r"k_norm.weight is \(6,\), expected absent"),
    "norm before the blocks": (
        {},
        {"pre_norm": True},
        r"norm_pre.bias is \(24,\), expected absent",
    ),
    "no positions": ({}, {"pos_embed": "none"}, r"pos_embed is absent, expected \(1, 16, 24\)"),
}


@pytest.mark.parametrize(
    ("vit_options", "timm_options", "message"), REFUSED.values(), ids=REFUSED.keys()
)
def test_weights_of_another_model_are_refused_and_change_nothing(
    vit_options: dict[str, Any], timm_options: dict[str, Any], message: str
) -> None:
    vit = small_vit(**vit_options)
    before = {name: value.clone() for name, value in vit.state_dict().items()}
    with pytest.raises(BadWeights, match=message):
        vit.load_timm(timm_twin({}, **timm_options).state_dict())
    assert all(torch.equal(value, before[name]) for name, value in vit.state_dict().items())


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state.pop("blocks.1.attn.qkv.bias"),
        lambda state: state.pop("blocks.1.attn.qkv.weight"),
        lambda state: state.update({"blocks.1.attn.qkv.weight": torch.zeros(1, 24)}),
        lambda state: state.update({"extra": torch.zeros(1)}),
    ],
    ids=["a bias of one layer", "a weight", "too few rows", "left over"],
)
def test_a_damaged_state_dict_is_refused(damage: Callable[[dict[str, Tensor]], object]) -> None:
    state = dict(timm_twin({}).state_dict())
    damage(state)
    with pytest.raises(BadWeights, match="do not fit this ViT"):
        small_vit().load_timm(state)


def test_loading_leaves_the_given_weights_alone() -> None:
    twin, vit = timm_twin({}, no_embed_class=True), small_vit()
    before = {name: value.clone() for name, value in twin.state_dict().items()}
    vit.load_timm(twin.state_dict())
    scramble(vit, seed=5)
    assert all(torch.equal(value, before[name]) for name, value in twin.state_dict().items())


def test_names_of_classes_must_be_as_many_as_outputs():
    assert models.wrap(small_vit(classes=2), classes=("a", "b")).classes == ("a", "b")
    for outputs, came in ((3, 2), (None, 2)):
        with pytest.raises(BadOption, match=rf"2 classes came, but ViT has {outputs or 0}"):
            models.wrap(small_vit(classes=outputs), classes=came)
