"""Patches of two pictures that are alike: against slow loops, by hand, and on a mirrored picture."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import ImageOps

import attnviz
import models
from attnviz import correspond
from attnviz.correspond import Match, best_cell, mutual_matches, similar
from attnviz.errors import BadOption, UnknownName
from attnviz.samples import open_sample
from tests.conftest import PREFIXES, small_input, small_vit
from tests.test_pca import record_of


def cosine(one, other):
    """In float64, term by term."""
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def patches(record):
    """(row, col) → its feature, as plain numbers."""
    rows, cols = record.layout.grid
    features = record.features.double().tolist()[len(record.layout.prefix) :]
    return {(i // cols, i % cols): features[i] for i in range(rows * cols)}


def slow_matches(first, second):
    ours, theirs = patches(first), patches(second)
    likest = {p: max(theirs, key=lambda q: cosine(f, theirs[q])) for p, f in ours.items()}
    back = {q: max(ours, key=lambda p: cosine(ours[p], g)) for q, g in theirs.items()}
    found = [(p, q, cosine(ours[p], theirs[q])) for p, q in likest.items() if back[q] == p]
    return sorted(found, key=lambda pair: -pair[2])


def drawn(prefix, grid, seed):
    tokens = len(prefix) + grid[0] * grid[1]
    return record_of(np.random.default_rng(seed).normal(size=(tokens, 6)), grid, prefix)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_it_is_the_cosine_of_two_features(prefix):
    first, second = drawn(prefix, (2, 3), 1), drawn(prefix, (4, 2), 2)
    for cell, feature in patches(first).items():
        heat = similar(first, cell, second)
        expected = {q: cosine(feature, g) for q, g in patches(second).items()}
        assert heat.grid == (4, 2) and heat.unit == "cosine similarity"
        for q, value in expected.items():
            assert heat.values[q] == pytest.approx(value, abs=1e-6)
        assert best_cell(heat) == max(expected, key=expected.get)


@pytest.mark.parametrize("block", [1, 4, 2048])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_mutual_matches_are_each_others_nearest(monkeypatch, prefix, block):
    monkeypatch.setattr(correspond, "BLOCK", block)
    first, second = drawn(prefix, (3, 4), 3), drawn(prefix, (2, 5), 4)
    found, expected = mutual_matches(first, second), slow_matches(first, second)
    assert [(m.here, m.there) for m in found] == [pair[:2] for pair in expected]
    assert [m.similarity for m in found] == pytest.approx([pair[2] for pair in expected], abs=1e-6)
    assert 0 < len(found) <= 10
    turned = {(m.there, m.here) for m in mutual_matches(second, first)}
    assert turned == {(m.here, m.there) for m in found}


def test_planted_matches_by_hand():
    # Two channels: patches at angles of 0°, 90° and 180°, and of 10°, 100° and 30°.
    at = [[math.cos(math.radians(a)), math.sin(math.radians(a))] for a in (0, 90, 180, 10, 100, 30)]
    first, second = (
        record_of(at[:3], (1, 3)),
        record_of([[3 * x, 3 * y] for x, y in at[3:]], (3, 1)),
    )
    ten, eighty = math.cos(math.radians(10)), math.cos(math.radians(80))
    # 0° and 10°, 90° and 100° are each other's nearest; 180° prefers 100°, which prefers 90°.
    found = mutual_matches(first, second)
    assert [(m.here, m.there) for m in found] == [((0, 0), (0, 0)), ((0, 1), (1, 0))]
    assert [m.similarity for m in found] == pytest.approx([ten, ten])
    heat = similar(first, (0, 2), second)
    assert heat.values[:, 0] == pytest.approx([-ten, eighty, -math.cos(math.radians(30))], abs=1e-6)


def test_permuting_patches_permutes_the_matches():
    first, order = drawn(("cls",), (3, 4), 5), np.random.default_rng(0).permutation(12)
    features = torch.cat([first.features[:1], first.features[1:][torch.from_numpy(order)]])
    found = mutual_matches(first, replace(first, features=features))
    assert len(found) == 12 and all(m.similarity == pytest.approx(1) for m in found)
    for m in found:
        assert order[m.there[0] * 4 + m.there[1]] == m.here[0] * 4 + m.here[1]


def test_padding_has_no_part_in_it():
    first, second = drawn((), (2, 2), 6), drawn((), (2, 3), 7)
    features = second.features.clone()
    features[1:3] = first.features[0]  # the likest of (0, 0) are (0, 1) and, in padding, (0, 2)
    features[2] = 2 * first.features[0]
    box = (0.0, 0.0, 45.0, 20.0)  # the picture ends where the last column begins
    second = replace(
        second,
        features=features,
        view=replace(second.view, box=box),
    )
    assert best_cell(similar(first, (0, 0), second)) == (0, 1)
    assert Match((0, 0), (0, 1), pytest.approx(1.0)) in mutual_matches(first, second)
    assert all(m.there[1] < 2 for m in mutual_matches(first, second))


@pytest.mark.parametrize("query", [(1, 2), "cls", "mean"])
def test_of_a_picture_with_itself_it_is_the_method(query):
    record = attnviz.observe(small_vit(), small_input())
    heat = similar(record, query, record)
    assert (
        np.abs(heat.values - attnviz.explain(record, "similarity", query=query).values).max() == 0
    )
    if isinstance(query, tuple):
        assert best_cell(heat) == query and heat.values[query] == pytest.approx(1)


def test_a_figure_says_whose_patch_it_is():
    first, second = drawn(("cls",), (2, 3), 1), drawn(("cls",), (4, 2), 2)
    heat = similar(first, (1, 2), second, name="cat")
    assert heat.fact("query") == "patch (row 1, column 2) of cat"
    assert heat.fact("grid") == "4 rows × 2 columns of patches"
    assert heat.query_cell is None  # that patch is not in this picture


REFUSED = [
    ({"model": "other"}, "two saw these: (by hand and other|other and by hand)"),
    ({"weights": "untrained"}, "two saw these: (by hand and untrained|untrained and by hand)"),
    ({"features": None}, "hands on no features of single tokens"),
]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_what_cannot_be_compared_is_refused_in_one_sentence(changes, words, turned):
    pair = drawn((), (2, 3), 1), replace(drawn((), (2, 3), 2), **changes)
    first, second = reversed(pair) if turned else pair
    with pytest.raises(BadOption, match=words):
        similar(first, (0, 0), second)
    with pytest.raises(BadOption, match=words):
        mutual_matches(first, second)


def test_there_is_no_such_patch():
    record = drawn((), (2, 3), 1)
    with pytest.raises(UnknownName, match="row 2, column 0"):
        similar(record, (2, 0), record)


def test_a_mirrored_picture_matches_near_its_mirrored_places():
    vit = models.load("dinov2-small").at((224, 224))
    picture = open_sample("cat")
    first, second = (
        attnviz.observe(vit, image, fit="aspect") for image in (picture, ImageOps.mirror(picture))
    )
    rows, cols = first.layout.grid
    assert (rows, cols) == (13, 19)

    def near(cell, other):
        """Whether they are the same place, mirrored, or neighbours of it."""
        return max(abs(cell[0] - other[0]), abs(cell[1] - (cols - 1 - other[1]))) <= 1

    best = {
        (row, col): best_cell(similar(first, (row, col), second))
        for row in range(0, rows, 2)
        for col in range(0, cols, 2)
    }
    # By chance it would be 1 in 27 (9 of 247 patches); measured: 48 % of all patches.
    assert np.mean([near(*pair) for pair in best.items()]) > 0.38
    matches = mutual_matches(first, second)
    assert len(matches) > 60  # measured: 81, of which 69 % are near
    assert np.mean([near(m.here, m.there) for m in matches]) > 0.6
