"""Who looks at the query: a column of the map, on the grid of those who ask."""

from dataclasses import replace

import numpy as np
import pytest
import timm
import torch

import attnviz
import models
from attnviz.batch import Request
from attnviz.batch.worker import Worker
from attnviz.errors import BadOption
from attnviz.geometry import Geometry, one_window
from tests import test_pooled, test_windows
from tests.test_methods import random_maps, record_of

PREFIX = [(), ("cls",), ("cls", "dist"), ("cls", "reg1", "reg2", "reg3", "reg4")]


@pytest.mark.parametrize("prefix", PREFIX)
@pytest.mark.parametrize("head", [None, 0, -1])
@pytest.mark.parametrize("fusion", ["mean", "max", "min"])
def test_a_column_is_what_each_patch_gives_number_by_number(prefix, head, fusion):
    ahead = len(prefix)
    maps = random_maps(2, 3, ahead + 6)
    record = record_of(maps, prefix, (2, 3))
    queries = {name: [place] for place, name in enumerate(prefix)}
    queries |= {(1, 0): [ahead + 3], "mean": list(range(ahead, ahead + 6))}
    fuse = {"mean": lambda each: sum(each) / len(each), "max": max, "min": min}[fusion]
    for query, tokens in queries.items():
        expected = []
        for asker in range(ahead, ahead + 6):
            given = [sum(maps[0][h, asker, k] for k in tokens) / len(tokens) for h in range(3)]
            expected.append(fuse(given) if head is None else given[head])
        heat = attnviz.explain(
            record, layer=0, head=head, head_fusion=fusion, query=query, direction="to"
        )
        assert heat.values.ravel() == pytest.approx(expected, abs=1e-7)
        assert not heat.share_of_all
        assert heat.unit == "attention weight given to the query"
        assert heat.query_cell == (None if isinstance(query, str) else query)


def test_a_planted_look_is_found_at_the_one_who_looks():
    """Only patch (0, 2) looks at (1, 1); from there nothing is seen of it."""
    maps = np.full((1, 1, 7, 7), 1 / 7)
    maps[0, 0, :, 1 + 4] = 0
    maps[0, 0, 1 + 2] = np.eye(7)[1 + 4]
    record = record_of(maps, ("cls",), (2, 3))
    to = attnviz.explain(record, query=(1, 1), direction="to").values
    assert np.argwhere(to).tolist() == [[0, 2]] and to[0, 2] == 1
    assert attnviz.explain(record, query=(1, 1)).values[0, 2] == pytest.approx(1 / 7)


def column(record, layer, key):
    """By the definition, from the whole map."""
    return record.layers[layer].probs().double().mean(0)[:, key].numpy()


# model -> (of which file, layer, query, the key at its place, prefix tokens, the askers' grid)
PLACES = [
    (test_windows, "Swin", 0, (5, 9), 5 * 24 + 9, 0, (16, 24)),
    (test_windows, "Swin", 1, (5, 9), 5 * 24 + 9, 0, (16, 24)),
    (test_windows, "Swin", 1, (15, 23), 15 * 24 + 23, 0, (16, 24)),
    (test_windows, "Swin, padded", 0, (15, 23), 15 * 24 + 23, 0, (16, 24)),
    (test_windows, "Swin", 2, (5, 9), 2 * 12 + 4, 0, (8, 12)),
    (test_windows, "PVT v2", 0, (20, 47), (20 // 8) * 7 + 47 // 8, 0, (56, 56)),
    (test_windows, "Twins, pooled", 0, (11, 3), 2 * 6 + 0, 0, (24, 32)),
    (test_windows, "Twins, pooled", 0, (19, 29), 3 * 6 + 5, 0, (24, 32)),
    (test_pooled, "MViT, class token", 0, (9, 23), 1 + 2 * 6 + 5, 1, (16, 24)),
    (test_pooled, "MViT, class token", 0, "cls", 0, 1, (16, 24)),
    (test_pooled, "Hiera", 1, (5, 9), 5 * 24 + 9, 0, (8, 12)),
]  # fmt: skip


@pytest.mark.parametrize(("file", "name", "layer", "query", "key", "ahead", "grid"), PLACES)
def test_the_column_lies_on_the_grid_of_those_who_ask(file, name, layer, query, key, ahead, grid):
    _, _, record = file.seen(name)
    heat = attnviz.explain(record, layer=layer, query=query, direction="to")
    expected = column(record, layer, key)[ahead:]
    assert expected.any()
    assert heat.grid == grid
    assert heat.values.ravel() == pytest.approx(expected, abs=1e-6)
    if name == "Swin" and layer != 1:  # windows of 4 × 4 that no mask divides
        row, col = (place // 4 for place in ((5, 9) if layer == 0 else (2, 4)))
        window = np.zeros(grid, dtype=bool)
        window[4 * row : 4 * row + 4, 4 * col : 4 * col + 4] = True
        assert np.array_equal(heat.filled, window)
    # What lies outside of its windows gives nothing, and is not drawn; all others give something.
    given = expected > 1e-7
    assert np.array_equal(heat.filled.ravel(), given) or (heat.blank is None and given.all())


def test_it_lies_where_the_askers_do():
    """Twins' keys cover 20 × 30 of 24 × 32 cells; who asks covers them all."""
    _, _, record = test_windows.seen("Twins, pooled")
    to = attnviz.explain(record, layer=0, query=(11, 3), direction="to")
    assert to.box == pytest.approx((0, 0, 128, 96))
    assert to.query_cell == (12, 2)  # the middle of the key: rows 10 to 14, columns 0 to 4
    with pytest.raises(
        BadOption, match=r"row 22, column 3\) lies where none of this layer's 4 × 6"
    ):
        attnviz.explain(record, layer=0, query=(22, 3), direction="to")


def test_a_batch_knows_of_a_place_that_no_key_covers_before_its_first_picture():
    vit = test_windows.small("Twins, pooled")
    asked = {"model": {}, "kind": ".parquet", "fit": "squash", "query": (22, 3)}
    turned = Request(**asked, options={"layer": 0, "direction": "to"})
    with pytest.raises(BadOption, match=r"row 22, column 3\) lies where none of this layer's"):
        Worker(lambda: vit, turned)
    Worker(lambda: vit, Request(**asked, options={"layer": 0}))  # that patch looks at others


def test_a_mask_is_turned_with_its_window():
    """Token 0 sees only 1, and 1 sees both: 0 is seen by 1 alone, and 1 by both."""
    layout, window = attnviz.TokenLayout((), (1, 2)), torch.tensor([[0, 1]])
    apart = torch.tensor([[[True, False], [False, False]]])
    geometry = Geometry(layout, layout, "by hand", window, window, apart=apart)
    assert geometry.reach(range(0, 1)).tolist() == [False, True]
    assert geometry.turned.reach(range(0, 1)).tolist() == [False, True]
    assert geometry.reach(range(1, 2)).tolist() == geometry.turned.reach(range(1, 2)).tolist()
    apart[0, 0] = torch.tensor([False, True])  # now 0 sees only itself
    assert geometry.turned.reach(range(0, 1)).tolist() == [True, True]
    assert geometry.turned.reach(range(1, 2)).tolist() == [False, True]


def test_the_mean_over_patches_is_of_those_alone_that_answer():
    """Of six patches four answer: the two others are given nothing, and do not count."""
    maps = random_maps(1, 2, 7)
    maps[0][:, :, [0, 5, 6]] = 0
    record = record_of(maps, ("cls",), (2, 3))
    geometry = one_window(record.layout, range(7), range(1, 5))
    record = replace(record, layers=(replace(record.layers[0], geometry=geometry),))
    found = attnviz.explain(record, layer=0, query="mean", direction="to").values.ravel()
    for asker, value in enumerate(found):
        given = [maps[0][head, 1 + asker, key] for head in (0, 1) for key in (1, 2, 3, 4)]
        assert value == pytest.approx(sum(given) / 8, rel=1e-6)


def test_padding_that_asks_is_no_warning():
    _, _, record = test_windows.seen("Swin, padded")
    assert attnviz.explain(record, layer=0, query=(15, 23)).notes
    assert not attnviz.explain(record, layer=0, query=(15, 23), direction="to").notes


def test_the_mean_of_keys_is_their_mean():
    _, _, record = test_windows.seen("PVT v2")
    heat = attnviz.explain(record, layer=0, query="mean", direction="to")
    expected = record.layers[0].probs().double().mean((0, 2)).numpy()
    assert heat.values.ravel() == pytest.approx(expected, abs=1e-6)


def test_blocks_are_the_whole_map(monkeypatch):
    monkeypatch.setattr("attnviz.record.BLOCK_BYTES", 4 * 3 * 7 * 2)  # two rows at a time
    maps = random_maps(1, 3, 7)
    heat = attnviz.explain(record_of(maps, ("cls",), (2, 3)), query=(0, 1), direction="to")
    assert heat.values.ravel() == pytest.approx(maps[0].mean(0)[1:, 2], abs=1e-7)


def test_what_has_no_meaning_is_refused_in_words():
    with torch.random.fork_rng():
        vit = models.wrap(
            timm.create_model("cait_xxs24_224", img_size=32, depth=1, num_classes=3).eval()
        )
    record = attnviz.observe(vit, torch.zeros(1, 3, 32, 32))
    last = len(record.layers) - 1
    with pytest.raises(BadOption, match=r"No patch looks at anything .* only the class token asks"):
        attnviz.explain(record, layer=last, query=(0, 0), direction="to")
    with pytest.raises(BadOption, match=r"Nothing looks at that token .* all patches"):
        attnviz.explain(record, layer=0, query="cls", direction="to")
