"""Feature PCA: against its definition, by hand, and what a picture of colours has to keep."""

from __future__ import annotations

import json
import re
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

import attnviz
import models
from attnviz import export
from attnviz.contract import View
from attnviz.errors import BadOption, CaptureFailed, UnknownName
from attnviz.record import AttentionRecord, LayerAttention, Maps
from attnviz.tokens import TokenLayout
from tests import gradient_twin
from tests.conftest import PREFIXES, small_input, small_module

REGISTERS = ("cls", "reg1", "reg2", "reg3", "reg4")


def record_of(features, grid, prefix=()) -> AttentionRecord:
    """A record with these features (token, channel); a patch is 10 × 10 pixels of white."""
    features = torch.as_tensor(np.asarray(features), dtype=torch.float32)
    tokens = len(features)
    rows, cols = grid
    height, width = 10 * rows, 10 * cols
    return AttentionRecord(
        layers=(LayerAttention("l", Maps(torch.full((1, tokens, tokens), 1 / tokens))),),
        layout=TokenLayout(prefix, grid),
        view=View(
            torch.zeros(1, 3, height, width),
            np.full((height, width, 3), 255, np.uint8),
            (0.0, 0.0, float(width), float(height)),
            "crop",
        ),
        image=Image.new("RGB", (width, height), "white"),
        predictions=(),
        model="by hand",
        weights="by hand",
        random=False,
        device="cpu",
        features=features,
    )


def shares(heat) -> list[float]:
    """The variance explained, as the map says it: in all, then one by one."""
    return [float(each) / 100 for each in re.findall(r"[\d.]+", heat.fact("variance explained"))]


def random_features(tokens, channels, seed=0):
    """Directions of clearly different variance, and a mean that is not 0."""
    drawn = np.random.default_rng(seed).normal(size=(tokens, channels))
    return drawn * 2.0 ** -np.arange(channels) @ rotation(channels) + 5


def rotation(size, seed=9):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


# --- the definition -----------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", PREFIXES, ids="-".join)
@pytest.mark.parametrize("keep", ["maps", "factors"])
def test_equals_the_slow_twin_on_a_model(prefix, keep):
    module = small_module(prefix)
    tokens = gradient_twin.run(module, small_input(), patch=16, heads=3).tokens.detach().numpy()
    scores, variances = gradient_twin.pca(tokens, len(prefix), (2, 3))
    record = attnviz.observe(models.wrap(module), small_input(), keep=keep)
    heat = attnviz.explain(record, "pca")
    assert heat.values.dtype == np.float32
    assert heat.values.shape == (2, 3, 3)
    wanted = scores[:, :3].reshape(2, 3, 3)
    np.testing.assert_allclose(heat.values, wanted, atol=1e-4 * np.abs(wanted).max(), rtol=0)
    assert shares(heat) == pytest.approx([variances[:3].sum(), *variances[:3]], abs=6e-4)
    for component in range(3):
        alone = attnviz.explain(record, "pca", component=component)
        np.testing.assert_array_equal(alone.values, heat.values[..., component])
        assert shares(alone) == pytest.approx([variances[component]], abs=6e-4)
        assert alone.fact("component") == str(component)
    assert heat.fact("component") is None


@pytest.mark.parametrize(
    ("grid", "channels", "prefix"),
    [
        ((2, 2), 3, ()),
        ((1, 4), 40, ("cls",)),  # one row; more channels than patches
        ((5, 1), 3, REGISTERS),
        ((6, 7), 12, ("cls", "dist")),
    ],
)
def test_equals_the_slow_twin_on_odd_grids(grid, channels, prefix):
    features = random_features(grid[0] * grid[1] + len(prefix), channels)
    scores, _ = gradient_twin.pca(features, len(prefix), grid)
    heat = attnviz.explain(record_of(features, grid, prefix), "pca")
    np.testing.assert_allclose(heat.values, scores[:, :3].reshape(*grid, 3), atol=1e-5)


@pytest.mark.parametrize(
    ("direction", "turned"),
    [
        ([1, -2, 0], [-1, 2, 0]),
        ([-1, 2, 0], [-1, 2, 0]),
        ([0, -1, 1], [0, 1, -1]),  # of equals, the first channel's
        ([-1, 1, -1], [1, -1, 1]),
        ([-1, 1.0001, 0], [1, -1.0001, 0]),  # so near that rounding could choose
    ],
)
def test_without_an_inside_the_longest_loading_is_positive(direction, turned):
    along = np.array([-2.0, -1, 0, 3])
    features = np.outer(along, direction) + np.array([7, 8, 9])
    heat = attnviz.explain(record_of(features, (2, 2)), "pca")
    length = np.linalg.norm(turned)
    by_hand = along * length * np.sign(np.dot(direction, turned))
    np.testing.assert_allclose(heat.values[..., 0].ravel(), by_hand, atol=1e-5)
    # On a line there is one component; the others are nothing, and not rounding made large.
    assert not heat.values[..., 1:].any()
    assert heat.fact("variance explained") == "100.0% (100.0%, 0.0%, 0.0%)"


@pytest.mark.parametrize(
    ("cells", "signed"),
    [
        # Not the object's size, nor the loading, but the border decides.
        ([-1, -1, -1, -1, 8, -1, -1, -1, -1], 1),
        ([1, 1, 1, 1, -8, 1, 1, 1, 1], -1),
        ([-9, 1, 1, 1, 1, 1, 1, 1, 2], 1),  # a dark corner: the border's mean is -1/8
        # Border and inside both 0: the loading's turn.
        ([-2, 1, 1, 0, 0, 0, 0, 0, 0], 1),
        ([2, -1, -1, 0, 0, 0, 0, 0, 0], 1),
    ],
)
@pytest.mark.parametrize("direction", [[1, 2, 0], [0, 0, -5]])
def test_the_border_is_negative_and_what_lies_inside_positive(cells, signed, direction):
    features = np.outer(cells, direction) + np.array([7, 8, 9])
    heat = attnviz.explain(record_of(features, (3, 3)), "pca", component=0)
    border = sum(cells) - cells[4]
    turn = signed if border else np.sign(max(direction, key=abs))
    by_hand = turn * np.linalg.norm(direction) * np.array(cells)
    np.testing.assert_allclose(heat.values.ravel(), by_hand, atol=1e-4)
    assert turn * border <= 0


def test_what_is_conserved():
    """In three channels PCA is a rotation: distances stay, and the shares are all there is."""
    features = random_features(12, 3)
    heat = attnviz.explain(record_of(features, (3, 4)), "pca")
    scores = heat.values.reshape(12, 3).astype(np.float64)
    before = np.linalg.norm(features[:, None] - features[None], axis=-1)
    after = np.linalg.norm(scores[:, None] - scores[None], axis=-1)
    np.testing.assert_allclose(after, before, atol=1e-5)
    assert shares(heat)[0] == 1
    assert sum(shares(heat)[1:]) == pytest.approx(1, abs=2e-3)


def test_components_are_centred_uncorrelated_and_in_order():
    heat = attnviz.explain(record_of(random_features(30, 16), (5, 6)), "pca")
    scores = heat.values.reshape(30, 3).astype(np.float64)
    np.testing.assert_allclose(scores.mean(0), 0, atol=1e-6)
    products = scores.T @ scores
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-4)
    assert (np.diff(np.diag(products)) < 0).all()
    whole, *each = shares(heat)
    assert each == sorted(each, reverse=True)
    assert whole == pytest.approx(sum(each), abs=2e-3) and whole < 1


def test_prefix_tokens_take_no_part():
    features = random_features(6 + 5, 8)
    wild = features.copy()
    wild[:5] *= 1000
    one, other = (
        attnviz.explain(record_of(each, (2, 3), REGISTERS), "pca") for each in (features, wild)
    )
    np.testing.assert_array_equal(one.values, other.values)
    assert one.facts == other.facts


def test_permuting_the_patches_permutes_the_map():
    features = random_features(12, 8)
    order = np.random.default_rng(3).permutation(12)
    before, after = (
        attnviz.explain(record_of(each, (2, 6)), "pca").values.reshape(12, 3)  # all border
        for each in (features, features[order])
    )
    np.testing.assert_allclose(after, before[order], atol=1e-5)


# --- the same, whatever computes it -------------------------------------------------------------


def test_precision_threads_and_runs_change_nothing():
    vit = models.wrap(small_module())
    first = attnviz.explain(attnviz.observe(vit, small_input()), "pca").values
    scale = np.abs(first).max()
    again = attnviz.explain(attnviz.observe(vit, small_input()), "pca").values
    assert (first == again).all()
    double = models.wrap(small_module().double())
    exact = attnviz.explain(attnviz.observe(double, small_input()), "pca").values
    np.testing.assert_allclose(exact, first, atol=1e-4 * scale)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        parallel = attnviz.explain(attnviz.observe(vit, small_input()), "pca").values
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_allclose(parallel, first, atol=1e-4 * scale)


# --- what it is for -----------------------------------------------------------------------------

GROUPS = np.array([[0, 0, 1, 1], [0, 2, 2, 1], [0, 2, 2, 1]])


def test_three_groups_of_patches_are_three_colours_in_their_cells():
    kinds = 10 * rotation(16)[:3]
    noise = np.random.default_rng(1).normal(size=(12, 16)) * 0.01
    features = [*np.full((5, 16), 300.0), *(kinds[GROUPS.ravel()] + noise)]
    heat = attnviz.explain(record_of(features, GROUPS.shape, REGISTERS), "pca")
    drawn = np.asarray(heat.overlay(alpha=1.0)).astype(int)
    assert drawn.shape == (30, 40, 3)
    middles = drawn[5::10, 5::10]
    # The third component is noise, and blue shows it: red and green are the groups.
    colours = [middles[group == GROUPS][:, :2] for group in range(3)]
    for one in range(3):
        assert np.ptp(colours[one], axis=0).max() <= 4
        for other in range(one):
            assert np.abs(colours[one].mean(0) - colours[other].mean(0)).max() > 100
    # One colour a patch, up to its edges.
    assert (drawn == np.kron(middles, np.ones((10, 10, 1), int))).all()


# --- what can't be drawn ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "channels", "component", "says"),
    [
        ((2, 3), 2, None, r"6 × 2 features \(patches × channels\) have 2 of the 3 components"),
        ((1, 3), 8, None, r"3 × 8 features \(patches × channels\) have 2 of the 3 components"),
        ((1, 3), 8, 2, "have 2 of the 3"),
        ((2, 3), 1, 1, "have 1 of the 2"),
        ((1, 1), 8, 0, "have 0 of the 1"),
    ],
)
def test_too_few_channels_or_patches_are_refused(grid, channels, component, says):
    record = record_of(random_features(grid[0] * grid[1], channels), grid)
    with pytest.raises(BadOption, match=says):
        attnviz.explain(record, "pca", component=component)


def test_one_component_needs_no_more_than_it_is():
    features = random_features(6, 2)
    scores, _ = gradient_twin.pca(features, 0, (2, 3))
    record = record_of(features, (2, 3))
    for component in range(2):
        heat = attnviz.explain(record, "pca", component=component)
        np.testing.assert_allclose(heat.values.ravel(), scores[:, component], atol=1e-5)
    assert attnviz.explain(record_of(random_features(2, 5), (1, 2)), "pca", component=0)


@pytest.mark.parametrize(
    ("component", "error", "says"),
    [
        (3, UnknownName, "no component 3: there are 3, numbered 0 to 2"),
        (-4, UnknownName, "no component -4"),
        ("red", BadOption, "component is a whole number; 'red' came"),
        (0.0, BadOption, "0.0 came"),
    ],
)
def test_a_component_that_does_not_exist(component, error, says):
    with pytest.raises(error, match=says):
        attnviz.explain(record_of(random_features(6, 8), (2, 3)), "pca", component=component)


def test_components_count_from_the_end_too():
    record = record_of(random_features(6, 8), (2, 3))
    last, third = (attnviz.explain(record, "pca", component=at) for at in (-1, 2))
    assert (last.values == third.values).all() and last.facts == third.facts


@pytest.mark.parametrize("rounding", [0.0, 2e-5])
@pytest.mark.parametrize("component", [None, 0])
def test_equal_features_are_flat_and_the_map_says_so(rounding, component):
    """float32 has steps of 6e-5 at 1000: less is rounding, and no component."""
    noise = np.random.default_rng(0).uniform(-rounding, rounding, (6, 8))
    features = np.concatenate([random_features(1, 8), 1000 + noise])
    heat = attnviz.explain(record_of(features, (2, 3), ("cls",)), "pca", component=component)
    assert not heat.values.any()
    assert heat.notes == ("component score is zero everywhere, so nothing stands out",)
    assert set(shares(heat)) == {0}
    drawn = np.asarray(heat.overlay(alpha=1.0))
    assert (drawn == drawn[0, 0]).all()


def test_features_that_are_not_finite_are_named():
    features = random_features(6, 8)
    features[2, 3] = np.nan
    with pytest.raises(CaptureFailed, match="features of by hand hold values that are not finite"):
        attnviz.explain(record_of(features, (2, 3)), "pca")


# --- its figures --------------------------------------------------------------------------------

# Along the channels already, so that scores are features: from -6, -2, 0 to 6, 2, 0.
CROSS = [[-6, 0, 0], [6, 0, 0], [0, -2, 0], [0, 2, 0]]


def test_a_colour_is_its_three_scores():
    heat = attnviz.explain(record_of(CROSS, (2, 2)), "pca")
    np.testing.assert_allclose(heat.values.reshape(4, 3), CROSS, atol=1e-6)
    middles = np.asarray(heat.overlay(alpha=1.0))[5::10, 5::10].reshape(4, 3).tolist()
    assert middles == [[0, 128, 0], [255, 128, 0], [128, 0, 0], [128, 255, 0]]
    half = np.asarray(heat.overlay(alpha=0.5))[5, 15].tolist()
    assert half == pytest.approx([255, 191, 127], abs=1)


@pytest.mark.parametrize("kind", [".png", ".svg", ".pdf", ".npz"])
def test_ranges_and_shares_are_in_every_file(tmp_path, kind):
    heat = attnviz.explain(record_of(CROSS, (2, 2)), "pca")
    content = heat.save(tmp_path / f"map{kind}", dpi=100, width_mm=50.0).read_bytes()
    assert content == export.render(heat, kind, dpi=100, width_mm=50.0)
    if kind == ".svg":
        said = re.sub(r"\s+", " ", " ".join(re.findall(r">([^<>]+)</text>", content.decode())))
        for words in (
            "component score, each component from its lowest to its highest value:",
            "red is component 0, -6 to 6; green is component 1, -2 to 2; blue is component 2, 0"
            " throughout",
            "variance explained: 100.0% (90.0%, 10.0%, 0.0%)",
        ):
            assert words in said
    elif kind == ".png":
        manifest = json.loads(Image.open(BytesIO(content)).info["Description"])
        assert manifest["facts"]["variance explained"] == "100.0% (90.0%, 10.0%, 0.0%)"
        assert manifest["grid"] == [2, 2]
        drawn = manifest["drawn"]
        ends = [(drawn[name]["low"], drawn[name]["high"]) for name in ("red", "green", "blue")]
        assert ends == [pytest.approx((-6, 6)), pytest.approx((-2, 2)), pytest.approx((0, 0))]
        assert not {"colormap", "scale"} & drawn.keys()
    elif kind == ".npz":
        with np.load(BytesIO(content), allow_pickle=False) as file:
            np.testing.assert_array_equal(file["values"], heat.values)


def test_a_file_of_one_component_is_named_by_it():
    record = record_of(CROSS, (2, 2))
    assert export.file_stem(attnviz.explain(record, "pca")) == "by-hand_feature-pca"
    alone = attnviz.explain(record, "pca", component=1)
    assert export.file_stem(alone) == "by-hand_feature-pca_component-1"
