"""Modules that nobody described: their attention is found, proved and drawn, or refused by name."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import attnviz
import models
from attnviz import keeping
from attnviz.capture import checked_pass
from attnviz.errors import BadOption, CaptureFailed, UnsupportedModel
from attnviz.record import Factors, Maps
from attnviz.tap import Tap
from attnviz.tokens import TokenLayout
from attnviz.verify import verify
from tests.own_models import (
    ATTENTIONS,
    GRID,
    HEADS,
    HIGH,
    SIZE,
    WIDE,
    WIDTH,
    Base,
    Block,
    EncoderNet,
    Function,
    Net,
    twin,
)

ROOT = Path(__file__).parents[1]
LAYOUT = TokenLayout(("cls",), GRID)


def picture(seed: int = 0) -> torch.Tensor:
    return torch.randn(1, 3, *SIZE, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("way", ATTENTIONS)
def test_attention_is_found_however_it_is_written(way):
    net = Net(ATTENTIONS[way])
    vit = models.wrap(net, layout=LAYOUT)
    assert vit.image_size == SIZE  # by the layer that cuts the patches
    assert len(vit.sites) == 2
    for check in verify(vit):
        assert max(check.row_sum_error, check.output_error) < 1e-5
    dense, rebuilt = (attnviz.observe(vit, picture(), keep=keep) for keep in ("maps", "factors"))
    assert all(part.training for part in net.modules())  # as it came
    net.eval()
    with torch.no_grad():
        np.testing.assert_array_equal(vit.run(picture()), net(picture()))
    for one, other in zip(dense.layers, rebuilt.layers, strict=True):
        assert one.probs().shape == (HEADS, 7, 7)
        torch.testing.assert_close(one.probs(), other.probs(), atol=1e-5, rtol=1e-4)
    assert len(net._forward_hooks) == 0 and all(not m._forward_hooks for m in net.modules())


@pytest.mark.parametrize(
    ("way", "kinds"),
    [
        ("F.softmax", [Maps, Maps]),
        ("fused", [Factors, Factors]),
        ("nn.MultiheadAttention", [Maps, Factors]),  # torch has both, and each proves the other
        ("with its weights", [Maps, Maps]),
    ],
)
def test_a_route_is_what_the_module_did(way, kinds):
    vit = models.wrap(Net(ATTENTIONS[way]), layout=LAYOUT)
    for keep, kind in zip(("maps", "factors"), kinds, strict=True):
        tap = Tap(vit.sites, check=True)
        checked_pass(vit, picture(), tap, keep=keep)
        assert [type(each.source) for each in tap.caught.values()] == [kind, kind]


def test_what_an_own_module_would_do_when_it_is_asked_again_is_not_relied_on(monkeypatch):
    monkeypatch.setattr(keeping, "LEAN_FROM", -1)
    monkeypatch.setattr(keeping, "VALUES_BUDGET", -1)
    vit = models.wrap(Net(ATTENTIONS["fused"]), layout=LAYOUT)
    record = attnviz.observe(vit, picture(), keep="factors")
    assert all(type(layer.source) is Factors for layer in record.layers)


@pytest.mark.parametrize(
    "way", ["torch.softmax", "einsum", "bmm", "fused", "nn.MultiheadAttention"]
)
def test_maps_and_gradients_are_those_of_the_definition(way):
    """By another forward pass in float64; the gradient of a map by pushing single weights of it."""
    net = Net(ATTENTIONS[way]).eval()
    reference = Net(Function).eval()
    state = net.state_dict()
    for name in list(state):  # torch's own attention names its two projections otherwise
        if ".attn." in name:
            new = name.replace("attn.in_proj_", "qkv.").replace("attn.out_proj", "proj")
            state[new] = state.pop(name)
    reference.load_state_dict(state)
    if way == "einsum":  # its channels lie before its heads
        for block in reference.blocks:
            weight = block.attention.proj.weight.data
            weight.copy_(weight.unflatten(1, (WIDTH // HEADS, HEADS)).transpose(1, 2).flatten(1))
    vit = models.wrap(net, layout=LAYOUT, classes=4)
    record = attnviz.observe(vit, picture(), target=1, keep="factors")
    for layer, expected in zip(record.layers, twin(reference, picture()), strict=True):
        torch.testing.assert_close(layer.probs().double(), expected, atol=1e-5, rtol=1e-4)
        gradient = layer.gradient.block(0, 7)
        for head, query, key in ((0, 0, 0), (2, 3, 5)):
            pushed = _pushed(reference, record.layers.index(layer), (head, query, key))
            assert float(gradient[head, query, key]) == pytest.approx(pushed, abs=2e-3, rel=2e-2)


def _pushed(net: Net, number: int, place: tuple[int, int, int], by: float = 1e-2) -> float:
    """How much the score changes with one weight of one map, in float64."""
    scores = []
    for step in (by, -by):
        other = Net(Function).double().eval()
        other.load_state_dict({k: v.double() for k, v in net.state_dict().items()})
        attention = other.blocks[number].attention

        def forward(x, attention=attention, step=step):
            q, k, v = attention.split(x)
            attn = torch.softmax(attention.scores(q, k), dim=-1)
            attn[(0, *place)] += step
            return attention.proj(attention.join(attn @ v))

        attention.forward = forward
        with torch.no_grad():
            scores.append(float(other(picture().double())[0, 1]))
    return (scores[0] - scores[1]) / (2 * by)


def test_torchs_own_encoder_is_drawn():
    vit = models.wrap(EncoderNet(), layout=LAYOUT)
    assert [site.name for site in vit.sites] == [f"blocks.layers.{n}.self_attn" for n in (0, 1)]
    assert max(check.output_error for check in verify(vit)) < 1e-5


class Planted(nn.Module):
    """Every token attends to one, by hand."""

    def __init__(self, token: int) -> None:
        super().__init__()
        self.token, self.proj = token, nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        scores = torch.zeros(1, HEADS, x.shape[1], x.shape[1])
        scores[..., self.token] = 50.0
        values = x.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        return self.proj((scores.softmax(-1) @ values).transpose(1, 2).flatten(2))


@pytest.mark.parametrize(("prefix", "cell"), [(0, (0, 2)), (1, (1, 0)), (2, (1, 2)), (5, (0, 1))])
def test_a_planted_cell_is_lit(prefix, cell):
    names = ("cls", "dist", "reg1", "reg2", "reg3")[:prefix]
    layout = TokenLayout(names, GRID)
    net = Net(partial(Planted, prefix + cell[0] * GRID[1] + cell[1]), prefix=prefix)
    record = attnviz.observe(models.wrap(net, layout=layout), picture())
    heat = attnviz.explain(record, layer=0, head=1)
    expected = np.zeros(GRID)
    expected[cell] = 1
    np.testing.assert_allclose(heat.values, expected, atol=1e-6)
    left, top, right, bottom = heat.cell_box(*cell)
    assert (top, bottom) == (cell[0] * HIGH, (cell[0] + 1) * HIGH)
    assert (left, right) == (cell[1] * WIDE, (cell[1] + 1) * WIDE)


class Convolutional(Base):
    """Works on a grid, channels first, and its projection is a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Conv2d(WIDTH, WIDTH, 1)

    def forward(self, x):
        mixed = self.join(torch.softmax(self.scores(*self.split(x)[:2]), dim=-1) @ self.split(x)[2])
        return self.proj(mixed.transpose(1, 2).unflatten(2, GRID)).flatten(2).transpose(1, 2)


def test_a_projection_may_be_a_convolution():
    vit = models.wrap(Net(Convolutional, prefix=0), layout=TokenLayout((), GRID))
    assert all(site.channels_first for site in vit.sites)
    assert max(check.output_error for check in verify(vit)) < 1e-5


class Sharpened(Base):
    """Its map is changed after the softmax, so that rows miss the sum 1."""

    def forward(self, x):
        q, k, v = self.split(x)
        return self.proj(self.join((self.scores(q, k).softmax(-1) ** 2) @ v))


def test_a_map_that_is_changed_after_the_softmax_is_what_is_drawn():
    vit = models.wrap(Net(Sharpened), layout=LAYOUT)
    record = attnviz.observe(vit, picture())
    assert record.layers[0].mixed == "the map is changed after the softmax"
    assert float(record.layers[0].probs().sum(-1).max()) < 1


class Pooling(Net):
    """A learned query asks all tokens at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = self.blocks(torch.cat([self.tokens, x], dim=1) + self.places)
        return self.head(self.pool(self.places[:, :1], x, x)[0][:, 0])


def test_attention_that_is_not_from_all_to_all_is_left_out_and_said_so():
    vit = models.wrap(Pooling(), layout=LAYOUT)
    assert len(vit.sites) == 2
    assert "pool (from 1 to 7 tokens)" in vit.weights
    heat = attnviz.explain(attnviz.observe(vit, picture()))
    assert "pool (from 1 to 7 tokens)" in heat.fact("weights")


class Twice(Net):
    """The same block at each depth."""

    def __init__(self) -> None:
        super().__init__(depth=1)
        self.blocks = nn.Sequential(self.blocks[0], self.blocks[0])


class Bare(Base):
    """What it mixes is scaled head by head, so that nothing is fed with it."""

    def forward(self, x):
        q, k, v = self.split(x)
        mixed = torch.softmax(self.scores(q, k), dim=-1) @ v
        return self.proj(self.join(mixed * torch.tensor([1.0, 2.0, 3.0])[:, None, None]))


class Moody(Base):
    """Multiplies by another map each time but the first."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    def forward(self, x):
        q, k, v = self.split(x)
        attn, self.runs = torch.softmax(self.scores(q, k), dim=-1), self.runs + 1
        if self.runs > 6:  # once it was found and tried, it shows one map and uses another
            torch.softmax(self.scores(k, q), dim=-1)
        return self.proj(self.join(attn @ v))


class Inline(nn.Module):
    """Two attentions in one forward pass, without a module of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, (HIGH, WIDE), (HIGH, WIDE))
        self.out = nn.ModuleList([nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)])

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        for out in self.out:
            x = x + out((x @ x.mT).softmax(-1) @ x)
        return x


class Linear(Base):
    """Attention without a softmax over tokens."""

    def forward(self, x):
        q, k, v = self.split(x)
        return self.proj(self.join(F.elu(q) @ (F.elu(k).mT @ v)))


REFUSED = [
    (lambda: Net(Linear), LAYOUT, UnsupportedModel, "no attention that could be drawn"),
    (lambda: nn.Sequential(nn.Conv2d(3, 4, 4, 4), nn.Flatten()), LAYOUT, UnsupportedModel, "no attention"),
    (lambda: nn.Sequential(nn.Conv2d(3, 4, 4, 4), nn.Flatten()), None, UnsupportedModel, "no attention"),
    (Net, TokenLayout((), GRID), BadOption, r"6 tokens, 0 before 2 × 3 patches, but in Net attention goes from 7 to 7"),
    (Net, TokenLayout((), (7, 1)), UnsupportedModel, "failed in its own forward pass on an input of 1 × 3 × 56 × 4"),
    (Twice, LAYOUT, UnsupportedModel, r"Layer blocks\.0\.attention of Twice attends 2 times"),
    (Inline, TokenLayout((), GRID), UnsupportedModel, "Layer Inline of Inline attends 2 times"),
    (lambda: Net(Bare), LAYOUT, UnsupportedModel, r"layer blocks\.0\.attention of Net, map × values reach no module"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "layout", "kind", "says"), REFUSED)
def test_what_cannot_be_proved_is_refused_with_the_reason(made, layout, kind, says):
    with pytest.raises(kind, match=says):
        models.wrap(made().eval(), layout=layout)


def test_a_proof_that_fails_names_the_layer_and_by_how_much():
    vit = models.wrap(Net(Moody), layout=LAYOUT)
    with pytest.raises(CaptureFailed, match=r"layer blocks\.0\.attention of Net by maps .* misses"):
        attnviz.observe(vit, picture())


class Across(Net):
    """Patches column by column."""

    def forward(self, x):
        x = self.patches(x).transpose(2, 3).flatten(2).transpose(1, 2)
        return self.head(self.blocks(torch.cat([self.tokens, x], dim=1) + self.places)[:, 0])


class Behind(Net):
    """The class token behind the patches."""

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.blocks(torch.cat([x, self.tokens], dim=1) + self.places)[:, -1])


@pytest.mark.parametrize("made", [Across, Behind])
def test_a_layout_with_the_right_number_of_tokens_in_another_order_is_refused(made):
    with pytest.raises(
        BadOption, match=r"layer blocks\.0\.attention of \w+ that token (follows|changes)"
    ):
        models.wrap(made(), layout=LAYOUT)


def orders(rows: int, cols: int) -> dict[str, torch.Tensor]:
    """name → the number of the patch that stands at each place, other than the layout says."""
    plain = torch.arange(rows * cols).unflatten(0, (rows, cols))
    snake, some, two = plain.clone(), plain.flatten().clone(), plain.flatten().clone()
    snake[1::2] = snake[1::2].flip(1)
    inner = slice(len(some) // 6, -len(some) // 6)
    some[inner] = some[inner].roll(5)
    two[[4, 5]] = two[[5, 4]]
    return {
        "every other row backwards": snake.flatten(),
        "all but the ends": some,
        "turned round": plain.flatten().flip(0),
        "two neighbours exchanged": two,
    }


class Ordered(nn.Module):
    """Its patches may be put in another order, at first or behind a block."""

    def __init__(self, stem, grid, *, prefix=1, order=None, before=0, way="torch.softmax"):
        super().__init__()
        self.patches, self.order, self.before, self.prefix = stem, order, before, prefix
        self.tokens = nn.Parameter(torch.zeros(1, prefix, WIDTH))
        self.places = nn.Parameter(torch.zeros(1, prefix + grid[0] * grid[1], WIDTH))
        self.blocks = nn.ModuleList(Block(ATTENTIONS[way]()) for _ in range(3))
        torch.manual_seed(3)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.4)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.tokens, x], dim=1) + self.places
        for number, block in enumerate(self.blocks):
            if number == self.before and self.order is not None:
                x = torch.cat([x[:, : self.prefix], x[:, self.prefix :][:, self.order]], dim=1)
            x = block(x)
        return x.mean(1)


def plain_stem():
    return nn.Conv2d(3, WIDTH, 8, 8)


def overlapping_stem():
    """Three layers, each of which halves the picture and looks past its cells."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU(),
        nn.Conv2d(8, WIDTH, 3, 2, 1),
    )  # fmt: skip


NAMED = ((), ("cls",), ("cls", "dist"))


@pytest.mark.parametrize("prefix", NAMED)
@pytest.mark.parametrize("grid", [(7, 7), (4, 6), (5, 3)])
def test_every_patch_in_every_layer_is_tried(grid, prefix):
    layout, size = TokenLayout(prefix, grid), (grid[0] * 8, grid[1] * 8)

    def wrapped(order=None, before=0):
        net = Ordered(plain_stem(), grid, prefix=len(prefix), order=order, before=before)
        return models.wrap(net, layout=layout, image_size=size)

    assert "see more than their own" not in wrapped().weights
    for order in orders(*grid).values():
        with pytest.raises(BadOption, match=r"in layer blocks\.0\.attention of Ordered that token"):
            wrapped(order)
        with pytest.raises(UnsupportedModel, match=r"in layer blocks\.2\.attention .* on the way"):
            wrapped(order, before=2)


@pytest.mark.parametrize("way", ATTENTIONS)
def test_an_order_that_changes_between_layers_is_seen_however_attention_is_written(way):
    order = orders(4, 6)["two neighbours exchanged"]
    net = Ordered(plain_stem(), (4, 6), order=order, before=1, way=way)
    # The first patch that is elsewhere, counted by hand: number 4 of 6 in a row is followed by 5.
    said = r"token 5 is the patch at row 0, column 4, .* follows the patch at row 0, column 5"
    with pytest.raises(UnsupportedModel, match=said):
        models.wrap(net, layout=TokenLayout(("cls",), (4, 6)))


@pytest.mark.parametrize("grid", [(7, 7), (4, 6)])
def test_tokens_that_see_beside_their_patches_are_tried_and_said_so(grid):
    layout, size = TokenLayout(("cls",), grid), (grid[0] * 8, grid[1] * 8)
    vit = models.wrap(Ordered(overlapping_stem(), grid), layout=layout, image_size=size)
    assert "tokens see more than their own patches" in vit.weights
    for name, order in orders(*grid).items():
        if name != "two neighbours exchanged":
            for before in (0, 1):
                net = Ordered(overlapping_stem(), grid, order=order, before=before)
                with pytest.raises((BadOption, UnsupportedModel), match="that token"):
                    models.wrap(net, layout=layout, image_size=size)


def test_weights_that_are_not_finite_are_named():
    for way, row in (("torch.softmax", 0), ("torch.softmax", -1), ("fused", -1)):  # query, value
        net = Net(ATTENTIONS[way])
        net.blocks[1].attention.qkv.weight.data[row] = float("nan")
        with pytest.raises(CaptureFailed, match=r"Layer blocks\.1\.attention of Net .* not finite"):
            models.wrap(net, layout=LAYOUT)


def test_a_model_without_classes_offers_the_targets_that_it_has():
    headed = models.wrap(
        Net(), layout=LAYOUT
    )  # no norm of it is known: its tokens are not compared
    with pytest.raises(BadOption, match=r"has: attnviz\.similarity_to\(record\) of another"):
        attnviz.observe(headed, picture(), target=1)
    net = Ordered(nn.Conv2d(3, WIDTH, (HIGH, WIDE), (HIGH, WIDE)), GRID)
    with pytest.raises(BadOption, match="no one feature of a picture either") as caught:
        attnviz.observe(models.wrap(net, layout=LAYOUT), picture(), target="predicted")
    assert "similarity_to" not in str(caught.value)


def test_a_missing_layout_is_asked_for():
    net = Net()
    with pytest.raises(BadOption, match=r"give layout=attnviz\.TokenLayout"):
        models.wrap(net)
    with pytest.raises(BadOption, match="16 × 12 pixels its attention goes from 7 to 7 tokens"):
        models.wrap(net, image_size=SIZE)
    for wrapper in (nn.DataParallel(net), torch.compile(net)):
        with pytest.raises(
            UnsupportedModel, match=r"wraps another module: wrap its \.(module|_orig)"
        ):
            models.wrap(wrapper, layout=LAYOUT)
    tower = nn.Module()
    tower.visual = net
    with pytest.raises(UnsupportedModel, match=r"wrap its \.visual"):
        models.wrap(tower)


class Stem(Net):
    """Patches cut by a layer whose windows overlap: the size of a picture does not follow."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, (HIGH + 2, WIDE + 2), (HIGH, WIDE), 1)


def test_a_size_that_cannot_be_told_is_asked_for():
    with pytest.raises(BadOption, match=r"Stem .* give image_size"):
        models.wrap(Stem(), layout=LAYOUT)
    vit = models.wrap(Stem(), layout=LAYOUT, image_size=SIZE)
    assert vit.layout(*SIZE) == LAYOUT
    with pytest.raises(BadOption, match="does not tile 17 × 12"):
        models.wrap(Stem(), layout=LAYOUT, image_size=(17, 12))
    with pytest.raises(BadOption, match="takes only 16 × 12 pixels, but 32 × 12"):
        vit.at((32, 12))


def test_targets_need_to_know_what_outputs_are():
    vit = models.wrap(Net(), layout=LAYOUT)
    with pytest.raises(BadOption, match="has no classes"):
        attnviz.observe(vit, picture(), target=1)
    vit = models.wrap(Net(), layout=LAYOUT, classes=("a", "b", "c", "d"))
    record = attnviz.observe(vit, picture(), target="c")
    assert record.target == "class 2 (c)"
    assert len(record.predictions) == 4
    for method in ("relevance", "gradient_rollout", "attention_gradcam"):
        assert np.isfinite(attnviz.explain(record, method).values).all()
    with pytest.raises(BadOption, match="LeGrad needs"):
        attnviz.explain(record, "legrad")
    other = attnviz.observe(vit, picture(1), target=attnviz.similarity_to(record))
    assert -1 <= other.score <= 1
    with pytest.raises(BadOption, match="no features of single tokens"):
        attnviz.explain(record, "pca")
    with pytest.raises(
        BadOption, match=r"3 classes came, but Net gives an output of shape \(1, 4\)"
    ):
        models.wrap(Net(), layout=LAYOUT, classes=3)


def test_the_recipe_is_said_and_can_be_given():
    vit = models.wrap(Net(), layout=LAYOUT)
    assert "ImageNet's mean and std" in vit.weights
    assert vit.recipe.mean == (0.485, 0.456, 0.406)
    vit = models.wrap(Net(), layout=LAYOUT, mean=(0, 0, 0), std=[1, 1, 1])
    assert vit.recipe.mean == (0, 0, 0) and "ImageNet" not in vit.weights
    for options in ({"mean": (0.5, 0.5)}, {"std": (1, 1, 0)}, {"mean": "abc"}):
        with pytest.raises(BadOption, match="three numbers"):
            models.wrap(Net(), layout=LAYOUT, **options)


def test_the_pages_example_runs(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "own_models.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "own_models.md", "exec"), {})
    assert {path.name for path in tmp_path.glob("*.png")} == {"head.png", "why.png"}


def test_half_precision_is_drawn():
    net = Net(ATTENTIONS["nn.MultiheadAttention"]).to(torch.bfloat16)
    vit = models.wrap(net, layout=LAYOUT)
    exact = attnviz.observe(models.wrap(net.float(), layout=LAYOUT), picture())
    half = attnviz.observe(models.wrap(net.to(torch.bfloat16), layout=LAYOUT), picture())
    for one, other in zip(exact.layers, half.layers, strict=True):
        torch.testing.assert_close(one.probs(), other.probs(), atol=2e-2, rtol=0)
    assert vit.module is net


def test_faithfulness_works_on_an_own_module():
    vit = models.wrap(Net(), layout=LAYOUT, classes=4)
    record = attnviz.observe(vit, picture())
    curves = attnviz.faithfulness(vit, record, attnviz.explain(record), mode="deletion")
    assert "deletion" in curves.verdict.lower() or curves.verdict
