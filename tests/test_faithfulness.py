"""Deletion and insertion, on models whose score is known for every picture."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from threading import Thread

import numpy as np
import pytest
import torch
from PIL import Image

import attnviz
import models
from attnviz import watch
from attnviz.altering import BASELINES, altered, baseline_of, blurred
from attnviz.curves import Curves
from attnviz.errors import BadOption, CaptureFailed, UnknownName
from attnviz.explain import _within
from attnviz.faithfulness import stops
from attnviz.geometry import WHOLE
from tests.conftest import small_input, small_module, small_vit
from tests.planted import GRID, HIGH, WIDE, map_of, planted, record_of_ones
from tests.test_capture import assert_same_state, state_of

LIT = [[0, 0, 0], [0, 0, 2.0]]
"""The model's score depends on the patch in row 1, column 2 alone."""
THERE, GONE = 1 / (1 + math.exp(-2)), 0.5
"""The probability of the planted class with that patch, and with 0 in its place."""
BITS = [[1, 2, 4], [8, 16, 32]]
"""Weights that tell which patches are there."""


def run(weights, values, *, outputs=2, **options):
    record = record_of_ones()
    options = {"baseline": "zero", "steps": 6, **options}
    return attnviz.faithfulness(
        planted(weights, outputs=outputs), record, map_of(values, record), **options
    )


# What the curves are


@pytest.mark.parametrize(
    ("place", "mode", "area"),
    [
        # The trapezoid rule by hand: five level steps of 1/6 each, one step that falls or rises.
        (0, "deletion", (THERE + GONE) / 12 + GONE * 5 / 6),
        (5, "deletion", (THERE + GONE) / 12 + THERE * 5 / 6),
        (2, "deletion", (THERE + GONE) / 12 + THERE * 2 / 6 + GONE * 3 / 6),
        (0, "insertion", (THERE + GONE) / 12 + THERE * 5 / 6),
        (5, "insertion", (THERE + GONE) / 12 + GONE * 5 / 6),
    ],
)
def test_a_map_is_as_good_as_the_place_it_gives_the_patch_that_matters(place, mode, area):
    values = [*np.delete(np.array([6.0, 5, 4, 3, 2, 1]), place), 6.0 - place]
    curves = run(LIT, np.reshape(values, GRID), mode=mode)
    before, after = (THERE, GONE) if mode == "deletion" else (GONE, THERE)
    expected = [before] * (place + 1) + [after] * (6 - place)
    np.testing.assert_allclose(curves.scores, expected, atol=1e-6)
    np.testing.assert_allclose(curves.fractions, np.arange(7) / 6)
    assert curves.area == pytest.approx(area, abs=1e-6)
    assert curves.score == "probability of the predicted class 0 (planted)"
    assert curves.mode == mode and len(curves.random) == 5


def test_each_random_order_takes_the_patch_that_matters_at_some_place_and_all_places_alike():
    curves = run(LIT, np.arange(6).reshape(GRID), orders=300)
    steps = [THERE] * 6, [GONE] * 6
    places = []
    for scores in curves.random:
        place = int((scores > (THERE + GONE) / 2).sum()) - 1
        expected = steps[0][: place + 1] + steps[1][: 6 - place]
        np.testing.assert_allclose(scores, expected, atol=1e-6)
        places.append(place)
    counts = np.bincount(places, minlength=6)
    assert counts.sum() == 300 and counts.min() > 25 and counts.max() < 80
    # Over all places alike the area is the mean of the two ends.
    assert curves.random_area == pytest.approx((THERE + GONE) / 2, abs=0.02)


def test_highest_first_signs_and_all():
    values = [[0.5, -3, 2], [-0.1, 7, 0]]
    found = run(BITS, values, outputs=1)
    assert found.score == "the model's output"
    # 7, 2, 0.5, 0, −0.1, −3: bits 16, 4, 1, 32, 8, 2.
    np.testing.assert_allclose(found.scores, [63, 47, 43, 42, 10, 2, 0])
    back = run(BITS, values, outputs=1, mode="insertion")
    np.testing.assert_allclose(back.scores, [0, 16, 20, 21, 53, 61, 63])


@pytest.mark.parametrize(
    ("patches", "steps", "expected"),
    [
        (6, 6, [0, 1, 2, 3, 4, 5, 6]),
        (6, 4, [0, 2, 3, 5, 6]),  # 1.5 and 4.5, rounded up
        (6, 2, [0, 3, 6]),
        (7, 3, [0, 2, 5, 7]),
        (3, 16, [0, 1, 2, 3]),
        (1, 5, [0, 1]),
        (1369, 16, [0, 86, 171, 257, 342, 428, 513, 599, 685, 770, 856, 941, 1027, 1112, 1198, 1283, 1369]),
    ],
)  # fmt: skip
def test_all_patches_go_in_steps_as_equal_as_patches_allow(patches, steps, expected):
    assert stops(patches, steps).tolist() == expected


def test_uneven_steps_are_weighed_by_their_width():
    curves = run(LIT, [[0, 0, 0], [0, 0, 1]], steps=4)
    np.testing.assert_allclose(curves.fractions, [0, 2 / 6, 3 / 6, 5 / 6, 1])
    assert curves.area == pytest.approx((THERE + GONE) / 2 * 2 / 6 + GONE * 4 / 6, abs=1e-6)


def test_a_single_patch_has_two_ends_and_nothing_between():
    record = record_of_ones((1, 1))
    heat = map_of([[1.0]], record)
    curves = attnviz.faithfulness(planted([[2.0]]), record, heat, baseline="zero")
    np.testing.assert_allclose(curves.scores, [THERE, GONE], atol=1e-6)
    assert curves.area == curves.random_area


# Ties


def order_of(curves):
    """The patches (as bits) in the order in which they went."""
    return [round(step) for step in -np.diff(curves.scores)]


def test_ties_go_in_an_order_of_their_own_that_the_seed_fixes():
    two_levels = [[0, 1, 0], [1, 0, 1]]
    orders = [order_of(run(BITS, two_levels, outputs=1, seed=seed)) for seed in range(12)]
    for order in orders:
        assert set(order[:3]) == {2, 8, 32} and set(order[3:]) == {1, 4, 16}
    assert len({tuple(order) for order in orders}) > 6
    again = run(BITS, two_levels, outputs=1, seed=3)
    assert order_of(again) == orders[3]
    assert again.random.tolist() == run(BITS, LIT, outputs=1, seed=3).random.tolist()


def test_a_level_map_is_one_more_random_order_and_says_so():
    orders = [order_of(run(BITS, np.ones(GRID), outputs=1, seed=seed)) for seed in range(12)]
    assert len({tuple(order) for order in orders}) > 10
    assert all(sorted(order) == [1, 2, 4, 8, 16, 32] for order in orders)
    curves = run(BITS, np.ones(GRID), outputs=1)
    assert "6 of 6 patches share their value" in " ".join(curves.notes)
    assert order_of(curves) not in (-np.diff(curves.random)).round().astype(int).tolist()
    assert not run(BITS, np.arange(6).reshape(GRID), outputs=1).notes


# Areas


MADE = {
    "mode": "deletion",
    "score": "probability",
    "title": "By hand",
    "facts": (("method", "By hand"), ("query", "class token")),
    "fractions": np.array([0, 0.25, 1]),
    "scores": np.array([1, 0.5, 0]),
    "random": np.array([[1.0, 1, 0], [1, 0, 0], [1, 0.5, 0]]),
}


def test_areas_by_hand():
    curves = Curves(**MADE)
    assert curves.area == pytest.approx(0.25 * 0.75 + 0.75 * 0.25)
    np.testing.assert_allclose(curves.random_areas, [0.625, 0.125, 0.375])
    assert curves.random_area == pytest.approx(0.375)
    assert curves.random_area_spread == pytest.approx(0.25)  # √((0.25² + 0.25² + 0) / 2)
    np.testing.assert_allclose(curves.random_mean, [1, 0.5, 0])
    np.testing.assert_allclose(curves.random_spread, [0, 0.5, 0])
    np.testing.assert_allclose(curves.random_range, [[1, 0, 0], [1, 1, 0]])


def test_small_is_good_in_deletion_and_large_in_insertion():
    low = replace(Curves(**MADE), scores=np.array([1, 0.25, 0]))  # area 0.25
    assert low.gain == pytest.approx(0.125) and low.beaten == 2
    high = replace(low, mode="insertion")
    assert high.gain == pytest.approx(-0.125) and high.beaten == 1
    assert "0.250 (small is good), random orders 0.375 ± 0.250: better than 2 of 3" in low.summary
    assert "(large is good)" in high.summary
    assert low.axis == "share of patches removed" and high.axis == "share of patches put back"


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"fractions": np.array([0, 0.25, 0.9])}, BadOption, "from 0 to 1"),
        ({"fractions": np.array([0, 0, 1.0])}, BadOption, "from 0 to 1"),
        ({"random": np.ones((1, 3))}, BadOption, "two or more"),
        ({"scores": np.array([1, np.nan, 0])}, CaptureFailed, "not finite"),
    ],
)
def test_curves_that_do_not_fit_together_are_refused(changes, error, said):
    with pytest.raises(error, match=said):
        Curves(**{**MADE, **changes})


def test_curves_are_read_only_copies():
    mine = MADE["scores"].copy()
    curves = Curves(**{**MADE, "scores": mine})
    mine[0] = 9
    assert curves.scores[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        curves.scores[0] = 2


# What is fed


def test_only_the_patches_that_are_gone_are_altered():
    picture = torch.arange(3 * 8 * 15).float().reshape(1, 3, 8, 15)
    baseline = -torch.ones_like(picture)
    kept = torch.tensor([[[True, False, True], [True, True, True]], [[False] * 3, [True] * 3]])
    first, second = altered(picture, baseline, kept, (HIGH, WIDE))
    expected = picture[0].clone()
    expected[:, 0:4, 5:10] = -1
    assert torch.equal(first, expected)
    assert bool((second[:, :4] == -1).all()) and torch.equal(second[:, 4:], picture[0, :, 4:])


def test_mean_and_zero():
    picture = torch.zeros(1, 2, 8, 15)
    picture[0, 0, 0, 0], picture[0, 1] = 120.0, 7.0
    mean = baseline_of(picture, "mean", (HIGH, WIDE)).picture
    assert torch.equal(mean[0, 0], torch.ones(8, 15)) and torch.equal(mean[0, 1], picture[0, 1])
    assert not baseline_of(picture, "zero", (HIGH, WIDE)).picture.any()


def test_blur_is_the_gaussian_one_patch_wide():
    picture = torch.randn(1, 2, 5, 7, generator=torch.Generator().manual_seed(1))
    found = blurred(picture, (1, 2))
    for row in range(5):
        for col in range(7):
            total, mass = np.zeros(2), 0.0
            for down in range(-3, 4):  # three σ each way
                for across in range(-6, 7):
                    weight = math.exp(-(down**2) / 2 - across**2 / 8)
                    at = min(max(row + down, 0), 4), min(max(col + across, 0), 6)
                    total += weight * picture[0, :, at[0], at[1]].double().numpy()
                    mass += weight
            np.testing.assert_allclose(found[0, :, row, col], total / mass, atol=1e-5)
    assert blurred(torch.full((1, 3, 4, 4), 2.5), (2, 2)) == pytest.approx(2.5)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_baseline_has_the_picture_s_precision(name, dtype):
    picture = small_input().to(dtype)
    made = baseline_of(picture, name, (16, 16)).picture
    assert made.dtype == dtype and made.shape == picture.shape


def test_a_baseline_of_one_s_own():
    record = record_of_ones()
    heat = map_of(np.arange(6).reshape(GRID), record)
    own = torch.full_like(record.view.tensor, -1.0)
    curves = attnviz.faithfulness(planted(BITS, outputs=1), record, heat, baseline=own, steps=2)
    np.testing.assert_allclose(curves.scores, [63, 7 - 56, -63])
    assert "baseline: a baseline of your own" in curves.summary


def slow_scores(vit, record, heat, mode, number, counts):
    """One picture after the other, by loops over pixels."""
    x = record.view.tensor
    rows, cols = record.layout.grid
    high, wide = x.shape[2] // rows, x.shape[3] // cols
    cells = [(row, col) for row in range(rows) for col in range(cols)]
    order = sorted(cells, key=lambda cell: -heat.values[cell])
    mean = [float(x[0, channel].double().mean()) for channel in range(x.shape[1])]
    scores = []
    for count in counts:
        gone = order[:count] if mode == "deletion" else order[count:]
        picture = x.clone()
        for row, col in gone:
            for channel in range(x.shape[1]):
                for y in range(row * high, (row + 1) * high):
                    for z in range(col * wide, (col + 1) * wide):
                        picture[0, channel, y, z] = mean[channel]
        with torch.no_grad():
            logits = vit.module(picture)[0].double().tolist()
        powers = [math.exp(logit - max(logits)) for logit in logits]
        scores.append(powers[number] / sum(powers))
    return scores


@pytest.mark.parametrize("mode", ["deletion", "insertion"])
@pytest.mark.parametrize("target", [None, "predicted", 3])
def test_a_real_model_s_curve_is_the_slow_one(mode, target):
    vit = small_vit()
    record = attnviz.observe(vit, small_input(), target=target)
    heat = attnviz.explain(record, "attention")
    curves = attnviz.faithfulness(vit, record, heat, mode=mode)
    number = 3 if target == 3 else record.predictions[0][1]
    expected = slow_scores(vit, record, heat, mode, number, range(7))
    np.testing.assert_allclose(curves.scores, expected, atol=1e-5)
    assert np.ptp(expected) > 0.01
    chosen = "class" if target == 3 else "the predicted class"
    assert curves.score == f"probability of {chosen} {number} (class {number})"
    fact = dict(curves.facts)
    assert fact["score"] == curves.score and fact["model"] == vit.name
    assert fact["baseline"] == "the picture's mean colour"


# Which score


def seen(target=None, **changes):
    vit = small_vit(**changes)
    record = attnviz.observe(vit, small_input(), target=target)
    heat = attnviz.explain(record, "attention")
    return vit, record, attnviz.faithfulness(vit, record, heat)


def cosine(one, other):
    one, other = one.double(), other.double()
    return float((one * other).sum() / one.norm() / other.norm())


def test_the_last_score_is_of_the_baseline_alone():
    vit, record, curves = seen()
    x = record.view.tensor
    bare = x.mean((2, 3), keepdim=True).expand_as(x)
    with torch.no_grad():
        expected = vit.module(bare).softmax(-1)[0, record.predictions[0][1]]
    assert curves.scores[-1] == pytest.approx(float(expected), abs=1e-6)
    assert curves.scores[0] == pytest.approx(record.predictions[0][2], abs=1e-6)


@pytest.mark.parametrize("target", [None, attnviz.similarity_to("cls")])
def test_without_classes_it_is_how_alike_the_feature_stays(target):
    vit, record, curves = seen(target, num_classes=0)
    assert curves.scores[0] == pytest.approx(1, abs=1e-6)
    x = record.view.tensor
    with torch.no_grad():
        bare = vit.module(x.mean((2, 3), keepdim=True).expand_as(x))[0]
        expected = cosine(bare, vit.module(x)[0])
    assert curves.scores[-1] == pytest.approx(expected, abs=1e-5)
    assert curves.score == "cosine similarity of the picture's feature to that of the unaltered"


@pytest.mark.parametrize("classes", [0, 5])
def test_a_similarity_that_is_explained_is_the_one_that_is_watched(classes):
    vit = small_vit(num_classes=classes)
    other = attnviz.observe(vit, small_input(5))
    for reference, fixed in [
        (other, lambda record: other.feature),
        ((1, 2), lambda record: record.features[1 + 5]),
    ]:
        _, record, curves = seen(attnviz.similarity_to(reference), num_classes=classes)
        assert curves.score == f"cosine {record.target}"
        assert curves.scores[0] == pytest.approx(record.score, abs=1e-5)
        x = record.view.tensor
        bare = attnviz.observe(vit, x.mean((2, 3), keepdim=True).expand_as(x)).feature
        assert curves.scores[-1] == pytest.approx(cosine(bare, fixed(record)), abs=1e-5)


def test_similarity_to_the_class_token_is_watched_in_a_model_with_classes_too():
    _, _, curves = seen(attnviz.similarity_to("cls"))
    assert curves.score.startswith("cosine similarity of the picture's feature")
    assert curves.scores[0] == pytest.approx(1, abs=1e-6)


def test_the_feature_is_what_the_head_is_fed_with_and_not_what_it_makes_of_it():
    vit = replace(planted(BITS), classes=())
    vit.module.head = torch.nn.Linear(2, 7).double()
    record = record_of_ones()
    curves = attnviz.faithfulness(vit, record, map_of(BITS, record), baseline="zero", steps=2)
    # Features are (sum of the bits that are there, 0): all of one direction, or nothing.
    np.testing.assert_allclose(curves.scores, [1, 1, 0], atol=1e-6)


def test_a_model_without_classes_and_without_one_feature_is_refused():
    vit = replace(planted(BITS), classes=())
    vit.module.head = torch.nn.Identity()
    vit.module.forward = lambda x: torch.ones(len(x), 2)
    with pytest.raises(BadOption, match="no one feature"):
        attnviz.faithfulness(vit, record_of_ones(), map_of(BITS, record_of_ones()))


# Batches


@pytest.mark.parametrize("mode", ["deletion", "insertion"])
def test_the_size_of_a_batch_changes_nothing(monkeypatch, mode):
    vit = small_vit()
    record = attnviz.observe(vit, small_input())
    heat = attnviz.explain(record, "rollout")
    found = []
    for room in (0, 60_000, 2**40):
        monkeypatch.setattr(watch, "BATCH_BYTES", room)
        found.append(attnviz.faithfulness(vit, record, heat, mode=mode))
    for other in found[1:]:
        np.testing.assert_allclose(other.scores, found[0].scores, atol=1e-6)
        np.testing.assert_allclose(other.random, found[0].random, atol=1e-6)


def test_a_batch_is_bounded_by_the_memory_that_it_needs(monkeypatch):
    vit = small_vit()
    record = attnviz.observe(vit, small_input())
    one = 7 * (16 * 24) * 4  # tokens, numbers a token, bytes
    monkeypatch.setattr(watch, "BATCH_BYTES", 10 * one + 5)
    assert watch.batch_size(vit, record) == 10
    vit.module.blocks[1].attn.fused_attn = False
    one += 7 * 2 * 3 * 7 * 4  # scores and softmax of three heads
    monkeypatch.setattr(watch, "BATCH_BYTES", 10 * one + 5)
    assert watch.batch_size(vit, record) == 10
    monkeypatch.setattr(watch, "BATCH_BYTES", 1)
    assert watch.batch_size(vit, record) == 1


def spoiled(how):
    vit = planted(BITS, outputs=1)
    inner = vit.module.forward

    def forward(x):
        if how == "raises" and len(x) > 1:
            raise ValueError("batch of one only")
        out = inner(x)
        if how == "gives only the first":
            return out[:1]
        if how == "mixes the pictures":
            return out - out.mean(0) + out[:1]
        return out

    vit.module.forward = forward
    return vit


@pytest.mark.parametrize("how", ["raises", "gives only the first", "mixes the pictures"])
def test_a_model_that_cannot_take_several_pictures_gets_one_at_a_time(how):
    record = record_of_ones()
    heat = map_of([[0.5, -3, 2], [-0.1, 7, 0]], record)
    vit = spoiled(how)
    curves = attnviz.faithfulness(vit, record, heat, baseline="zero")
    np.testing.assert_allclose(curves.scores, [63, 47, 43, 42, 10, 2, 0])
    assert set(vit.module.seen[3:]) == {1}
    sound = spoiled("not at all")
    attnviz.faithfulness(sound, record, heat, baseline="zero")
    assert sound.module.seen == [1, 1, 2, 30]


def test_a_model_whose_features_are_lost_among_several_pictures_gets_one_at_a_time():
    vit = replace(planted(BITS), classes=())
    inner = vit.module.forward
    vit.module.forward = lambda x: torch.cat([inner(one[None]) for one in x])
    record = record_of_ones()
    curves = attnviz.faithfulness(vit, record, map_of(BITS, record), baseline="zero", steps=2)
    np.testing.assert_allclose(curves.scores, [1, 1, 0], atol=1e-6)


def test_several_maps_share_the_random_orders():
    record = record_of_ones()
    heats = [map_of(values, record) for values in (BITS, LIT)]
    vit = planted(BITS, outputs=1)
    both = attnviz.compare_maps(vit, record, heats, baseline="zero")
    assert sum(vit.module.seen) == 2 + 2 + (2 + 5) * 5
    for curves, heat in zip(both, heats, strict=True):
        alone = attnviz.faithfulness(vit, record, heat, baseline="zero")
        np.testing.assert_array_equal(alone.scores, curves.scores)
        np.testing.assert_array_equal(alone.random, both[0].random)


@pytest.mark.parametrize("fit", ["aspect", "crop", "pad", "squash"])
def test_a_map_of_the_record_lies_where_the_record_does_to_the_last_bit(fit):
    # (512, 512) cropped to 32 × 48 and the like: left + (right - left) is not right there.
    vit = small_vit(dynamic_img_size=True)
    sides = [51, 64, 97, 300, 400, 451, 512, 720, 1280]
    for size in itertools.product(sides, sides):
        box = vit.view(Image.new("RGB", size), fit).box
        assert _within(box, WHOLE) == box
    image = Image.effect_noise((400, 512), 50).convert("RGB")
    record = attnviz.observe(vit, image, fit=fit)
    heat = attnviz.explain(record, "attention")
    assert heat.box == record.view.box
    attnviz.faithfulness(vit, record, heat, steps=2, orders=2)


# What is left alone


def test_the_model_is_left_as_found():
    module = small_module().train()
    module.blocks[1].eval()
    next(module.parameters()).requires_grad_(False)
    vit = models.wrap(module)
    record = attnviz.observe(vit, small_input())
    heat = attnviz.explain(record, "attention")
    before, tensor = state_of(module), record.view.tensor.clone()
    attnviz.faithfulness(vit, record, heat)
    assert_same_state(before, state_of(module))
    assert torch.equal(record.view.tensor, tensor)


def test_each_batch_runs_locked_in_evaluation_mode_and_without_gradients():
    vit = planted(LIT)
    vit.module.train()
    found = []

    def look():
        free = []
        thread = Thread(target=lambda: free.append(vit.lock.acquire(blocking=False)))
        thread.start()
        thread.join()
        found.append((vit.module.training, torch.is_grad_enabled(), free[0]))

    vit.module.watching = look
    record = record_of_ones()
    attnviz.faithfulness(vit, record, map_of(LIT, record))
    assert set(found) == {(False, False, False)}
    assert vit.module.training and vit.lock.acquire(blocking=False)


class Stopped(Exception):
    """Raised by `progress`."""


def test_progress_counts_pictures_and_stops(monkeypatch):
    monkeypatch.setattr(watch, "BATCH_BYTES", 5 * 7 * 16 * 24 * 4)
    vit = small_vit()
    record = attnviz.observe(vit, small_input())
    heat = attnviz.explain(record, "attention")
    steps = []
    attnviz.faithfulness(vit, record, heat, orders=2, progress=lambda *step: steps.append(step))
    assert steps == [(5, 15), (10, 15), (15, 15)]  # three orders of five stops between the ends
    vit.module.train()
    before = state_of(vit.module)

    def stop(done, total):
        if done == 10:
            raise Stopped

    with pytest.raises(Stopped):
        attnviz.faithfulness(vit, record, heat, orders=2, progress=stop)
    assert_same_state(before, state_of(vit.module))
    assert vit.lock.acquire(blocking=False)
    assert attnviz.faithfulness(vit, record, heat, orders=2).beaten >= 0


def test_the_model_is_left_as_found_when_a_pass_fails():
    module = small_module().train()
    vit = models.wrap(module)
    record = attnviz.observe(vit, small_input())
    heat = attnviz.explain(record, "attention")
    broken = torch.full_like(small_input(), 1e38)
    before = state_of(module)
    with pytest.raises(CaptureFailed, match="not finite"):
        attnviz.faithfulness(vit, record, heat, baseline=broken)
    assert_same_state(before, state_of(module))


# What is refused


def refuse(record=None, heat=None, vit=None, **options):
    record = record or record_of_ones()
    heat = heat or map_of(BITS, record)
    attnviz.faithfulness(vit or planted(BITS), record, heat, **options)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"mode": "erasing"}, UnknownName, "no mode 'erasing'"),
        ({"steps": 1}, BadOption, "steps is a whole number from 2; 1 came"),
        ({"steps": 2.5}, BadOption, "steps"),
        ({"orders": 1}, BadOption, "orders is a whole number from 2"),
        ({"seed": -1}, BadOption, "seed is a whole number from 0"),
        ({"seed": True}, BadOption, "seed is a whole number from 0; True came"),
        ({"baseline": "grey"}, UnknownName, "no baseline 'grey'"),
        ({"baseline": torch.zeros(1, 3, 4, 5)}, BadOption, r"\(1, 3, 8, 15\)"),
        ({"baseline": torch.full((1, 3, 8, 15), torch.nan)}, BadOption, "finite"),
        ({"vit": planted(BITS, name="another")}, BadOption, "made by planted, but this model is an"),
        ({"heat": map_of(np.ones((3, 2)), record_of_ones())}, BadOption, "map of 3 × 2 patches"),
        ({"heat": map_of(np.ones((2, 3, 3)), record_of_ones())}, BadOption, "three values a patch"),
        (
            {"heat": map_of(BITS, record_of_ones(), facts=(("model", "vit"),))},
            BadOption,
            "a map of another model",
        ),
        (
            {"heat": map_of(BITS, record_of_ones(), image=Image.new("RGB", (15, 8), "white"))},
            BadOption,
            "a map of another picture",
        ),
        (
            {"heat": map_of(BITS, record_of_ones(), box=(0.0, 0.0, 15.0, 7.0))},
            BadOption,
            "another part of it",
        ),
    ],
)  # fmt: skip
def test_what_does_not_belong_together_is_refused_in_words(options, error, said):
    with pytest.raises(error, match=said):
        refuse(**options)


def test_three_components_put_patches_in_no_order():
    vit = small_vit()
    record = attnviz.observe(vit, small_input())
    with pytest.raises(BadOption, match="give no order"):
        attnviz.faithfulness(vit, record, attnviz.explain(record, "pca"))
    assert attnviz.faithfulness(vit, record, attnviz.explain(record, "pca", component=0))


def test_a_model_with_other_weights_than_the_record_s_is_refused():
    vit = small_vit()
    record = attnviz.observe(vit, small_input())
    heat = attnviz.explain(record, "attention")
    with torch.no_grad():
        vit.module.blocks[0].mlp.fc1.weight += 0.2
    with pytest.raises(BadOption, match="made with other weights"):
        attnviz.faithfulness(vit, record, heat)


@pytest.mark.parametrize("keep", ["maps", "factors"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions(dtype, keep):
    vit = small_vit()
    record = attnviz.observe(vit, small_input())
    expected = attnviz.faithfulness(vit, record, attnviz.explain(record, "attention"))
    vit = models.wrap(small_module().to(dtype))
    record = attnviz.observe(vit, small_input(), keep=keep, target=expected_class(expected))
    made = attnviz.faithfulness(vit, record, attnviz.explain(record, "attention"))
    assert made.random == pytest.approx(
        expected.random, abs=0.1 if dtype == torch.bfloat16 else 1e-5
    )


def expected_class(curves) -> int:
    return int(curves.score.split("class ")[1].split()[0])
