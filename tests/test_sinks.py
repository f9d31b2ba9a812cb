"""Tokens that collect attention, and maps that they swallow."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import attnviz
import models
from attnviz.errors import BadOption
from attnviz.methods import METHODS
from attnviz.metrics import head_metrics
from attnviz.samples import open_sample
from attnviz.sinks import find_sinks, own_cells, swallowed_by
from tests.test_methods import random_maps, record_of


def layer(heads: int, **shares: float) -> np.ndarray:
    """Each head of 41 tokens (class token and 5 × 8 patches) gives these tokens (t9=…) a share."""
    rows = np.full((heads, 41, 41), (1 - sum(shares.values())) / (41 - len(shares)))
    for name, share in shares.items():
        rows[..., int(name[1:])] = share
    return rows


def found(maps, features=None, **options):
    record = record_of(maps, ("cls",), (5, 8))
    return find_sinks(head_metrics(record), features, **options)


def test_sinks_are_named_with_place_layer_and_share():
    quiet = layer(2)
    mixed = np.stack([layer(1, t11=0.98)[0], layer(1)[0]])  # the mean of the heads is 0.502
    sinks = found([quiet, layer(2, t0=0.6, t11=0.1), mixed])
    assert [(s.token, s.name, s.cell, s.layer, s.layers, s.norm) for s in sinks] == [
        (0, "class token", None, 1, (1,), None),
        (11, "patch (row 1, column 2)", (1, 2), 2, (2,), None),
    ]
    assert [s.share for s in sinks] == pytest.approx([0.6, 0.49 + 0.5 / 41], rel=1e-6)


@pytest.mark.parametrize(("share", "sink"), [(20.01 / 41, True), (19.99 / 41, False)])
def test_twenty_times_uniform_is_the_rule(share, sink):
    assert bool(found([layer(1, t5=share)])) == sink


def test_the_greediest_sink_comes_first():
    assert [sink.token for sink in found([layer(2, t3=0.1, t7=0.4, t20=0.2)], times=4)] == [
        7,
        20,
        3,
    ]


def test_only_patches_are_asked():
    """What the class token looks at alone is no sink."""
    rows = layer(1)
    rows[0, 0] = 0
    rows[0, 0, 7] = 1
    assert found([rows]) == ()


def test_uniform_and_random_maps_have_no_sink():
    assert found([layer(3)]) == ()
    assert found(random_maps(2, 3, 41)) == ()
    assert find_sinks(head_metrics(record_of([np.eye(6)[None]], grid=(2, 3)))) == ()


def test_the_factor_is_an_option():
    assert [s.token for s in found([layer(1, t5=0.3)], times=10)] == [5]


@pytest.mark.parametrize("as_vectors", [True, False])
def test_outlying_features_are_sinks_too(as_vectors):
    lengths = torch.linspace(0.9, 1.1, 41)
    lengths[0] = 0.1  # a short class token is none
    lengths[20] = 3
    features = torch.zeros(41, 4)
    features[:, 2] = -lengths
    sinks = found([layer(1, t5=0.9)], features if as_vectors else lengths)
    assert [(s.token, s.layers) for s in sinks] == [(5, (0,)), (20, ())]
    median = sorted(lengths[1:].tolist())[19:21]
    assert sinks[1].norm == pytest.approx(3 / (sum(median) / 2), rel=1e-6)
    assert sinks[1].share == pytest.approx(0.1 / 40, rel=1e-5)
    assert [s.token for s in found([layer(1)], lengths, norm_times=4)] == []


@pytest.mark.parametrize(("length", "expected"), [(2.0, [20]), (1.999, [])])
def test_twice_the_median_length_is_the_rule(length, expected):
    lengths = torch.ones(41)
    lengths[20] = length
    assert [s.token for s in found([layer(1)], lengths)] == expected


@pytest.mark.parametrize(
    ("features", "says"),
    [
        (torch.zeros(40), r"shape \(40,\) came; expected are \(41, channels\) or \(41,\)"),
        (torch.zeros(1, 41, 3), r"shape \(1, 41, 3\)"),
        (torch.full((41,), float("nan")), "not all finite"),
    ],
)
def test_features_that_do_not_fit_are_refused(features, says):
    with pytest.raises(BadOption, match=says):
        found([layer(1)], features)


def map_with(size=(20, 20), **hot: float) -> np.ndarray:
    """All patches 1, but those of the given index (p7=…)."""
    values = np.ones(size)
    for name, value in hot.items():
        values.flat[int(name[1:])] = value
    return values


SWALLOWED = [
    (map_with(), ()),  # uniform
    (np.zeros((3, 4)), ()),
    (np.ones((1, 1)), ()),
    (map_with(p45=400), ((2, 5),)),
    (map_with(p45=300, p7=400, p399=350, p0=100), ((0, 7), (19, 19), (2, 5), (0, 0))),
    (map_with(p1=400, p2=400, p3=400, p4=400, p5=400), ()),  # five of 400 are more than 1 %
    (map_with(p45=20), ()),  # 19.1 times the mean
    (map_with(p45=22), ((2, 5),)),  # 20.9 times
    (map_with((6, 6), p3=45), ((0, 3),)),  # one is always few: 20.3 times the mean
    (map_with((6, 6), p3=45, p4=45), ()),
    (-map_with(p45=400), ()),
    (map_with(p45=400, p2=-1), ()),
]


@pytest.mark.parametrize(("values", "cells"), SWALLOWED)
def test_a_swallowed_map_names_who_swallowed_it(values, cells):
    assert swallowed_by(values.astype(np.float32)) == cells
    assert swallowed_by(values * 1e-6) == cells


def test_what_the_query_keeps_by_itself_does_not_count():
    """Its own cell swallows the map; left out, either nothing does or the sink beside it."""
    assert swallowed_by(map_with(p45=400)) == ((2, 5),)
    assert swallowed_by(map_with(p45=400), itself=[(2, 5)]) == ()
    assert swallowed_by(map_with(p45=4e5, p7=400), itself=[(2, 5)]) == ((0, 7),)
    assert swallowed_by(map_with(p45=400, p46=400, p7=400), itself=[(2, 5), (2, 6)]) == ((0, 7),)
    assert swallowed_by(np.ones((1, 1)), itself=[(0, 0)]) == ()


ADDS_I = {"rollout", "flow", "relevance", "gradient_rollout"}


@pytest.mark.parametrize("name", METHODS)
def test_methods_that_add_the_identity_say_so(name):
    """The docs' formula has an I, and the query keeps a part by it."""
    settled = {name: option.default for name, option in METHODS[name].options.items()}
    assert METHODS[name].keeps_itself(settled) == (name in ADDS_I)
    if name == "rollout":
        assert not METHODS[name].keeps_itself({**settled, "residual": 0.0})


@pytest.mark.parametrize(
    ("method", "query", "options", "itself"),
    [
        ("rollout", (1, 2), {}, ((1, 2),)),
        ("rollout", (1, 2), {"residual": 0.0}, ()),
        ("rollout", "cls", {}, ()),
        ("attention", (1, 2), {}, ()),
    ],
)
def test_a_map_says_which_cells_the_query_keeps_by_itself(method, query, options, itself):
    record = record_of(random_maps(2, 2, 7), ("cls",), (2, 3))
    assert attnviz.explain(record, method, query=query, **options).itself == itself


def test_the_rollout_of_dinov2_is_swallowed_and_its_last_layer_is_not():
    """Of the first layer's doing: without that layer the rollout is whole."""
    image = open_sample("cat")
    large = attnviz.observe(models.load("dinov2-small", device="cpu"), image, keep="factors")
    assert large.layout.grid == (37, 37)
    rollout = attnviz.explain(large, "rollout")
    cells = swallowed_by(rollout.values)
    assert 1 <= len(cells) <= 13
    assert all(rollout.values[cell] > 10 * rollout.values.mean() for cell in cells)
    assert swallowed_by(attnviz.explain(large, "rollout", first_layer=1).values) == ()
    assert swallowed_by(attnviz.explain(large, "attention").values) == ()

    sinks = find_sinks(head_metrics(large))
    assert sinks[0].name == "class token"
    assert set(cells) <= {sink.cell for sink in sinks}

    vit = models.load("dinov2-small", device="cpu", image_size=224)
    small = attnviz.observe(vit, image, keep="factors")
    for query in ("cls", "mean"):
        for head in (None, *range(6)):
            values = attnviz.explain(small, "attention", query=query, head=head).values
            assert swallowed_by(values) == ()


def test_the_query_s_own_cells_are_its_pool():
    assert own_cells(None, (4, 6)) == ()
    assert own_cells((3, 1), (4, 6)) == ((3, 1),)
    # 4 × 6 pooled to at most 3 a side: blocks of 2 × 2 cells.
    assert own_cells((3, 1), (4, 6), 3) == ((3, 1), (2, 0), (2, 1), (3, 0))
