"""Attention flow against linear programs, all cuts, hand calculation and its own promises."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from conftest import small_input, small_vit
from hypothesis import given, settings
from hypothesis import strategies as st

import attnviz
from attnviz.geometry import Geometry
from attnviz.methods import network
from attnviz.methods.values import Estimate
from attnviz.tokens import TokenLayout
from tests import oracles
from tests.test_methods import PREFIX, W1, W2, random_maps, record_of


def capacities(maps):
    """½ mean over heads + ½ I, by the formula."""
    return [np.mean(layer, 0) / 2 + np.eye(len(layer[0])) / 2 for layer in np.array(maps)]


def supply(tokens, count):
    given = np.zeros(count)
    given[tokens] = 1 / len(tokens)
    return given


def flows(maps, tokens):
    count = len(maps[0][0])
    return list(network.largest_flows(capacities(maps), supply(tokens, count)))


def test_flow_gives_the_golden_row():
    found = flows([[W1], [W2]], [0])
    assert [proof.cut for proof in found] == pytest.approx([0.9, 0.4, 0.25], abs=1e-12)
    assert [proof.flow for proof in found] == pytest.approx([0.9, 0.4, 0.25], abs=1e-8)
    heat = attnviz.explain(record_of([[W1], [W2]]), "flow", query=(0, 0))
    assert heat.values[0] == pytest.approx(np.array([0.9, 0.4, 0.25]) / 1.55, abs=1e-7)
    assert heat.values[0] == pytest.approx([0.5806, 0.2581, 0.1613], abs=5e-5)
    assert heat.unit == "share of flow"


@pytest.mark.parametrize("prefix", PREFIX)
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_flow_equals_the_slow_twin(prefix, layers):
    ahead = len(prefix)
    maps = random_maps(layers, 2, ahead + 6, seed=layers)
    record = record_of(maps, prefix, (2, 3))
    queries = {prefix[-1]: [ahead - 1]} if prefix else {}
    queries |= {(1, 0): [ahead + 3], "mean": list(range(ahead, ahead + 6))}
    for query, tokens in queries.items():
        expected = oracles.flow(maps, tokens=tokens)
        heat = attnviz.explain(record, "flow", query=query)
        assert heat.values.ravel() == pytest.approx((expected / expected.sum())[ahead:], abs=1e-6)
        assert [proof.cut for proof in flows(maps, tokens)] == pytest.approx(expected, abs=1e-6)


def test_flow_over_a_span_of_layers():
    maps = random_maps(4, 2, 7)
    record = record_of(maps, ("cls",), (2, 3))
    heat = attnviz.explain(record, "flow", first_layer=1, last_layer=-2)
    expected = oracles.flow(maps[1:3], tokens=[0])
    assert heat.values.ravel() == pytest.approx((expected / expected.sum())[1:], abs=1e-6)


def smallest_cut(layers, given, target):
    """Over every set of nodes on the source's side."""
    count = len(given)
    nodes = [(level, token) for level in range(1, len(layers) + 1) for token in range(count)]
    best = np.inf
    for inside in itertools.product([False, True], repeat=len(nodes)):
        side = dict(zip(nodes, inside, strict=True))
        cut = sum(given[i] for i in range(count) if not side[len(layers), i])
        for (level, i), j in itertools.product(nodes, range(count)):
            beyond = j == target if level == 1 else not side[level - 1, j]
            cut += layers[level - 1][i, j] * (side[level, i] and beyond)
        best = min(best, cut)
    return best


@pytest.mark.parametrize("tokens", [[0], [2], [1, 2]])
def test_each_flow_is_the_smallest_of_all_cuts(tokens):
    for seed in range(4):
        maps = random_maps(3, 1, 3, seed, sharp=4.0)
        layers, given = capacities(maps), supply(tokens, 3)
        cuts = [smallest_cut(layers, given, target) for target in range(3)]
        assert [proof.cut for proof in flows(maps, tokens)] == pytest.approx(cuts, abs=1e-12)


# Layers, tokens, sharpness of 30 tokens, of which a thin network leaves two thirds of the edges
# out; and whether its flows are then settled outside, inside, or both.
LARGER = [(2, 2.0, {False}), (3, 1.0, {True, False}), (5, 4.0, {True, False}), (5, 2.0, {True})]


@pytest.mark.parametrize(("layers", "sharp", "where"), LARGER)
def test_thin_networks_change_nothing(layers, sharp, where):
    maps = random_maps(layers, 1, 30, seed=5, sharp=sharp)
    found = flows(maps, [7])
    assert {proof.outer for proof in found} == where
    targets = range(0, 30, 6)
    expected = oracles.flow(maps, tokens=[7], targets=targets)
    assert [found[target].cut for target in targets] == pytest.approx(expected, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 4), st.integers(2, 9), st.integers(0, 10_000), st.floats(0, 30), st.booleans()
)
def test_a_flow_and_a_cut_meet_within_the_bounds(layers, count, seed, sharp, mean):
    maps = random_maps(layers, 2, count, seed, sharp)
    tokens = list(range(count)) if mean else [seed % count]
    columns = capacities(maps)[0].sum(0)
    for proof, column in zip(flows(maps, tokens), columns, strict=True):
        assert 0 <= proof.flow <= proof.cut + 1e-12
        assert proof.cut - proof.flow < 1e-7
        assert proof.cut <= min(1, column) + 1e-12


def test_a_large_network_is_as_exact():
    found = flows(random_maps(3, 1, 100, sharp=3.0), [0])
    assert max(proof.cut - proof.flow for proof in found) < 1e-6
    assert not all(proof.outer for proof in found)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 3), st.integers(3, 8), st.integers(0, 10_000), st.randoms())
def test_permuting_the_patches_permutes_the_map(layers, tokens, seed, random):
    maps = random_maps(layers, 2, tokens, seed)
    order = list(range(1, tokens))
    random.shuffle(order)
    full = [0, *order]
    shuffled = [layer[:, full][:, :, full] for layer in maps]
    before = attnviz.explain(record_of(maps, ("cls",)), "flow").values[0]
    after = attnviz.explain(record_of(shuffled, ("cls",)), "flow").values[0]
    assert after == pytest.approx(before[[i - 1 for i in order]], abs=1e-6)


def test_identity_attention_flows_home_and_uniform_everywhere():
    heat = attnviz.explain(record_of([[np.eye(6)]] * 3, grid=(2, 3)), "flow", query=(1, 1))
    assert heat.values[1, 1] == 1 and heat.values.sum() == 1
    # Many layers on, each token can give its whole column of capacities, which sums to 1.
    uniform = record_of([[np.full((6, 6), 1 / 6)]] * 9, grid=(2, 3))
    heat = attnviz.explain(uniform, "flow", query=(0, 0))
    assert heat.values == pytest.approx(np.full((2, 3), 1 / 6))


def test_a_map_that_says_nothing_of_the_query_says_so():
    deep = record_of([[np.full((6, 6), 1 / 6)]] * 9, grid=(2, 3))
    assert "nothing of the query" in " ".join(attnviz.explain(deep, "flow").notes)
    assert attnviz.explain(record_of([[W1], [W2]]), "flow", query=(0, 0)).notes == ()


# (rows, cols), at most → the pooled grid
GRIDS = [
    ((14, 14), 14, (14, 14)),
    ((16, 16), 14, (14, 14)),
    ((30, 45), 14, (9, 14)),
    ((45, 30), 14, (14, 9)),
    ((37, 37), 14, (14, 14)),
    ((1, 45), 14, (1, 14)),
    ((3, 5), 1, (1, 1)),
    ((3, 5), 100, (3, 5)),
    ((30, 45), None, (30, 45)),
]


@pytest.mark.parametrize(("grid", "side", "expected"), GRIDS)
@pytest.mark.parametrize("prefix", [(), ("cls", "reg1")])
def test_a_grid_is_pooled_to_equal_parts(grid, side, expected, prefix):
    whole = TokenLayout(prefix, grid)
    layout = whole.pooled(side)
    assert layout == TokenLayout(prefix, expected)
    parts = whole.parts(layout)
    assert parts.sum(1) == pytest.approx(1)
    size = grid[0] * grid[1] / (expected[0] * expected[1])
    assert parts.sum(0) == pytest.approx([1.0] * len(prefix) + [size] * layout.patches)


def test_a_patch_between_two_parts_lies_in_both():
    parts = TokenLayout(("cls",), (1, 3)).parts(TokenLayout(("cls",), (1, 2)))
    assert parts.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]]
    parts = TokenLayout((), (2, 4)).parts(TokenLayout((), (1, 2)))  # row by row
    assert parts.argmax(1).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


POOLED = [
    # 2 × 4 patches in two squares; the patch that asks is in the second
    (("cls",), (2, 4), [{0: 1}, dict.fromkeys([1, 2, 5, 6], 1), dict.fromkeys([3, 4, 7, 8], 1)],
     (1, 2), [0, 0, 1]),
    # 1 × 3 patches in two parts; the middle one, which asks, is in both
    ((), (1, 3), [{0: 1, 1: 0.5}, {1: 0.5, 2: 1}], (0, 1), [0.5, 0.5]),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "grid", "parts", "query", "asking"), POOLED)
def test_pooling_by_hand(prefix, grid, parts, query, asking):
    maps = random_maps(2, 2, len(prefix) + grid[0] * grid[1])
    small = [oracles.pooled(layer, parts) for layer in maps]
    assert all(layer.sum(-1) == pytest.approx(1) for layer in small)
    found = network.largest_flows(capacities(small), np.array(asking, float))
    of_parts = [proof.cut for proof in found]
    of_tokens = np.zeros(len(prefix) + grid[0] * grid[1])
    for flow, part in zip(of_parts, parts, strict=True):
        for token, share in part.items():
            of_tokens[token] += share * flow
    heat = attnviz.explain(record_of(maps, prefix, grid), "flow", query=query, pool=2)
    expected = (of_tokens / of_tokens.sum())[len(prefix) :]
    assert heat.values.ravel() == pytest.approx(expected, abs=1e-6)
    asked = [part for part, share in enumerate(asking) if share]
    assert of_parts == pytest.approx(oracles.flow(small, tokens=asked), abs=1e-6)


def test_a_pooled_map_says_so_and_others_do_not():
    record = record_of(random_maps(2, 1, 15), (), (3, 5))
    pooled = attnviz.explain(record, "flow", pool=3)
    assert "pooled to 2 × 3" in pooled.notes[0]
    assert pooled.fact("pool") == "3" and pooled.grid == (3, 5)
    for side in (5, 14, None):
        heat = attnviz.explain(record, "flow", pool=side)
        assert not any("pooled" in note for note in heat.notes)
        assert heat.fact("pool") is None and heat.fact("limit") is None
    large = record_of([[np.full((15, 15), 1 / 15)]], (), (1, 15))
    assert attnviz.explain(large, "flow").fact("pool") == "14"  # if left out


def test_pooling_goes_by_the_grid_that_is_read_and_not_by_the_record_s():
    record = record_of(random_maps(1, 1, 15), (), (3, 5))
    finer = Geometry(record.layout, record.layout)
    layers = (replace(record.layers[0], geometry=finer),)
    coarse = replace(record, layers=layers, layout=TokenLayout((), (2, 3)))
    assert attnviz.explain(coarse, "flow", pool=3).fact("pool") == "3"
    assert attnviz.explain(coarse, "flow", pool=5).fact("pool") is None


def test_progress_counts_every_token():
    seen = []
    record = record_of(random_maps(2, 2, 7), ("cls",), (2, 3))
    attnviz.explain(record, "flow", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 7) for done in (0, 0, 1, 2, 3, 4, 5, 6, 7)]  # 0 for each layer
    attnviz.explain(record, "rollout", progress=lambda done, total: pytest.fail("not long"))


class Stopped(BaseException):
    """As Streamlit's own, which ends a run when a widget is moved."""


def test_whoever_watches_can_stop_it():
    record, seen = record_of(random_maps(2, 2, 7), ("cls",), (2, 3)), []

    def stop(done, total):
        seen.append(done)
        if done == 2:
            raise Stopped

    with pytest.raises(Stopped):
        attnviz.explain(record, "flow", progress=stop)
    assert seen == [0, 0, 1, 2]


def test_what_would_take_too_long_gives_its_estimate_and_a_way_out():
    record = record_of(random_maps(3, 1, 30), (), (5, 6))
    needed = attnviz.estimate(record, "flow")
    assert 0 < needed.usual <= needed.most < 1
    with pytest.raises(attnviz.BadOption, match=r"30 tokens takes about 1 s.*pool=14.*limit=1\."):
        attnviz.explain(record, "flow", limit=needed.most / 2)
    assert attnviz.explain(record, "flow", limit=needed.most).values.sum() == pytest.approx(1)
    fewer = attnviz.estimate(record, "flow", first_layer=1)
    coarser = attnviz.estimate(record, "flow", pool=3)
    assert max(fewer.most, coarser.most) < needed.most
    assert attnviz.estimate(record, "rollout") is None
    with pytest.raises(attnviz.UnknownName, match="rollout"):
        attnviz.estimate(record, "rolout")


@pytest.mark.parametrize(
    ("usual", "most", "words"),
    [
        (0.01, 0.2, "about 1 s"),
        (7.6, 61, "about 8 s, at most 1 min"),
        (150, 2570, "about 2 min, at most 43 min"),
        (3600, 36_000, "about 60 min, at most 10 h"),
    ],
)
def test_an_estimate_in_words(usual, most, words):
    assert str(Estimate(usual, most)) == words


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"first_layer": 1, "last_layer": 0}, "span ends at layer 0, before it starts at layer 1"),
        ({"pool": 0}, "whole number from 1"),
        ({"pool": 2.5}, "whole number from 1"),
        ({"limit": 0}, "over 0"),
        ({"limit": float("nan")}, "over 0"),
        ({"limit": "long"}, "over 0"),
    ],
)
def test_what_cannot_be_is_refused(options, says):
    record = record_of(random_maps(2, 2, 7), ("cls",), (2, 3))
    for ask in (attnviz.explain, attnviz.estimate):
        with pytest.raises(attnviz.BadOption, match=says):
            ask(record, "flow", **options)


def test_maps_and_the_factors_that_rebuild_them_give_one_flow():
    vit = small_vit()
    kept = [attnviz.observe(vit, small_input(), keep=keep) for keep in ("maps", "factors")]
    dense, rebuilt = (attnviz.explain(record, "flow", query=(1, 2)).values for record in kept)
    assert rebuilt == pytest.approx(dense, abs=1e-6)
    expected = oracles.flow(
        [layer.probs().double().numpy() for layer in kept[0].layers], tokens=[6]
    )
    assert dense.ravel() == pytest.approx((expected / expected.sum())[1:], abs=1e-6)
