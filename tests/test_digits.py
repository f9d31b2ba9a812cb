"""The digits models: the pictures, the training, and what the committed weights are worth."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import attnviz
import models
from attnviz.errors import AttnVizError, BadOption, BadWeights, UnknownName
from attnviz.samples import SAMPLES, open_sample
from models import digits, own_weights
from models.attention import Attention, MultiHeadSelfAttention

ROOT = Path(__file__).parents[1]
CARD = (own_weights.FOLDER / "README.md").read_text("utf-8")
NAMES = {"digits": MultiHeadSelfAttention, "digits-fused-qkv": Attention}


@pytest.fixture(scope="module")
def data():
    return digits.Digits.read()


@pytest.fixture(scope="module", params=NAMES)
def vit(request):
    return models.load(request.param, device="cpu")


# --- the committed weights --------------------------------------------------------------------


@pytest.mark.parametrize("shade", ["light on dark", "dark on light"])
def test_at_least_97_of_100_test_pictures_are_named_rightly(vit, shade):
    """From scikit-learn's numbers to the answer without the code that trained."""
    counts, classes = load_digits(return_X_y=True)
    _, test = train_test_split(range(1797), test_size=360, random_state=0, stratify=classes)
    small = np.rint(counts[test] * 255 / 16).astype(np.uint8).reshape(-1, 8, 8)
    if shade == "dark on light":
        small = 255 - small
    large = [Image.fromarray(each).resize((32, 32), Image.Resampling.BICUBIC) for each in small]
    x = torch.from_numpy(np.stack(large)[:, None] / 255).float() * 2 - 1
    with torch.no_grad():
        right = (vit.module(x).argmax(1).numpy() == classes[test]).mean()
    assert right >= 0.97
    if shade == "light on dark":
        stated = own_weights.TRAINED[vit.name].accuracy
        assert right == pytest.approx(stated, abs=1.5 / 360)  # a picture may fall either way
        assert f"{stated:.1%}" in vit.weights
        block = NAMES[vit.name].__name__
        assert f"| `{vit.name}` | `{block}` | {stated:.2%} |" in CARD


def test_the_test_command_says_the_same(capsys):
    assert digits.main(["test"]) == 0
    said = dict(re.findall(r"^(\S+): (\S+)% right$", capsys.readouterr().out, re.M))
    assert said.keys() == own_weights.TRAINED.keys() == NAMES.keys()
    for name, share in said.items():
        assert float(share) / 100 == pytest.approx(own_weights.TRAINED[name].accuracy, abs=0.005)


def test_each_map_is_the_one_that_was_used(vit, data):
    with torch.no_grad():
        for tensor in (None, data.inputs(vit, data.test[:1])):
            checks = attnviz.verify(vit, tensor)
            assert len(checks) == 4 * 2  # layers, routes
            assert max(check.output_error for check in checks) < 1e-5


def test_it_is_the_network_that_its_card_describes(vit):
    card = models.MODELS[vit.name]
    parameters = sum(parameter.numel() for parameter in vit.module.parameters())
    assert card.size == f"{parameters / 1e6:.1f} M"
    assert card.family == "offline classifier" and "no network" in card.source
    assert (vit.image_size, vit.patch_size, vit.any_size) == ((32, 32), (4, 4), False)
    layout = vit.layout(32, 32)
    assert (layout.prefix, layout.grid, layout.tokens) == (("cls",), (8, 8), 65)
    assert [type(site.module) for site in vit.sites] == [NAMES[vit.name]] * 4
    assert {site.heads for site in vit.sites} == {4}
    assert not vit.random and not vit.module.training
    assert all(parameter.requires_grad for parameter in vit.module.parameters())
    assert own_weights.file(vit.name).stat().st_size < 1_500_000
    assert own_weights.TRAINED[vit.name].sha256 in CARD


def test_its_classes_are_the_ten_digits(vit):
    logits = torch.tensor([[0.0, 9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0]])
    assert [named[:2] for named in vit.predictions(logits)] == [
        ("1", 1), ("3", 3), ("5", 5), ("7", 7), ("9", 9),
    ]  # fmt: skip
    assert vit.labels == tuple("0123456789")


# what spoils a file: (its bytes, what the error says)
SPOILT = {
    "one bit": (lambda good: bytes([*good[:-1], good[-1] ^ 1]), "SHA-256"),
    "cut off": (lambda good: good[:-1], "SHA-256"),
    "empty": (lambda good: b"", "SHA-256"),
    "missing": (lambda good: None, "No such file"),
}


@pytest.mark.parametrize("kind", SPOILT)
@pytest.mark.parametrize("name", NAMES)
def test_another_file_is_refused_unread(name, kind, monkeypatch, tmp_path):
    spoil, says = SPOILT[kind]
    content = spoil(own_weights.file(name).read_bytes())
    monkeypatch.setattr(own_weights, "FOLDER", tmp_path)
    monkeypatch.setattr(safetensors.torch, "load", lambda _: pytest.fail("read"))
    if content is not None:
        own_weights.file(name).write_bytes(content)
        says = hashlib.sha256(content).hexdigest()
    with pytest.raises(BadWeights, match=says) as caught:
        models.load(name)
    assert "repository" in str(caught.value)


# --- the arguments of models.load -------------------------------------------------------------


@pytest.mark.parametrize("size", [32, (32, 32)])
def test_its_own_size_may_be_given(size):
    assert models.load("digits", image_size=size).image_size == (32, 32)


@pytest.mark.parametrize(
    ("size", "says"),
    [
        (64, "takes only 32 × 32 pixels, but 64 × 64 came"),
        ((32, 64), "32 × 64 came"),
        (0, "0 came"),
        ("32", "'32' came"),
    ],
)
def test_another_size_is_refused(size, says):
    with pytest.raises(BadOption, match=says):
        models.load("digits", image_size=size)


@pytest.mark.parametrize("name", NAMES)
def test_random_weights_are_those_of_the_seed(name):
    before = torch.get_rng_state()
    first, again, other = (models.load(name, pretrained=False, seed=seed) for seed in (4, 4, 5))
    assert torch.equal(torch.get_rng_state(), before)
    assert first.random and "seed 4" in first.weights
    heads = [each.module.head.weight for each in (first, again, other)]
    assert torch.equal(heads[0], heads[1]) and not torch.equal(heads[0], heads[2])


def test_a_checkpoint_of_ones_own(tmp_path):
    state = models.load("digits", pretrained=False, seed=3).module.state_dict()
    save_file(state, tmp_path / "mine.safetensors")
    vit = models.load("digits", checkpoint=tmp_path / "mine.safetensors", pretrained=False)
    assert all(torch.equal(vit.module.state_dict()[name], state[name]) for name in state)
    assert "mine.safetensors" in vit.weights and not vit.random
    with pytest.raises(BadWeights, match=r"mine\.safetensors does not fit .*attn\.to_qkv\.weight"):
        models.load("digits-fused-qkv", checkpoint=tmp_path / "mine.safetensors")


@pytest.mark.parametrize(
    ("name", "near"), [("digit", "digits"), ("digits-fused", "digits-fused-qkv")]
)
def test_a_mistyped_name_names_the_nearest(name, near):
    with pytest.raises(UnknownName, match=f"Did you mean .*{near}"):
        models.load(name)


# --- the data ---------------------------------------------------------------------------------


def test_the_split_is_the_one_that_the_card_states(data):
    _, classes = load_digits(return_X_y=True)
    train, test = data.train.tolist(), data.test.tolist()
    assert (len(train), len(test)) == (1437, 360)
    assert sorted(train + test) == list(range(1797))
    assert data.classes.tolist() == classes.tolist()
    assert set(np.bincount(classes[test])) <= {35, 36, 37}
    rule = "train_test_split(range(1797), test_size=360, random_state=0, stratify=classes)"
    assert rule in CARD
    assert eval(rule, {"train_test_split": train_test_split, "classes": classes}) == [train, test]


def test_a_patch_is_one_count_of_ink(data):
    counts = load_digits().images
    for index in (0, 700, 1796):
        picture = data.pictures[index]
        assert (picture.mode, picture.size) == ("L", (32, 32))
        patches = np.asarray(picture, dtype=float).reshape(8, 4, 8, 4).mean((1, 3))
        levels = counts[index] * 255 / 16
        # Smooth edges bleed into the neighbours.
        assert np.abs(patches - levels).mean() < 16
        for turned in (levels.T, levels[:, ::-1]):
            assert np.abs(patches - turned).mean() > 24
    assert digits._enlarged([16] * 64).getextrema() == (255, 255)
    assert digits._enlarged([0] * 64).getextrema() == (0, 0)


def test_the_model_is_fed_as_in_training(vit, data):
    fed = data.inputs(vit, torch.tensor([3, 700]))
    for tensor, index in zip(fed, (3, 700), strict=True):
        assert torch.equal(vit.view(data.pictures[index].convert("RGB"), "crop").tensor[0], tensor)
    assert tuple(fed.aminmax()) == (-1, 1)  # black, white


def test_without_scikit_learn_the_error_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(AttnVizError, match=r"requirements-dev\.txt"):
        digits.Digits.read()
    assert digits.main(["test"]) == 2
    assert capsys.readouterr().err.startswith("models.digits: The handwritten digits come with")


@pytest.mark.parametrize("name", [name for name in SAMPLES if name.startswith("digit-")])
def test_a_sample_digit_is_a_test_picture_that_is_named_rightly(name, vit, data):
    sample = open_sample(name)
    index = int(re.search(r"picture (\d+)", SAMPLES[name].source)[1])
    assert index in data.test
    assert np.array_equal(np.asarray(sample)[..., 0], np.asarray(data.pictures[index]))
    (label, *_, share), *_ = attnviz.observe(vit, sample).predictions
    assert label == name.removeprefix("digit-") == str(int(data.classes[index]))
    assert SAMPLES[name].label == f"Handwritten {label}"
    assert share > 0.8


# --- the training -----------------------------------------------------------------------------


def small(data, classes, *, test):
    """Eight training pictures of each class."""
    numbers = [data.train[data.classes[data.train] == each][:8] for each in classes]
    return digits.Digits(data.pictures, data.classes, torch.cat(numbers), torch.tensor(test))


def test_training_is_repeatable_and_looks_at_no_test_picture(data):
    before = torch.get_rng_state()
    first, again = (
        digits.train("digits", small(data, [0, 1], test=test), epochs=1) for test in ([1, 2], [3])
    )
    assert torch.equal(torch.get_rng_state(), before)
    states = first.state_dict(), again.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    other = digits.train("digits", small(data, [0, 1], test=[1]), epochs=1, seed=1)
    assert not torch.equal(other.head.weight, first.head.weight)
    assert not first.training


@pytest.mark.parametrize("name", NAMES)
def test_training_learns(name, data):
    few = small(data, [0, 1], test=[0])
    module = digits.train(name, few, epochs=60)
    assert type(module.blocks[0].attn) is NAMES[name]
    few = digits.Digits(data.pictures, data.classes, few.train, few.train)
    assert digits.accuracy(models.wrap(module), few) > 0.8


def test_the_train_command_writes_what_it_says(data, monkeypatch, tmp_path, capsys):
    made = {name: own_weights.TRAINED[name].build() for name in NAMES}
    monkeypatch.setattr(own_weights, "FOLDER", tmp_path / "trained")
    monkeypatch.setattr(digits, "train", lambda name, _: made[name].eval())
    assert digits.main(["train"]) == 0
    said = capsys.readouterr().out
    for name, module in made.items():
        content = own_weights.file(name).read_bytes()
        assert hashlib.sha256(content).hexdigest() in said
        state = safetensors.torch.load(content)
        assert all(torch.equal(state[key], value) for key, value in module.state_dict().items())


LIMITS = {"TURN": 0.0, "STRETCH": 0.0, "SLANT": 0.0, "SHIFT": 0.0}
SEEN = {
    # what is allowed, all of it drawn in full → which pixel of the input is seen at (row, col)
    "nothing": ({}, lambda row, col: (row, col)),
    "4 pixels": ({"SHIFT": 4.0}, lambda row, col: (row + 4, col + 4)),
    "a quarter turn": ({"TURN": 90.0}, lambda row, col: (col, 31 - row)),
}


@pytest.mark.parametrize("kind", SEEN)
def test_training_pictures_are_moved_by_what_was_drawn(kind, monkeypatch):
    limits, seen = SEEN[kind]
    for name, most in {**LIMITS, **limits}.items():
        monkeypatch.setattr(digits, name, most)
    monkeypatch.setattr(torch, "rand", torch.ones)
    monkeypatch.setattr(torch, "randint", lambda _, shape: torch.ones(shape, dtype=torch.int64))
    pictures = torch.rand_like(torch.empty(2, 1, 32, 32)) * 2 - 1
    varied = digits._varied(pictures)
    for row, col in [(0, 0), (3, 30), (16, 5), (31, 31)]:
        there = seen(row, col)
        expected = pictures[:, 0, *there] if max(there) < 32 else torch.full((2,), -1.0)
        torch.testing.assert_close(varied[:, 0, row, col], expected, atol=1e-4, rtol=0)


def test_half_of_the_training_pictures_are_inverted():
    pictures = torch.full((400, 1, 32, 32), 0.5)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        middle = digits._varied(pictures)[:, 0, 16, 16]
    assert set(middle.round(decimals=3).tolist()) == {0.5, -0.5}
    assert 160 < (middle > 0).sum() < 240
