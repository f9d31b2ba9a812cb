"""Head metrics against golden numbers, a slow float64 twin, and what they mean."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import attnviz
from attnviz import record as records
from attnviz.errors import UnknownName
from attnviz.metrics import METRICS, head_metrics
from attnviz.record import AttentionRecord, Factors, LayerAttention, Maps
from tests import oracles
from tests.test_methods import random_maps, record_of

REGISTERS = ("cls", "reg1", "reg2", "reg3", "reg4")


def measured(maps, prefix=(), grid=None, patch=(16, 16)) -> AttentionRecord:
    """A record of these maps whose patches have that (height, width) in pixels."""
    made = record_of(maps, prefix, grid)
    rows, cols = made.layout.grid
    height, width = rows * patch[0], cols * patch[1]
    fed, pixels = torch.zeros(1, 3, height, width), np.zeros((height, width, 3), np.uint8)
    return replace(made, view=replace(made.view, tensor=fed, pixels=pixels))


def uniform(tokens: int) -> np.ndarray:
    return np.full((1, tokens, tokens), 1 / tokens)


def half_on_cls(patches: int) -> np.ndarray:
    rows = np.full((1, patches + 1, patches + 1), 0.5 / patches)
    rows[..., 0] = 0.5
    return rows


GOLDEN = [
    ("2 × 2", uniform(4), (), (2, 2), 13.6569, 13.6569),
    ("1 × 4", uniform(4), (), (1, 4), 20.0, 20.0),
    ("4 × 1", uniform(4), (), (4, 1), 20.0, 20.0),
    ("14 × 14", uniform(196), (), (14, 14), 116.4922, 116.4922),
    ("half the mass on the class token", half_on_cls(196), ("cls",), (14, 14), 58.2461, 116.4922),
]


@pytest.mark.parametrize(
    ("attention", "prefix", "grid", "dropped", "renormalised"),
    [case[1:] for case in GOLDEN],
    ids=[case[0] for case in GOLDEN],
)
def test_golden_distances(attention, prefix, grid, dropped, renormalised):
    found = head_metrics(measured([attention], prefix, grid))
    assert found["distance"] == pytest.approx(dropped, abs=6e-5)
    assert found["distance_renormalised"] == pytest.approx(renormalised, abs=6e-5)


def test_a_patch_need_not_be_square():
    """Two patches, one above the other and then side by side: half of the mass goes far."""
    high = head_metrics(measured([uniform(2)], grid=(2, 1), patch=(8, 20)))
    wide = head_metrics(measured([uniform(2)], grid=(1, 2), patch=(8, 20)))
    assert (high["distance"].item(), wide["distance"].item()) == (4, 10)


@pytest.mark.parametrize("block_bytes", [1, 200, 2**22])
@pytest.mark.parametrize("prefix", [(), ("cls",), ("cls", "dist"), REGISTERS])
def test_every_metric_is_its_slow_twin(monkeypatch, prefix, block_bytes):
    monkeypatch.setattr(records, "BLOCK_BYTES", block_bytes)
    maps = random_maps(2, 3, len(prefix) + 6)
    found = head_metrics(measured(maps, prefix, (2, 3), (8, 20)))
    expected = oracles.head_metrics(maps, prefix=len(prefix), grid=(2, 3), patch=(8, 20))
    assert list(found.values) == [*METRICS, *(f"to_{name}" for name in prefix)]
    for layer, of_layer in enumerate(expected):
        for head, of_head in enumerate(of_layer):
            for name in METRICS:
                assert found[name][layer, head] == pytest.approx(of_head[name], rel=2e-6, abs=2e-6)
            for name, share in zip(prefix, of_head["to"], strict=True):
                assert found[f"to_{name}"][layer, head] == pytest.approx(share, abs=1e-6)
        assert found.received[layer] == pytest.approx(of_layer[0]["received"], abs=1e-6)


def test_the_two_distances_and_the_twin_tell_apart_what_could_be_confused():
    """On random maps no two metrics agree by chance, so a swap of columns shows."""
    maps = random_maps(1, 3, 11)
    found = head_metrics(measured(maps, REGISTERS, (2, 3), (8, 20)))
    flat = np.stack([found[name][0] for name in found.values])
    assert all(abs(a - b).max() > 1e-3 for i, a in enumerate(flat) for b in flat[:i])


def test_layers_may_differ_in_their_number_of_heads():
    maps = [random_maps(1, 3, 7)[0], random_maps(1, 1, 7, seed=1)[0]]
    found = head_metrics(measured(maps, ("cls",), (2, 3)))
    expected = oracles.head_metrics(maps, prefix=1, grid=(2, 3), patch=(16, 16))
    assert found.heads == (3, 1)
    assert np.isnan(found["entropy"]).tolist() == [[False] * 3, [False, True, True]]
    rows = found.table()
    assert [(row["layer"], row["head"]) for row in rows] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert rows[3]["entropy"] == pytest.approx(expected[1][0]["entropy"], rel=1e-6)
    mean = sum(head["entropy"] for head in expected[0]) / 3
    assert found.layer_means("entropy") == pytest.approx(
        [mean, expected[1][0]["entropy"]], rel=1e-6
    )
    assert rows[3]["agreement"] == 1  # with itself


def test_factors_and_maps_give_the_same_numbers():
    queries, keys = torch.randn(2, 2, 11, 4, generator=torch.Generator().manual_seed(3)).unbind()
    factors = Factors(queries * 3, keys, 0.5)
    dense = measured([factors.block(0, 11).numpy()], REGISTERS, (2, 3))
    lean = replace(dense, layers=(LayerAttention("blocks.0.attn", factors),))
    one, other = head_metrics(dense), head_metrics(lean)
    for name in one.values:
        assert one[name] == pytest.approx(other[name], rel=1e-6)


def test_each_row_is_built_once_and_never_the_whole_map(monkeypatch):
    monkeypatch.setattr(records, "BLOCK_BYTES", 4 * 2 * 11 * 3)
    factors = Factors(torch.randn(2, 11, 4), torch.randn(2, 11, 4), 0.5)
    record = measured([uniform(11)], REGISTERS, (2, 3))
    asked = []
    real = Factors.block

    def block(self, start, stop):
        asked.append((start, stop))
        return real(self, start, stop)

    monkeypatch.setattr(Factors, "block", block)
    head_metrics(replace(record, layers=(LayerAttention("blocks.0.attn", factors),)))
    assert asked == [(0, 3), (3, 6), (6, 9), (9, 11)]


def test_uniform_and_identity():
    same = head_metrics(measured([np.repeat(uniform(7), 4, 0)], ("cls",), (2, 3)))
    assert same["entropy"] == pytest.approx(math.log(7), rel=1e-6)
    assert same["relative_entropy"] == pytest.approx(1, rel=1e-6)
    assert same["agreement"] == pytest.approx(1, abs=1e-6)
    assert same["to_cls"] == pytest.approx(1 / 7)
    assert same.received == pytest.approx(np.full((1, 7), 1 / 7))
    itself = head_metrics(measured([np.eye(7)[None]], ("cls",), (2, 3)))
    for name in ("distance", "distance_renormalised", "entropy", "to_prefix"):
        assert itself[name].item() == 0
    assert itself.received[0].tolist() == pytest.approx([0, *[1 / 6] * 6])


def test_heads_without_a_common_key_do_not_agree_at_all():
    shifts = np.stack([np.roll(np.eye(6), shift, 1) for shift in (0, 1, 2)])
    assert head_metrics(measured([shifts], grid=(2, 3)))["agreement"] == pytest.approx(0, abs=1e-6)


def test_the_layers_agreement_is_the_generalised_jensen_shannon_divergence():
    """Entropy of the mean less mean of the entropies (Lin 1991), computed here on its own."""
    (maps,) = random_maps(1, 4, 6)

    def entropy(rows):
        return -(rows * np.log(rows)).sum(-1)

    divergence = (entropy(maps.mean(0)) - entropy(maps).mean(0)).mean()
    found = head_metrics(measured([maps], grid=(2, 3)))
    assert found.layer_means("agreement") == pytest.approx([1 - divergence / math.log(4)], rel=1e-5)


def test_all_attention_on_the_class_token_has_no_renormalised_distance():
    rows = np.zeros((1, 7, 7))
    rows[..., 0] = 1
    found = head_metrics(measured([rows], ("cls",), (2, 3)))
    assert found["distance"].item() == 0
    assert np.isnan(found["distance_renormalised"]).all()
    assert np.isnan(found.layer_means("distance_renormalised")).all()
    assert found["to_cls"].item() == 1
    rows[0, 1] = 1 / 7  # one row gives something: the others are left out
    found = head_metrics(measured([rows], ("cls",), (1, 6)))
    assert found["distance_renormalised"].item() == pytest.approx(16 * 15 / 6)


def test_moving_the_heads_moves_their_numbers():
    (maps,) = random_maps(1, 4, 7)
    order = [2, 0, 3, 1]
    one = head_metrics(measured([maps], ("cls",), (2, 3)))
    other = head_metrics(measured([maps[order]], ("cls",), (2, 3)))
    for name in one.values:
        assert other[name] == pytest.approx(one[name][:, order])


def test_a_single_token_is_no_accident():
    found = head_metrics(measured([np.ones((1, 1, 1))], grid=(1, 1)))
    assert found.table() == [
        {"layer": 0, "head": 0, "distance": 0.0, "distance_renormalised": 0.0, "entropy": 0.0,
         "relative_entropy": 0.0, "to_prefix": 0.0, "agreement": 1.0}
    ]  # fmt: skip


def test_half_precision_maps_are_read_in_float32():
    (maps,) = random_maps(1, 2, 7)
    half = torch.tensor(maps).half()
    expected = oracles.head_metrics([half.double().numpy()], prefix=1, grid=(2, 3), patch=(16, 16))
    record = measured([maps], ("cls",), (2, 3))
    found = head_metrics(replace(record, layers=(LayerAttention("blocks.0.attn", Maps(half)),)))
    assert found["entropy"][0, 1] == pytest.approx(expected[0][1]["entropy"], rel=1e-5)


def test_a_metric_that_does_not_exist_is_refused_by_name():
    found = head_metrics(measured([uniform(7)], ("cls",), (2, 3)))
    for ask in (found.__getitem__, found.describe, found.layer_means, found.caption):
        with pytest.raises(UnknownName, match=r"no metric 'entropie'. Did you mean entropy"):
            ask("entropie")
    with pytest.raises(UnknownName, match="to_cls"):
        found["to_dist"]


def test_each_number_has_a_label_a_unit_and_its_formula():
    found = head_metrics(measured([uniform(11)], REGISTERS, (2, 3)))
    assert set(found.about) == set(found.values)
    for metric in found.about.values():
        assert metric.label and metric.unit and metric.description
    assert len({metric.label for metric in found.about.values()}) == len(found.about)
    assert found.describe("to_reg2").axis == "Attention to the register 2 (share of attention)"


def test_the_result_says_where_it_comes_from_and_cannot_be_changed():
    record = replace(measured([uniform(7)], ("cls",), (2, 3)), random=True, weights="none")
    found = head_metrics(record).named("cat.jpg")
    said, note = found.caption("distance")
    assert said.startswith("Mean attention distance, patches only; each dot a head")
    assert (
        "picture: cat.jpg; model: by hand; input: 48 × 32 pixels, enlarged from 3 × 2; grid: 2 rows × 3 columns of patches"
        in said
    )
    assert note == "Note: random weights: these numbers mean nothing"
    with pytest.raises(ValueError, match="read-only"):
        found["distance"][0, 0] = 1
    json.dumps(found.table())


def test_the_public_names():
    assert attnviz.METRICS is METRICS
    assert attnviz.head_metrics is head_metrics
