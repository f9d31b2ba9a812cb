"""The methods against the paper's definition, hand calculation and their invariants."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import attnviz
from attnviz.contract import View
from attnviz.record import AttentionRecord, LayerAttention, Maps
from attnviz.tokens import TokenLayout
from tests import gradient_twin, oracles

W1 = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
W2 = [[0.5, 0.4, 0.1], [0.3, 0.3, 0.4], [0.2, 0.2, 0.6]]


def record_of(maps, prefix=(), grid=None) -> AttentionRecord:
    """A record that holds the given maps (layer × (head, query, key))."""
    from PIL import Image

    tokens = len(maps[0][0])
    rows, cols = grid or (1, tokens - len(prefix))
    return AttentionRecord(
        layers=tuple(
            LayerAttention(
                f"blocks.{i}.attn", Maps(torch.as_tensor(np.array(m), dtype=torch.float32))
            )
            for i, m in enumerate(maps)
        ),
        layout=TokenLayout(prefix, (rows, cols)),
        view=View(
            torch.zeros(1, 3, rows, cols),
            np.zeros((rows, cols, 3), np.uint8),
            (0.0, 0.0, float(cols), float(rows)),
            "crop",
        ),
        image=Image.new("RGB", (cols, rows)),
        predictions=(),
        model="by hand",
        weights="by hand",
        random=False,
        device="cpu",
    )


def random_maps(layers, heads, tokens, seed=0, sharp=2.0):
    """Layers of softmax maps far from uniform."""
    scores = np.random.default_rng(seed).normal(size=(layers, heads, tokens, tokens)) * sharp
    return [oracles.softmax(layer) for layer in scores]


def test_records_are_compared_by_what_they_are_and_not_number_by_number():
    record, other = record_of([[W1]]), record_of([[W1]])
    assert record != other and record.layers[0] != other.layers[0]
    assert len({record, other, *record.layers}) == 3


@pytest.mark.parametrize(("fusion", "shown"), [("max", [0.5, 0.5]), ("min", [0.5, 0.5])])
def test_of_the_mean_of_patches_rows_are_averaged_before_heads_are_fused(fusion, shown):
    """By hand: one head looks at itself, the other across; first fused, it were 1, or 0."""
    itself, across = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    heat = attnviz.explain(record_of([[itself, across]]), query="mean", head_fusion=fusion)
    assert heat.values.ravel().tolist() == shown


def test_rollout_gives_the_golden_row():
    heat = attnviz.explain(record_of([[W1], [W2]]), "rollout", query=(0, 0))
    assert heat.values[0] == pytest.approx([0.6225, 0.2650, 0.1125], abs=1e-7)


def test_rollout_order_of_layers_matters():
    swapped = attnviz.explain(record_of([[W2], [W1]]), "rollout", query=(0, 0))
    by_hand = (0.5 * np.eye(3) + 0.5 * np.array(W1)) @ (0.5 * np.eye(3) + 0.5 * np.array(W2))
    assert swapped.values[0] == pytest.approx(by_hand[0], abs=1e-7)
    assert abs(by_hand[0] - [0.6225, 0.2650, 0.1125]).max() > 1e-3


CASES = list(
    itertools.product(
        [(), ("cls",), ("cls", "dist"), ("cls", "reg1", "reg2", "reg3", "reg4")],
        ["mean", "max", "min"],
        [(0.0, "row"), (0.3, "row"), (0.9, "row"), (0.5, "global")],
        [0.5, 0.0, 0.9],
    )
)


@pytest.mark.parametrize(("prefix", "fusion", "discard", "residual"), CASES)
def test_rollout_equals_the_slow_twin(prefix, fusion, discard, residual):
    tokens = len(prefix) + 6
    maps = random_maps(3, 2, tokens)
    record = record_of(maps, prefix, (2, 3))
    ratio, how = discard
    expected = oracles.rollout(
        maps, fusion=fusion, residual=residual, ratio=ratio, discard=how, prefix=len(prefix)
    )
    assert expected.sum(-1) == pytest.approx(1)
    for query, token in [
        (prefix[-1] if prefix else (0, 0), max(len(prefix) - 1, 0)),
        ((1, 2), tokens - 1),
    ]:
        heat = attnviz.explain(
            record, "rollout", query=query, head_fusion=fusion, residual=residual,
            discard_ratio=ratio, discard=how,
        )  # fmt: skip
        assert heat.values.ravel() == pytest.approx(expected[token, len(prefix) :], abs=1e-6)


def test_rollout_over_a_span_of_layers():
    maps = random_maps(4, 2, 7)
    heat = attnviz.explain(
        record_of(maps, ("cls",), (2, 3)), "rollout", first_layer=1, last_layer=-2
    )
    assert heat.values.ravel() == pytest.approx(oracles.rollout(maps[1:3])[0, 1:], abs=1e-6)


def test_rollout_of_the_mean_query_is_the_mean_of_the_patch_rows():
    maps = random_maps(2, 2, 7)
    heat = attnviz.explain(record_of(maps, ("cls",), (2, 3)), "rollout", query="mean")
    assert heat.values.ravel() == pytest.approx(oracles.rollout(maps)[1:].mean(0)[1:], abs=1e-6)


@pytest.mark.parametrize("tiny", [1e-20, 1e-31, 1e-38])
def test_fused_rows_as_small_as_float32_can_hold_are_still_brought_to_the_sum_one(tiny):
    heads = np.full((3, 3, 3), tiny)
    for head in range(3):
        heads[head, :, head] = 1
    # The minimum over heads is `tiny` everywhere, so each fused row is uniform.
    heat = attnviz.explain(
        record_of([heads], grid=(1, 3)), "rollout", query=(0, 0), head_fusion="min"
    )
    assert heat.values[0] == pytest.approx([2 / 3, 1 / 6, 1 / 6], abs=1e-6)


def test_identity_attention_gives_identity_rollout_and_uniform_gives_uniform():
    identity = record_of([[np.eye(6)]] * 3, grid=(2, 3))
    heat = attnviz.explain(identity, "rollout", query=(1, 1))
    assert heat.values[1, 1] == 1 and heat.values.sum() == 1
    uniform = record_of([[np.full((6, 6), 1 / 6)]] * 3, grid=(2, 3))
    heat = attnviz.explain(uniform, "rollout", query=(1, 1), residual=0)
    assert heat.values == pytest.approx(np.full((2, 3), 1 / 6))


@pytest.mark.parametrize("discard", ["row", "global"])
def test_of_equal_weights_the_first_are_discarded(discard):
    uniform = record_of([[np.full((6, 6), 1 / 6)]], grid=(2, 3))
    heat = attnviz.explain(
        uniform, "rollout", query=(0, 0), residual=0, discard_ratio=0.5, discard=discard
    )
    # by row: the first three of each; globally: the first three rows, which are left empty and
    # stand for the residual alone
    expected = [0, 0, 0, 1 / 3, 1 / 3, 1 / 3] if discard == "row" else [1, 0, 0, 0, 0, 0]
    assert heat.values.ravel() == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(
    arrays(np.float64, (2, 1, 7, 7), elements=st.sampled_from([0.0, 0.0, 1.0, 2.0])),
    st.floats(0, 0.99),
    st.sampled_from(["row", "global"]),
)
def test_ties_are_broken_as_the_slow_twin_breaks_them(scores, ratio, discard):
    maps = [oracles.softmax(layer).astype(np.float32).astype(np.float64) for layer in scores]
    heat = attnviz.explain(
        record_of(maps, ("cls",), (2, 3)),
        "rollout",
        discard_ratio=ratio,
        discard=discard,
    )
    expected = oracles.rollout(maps, ratio=ratio, discard=discard, prefix=1)
    assert heat.values.ravel() == pytest.approx(expected[0, 1:], abs=1e-6)


def test_29_hundredths_of_100_patches_are_29():
    maps = random_maps(1, 1, 100)
    heat = attnviz.explain(
        record_of(maps, grid=(10, 10)), "rollout", query=(9, 9), residual=0, discard_ratio=0.29
    )
    assert (heat.values == 0).sum() == 29


def test_heads_that_share_no_key_leave_the_residual_alone_under_min():
    one = np.array([[0.0, 1.0], [1.0, 0.0]])
    heat = attnviz.explain(
        record_of([[one, one[::-1]]]), "rollout", query=(0, 1), head_fusion="min"
    )
    assert heat.values[0] == pytest.approx([0, 1])


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 3), st.integers(2, 9), st.integers(0, 10_000), st.randoms()
)
def test_permuting_the_patches_permutes_the_map(layers, heads, tokens, seed, random):
    maps = random_maps(layers, heads, tokens, seed)
    order = list(range(1, tokens))
    random.shuffle(order)
    full = [0, *order]
    shuffled = [m[:, full][:, :, full] for m in maps]
    for method in ("rollout", "attention"):
        before = attnviz.explain(record_of(maps, ("cls",)), method).values[0]
        after = attnviz.explain(record_of(shuffled, ("cls",)), method).values[0]
        assert after == pytest.approx(before[[i - 1 for i in order]], abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    arrays(np.float64, (2, 2, 5, 5), elements=st.floats(-30, 30)),
    st.sampled_from(["mean", "max", "min"]),
    st.floats(0, 1),
    st.floats(0, 0.99),
)
def test_a_rollout_row_always_sums_to_one(scores, fusion, residual, ratio):
    maps = [oracles.softmax(layer) for layer in scores]
    heat = attnviz.explain(
        record_of(maps),
        "rollout",
        query=(0, 2),
        head_fusion=fusion,
        residual=residual,
        discard_ratio=ratio,
    )
    assert heat.values.sum() == pytest.approx(1, abs=1e-5)


PREFIX = [(), ("cls",), ("cls", "dist"), ("cls", "reg1", "reg2", "reg3", "reg4")]


@pytest.mark.parametrize("prefix", PREFIX)
@pytest.mark.parametrize("head", [None, 0, 2, -1])
@pytest.mark.parametrize("fusion", ["mean", "max", "min"])
def test_attention_equals_the_slow_twin(prefix, head, fusion):
    ahead = len(prefix)
    maps = random_maps(2, 3, ahead + 6)
    record = record_of(maps, prefix, (2, 3))
    queries = {name: [place] for place, name in enumerate(prefix)}
    queries |= {(1, 0): [ahead + 3], "mean": list(range(ahead, ahead + 6))}
    for query, tokens in queries.items():
        expected = oracles.attention(maps, layer=0, head=head, fusion=fusion, tokens=tokens)
        heat = attnviz.explain(
            record, "attention", layer=-2, head=head, head_fusion=fusion, query=query
        )
        assert heat.values.ravel() == pytest.approx(expected[ahead:], abs=1e-7)


BAD = [
    ("rollout", {"query": "reg1"}, attnviz.UnknownName, "cls"),
    ("rolout", {}, attnviz.UnknownName, "rollout"),
    ("rollout", {"head": 1}, attnviz.UnknownName, "head_fusion"),
    ("attention", {"layer": 2}, attnviz.UnknownName, "0 to 1"),
    ("attention", {"layer": 1.5}, attnviz.BadOption, "whole number"),
    ("attention", {"layer": True}, attnviz.BadOption, "layer is a whole number; True came"),
    ("attention", {"head": False}, attnviz.BadOption, "head is a whole number; False came"),
    ("attention", {"query": (True, 0)}, attnviz.BadOption, "two whole numbers; (True, 0) came"),
    ("rollout", {"last_layer": True}, attnviz.BadOption, "last layer is a whole number"),
    ("pca", {"component": True}, attnviz.BadOption, "component is a whole number; True came"),
    ("attention", {"head": 3}, attnviz.UnknownName, "0 to 2"),
    ("attention", {"head_fusion": "median"}, attnviz.UnknownName, "mean"),
    ("attention", {"direction": "up"}, attnviz.UnknownName, "from"),
    ("rollout", {"residual": 1.2}, attnviz.BadOption, "0 to 1"),
    ("rollout", {"discard_ratio": 1}, attnviz.BadOption, "not included"),
    ("rollout", {"discard_ratio": float("nan")}, attnviz.BadOption, "nan"),
    ("rollout", {"discard": "column"}, attnviz.UnknownName, "global"),
    ("rollout", {"first_layer": 1, "last_layer": 0}, attnviz.BadOption, "before it starts"),
]


@pytest.mark.parametrize(("method", "options", "error", "says"), BAD)
def test_what_does_not_exist_is_refused_by_name(method, options, error, says):
    with pytest.raises(error) as caught:
        attnviz.explain(record_of(random_maps(2, 3, 7), ("cls",), (2, 3)), method, **options)
    assert says in str(caught.value)


@pytest.mark.parametrize("method", attnviz.METHODS)
def test_each_method_has_a_slow_twin(method):
    twin = getattr(oracles, method, None) or getattr(gradient_twin, method, None)
    assert callable(twin), (
        f"{method} has no twin: write oracles.{method} from the paper and compare the two here, or"
        f" gradient_twin.{method} where it needs gradients or features"
    )


def test_options_of_one_name_are_read_alike():
    """The command line has one flag for them."""
    kinds: dict[str, set] = {}
    for method in attnviz.METHODS.values():
        for name, option in method.options.items():
            kinds.setdefault(name, set()).add((option.kind, option.choices))
    assert {name: len(found) for name, found in kinds.items() if len(found) > 1} == {}


FACTS = [
    ("attention", {}, {"layer": "1 (of 2, counted from 0)", "head fusion": "mean"}, ["head"]),
    ("attention", {"head": -1}, {"head": "2"}, ["head fusion", "direction"]),
    ("attention", {"direction": "to"}, {"direction": "to", "head fusion": "mean"}, []),
    (
        "rollout",
        {},
        {"residual": "0.5", "first layer": "0 (of 2, counted from 0)"},
        ["discard", "discard ratio"],
    ),
    ("rollout", {"discard_ratio": 0.5}, {"discard": "row", "discard ratio": "0.5"}, []),
]


@pytest.mark.parametrize(("method", "options", "there", "absent"), FACTS)
def test_a_map_says_what_was_chosen_and_nothing_without_effect(method, options, there, absent):
    record = record_of(random_maps(2, 3, 7), ("cls",), (2, 3))
    facts = dict(attnviz.explain(record, method, **options).facts)
    assert facts.items() >= there.items()
    assert facts["query"] == "class token"
    assert not set(absent) & set(facts)


def test_each_method_says_where_it_comes_from():
    for method in attnviz.METHODS.values():
        assert method.label and method.summary and method.formula and method.source
        assert all(option.help for option in method.options.values())
