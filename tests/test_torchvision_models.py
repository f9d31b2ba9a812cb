"""torchvision's models: their layers are proved, and their windows lie where the model has them."""

import numpy as np
import pytest
import torch
import torchvision
from torch import nn
from torchvision.models.swin_transformer import (
    PatchMergingV2,
    SwinTransformer,
    SwinTransformerBlockV2,
)
from torchvision.models.vision_transformer import ConvStemConfig, VisionTransformer

import attnviz
import models
from attnviz.errors import BadOption
from attnviz.tokens import TokenLayout
from attnviz.verify import verify
from models.cells import windows

VIT = {"image_size": 32, "patch_size": 8, "num_layers": 2, "num_heads": 4, "hidden_dim": 24, "mlp_dim": 32, "num_classes": 5}  # fmt: skip
SWIN = {"patch_size": [4, 2], "embed_dim": 12, "depths": [2, 2], "num_heads": [2, 3], "num_classes": 5}  # fmt: skip
STEM = [ConvStemConfig(8, 3, 2), ConvStemConfig(8, 3, 4)]

# name -> (how it is made, an input's size, layers)
MODELS = {
    "ViT": (lambda: VisionTransformer(**VIT), (32, 32), 2),
    "ViT, stem": (lambda: VisionTransformer(**VIT, conv_stem_configs=STEM), (32, 32), 2),
    "Swin": (lambda: SwinTransformer(**SWIN, window_size=[4, 4]), (64, 48), 4),
    "Swin, padded": (lambda: SwinTransformer(**SWIN, window_size=[5, 7]), (64, 48), 4),
    "Swin, one window": (lambda: SwinTransformer(**SWIN, window_size=[9, 4]), (64, 32), 4),
    "Swin v2": (
        lambda: SwinTransformer(
            **SWIN,
            window_size=[4, 3],
            block=SwinTransformerBlockV2,
            downsample_layer=PatchMergingV2,
        ),
        (64, 48),
        4,
    ),
}


def small(name: str):
    """One of `MODELS`, random, its maps far from uniform."""
    torch.manual_seed(4)
    module = MODELS[name][0]().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.2)
    return models.wrap(module)


def picture(name: str) -> torch.Tensor:
    return torch.randn(1, 3, *MODELS[name][1], generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", MODELS)
def test_each_is_verified_and_both_routes_agree(name):
    vit, x = small(name), picture(name)
    assert len(vit.sites) == MODELS[name][2]
    for check in [*verify(vit), *verify(vit, x)]:
        assert max(check.row_sum_error, check.output_error) < 1e-5
    dense, rebuilt = (attnviz.observe(vit, x, keep=keep, target=1) for keep in ("maps", "factors"))
    assert rebuilt.keep == ("factors" if name.startswith("ViT") else "maps")
    for one, other in zip(dense.layers, rebuilt.layers, strict=True):
        torch.testing.assert_close(one.probs(), other.probs(), atol=1e-5, rtol=1e-4)
        assert one.gradient.block(0, 3).any()
    with torch.no_grad():
        torch.testing.assert_close(vit.module(x), vit.run(x))
    for method in ("relevance", "attention_gradcam", "rollout", "legrad"):
        if method == "legrad" and not name.startswith("ViT"):
            with pytest.raises(BadOption, match="LeGrad needs"):
                attnviz.explain(dense, method)
        else:
            assert np.isfinite(attnviz.explain(dense, method).values).all()


def test_the_vit_is_as_its_definition_says():
    """One layer by loops in float64, out of its own parameters."""
    vit, x = small("ViT"), picture("ViT")
    module, layer = vit.module.double(), None
    with torch.no_grad():
        tokens = module.conv_proj(x.double()).flatten(2).transpose(1, 2)[0]
        stream = torch.cat([module.class_token[0], tokens]) + module.encoder.pos_embedding[0]
        block = module.encoder.layers[0]
        q, k, _ = (
            block.ln_1(stream) @ block.self_attention.in_proj_weight.T
            + block.self_attention.in_proj_bias
        ).chunk(3, dim=-1)
        layer = torch.stack(
            [
                (q[:, head * 6 : head * 6 + 6] @ k[:, head * 6 : head * 6 + 6].T / 6**0.5).softmax(
                    -1
                )
                for head in range(4)
            ]
        )
    module.float()
    record = attnviz.observe(vit, x)
    assert record.layout == TokenLayout(("cls",), (4, 4))
    torch.testing.assert_close(record.layers[0].probs().double(), layer, atol=1e-5, rtol=1e-4)


# model, layer, module whose input (1, row, col, channel) is the grid, and a cell of it
PLACES = [
    ("Swin", 0, "features.1.0", (13, 9)),
    ("Swin", 1, "features.1.1", (1, 23)),  # moved: its window goes round the edge
    ("Swin", 3, "features.3.1", (6, 2)),
    ("Swin, padded", 0, "features.1.0", (15, 23)),
    ("Swin, padded", 1, "features.1.1", (15, 23)),
    ("Swin, padded", 1, "features.1.1", (2, 1)),
    ("Swin, one window", 1, "features.1.1", (3, 14)),
    ("Swin, one window", 3, "features.3.1", (7, 1)),
    ("Swin v2", 1, "features.1.1", (15, 0)),
]


@pytest.mark.parametrize(("name", "number", "path", "cell"), PLACES)
def test_one_cell_of_the_stream_is_one_column_of_the_map(name, number, path, cell):
    """Only its value changes, and the rows of those that can see it, but no others."""
    vit, x = small(name), picture(name)
    plain = attnviz.observe(vit, x)
    geometry = plain.geometry(plain.layers[number])

    def plant(_, given):
        stream = given[0].clone()
        if tuple(stream.shape[1:3]) == geometry.queries.grid:  # not in the proof, on a smaller one
            stream[0, cell[0], cell[1]] = torch.linspace(-3, 5, stream.shape[-1])
        return (stream,)

    hook = vit.module.get_submodule(path).register_forward_pre_hook(plant)
    planted = attnviz.observe(vit, x)
    hook.remove()
    first, second = (record.layers[number] for record in (plain, planted))
    token = geometry.queries.token(*cell)
    changed = (first.values - second.values).abs().amax((0, 2)) > 1e-6
    assert changed.nonzero().flatten().tolist() == [token]
    before, after = first.probs(), second.probs()
    noticed = (before - after).abs().amax((0, 2)) > 1e-6
    sees = torch.stack([geometry.reach(range(t, t + 1))[token] for t in range(len(noticed))])
    assert not noticed[~sees].any() and noticed[sees].any()
    assert (before[:, ~sees][..., token] < 1e-6).all() and (before[:, sees][..., token] > 0).all()


def test_opposite_edges_in_a_moved_window_are_kept_apart():
    """Moved by 2 × 2: the window at the end holds the last two rows and columns, and the first."""
    vit, x = small("Swin"), picture("Swin")
    record = attnviz.observe(vit, x)
    heat = attnviz.explain(record, layer=1, query=(15, 23))
    expected = np.zeros((16, 24), dtype=bool)
    expected[14:, 22:] = True
    assert np.array_equal(heat.filled, expected)
    heat = attnviz.explain(record, layer=1, query=(5, 0))  # rows 2 to 5, and the first two columns
    expected[:] = False
    expected[2:6, :2] = True
    assert np.array_equal(heat.filled, expected)


def test_windows_are_padded_before_they_are_moved():
    """3 columns, padded to 4 and moved by 1: the padding comes before the first column again."""
    cells = windows((2, 3), (2, 2), shift=(0, 1), padded_first=True)
    assert cells.tolist() == [[1, 2, 4, 5], [-1, 0, -1, 3]]
    assert windows((2, 3), (2, 2), shift=(0, 1)).tolist() == [[1, 2, 4, 5], [0, -1, 3, -1]]


def test_a_window_that_spans_the_grid_is_not_moved():
    vit = small("Swin, one window")
    record = attnviz.observe(vit, picture("Swin, one window"))
    kinds = [record.geometry(layer).kind for layer in record.layers]
    assert kinds == [
        "windows of 9 × 4",
        "windows of 9 × 4, moved by 4 × 2",
        "windows of 9 × 4",
        "windows of 9 × 4, moved by 0 × 2",
    ]


@pytest.mark.parametrize(
    ("name", "size", "grid", "layers"),
    [("vit_b_32", (224, 224), (7, 7), 12), ("swin_t", (224, 224), (56, 56), 12), ("swin_v2_t", (256, 256), (64, 64), 12)],
)  # fmt: skip
def test_torchvisions_own_models_have_their_own_size(name, size, grid, layers):
    with torch.device("meta"):
        module = getattr(torchvision.models, name)(weights=None)
    vit = models.wrap(module)
    assert (vit.image_size, vit.layout(*size).grid, len(vit.sites)) == (size, grid, layers)
    assert vit.classes[281] == "tabby, tabby cat"
    weights = torchvision.models.get_model_weights(name).DEFAULT.transforms()
    assert vit.recipe.mean == tuple(weights.mean) and vit.recipe.std == tuple(weights.std)
    assert int(size[0] / vit.recipe.crop_pct) == weights.resize_size[0]
    assert vit.recipe.interpolation == weights.interpolation.value


def test_a_vit_takes_one_size_and_swin_any():
    with pytest.raises(BadOption, match="takes only 32 × 32 pixels, but 32 × 48"):
        models.wrap(VisionTransformer(**VIT), image_size=(32, 48))
    vit = models.wrap(SwinTransformer(**SWIN, window_size=[4, 4]), image_size=(20, 18))
    assert vit.layout(20, 18) == TokenLayout((), (5, 9))
    with pytest.raises(BadOption, match="no multiple of the patch, 4 × 2"):
        vit.at((22, 18))
    layout = TokenLayout(("cls",), (4, 4))
    assert models.wrap(VisionTransformer(**VIT), layout=layout).layout(32, 32) == layout
    with pytest.raises(BadOption, match="leave it out"):
        models.wrap(VisionTransformer(**VIT), layout=TokenLayout((), (4, 4)))


def test_classes_can_be_named():
    names = ("a", "b", "c", "d", "e")
    vit = models.wrap(VisionTransformer(**VIT), classes=names)
    assert (
        vit.classes == names and attnviz.observe(vit, picture("ViT"), target="c").target_class == 2
    )
    with pytest.raises(BadOption, match="4 classes came, but VisionTransformer has 5"):
        models.wrap(VisionTransformer(**VIT), classes=4)


class Changed(VisionTransformer):
    """A subclass may do anything."""


def test_a_subclass_is_no_longer_known():
    with pytest.raises(BadOption, match="Which tokens Changed has is not known"):
        models.wrap(Changed(**VIT))
    vit = models.wrap(Changed(**VIT), layout=TokenLayout(("cls",), (4, 4)))
    assert len(vit.sites) == 2


def test_a_convolutional_network_has_no_attention():
    with pytest.raises(attnviz.UnsupportedModel, match="ResNet has no attention"):
        models.wrap(torchvision.models.resnet18(weights=None), image_size=64)
