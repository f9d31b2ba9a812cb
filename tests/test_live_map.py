"""What the browser draws from while the pointer moves is what Python would draw of that patch."""

import zlib
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

import attnviz
from attnviz.colour import colourise
from attnviz.geometry import Geometry
from attnviz.scale import choose_scale
from attnviz.ui import live_map
from attnviz.ui.asked import Ground
from attnviz.ui.live_panel import _places, live_of
from attnviz.ui.observation import Observation
from tests import test_pooled, test_windows
from tests.test_methods import random_maps, record_of

MEAN = {"layer": 0, "head": None, "head_fusion": "mean", "direction": "from"}


def unpacked(made):
    """(asker, cell), NaN where blank, and each row's range: read as the browser does."""
    name, raw = made.packed[:16], zlib.decompress(made.packed[16:])
    assert name.decode() == made.name
    askers, cells = np.frombuffer(raw, "<i4", 2)
    corners = np.frombuffer(raw, "<f4", 3 * askers, 8).astype(float).reshape(3, askers, 1)
    planes = np.frombuffer(raw, "u1", offset=8 + 12 * askers).astype(int)
    steps = (planes[: askers * cells] + 256 * planes[askers * cells :]).reshape(askers, cells)
    return decoded(corners, steps), (corners[2] - corners[0])[:, 0]


def decoded(corners, steps):
    """By what is said of them: equal steps to the 49152nd, and others to the 65534th."""
    low, knee, high = corners
    below = low + steps * (knee - low) / 49152
    above = knee + (steps - 49152) * (high - knee) / (65534 - 49152)
    return np.where(steps == 65535, np.nan, np.where(steps > 49152, above, below))


@pytest.mark.parametrize("prefix", [(), ("cls",), ("cls", "reg1", "reg2")])
@pytest.mark.parametrize("direction", ["from", "to"])
@pytest.mark.parametrize(
    "head", [{"head": 1}, {"head": None, "head_fusion": "max"}, {"head": None}]
)
def test_every_value_comes_back_within_a_65535th_of_its_row(prefix, direction, head, monkeypatch):
    ahead = len(prefix)
    monkeypatch.setattr("attnviz.record.BLOCK_BYTES", 4 * 3 * (ahead + 6) * 2)  # two rows at once
    maps = random_maps(2, 3, ahead + 6)
    record = record_of(maps, prefix, (2, 3))
    made = live_map.live_map(record, layer=1, direction=direction, **head)
    values, span = unpacked(made)
    fuse = {"max": np.max, "mean": np.mean}[head.get("head_fusion", "mean")]
    whole = maps[1][1] if head["head"] == 1 else fuse(maps[1], axis=0)
    expected = whole[ahead:, ahead:]
    expected = expected.T if direction == "to" else expected
    assert span == pytest.approx(np.ptp(expected, axis=1), rel=1e-5)
    off = np.abs(values - expected) / np.ptp(expected, axis=1)[:, None]
    assert off.max() <= 1 / 65535


def test_a_level_row_and_one_of_a_single_value_come_back():
    values = np.array([[0.25, 0.25], [0, 1], [3, 5]], np.float32)
    reached = np.array([[True, True], [True, False], [False, False]])
    corners, steps = live_map.quantised(values, reached)
    assert corners.tolist() == [[0.25, 0, 0]] * 3
    assert steps.tolist() == [[0, 0], [0, 65535], [65535, 65535]]


def test_one_patch_alone_and_magnitudes_far_apart_come_back():
    chance = np.random.default_rng(4)
    values = np.zeros((3, 300), np.float32)
    values[0, 123] = 1
    values[1] = np.exp(chance.uniform(np.log(1e-12), 0, 300))
    values[2] = 5 + chance.uniform(-1e-3, 1e-3, 300)
    corners, steps = live_map.quantised(values, np.ones(values.shape, bool))
    low, knee, high = corners.astype(float)
    assert (low.tolist(), high.tolist()) == (values.min(1).tolist(), values.max(1).tolist())
    assert ((values > knee[:, None]).sum(1) <= 3).all()  # a hundredth
    back = decoded(corners[..., None].astype(float), steps.astype(int))
    half = np.where(
        values > knee[:, None], (high - knee)[:, None] / 32764, (knee - low)[:, None] / 98304
    )
    assert (np.abs(back - values) <= half * 1.001).all()


@pytest.mark.parametrize("clip", [None, 99])
def test_where_one_patch_holds_nearly_all_the_others_still_have_their_colours(clip):
    """As DINOv2's layer 0, head 5, of the cat's row 0, column 21: the cut scale shows the rest."""
    chance = np.random.default_rng(3)
    values = np.exp(chance.normal(-11, 1.2, (4, 30 * 45))).astype(np.float32)
    values[np.arange(4), [0, 21, 700, 1349]] = 1 - values.sum(1)
    corners, steps = live_map.quantised(values, np.ones(values.shape, bool))
    back = decoded(corners[..., None].astype(float), steps.astype(int)).astype(np.float32)
    for row, again in zip(values, back, strict=True):
        colours = [colourise(each, choose_scale(each, clip=clip), "gray") for each in (row, again)]
        off = np.abs(np.diff(np.array(colours).astype(int), axis=0))
        assert off.max() <= 1
        assert (off.max(-1) > 0).mean() < 0.004


def test_who_does_not_ask_or_answer_in_a_layer_is_blank():
    """Of 2 × 3 patches the first asks not, and the last two answer not."""
    layout = attnviz.TokenLayout(("cls",), (2, 3))
    some = torch.arange(2, 7)[None]
    asks = live_map._reached(Geometry(layout, layout, rows=some))
    assert asks.tolist() == [[False] * 6] + 5 * [[True] * 6]
    answers = live_map._reached(Geometry(layout, layout, cols=torch.arange(5)[None]))
    assert answers.tolist() == 6 * [[True] * 4 + [False] * 2]


# (of which file, model, layers): windows, moved ones, padded ones, pooled keys, pooled queries
MODELS = [
    (test_windows, "Swin", range(4)),
    (test_windows, "Swin, padded", [0, 1]),
    (test_windows, "PVT v2", [1, 3]),
    (test_windows, "Twins, pooled", [0]),
    (test_pooled, "MViT, class token", [0, 1]),
    (test_pooled, "Hiera", [0, 1, 4]),
]


@pytest.mark.parametrize(("file", "name", "layers"), MODELS, ids=[row[1] for row in MODELS])
@pytest.mark.parametrize("direction", ["from", "to"])
def test_what_is_pointed_at_is_the_map_that_a_click_would_bring(file, name, layers, direction):
    _, _, record = file.seen(name)
    ground = Ground.of(record)
    for layer in layers:
        options = {**MEAN, "layer": layer, "direction": direction}
        heat = attnviz.explain(record, **options)
        made = live_map.live_map(record, **options)
        values, places = unpacked(made)[0], _places(made, ground, heat)
        for picker, grid in (("patches", record.layout.grid), ("map", heat.grid)):
            rows, cols = grid
            for cell in product(range(0, rows, 7), range(0, cols, 11)):
                at = cell[0] * cols + cell[1]
                patch = (places[picker]["named"] or [*product(range(rows), range(cols))])[at]
                if picker == "map":  # as a pick there, through the place in the picture
                    on_map = Ground(replace(ground.layout, grid=grid), heat.box)
                    assert patch == ground.cell_at(on_map.centre(cell))
                asker = places[picker]["askers"][at]
                if asker < 0:
                    with pytest.raises(attnviz.AttnVizError):
                        attnviz.explain(record, query=patch, **options)
                    continue
                pinned = attnviz.explain(record, query=patch, **options)
                shown = values[asker].reshape(pinned.grid)
                assert np.array_equal(~np.isnan(shown), pinned.filled)
                rounding = 1e-6 * pinned.values.max()
                spread = np.ptp(pinned.values[pinned.filled])
                assert (
                    np.abs(shown - pinned.values)[pinned.filled].max() <= spread / 65535 + rounding
                )


def test_large_grids_are_pooled_in_blocks_of_patches(monkeypatch):
    """By hand: 3 × 4 patches in blocks of 2 × 2, those of the last row half as high."""
    maps = random_maps(1, 2, 13)
    record = record_of(maps, ("cls",), (3, 4))
    monkeypatch.setattr(live_map, "LIMIT", 2 * 12 * 12 - 1)
    ends = live_map.ends_of(record, MEAN)
    assert (ends.pool, ends.askers, ends.cells) == (2, (2, 2), (2, 2))
    values, _ = unpacked(live_map.live_map(record, **MEAN))
    blocks = [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9], [10, 11]]
    whole = maps[0].mean(0)[1:, 1:]
    expected = [[whole[np.ix_(one, other)].mean() for other in blocks] for one in blocks]
    assert values == pytest.approx(np.array(expected), abs=1e-6)
    made = live_map.live_map(record, **MEAN)
    places = _places(made, Ground.of(record), attnviz.explain(record, layer=0))
    for picker in places.values():
        assert [*picker["askers"]] == [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3]


def test_at_518_pixels_nothing_is_pooled_and_at_twice_that_2_by_2():
    for side, pool in ((37, 1), (38, 1), (39, 2), (74, 2), (148, 4)):
        layout = attnviz.TokenLayout((), (side, side))
        ends = live_map.ends_within(Geometry(layout, layout))
        assert ends.pool == pool
        assert 2 * (ends.askers[0] * ends.askers[1]) ** 2 <= 4 * 2**20


def test_windows_that_are_too_fine_are_not_offered(monkeypatch):
    _, _, record = test_windows.seen("Swin")
    monkeypatch.setattr(live_map, "LIMIT", 2 * 384 * 384 - 1)
    seen = Observation.of(record)
    assert live_of(seen, "attention", MEAN) is None
    assert live_of(seen, "attention", {**MEAN, "layer": 2}) is not None
    assert live_of(seen, "rollout", {}) is None


def test_maps_are_kept_and_named_by_what_they_hold():
    seen = Observation.of(record_of(random_maps(3, 2, 7), ("cls",), (2, 3)))
    before, made = seen.nbytes, []
    for layer in (0, 1, 2, 2):
        made.append(seen.live(going_on=lambda: None, **{**MEAN, "layer": layer}))
    assert made[2] is made[3]
    assert len({each.name for each in made}) == 3
    assert seen.nbytes - before == sum(len(each.packed) + 16 for each in made[:3])


def test_a_map_that_nobody_waits_for_any_more_is_given_up():
    class Enough(Exception):
        pass

    def going_on():
        raise Enough

    record = record_of(random_maps(1, 2, 7), ("cls",), (2, 3))
    with pytest.raises(Enough):
        live_map.live_map(record, going_on=going_on, **MEAN)
