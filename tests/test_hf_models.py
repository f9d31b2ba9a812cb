"""Hugging Face's vision encoders, of random weights: proved, by both of their implementations."""

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import attnviz
import models
from attnviz import keeping
from attnviz.errors import BadOption, UnsupportedModel
from attnviz.record import Factors, Replayed
from attnviz.tokens import TokenLayout
from attnviz.verify import verify
from models import hf_modules

SMALL = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "image_size": 32, "patch_size": 8}  # fmt: skip
WITH_MLP = {**SMALL, "intermediate_size": 32}
SWIGLU = {**SMALL, "mlp_ratio": 2}
REGISTERS = ("reg1", "reg2")


def of(name: str, settings: dict, *, config: str = "", implementation: str = "sdpa"):
    """A small random model of that class, its maps far from uniform."""
    made = getattr(transformers, config or name.replace("Model", "Config"))(**settings)
    made._attn_implementation = implementation
    with torch.random.fork_rng():
        torch.manual_seed(2)
        module = getattr(transformers, name)(made).eval()
        for parameter in module.parameters():
            nn.init.normal_(parameter, std=0.25)
    return module


# name -> (class, settings, configuration, prefix)
MODELS = {
    "ViT": ("ViTModel", WITH_MLP, "", ("cls",)),
    "ViT, classes": ("ViTForImageClassification", WITH_MLP | {"num_labels": 4}, "ViTConfig", ("cls",)),
    "DeiT": ("DeiTModel", WITH_MLP, "", ("cls", "dist")),
    "DeiT, classes": ("DeiTForImageClassification", WITH_MLP | {"num_labels": 4}, "DeiTConfig", ("cls", "dist")),
    "DeiT, two heads": (
        "DeiTForImageClassificationWithTeacher", WITH_MLP | {"num_labels": 4}, "DeiTConfig", ("cls", "dist"),
    ),
    "BEiT": ("BeitModel", WITH_MLP | {"use_relative_position_bias": True}, "", ("cls",)),
    "BEiT, shared, class token": (
        "BeitModel",
        WITH_MLP | {"use_shared_relative_position_bias": True, "use_mean_pooling": False,
                    "use_absolute_position_embeddings": True},
        "", ("cls",),
    ),
    "BEiT, classes": ("BeitForImageClassification", WITH_MLP | {"num_labels": 4}, "BeitConfig", ("cls",)),
    "DINOv2": ("Dinov2Model", SWIGLU, "", ("cls",)),
    "DINOv2, classes": ("Dinov2ForImageClassification", SWIGLU | {"num_labels": 4}, "Dinov2Config", ("cls",)),
    "DINOv2, registers": (
        "Dinov2WithRegistersModel", SWIGLU | {"num_register_tokens": 2}, "", ("cls", *REGISTERS),
    ),
    "DINOv2, registers, classes": (
        "Dinov2WithRegistersForImageClassification", SWIGLU | {"num_register_tokens": 2, "num_labels": 4},
        "Dinov2WithRegistersConfig", ("cls", *REGISTERS),
    ),
    "DINOv3": ("DINOv3ViTModel", WITH_MLP | {"num_register_tokens": 2}, "", ("cls", *REGISTERS)),
    "SigLIP": ("SiglipVisionModel", WITH_MLP, "SiglipVisionConfig", ()),
    "SigLIP, no head": ("SiglipVisionModel", WITH_MLP | {"vision_use_head": False}, "SiglipVisionConfig", ()),
    "SigLIP, classes": (
        "SiglipForImageClassification", {"vision_config": WITH_MLP, "num_labels": 4}, "SiglipConfig", (),
    ),
    "CLIP": ("CLIPVisionModel", WITH_MLP, "CLIPVisionConfig", ("cls",)),
    "CLIP, projected": (
        "CLIPVisionModelWithProjection", WITH_MLP | {"projection_dim": 10}, "CLIPVisionConfig", ("cls",),
    ),
    "CLIP, classes": ("CLIPForImageClassification", {"vision_config": WITH_MLP, "num_labels": 4}, "CLIPConfig", ("cls",)),
}  # fmt: skip


def made(name: str, implementation: str = "sdpa") -> nn.Module:
    kind, settings, config, _ = MODELS[name]
    return of(kind, settings, config=config, implementation=implementation)


def picture(rows: int = 32, cols: int = 32) -> torch.Tensor:
    return torch.randn(1, 3, rows, cols, generator=torch.Generator().manual_seed(0))


def test_every_class_that_is_known_is_tested():
    known = {path.rpartition(".")[2] for path in (*hf_modules.ENCODERS, *hf_modules.HEADS)}
    assert known == {kind for kind, *_ in MODELS.values()}


@pytest.mark.parametrize(
    ("name", "implementation"),
    [
        *((name, "sdpa") for name in MODELS),
        *(
            (name, "eager") for name in MODELS if "classes" not in name
        ),  # these have the same layers
    ],
)
def test_each_is_verified_and_shows_what_it_says_itself(name, implementation):
    """Its own `output_attentions`, of an eager twin, is the oracle."""
    module, prefix = made(name, implementation), MODELS[name][3]
    vit = models.wrap(module)
    assert vit.layout(*vit.image_size) == TokenLayout(prefix, (4, 4))
    assert len(vit.sites) == 2
    for check in [*verify(vit), *verify(vit, picture())]:
        assert max(check.row_sum_error, check.output_error) < 1e-5
    own = made(name, "eager")
    with torch.no_grad():
        said = own(pixel_values=picture(), output_attentions=True)
    for keep in ("maps", "factors"):
        record = attnviz.observe(vit, picture(), keep=keep)
        assert record.keep == keep
        for layer, expected in zip(record.layers, said.attentions, strict=True):
            torch.testing.assert_close(layer.probs(), expected[0], atol=1e-5, rtol=1e-4)
    assert module.config._attn_implementation == implementation  # as it came
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


TAKES_ANY = [name for name in MODELS if "no head" not in name]


@pytest.mark.parametrize("name", TAKES_ANY)
def test_a_rectangle_is_seen_as_the_model_itself_sees_it(name):
    """Where a class asks for `interpolate_pos_encoding`, it is asked for."""
    vit = models.wrap(made(name), image_size=(16, 40))
    record = attnviz.observe(vit, picture(16, 40))
    assert record.layout.grid == (2, 5)
    own, options = made(name, "eager"), {}
    if any(word in name for word in ("ViT", "DeiT", "SigLIP", "CLIP")) and "DINO" not in name:
        options["interpolate_pos_encoding"] = True
    with torch.no_grad():
        said = own(pixel_values=picture(16, 40), output_attentions=True, **options)
    for layer, expected in zip(record.layers, said.attentions, strict=True):
        torch.testing.assert_close(layer.probs(), expected[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_a_changed_patch_changes_its_own_token(name):
    vit = models.wrap(made(name))
    x = picture(16, 40) if vit.any_size else picture()
    vit = vit.at((x.shape[2], x.shape[3]))
    changed = x.clone()
    changed[..., 8:16, 24:32] += 1
    first, second = (attnviz.observe(vit, each).layers[0].values for each in (x, changed))
    tokens = (first != second).any(-1).any(0).nonzero().flatten().tolist()
    assert tokens == [vit.layout(*x.shape[2:]).token(1, 3)]


FEATURES = {
    "ViT": lambda out: out.last_hidden_state[:, 0],
    "DeiT": lambda out: out.last_hidden_state[:, 0],
    "BEiT": lambda out: out.pooler_output,
    "BEiT, shared, class token": lambda out: out.pooler_output,
    "DINOv2": lambda out: out.pooler_output,
    "DINOv2, registers": lambda out: out.pooler_output,
    "DINOv3": lambda out: out.pooler_output,
    "SigLIP": lambda out: out.pooler_output,
    "SigLIP, no head": None,
    "CLIP": lambda out: out.pooler_output,
    "CLIP, projected": lambda out: out.last_hidden_state[:, 0],  # before its norm
}
GRADIENTS = ("relevance", "gradient_rollout", "attention_gradcam", "gradcam", "legrad")


@pytest.mark.parametrize("name", FEATURES)
def test_an_encoder_can_be_asked_what_makes_two_pictures_alike(name):
    module = made(name)
    vit = models.wrap(module)
    plain = attnviz.observe(vit, picture())
    assert vit.classes == () and plain.predictions == ()
    with torch.no_grad():
        said = module(pixel_values=picture())
    if FEATURES[name] is None:
        assert plain.feature is None
        with pytest.raises(BadOption, match="no one feature"):
            attnviz.observe(vit, picture(), target=attnviz.similarity_to((0, 0)))
        return
    expected = FEATURES[name](said)[0]
    if name == "CLIP, projected":
        expected = module.vision_model.post_layernorm(expected)
        torch.testing.assert_close(vit.run(picture()), said.image_embeds)
    torch.testing.assert_close(plain.feature, expected.detach())
    other = attnviz.observe(vit, picture() * 0.5, target=attnviz.similarity_to(plain))
    for method in GRADIENTS:
        assert np.isfinite(attnviz.explain(other, method).values).all()
    assert np.isfinite(attnviz.explain(plain, "pca").values).all()


@pytest.mark.parametrize("name", [name for name in MODELS if "classes" in name or "heads" in name])
def test_a_classifiers_target_is_its_logit(name):
    module = made(name)
    vit = models.wrap(module)
    assert vit.classes == ("class 0", "class 1", "class 2", "class 3")
    record = attnviz.observe(vit, picture(), target=2)
    with torch.no_grad():
        assert record.score == pytest.approx(float(module(picture()).logits[0, 2]), abs=1e-5)
    for method in GRADIENTS:
        if method == "legrad" and "DINOv2" in name:  # the class token beside the patches' mean
            with pytest.raises(BadOption, match="LeGrad needs"):
                attnviz.explain(record, method)
        else:
            assert np.isfinite(attnviz.explain(record, method).values).all()
    gradient = record.layers[0].gradient.block(0, 5)
    assert gradient.any()
    if "DINOv2" in name:
        with pytest.raises(BadOption, match="48 channels and a token's 24"):
            attnviz.observe(vit, picture(), target=attnviz.similarity_to((0, 0)))


@pytest.mark.parametrize(
    "name", ["ViT, classes", "DeiT, two heads", "BEiT, classes", "SigLIP, classes", "CLIP, classes"]
)
def test_the_readout_is_the_models_own(name):
    """The head, fed with the feature, gives the logits; or half of them, with two."""
    vit = models.wrap(made(name))
    record = attnviz.observe(vit, picture())
    with torch.no_grad():
        output = vit.run(picture())
        feature, tokens = record.feature, record.features
        if name != "DeiT, two heads":
            torch.testing.assert_close(vit.readout.classify(feature[None]), output)
        pooled = {"SigLIP, classes": tokens.mean(0), "CLIP, classes": tokens[1:].mean(0)}
        if name != "BEiT, classes":  # its norm is of the mean
            torch.testing.assert_close(feature, pooled.get(name, tokens[0]), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["ViT", "DINOv3", "BEiT"])
def test_a_large_record_makes_its_queries_and_keys_anew(monkeypatch, name):
    """Also while the model is switched to the other implementation."""
    vit = models.wrap(made(name))
    expected = attnviz.observe(vit, picture(), keep="factors")
    monkeypatch.setattr(keeping, "LEAN_FROM", -1)
    monkeypatch.setattr(keeping, "VALUES_BUDGET", -1)
    record = attnviz.observe(vit, picture(), keep="factors")
    assert isinstance(record.layers[0].source, Factors if name == "BEiT" else Replayed)
    vit.module.config._attn_implementation = "eager"
    for layer, other in zip(record.layers, expected.layers, strict=True):
        assert torch.equal(layer.probs(), other.probs())
    assert vit.module.config._attn_implementation == "eager"


def test_labels_are_the_configurations():
    settings = WITH_MLP | {"id2label": {0: "cat", 1: "dog"}, "label2id": {"cat": 0, "dog": 1}}
    module = of("ViTForImageClassification", settings, config="ViTConfig")
    vit = models.wrap(module)
    assert vit.classes == ("cat", "dog")
    assert {label for label, *_ in attnviz.observe(vit, picture()).predictions} == {"cat", "dog"}


def test_positions_that_would_be_scrambled_are_refused():
    """A grid that is not square is taken as one when positions are resampled."""
    module = of("ViTModel", WITH_MLP | {"image_size": (16, 64)})
    vit = models.wrap(module)
    assert vit.image_size == (16, 64) and vit.layout(16, 64).grid == (2, 8)
    assert max(check.output_error for check in verify(vit)) < 1e-5
    with pytest.raises(BadOption, match="takes only 16 × 64 pixels, but 32 × 32"):
        vit.at((32, 32))  # as many patches
    with pytest.raises(BadOption, match="no multiple of the patch"):
        models.wrap(made("ViT"), image_size=(30, 32))


def test_a_patch_that_does_not_tile_the_size_leaves_a_rest():
    vit = models.wrap(
        of("SiglipVisionModel", WITH_MLP | {"image_size": 30}, config="SiglipVisionConfig")
    )
    assert vit.image_size == (24, 24)
    assert max(check.output_error for check in verify(vit, picture(24, 24))) < 1e-5


# The encoder's image processor, whose defaults the recipe is; DeiT's and DINOv2's published weights
# have ImageNet's mean and std, their processors' defaults are others.
PROCESSORS = {
    "ViT": "ViTImageProcessor",
    "BEiT": "BeitImageProcessor",
    "DINOv3": "DINOv3ViTImageProcessor",
    "SigLIP": "SiglipImageProcessor",
    "CLIP": "CLIPImageProcessor",
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_recipes_are_those_of_the_image_processors(name):
    vit = models.wrap(made(name))
    processor = getattr(transformers, PROCESSORS[name])
    assert vit.recipe.mean == pytest.approx(tuple(processor.image_mean))
    assert vit.recipe.std == pytest.approx(tuple(processor.image_std))
    assert vit.recipe.interpolation.upper() == processor.resample.name
    squashed = not getattr(processor, "do_center_crop", None)
    assert (vit.recipe.crop_mode == "squash") == squashed
    assert "preprocessor_config.json" in vit.weights
    said = models.wrap(made(name), mean=(0.5,) * 3, std=(0.5,) * 3)
    assert "preprocessor_config.json" not in said.weights


def test_a_model_of_images_and_text_names_its_image_tower():
    config = transformers.CLIPConfig(
        vision_config=WITH_MLP,
        text_config={
            "hidden_size": 24,
            "num_hidden_layers": 1,
            "num_attention_heads": 3,
            "intermediate_size": 32,
        },
    )
    with pytest.raises(UnsupportedModel, match=r"wrap its \.vision_model"):
        models.wrap(transformers.CLIPModel(config))


def test_another_class_of_theirs_is_taken_with_a_layout():
    module = of("IJepaModel", WITH_MLP)
    with pytest.raises(BadOption, match="Which tokens IJepaModel has is not known"):
        models.wrap(module)
    vit = models.wrap(module, layout=TokenLayout((), (4, 4)))
    assert max(check.output_error for check in verify(vit)) < 1e-5


def test_half_precision_is_drawn():
    module = made("DINOv3").to(torch.bfloat16)
    record = attnviz.observe(models.wrap(module), picture())
    exact = attnviz.observe(models.wrap(made("DINOv3")), picture())
    for one, other in zip(exact.layers, record.layers, strict=True):
        torch.testing.assert_close(one.probs(), other.probs(), atol=2e-2, rtol=0)
