import inspect
import math
from threading import RLock

import numpy as np
import pytest
import timm
import torch
from conftest import PREFIXES, SMALL, small_module
from einops import rearrange
from PIL import Image
from timm.data import create_transform
from timm.layers import resample_abs_pos_embed
from timm.models import get_pretrained_cfg
from timm.models.vision_transformer import VisionTransformer

import models
from attnviz.contract import LoadedViT
from attnviz.errors import BadOption, UnknownName, UnsupportedModel
from attnviz.tokens import TokenLayout
from models import timm_names, zoo
from models.timm_adapter import TimmViT, native_size, recipe_of
from models.timm_names import resolve
from models.vit import ViT


def noise(rows, cols):
    pixels = np.random.default_rng(rows * 1000 + cols).integers(0, 256, (rows, cols, 3))
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.fixture(scope="module")
def tiny():
    return models.load("test_vit", pretrained=False)


def blank(name):
    """The adapter on a module without weights: layouts need none, and ViT-g takes no memory."""
    found = resolve(name)
    module = found.blank()
    return TimmViT(module, name, "", True, native_size(module), recipe_of(found.config))


# --- which tokens there are ------------------------------------------------------------------

REGISTERS = ("reg1", "reg2", "reg3", "reg4")

LAYOUTS = [
    ("vit_base_patch16_siglip_224", (), (14, 14)),
    ("vit_so400m_patch14_siglip_384", (), (27, 27)),  # 384 is no multiple of 14; 6 pixels are lost
    ("vit_medium_patch16_reg4_gap_256", REGISTERS, (16, 16)),
    ("test_vit2", ("reg1",), (10, 10)),
    ("vit_tiny_patch16_224", ("cls",), (14, 14)),
    ("vit_base_patch16_clip_224.openai", ("cls",), (14, 14)),
    ("vit_small_patch8_224.dino", ("cls",), (28, 28)),
    ("vit_small_patch14_dinov2", ("cls",), (37, 37)),
    ("vit_small_patch14_reg4_dinov2", ("cls", *REGISTERS), (37, 37)),
    ("deit_tiny_distilled_patch16_224", ("cls", "dist"), (14, 14)),
    ("deit3_small_patch16_384", ("cls",), (24, 24)),
    ("vit_tiny_patch16_224_in21k", ("cls",), (14, 14)),  # an old name that timm still maps
]


@pytest.mark.parametrize(("name", "prefix", "grid"), LAYOUTS)
def test_layout_at_the_native_size(name, prefix, grid):
    vit = blank(name)
    assert vit.layout(*vit.image_size) == TokenLayout(prefix, grid)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_tokens_are_where_the_layout_says(prefix):
    """Each prefix token, and one bright patch, is told by its value at the first block's door."""
    module = small_module(prefix, img_size=(32, 48))
    vit = models.wrap(module)
    values = {name: 10.0 + number for number, name in enumerate(prefix)}
    with torch.no_grad():
        for parameter in (module.pos_embed, module.patch_embed.proj.bias):
            parameter.zero_()
        module.patch_embed.proj.weight.fill_(1 / (3 * 16 * 16))
        for name, value in values.items():
            if name.startswith("reg"):
                module.reg_token[:, int(name[3:]) - 1] = value
            else:
                getattr(module, f"{name}_token").fill_(value)
    seen = {}
    hook = module.blocks[0].register_forward_pre_hook(lambda _, args: seen.update(x=args[0]))
    bright = torch.zeros(1, 3, 32, 48)
    bright[:, :, 16:32, 32:48] = 5.0  # row 1, column 2
    module(bright)
    hook.remove()
    layout = vit.layout(32, 48)
    expected = [*values.values(), *[0.0] * layout.patches]
    expected[layout.token(1, 2)] = 5.0
    assert seen["x"][0, :, 0].tolist() == pytest.approx(expected)


def test_layout_of_another_size_has_rows_before_columns(tiny):
    assert tiny.layout(32, 80) == TokenLayout(("cls",), (2, 5))


# --- sizes -----------------------------------------------------------------------------------


def test_image_size_is_only_the_target():
    vit = models.load("test_vit", pretrained=False, image_size=(64, 96))
    assert vit.image_size == (64, 96)
    assert vit.module.pos_embed.shape[1] == 101  # as they were learned: 10 × 10 and a class token
    other = vit.at(48)
    assert other.image_size == (48, 48)
    assert other.module is vit.module
    assert other.lock is vit.lock
    assert (other.name, other.weights, other.random) == (vit.name, vit.weights, vit.random)
    assert vit.image_size == (64, 96)


@pytest.mark.parametrize("size", [225, (224, 230), 5, 0, -16, "big", (16, 16, 16), 16.0, None])
def test_at_refuses_what_is_no_size(tiny, size):
    with pytest.raises(BadOption):
        tiny.at(size)


def test_load_refuses_a_size_before_it_fetches_anything(monkeypatch):
    monkeypatch.setattr(zoo.hub, "fetch", lambda repo: pytest.fail("fetched"))
    with pytest.raises(BadOption, match="144 or 160 rows"):
        models.load("test_vit", image_size=150)


def test_positions_are_resampled_by_timms_own_routine(tiny):
    """Against timm built for that size from the start, with positions resampled beforehand."""
    x = torch.randn(1, 3, 64, 112, generator=torch.Generator().manual_seed(1))
    state = dict(tiny.module.state_dict())
    state["pos_embed"] = resample_abs_pos_embed(state["pos_embed"], new_size=[4, 7])
    fixed = timm.create_model("test_vit", img_size=(64, 112))
    fixed.load_state_dict(state)
    with torch.no_grad():
        torch.testing.assert_close(tiny.module(x), fixed.eval()(x))


# --- what it offers --------------------------------------------------------------------------


def promised(protocol):
    return {name for name in vars(protocol) if not name.startswith("_")}


def own_module(**changes):
    options = {"image_size": (8, 12), "patch_size": 4, "hidden_size": 12, "depth": 2}
    return ViT(**{**options, "num_heads": 3, "classes": 4, **changes})


def own(**changes):
    return models.wrap(own_module(**changes))


@pytest.mark.parametrize("make", [lambda: models.load("test_vit", pretrained=False), own])
def test_it_offers_all_that_the_contract_asks_for(make):
    vit = make()
    assert [name for name in promised(LoadedViT) if not hasattr(vit, name)] == []
    for name, member in vars(LoadedViT).items():
        if inspect.isfunction(member) and name in promised(LoadedViT):
            wanted = list(inspect.signature(member).parameters)
            assert list(inspect.signature(getattr(type(vit), name)).parameters) == wanted
    assert isinstance(vit.lock, type(RLock()))


MODULES = {
    "plain": dict,
    "normed": lambda: {"qk_norm": True, "scale_attn_norm": True},
    "no bias": lambda: {"qkv_bias": False},
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", MODULES)
def test_each_site_is_fed_with_map_times_values(kind, fused):
    module = small_module(**MODULES[kind]()).eval()
    vit = models.wrap(module)
    assert [site.name for site in vit.sites] == ["blocks.0.attn", "blocks.1.attn", "blocks.2.attn"]
    for site in vit.sites:
        assert module.get_submodule(site.name) is site.module
        assert site.heads == 3
        assert isinstance(getattr(site.module, site.fused_switch), bool)
        setattr(site.module, site.fused_switch, fused)
        attention, seen = site.module, {}
        hook = site.after_mix.register_forward_pre_hook(
            lambda _, args, seen=seen: seen.update(mix=args[0])
        )
        x = torch.randn(1, 7, 24, generator=torch.Generator().manual_seed(3))
        with torch.no_grad():
            attention(x)
            hook.remove()
            q, k, v = rearrange(
                attention.qkv(x)[0], "n (qkv head c) -> qkv head n c", qkv=3, head=3
            )
            q, k = attention.q_norm(q), attention.k_norm(k)
            mix = [
                torch.softmax(q[head] @ k[head].T / math.sqrt(8), dim=-1) @ v[head]
                for head in range(3)
            ]
        torch.testing.assert_close(seen["mix"][0], torch.cat(mix, dim=1), atol=1e-5, rtol=1e-4)


def test_view_is_timms_evaluation_transform(tiny):
    image = noise(90, 130)
    config = timm.data.resolve_data_config(pretrained_cfg=tiny.module.pretrained_cfg)
    view = tiny.view(image, "crop")
    assert torch.equal(view.tensor[0], create_transform(**config)(image))
    assert view.fit == "crop"
    assert view.tensor.device == tiny.device


def test_view_with_aspect_has_the_pictures_shape_and_no_more_patches(tiny):
    view = tiny.at(160).view(noise(300, 800), "aspect")
    assert view.tensor.shape == (1, 3, 6 * 16, 16 * 16)  # 96 of 100 patches
    assert view.pixels.shape == (96, 256, 3)
    assert view.box == (0, 0, 800, 300)


@pytest.mark.parametrize("fit", ["crop", "squash", "pad", "aspect"])
@pytest.mark.parametrize("picture", [(1, 1), (20, 10_000), (10_000, 20), (77, 50)])
def test_any_picture_gives_an_input_that_the_model_takes(tiny, picture, fit):
    view = tiny.view(noise(*picture), fit)
    tiny.layout(*view.tensor.shape[2:])
    assert torch.equal(tiny.view_of_tensor(view.tensor).tensor, view.tensor)
    assert np.array_equal(tiny.view_of_tensor(view.tensor).pixels, view.pixels)


def test_view_of_tensor_is_its_own_picture(tiny):
    view = tiny.view_of_tensor(torch.zeros(1, 3, 32, 48, dtype=torch.float64))
    assert view.box == (0, 0, 48, 32)
    assert view.fit is None
    assert view.tensor.dtype == torch.float32
    assert (view.pixels == np.round(255 * np.array(tiny.recipe.mean))).all()


@pytest.mark.parametrize("shape", [(1, 3, 33, 48), (1, 3, 0, 16), (3, 32, 48), (1, 1, 32, 48)])
def test_view_of_tensor_refuses_other_shapes(tiny, shape):
    with pytest.raises(BadOption):
        tiny.view_of_tensor(torch.zeros(shape))


@pytest.mark.parametrize("make", [lambda: models.load("test_vit", pretrained=False), own])
def test_there_is_no_fit_of_that_name(make):
    with pytest.raises(UnknownName, match=r"squeeze.*squash"):
        make().view(noise(3, 3), "squeeze")


@pytest.mark.parametrize("make", [lambda: models.load("test_vit", pretrained=False), own])
def test_probe_is_an_input_that_it_takes_and_draws_no_global_random_number(make):
    vit = make()
    before = torch.get_rng_state()
    probe = vit.probe()
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(vit.probe(), probe)
    vit.layout(*probe.shape[2:])
    with torch.no_grad():
        vit.module(probe)


# --- classes ---------------------------------------------------------------------------------


def test_predictions_are_the_five_most_probable_by_name(tiny):
    logits = torch.zeros(1, 1000)
    logits[0, [0, 999, 2, 3, 4, 5]] = torch.tensor([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    found = tiny.predictions(logits)
    assert [index for _, index, _ in found] == [0, 999, 2, 3, 4]
    assert found[0][0] == "tench, Tinca tinca"
    assert found[1][0].startswith("toilet tissue")
    total = sum(math.exp(value) for value in (6, 5, 4, 3, 2, 1)) + 994
    assert [p for *_, p in found] == pytest.approx(
        [math.exp(v) / total for v in (6, 5, 4, 3, 2)], 1e-5
    )


PREDICTIONS = [
    ("vit_base_patch16_clip_224.openai", 512, None),  # a projection, not a classifier
    ("vit_base_patch16_clip_224.laion2b_ft_in1k", 1000, "goldfish, Carassius auratus"),
    ("vit_base_patch16_clip_224", 10, "class 1"),  # tuned by the user on ten classes
    ("vit_base_patch16_siglip_224", 768, None),
    ("vit_small_patch14_dinov2", 384, None),
    ("vit_tiny_patch16_224", 512, "class 1"),
    ("vit_tiny_patch16_224.augreg_in21k", 21843, "benthos"),
]


@pytest.mark.parametrize(("name", "outputs", "label"), PREDICTIONS)
def test_predictions_of_each_kind_of_head(name, outputs, label):
    logits = torch.zeros(1, outputs)
    logits[0, 1] = 9
    found = blank(name).predictions(logits)
    assert (found[0][:2] if found else None) == ((label, 1) if label else None)


def test_predictions_of_fewer_than_five_classes():
    found = models.wrap(small_module(num_classes=2)).predictions(torch.tensor([[0.0, math.log(3)]]))
    assert found == (("class 1", 1, pytest.approx(0.75)), ("class 0", 0, pytest.approx(0.25)))


# --- loading ---------------------------------------------------------------------------------

REFUSED = [
    ("edgenext_xx_small", "edgenext"),
    ("resnet18", "resnet"),
    ("vit_dpwee_patch16_reg1_gap_256", "differential attention"),
    ("vit_dwee_patch16_reg1_gap_256", "differential attention"),
]


@pytest.mark.parametrize(("name", "reason"), REFUSED)
@pytest.mark.parametrize("pretrained", [True, False])
def test_other_models_are_refused_by_name_and_reason_without_any_weights(
    monkeypatch, name, reason, pretrained
):
    create = timm.create_model

    def only_blank(*args, **options):
        assert options["device"] == "meta"
        return create(*args, **options)

    monkeypatch.setattr(timm_names.timm, "create_model", only_blank)
    monkeypatch.setattr(zoo.hub, "fetch", lambda repo: pytest.fail("fetched"))
    with pytest.raises(UnsupportedModel, match=f"{name} .*{reason}.*([Ff]or now|models.md)"):
        models.load(name, pretrained=pretrained)


UNKNOWN = [
    ("vit_tinny_patch16_224", "vit_tiny_patch16_224"),
    ("dinov2_small", "dinov2-small"),
    ("", "dinov2-small"),
    ("zzz", "dinov2-small"),
    ("hf-hub:timm/whatever", "dinov2-small"),
    ("../weights/model.pth", "dinov2-small"),
    ("vit_tiny_patch16_224.augreg", "augreg_in21k"),
    ("vit_tiny_patch16_224.", None),
]


@pytest.mark.parametrize(("name", "suggests"), UNKNOWN)
def test_an_unknown_name_suggests_the_nearest_and_not_all_of_timm(name, suggests):
    if suggests is None:
        assert resolve(name).architecture == "vit_tiny_patch16_224"
        return
    with pytest.raises(UnknownName, match=suggests) as caught:
        models.load(name)
    assert len(str(caught.value)) < 400


def test_random_weights_follow_the_seed_and_leave_the_global_random_numbers_alone():
    before = torch.get_rng_state()
    first, again, other = (
        models.load("test_vit", pretrained=False, seed=seed) for seed in (4, 4, 5)
    )
    assert torch.equal(torch.get_rng_state(), before)
    states = [vit.module.state_dict() for vit in (first, again, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not torch.equal(states[0]["head.weight"], states[2]["head.weight"])
    assert first.random
    assert "seed 4" in first.weights
    assert not first.module.training


@pytest.mark.parametrize("device", ["tpu", "meta", "cuda:99", "", "cpu:gpu"])
def test_no_such_device(device):
    with pytest.raises(BadOption, match="cpu"):
        models.load("test_vit", pretrained=False, device=device)


def test_device_by_name_and_by_itself(tiny, monkeypatch):
    assert models.load("test_vit", pretrained=False, device="cpu").device == torch.device("cpu")
    best = "cuda" if torch.cuda.is_available() else "cpu"
    assert tiny.device.type == (best if not torch.backends.mps.is_available() else "mps")


@pytest.mark.parametrize(
    "name", [name for name, card in models.MODELS.items() if card.source == zoo.HUB]
)
def test_each_card_tells_the_truth(name):
    card, config = models.MODELS[name], get_pretrained_cfg(name)
    assert card.licence.lower() == config.license
    assert config.hf_hub_id == f"timm/{name}"
    parameters = sum(parameter.numel() for parameter in blank(name).module.parameters())
    assert card.size == f"{round(parameters / 1e6)} M"


# --- wrapping a module of one's own ----------------------------------------------------------


def test_wrapped_module_is_the_module_and_takes_only_its_own_size():
    module = small_module()
    vit = models.wrap(module, layout=TokenLayout(("cls",), (2, 3)))
    assert vit.module is module
    assert vit.image_size == (32, 48)
    assert vit.probe().shape == (1, 3, 32, 48)
    assert not vit.random
    with pytest.raises(BadOption, match=r"32 × 48.*48 × 32"):
        vit.layout(48, 32)
    with pytest.raises(BadOption, match="pad"):
        vit.view(noise(30, 30), "aspect")
    with pytest.raises(BadOption, match=r"\(2, 3\)"):
        models.wrap(module, layout=TokenLayout(("cls",), (3, 2)))


def test_wrapped_module_that_takes_any_size():
    vit = models.wrap(small_module(dynamic_img_size=True))
    assert vit.view(noise(20, 60), "aspect").tensor.shape == (1, 3, 16, 48)
    assert vit.recipe.mean == (0.485, 0.456, 0.406)  # nothing said otherwise


def test_wrapped_module_keeps_its_precision():
    vit = models.wrap(small_module().to(torch.float64))
    assert vit.view(noise(30, 60), "squash").tensor.dtype == torch.float64
    assert vit.view_of_tensor(torch.zeros(1, 3, 32, 48)).tensor.dtype == torch.float64


class Subclass(VisionTransformer):
    pass


FOREIGN = [
    (lambda: timm.create_model("resnet18"), "ResNet"),
    (lambda: small_module(in_chans=1), "1 channels"),
    (lambda: small_module(img_size=(40, 48)), "tile"),
    (lambda: torch.nn.DataParallel(small_module()), r"DataParallel wraps .* wrap its \.module"),
    (lambda: own_module(channels=2), "2 channels"),
]


@pytest.mark.parametrize(("make", "says"), FOREIGN)
def test_other_modules_are_not_wrapped(make, says):
    with pytest.raises(UnsupportedModel, match=says):
        models.wrap(make())


@pytest.mark.parametrize("make", [lambda: torch.nn.Linear(3, 3), lambda: Subclass(**SMALL)])
def test_the_layout_of_other_modules_is_asked_for(make):
    with pytest.raises(BadOption, match="give layout="):
        models.wrap(make())


def test_one_foreign_layer_is_enough_to_be_refused():
    module = small_module()
    module.blocks[1].attn = torch.nn.Identity()
    with pytest.raises(UnsupportedModel, match="Identity"):
        models.wrap(module)


# --- this project's own ViT ------------------------------------------------------------------


@pytest.mark.parametrize("block", ["separate", "fused"])
def test_own_vit_sites_are_fed_with_map_times_values(block):
    vit = own(block=block)
    seen = {}
    for site in vit.sites:
        assert vit.module.get_submodule(site.name) is site.module
        assert site.heads == 3
        assert site.fused_switch is None
        site.module.softmax.register_forward_hook(lambda *args: seen.update(attn=args[2]))
        site.after_mix.register_forward_pre_hook(lambda _, args: seen.update(mix=args[0]))
        x = torch.randn(1, 7, 12, generator=torch.Generator().manual_seed(3))
        site.module(x)
        values = site.module.V(x) if block == "separate" else site.module.to_qkv(x)[..., 24:]
        values = rearrange(values, "b n (h c) -> b h n c", h=3)
        mix = rearrange(seen["attn"] @ values, "b h n c -> b n (h c)")
        torch.testing.assert_close(seen["mix"], mix)


def test_own_vit_takes_one_size():
    vit = own()
    assert vit.image_size == (8, 12)
    assert vit.layout(8, 12) is vit.module.layout
    assert vit.view(noise(80, 60), "crop").tensor.shape == (1, 3, 8, 12)
    for call in (
        lambda: vit.layout(12, 8),
        lambda: vit.view(noise(9, 9), "aspect"),
        lambda: vit.view_of_tensor(torch.zeros(1, 3, 12, 8)),
    ):
        with pytest.raises(BadOption, match="8 × 12"):
            call()


def test_own_vit_with_one_channel_sees_in_grey():
    vit = own(channels=1)
    image = Image.new("RGB", (12, 8), (255, 0, 0))
    view = vit.view(image, "squash")
    assert view.tensor.shape == (1, 1, 8, 12)
    assert (view.pixels == 76).all()  # 0.299 × 255, the luminance of red
    assert torch.allclose(view.tensor, torch.tensor(76 / 255 * 2 - 1))
    assert np.array_equal(vit.view_of_tensor(view.tensor).pixels, view.pixels)


def test_own_vit_predictions():
    logits = torch.tensor([[0.0, 0.0, math.log(2), 0.0]])
    assert own().predictions(logits)[0] == ("class 2", 2, pytest.approx(0.4))
    assert own(classes=None).predictions(torch.zeros(1, 12)) == ()
