"""What the page stands on: the place that asks, and the store that all visitors share."""

import threading

import numpy as np
import pytest
import streamlit as st
from conftest import small_input, small_vit
from PIL import Image

import attnviz
import models
from attnviz.export import KINDS, RENDERERS
from attnviz.film_export import FILM_KINDS
from attnviz.plot_export import DEPTH_KINDS
from attnviz.scale import Scale
from attnviz.tokens import TokenLayout
from attnviz.ui.asked import ASKED, OTHERS, Ground
from attnviz.ui.cache import Observations
from attnviz.ui.drawn_map import sentence
from attnviz.ui.figure_files import FILM_FORMATS, FORMATS
from attnviz.ui.look_panel import looks_dark
from attnviz.ui.mosaic_panel import columns_for, row_names
from attnviz.ui.observation import Observation
from attnviz.ui.same_cell import arrive, is_waiting, leave_picture
from attnviz.ui.state import Picture, show_picture

# A picture of 90 × 60 pixels (width × height) under several grids.
WHOLE = Ground(TokenLayout(("cls",), (4, 6)), (0.0, 0.0, 90.0, 60.0))  # patches of 15 × 15
FINE = Ground(TokenLayout((), (12, 18)), (0.0, 0.0, 90.0, 60.0))  # patches of 5 × 5
CROP = Ground(TokenLayout(("cls",), (3, 3)), (15.0, 0.0, 75.0, 60.0))  # patches of 20 × 20
PAD = Ground(TokenLayout(("cls",), (9, 9)), (0.0, -15.0, 90.0, 75.0))  # patches of 10 × 10


@pytest.fixture(autouse=True)
def session(monkeypatch):
    """A session of our own: outside a page there is none."""
    monkeypatch.setattr(st, "session_state", SessionState())


class SessionState(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


def test_every_kind_of_file_is_offered():
    assert {suffix for suffix, _ in FORMATS.values()} == RENDERERS.keys()
    assert set(DEPTH_KINDS) < KINDS.keys()
    assert {suffix for suffix, _ in FILM_FORMATS.values()} == FILM_KINDS.keys() - {".csv"}


# (maps, which of them look black on a scale of 0 to 1)
DARKNESS = [
    ([0.1, 0.1, 0.1, 0.1, 0.1], True),
    ([0.1, 0.1, 0.1, 0.1, 0.9], False),  # the 99th percentile of few patches is near the highest
    ([[0.0] * 200, [0.0] * 197 + [1.0] * 3], [True, False]),
    ([[0.0] * 200, [0.0] * 199 + [1.0]], [True, True]),  # one bright patch of 200
]


@pytest.mark.parametrize(("maps", "black"), DARKNESS)
def test_a_map_looks_dark_where_few_patches_are_bright(maps, black):
    assert looks_dark(np.array(maps), Scale(0.0, 1.0, "0 to 1")).tolist() == black


def test_a_map_of_one_value_is_not_dark_by_a_few_patches():
    flat = np.full((2, 9), 0.25)
    assert looks_dark(flat, Scale(0.25, 0.25, "constant map")).tolist() == [False, False]
    assert not looks_dark(flat[0], Scale(0.25, 0.25, "constant map"))


@pytest.mark.parametrize(
    ("asked", "on", "then", "expected"),
    [
        (WHOLE, (1, 2), WHOLE, (1, 2)),
        (WHOLE, (3, 5), WHOLE, (3, 5)),  # the last
        (WHOLE, (1, 2), FINE, (4, 7)),  # (37.5, 22.5)
        (FINE, (4, 7), WHOLE, (1, 2)),  # (37.5, 22.5)
        (WHOLE, (0, 0), CROP, "cls"),  # (7.5, 7.5): cut off
        (WHOLE, (2, 1), CROP, (1, 0)),  # (22.5, 37.5)
        (WHOLE, (0, 0), PAD, (2, 0)),  # (7.5, 7.5)
        (PAD, (8, 4), PAD, (8, 4)),  # (45, 70): in the border
        (PAD, (8, 4), WHOLE, "cls"),
        (PAD, (8, 4), FINE, "mean"),  # no class token there
        (WHOLE, "mean", FINE, "mean"),
        (WHOLE, "cls", FINE, "mean"),
    ],
)
def test_a_place_keeps_asking_under_another_grid(asked, on, then, expected):
    asked.ask(on)
    assert then.query == expected
    assert asked.query == on  # and is there again when the grid comes back


def test_every_patch_comes_back_as_it_was():
    for ground in (WHOLE, FINE, CROP, PAD):
        for cell in np.ndindex(*ground.layout.grid):
            ground.ask(cell)
            assert ground.query == cell


def test_nothing_asked_is_the_default():
    assert (WHOLE.query, FINE.query) == ("cls", "mean")
    WHOLE.ask("mean")
    WHOLE.ask(None)
    assert WHOLE.query == "cls"


def test_on_another_picture_the_same_row_and_column_ask():
    arrive(WHOLE)
    WHOLE.ask((2, 3))
    leave_picture()
    assert WHOLE.query == "cls" and is_waiting(ASKED)
    leave_picture()  # a second one, before the first has been seen
    arrive(FINE)
    assert FINE.query == (2, 3) and not is_waiting(ASKED)
    FINE.ask((11, 4))
    leave_picture()
    arrive(WHOLE)  # which has 4 rows
    assert WHOLE.query == "cls"


def test_on_another_picture_both_queries_stay_but_not_the_other_picture_s():
    second, there = (WHOLE.of_other(key) for key in OTHERS)
    arrive(WHOLE)
    second.ask((3, 1))
    there.ask((1, 1))
    leave_picture()
    arrive(CROP)  # of 3 rows
    arrive(WHOLE)
    assert second.query == there.query == "cls"
    second.ask((3, 1))
    leave_picture()
    arrive(FINE)
    assert FINE.of_other(OTHERS[0]).query == (3, 1)


def test_what_is_picked_before_another_picture_was_seen_asks():
    arrive(WHOLE)
    WHOLE.ask((2, 3))
    leave_picture()
    WHOLE.ask("cls")  # on the page that still stands
    arrive(WHOLE)
    assert WHOLE.query == "cls" and not is_waiting(ASKED)


def test_on_another_picture_a_name_goes_on_asking():
    WHOLE.ask((1, 1))
    leave_picture()
    assert WHOLE.query == "cls"  # nothing had been seen
    WHOLE.ask("mean")
    picture = Picture.of_bytes("a", b"a", attnviz.observe(small_vit(), small_input()).image)
    show_picture(picture)
    assert WHOLE.query == "mean"
    assert st.session_state.picture is picture


def test_pictures_go_by_their_content():
    image = attnviz.observe(small_vit(), small_input()).image
    same, other = (Picture.of_bytes("a", data, image).digest for data in (b"1", b"2"))
    assert Picture.of_bytes("b", b"1", image).digest == same != other


def record(seed=0):
    return attnviz.observe(small_vit(), small_input(seed), keep="maps")


def request(name):
    return (name, "model", False, (32, 48), "crop")


def test_a_kept_record_counts_in_full():
    kept = Observation.of(record())
    maps = 4 * 3 * 3 * 7 * 7  # float32, 3 layers, 3 heads, 7 × 7 tokens
    values = 4 * 3 * 3 * 7 * 8
    features = 4 * 7 * 24
    tensor = 4 * 3 * 32 * 48
    shown = 3 * (13 * 32) * (13 * 48)  # enlarged to at least 600 pixels
    assert kept.nbytes == maps + values + features + tensor + 3 * 32 * 48 + shown


def test_a_thumbnail_is_enlarged_so_that_every_patch_can_be_seen():
    tiny = Image.new("RGB", (30, 20), "red")
    kept = Observation.of(attnviz.observe(small_vit(dynamic_img_size=True), tiny, fit="aspect"))
    assert kept.shown.size == (600, 400)
    assert kept.shown_box == (0, 0, 600, 400)
    heat = kept.on_screen(kept.explain("attention", query="cls"))
    rows, cols = heat.grid
    drawn = np.asarray(heat.overlay(alpha=1.0))
    assert len(np.unique(drawn[:, 0], axis=0)) <= rows
    assert (drawn[0, : 600 // cols - 1] == drawn[0, 0]).all()  # one colour a patch


def test_a_large_picture_is_made_small_once_and_the_map_with_it():
    picture = Image.new("RGB", (4000, 2000), "red")
    kept = Observation.of(attnviz.observe(small_vit(dynamic_img_size=True), picture, fit="crop"))
    assert kept.shown.size == (1000, 500)
    # 32 × 48 pixels cut out of the middle: all rows but those beyond 3 : 2 of the columns.
    left, top, right, bottom = kept.record.view.box
    assert kept.shown_box == pytest.approx((left / 4, top / 4, right / 4, bottom / 4))
    heat = kept.explain("rollout")
    shown = kept.on_screen(heat)
    assert (shown.values == heat.values).all() and shown.facts == heat.facts
    assert heat.image.size == (4000, 2000)
    assert shown.overlay(alpha=1.0).getpixel((1, 250)) == (255, 0, 0)  # beside the crop
    assert shown.overlay(alpha=1.0).getpixel((500, 250)) != (255, 0, 0)


def test_the_least_recently_used_goes_first():
    each = Observation.of(record()).nbytes
    store = Observations(budget=2 * each)
    for name in ("a", "b"):
        store.get(request(name), record)
    store.find(request("a"))
    store.get(request("c"), record)
    assert [store.find(request(name)) is not None for name in "abc"] == [True, False, True]
    assert store.nbytes == 2 * each


def test_the_newest_stays_even_over_the_budget():
    store = Observations(budget=1)
    store.get(request("a"), record)
    newest = store.get(request("b"), record)
    assert store.find(request("b")) is newest
    assert store.find(request("a")) is None
    assert store.find(None) is None


class Stopped(BaseException):
    """As Streamlit's own, which ends a run when a widget is moved."""


def test_a_stopped_pass_leaves_store_and_model_free():
    store, vit = Observations(2**30), small_vit()

    def stop(done, total):
        if done == 2:
            raise Stopped

    with pytest.raises(Stopped):
        store.get(request("a"), lambda: attnviz.observe(vit, small_input(), progress=stop))
    assert store.find(request("a")) is None

    # From another thread, as the next run is: a lock that may be taken twice would not show here.
    def retry():
        store.get(request("a"), lambda: attnviz.observe(vit, small_input()))

    thread = threading.Thread(target=retry, daemon=True)
    thread.start()
    thread.join(30)
    assert store.find(request("a")) is not None


def test_two_who_ask_at_once_share_one_pass():
    store, passes, both = Observations(2**30), [], threading.Barrier(2)

    def make():
        passes.append(1)
        return record()

    def ask():
        both.wait()
        found.append(store.get(request("a"), make))

    found = []
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(passes) == 1
    assert found[0] is found[1]


def test_what_was_asked_is_not_computed_again():
    kept = Observation.of(record())
    assert kept.tiles((1, 2)) is kept.tiles((1, 2))
    assert kept.explain("rollout", query="cls") is kept.explain("rollout", query="cls")
    assert kept.explain("rollout", query="cls") is not kept.explain("rollout", query="mean")


def test_a_long_method_is_remembered_whoever_watched_it():
    kept, seen = Observation.of(record()), []
    first = kept.explain("flow", query="cls", progress=lambda done, total: seen.append(done))
    assert seen[-8:] == list(range(8))
    again = kept.explain("flow", query="cls", progress=lambda done, total: seen.append(done))
    assert again is first and seen.count(7) == 1
    assert kept.explain("flow", query="cls", pool=1) is not first
    for row, col in np.ndindex(2, 3):  # the last answers are kept, and not all
        for layer in range(3):
            for last in range(layer, 3):
                kept.explain("rollout", query=(row, col), first_layer=layer, last_layer=last)
    assert kept.explain("flow", query="cls") is not first


def test_a_stopped_map_is_not_remembered():
    kept = Observation.of(record())

    def stop(done, total):
        raise Stopped

    with pytest.raises(Stopped), kept.turn(lambda: None):
        kept.explain("flow", query="cls", progress=stop)
    with kept.turn(lambda: pytest.fail("still taken")):
        assert kept.explain("flow", query="cls").values.sum() < 1


def test_tiles_are_each_heads_row_without_prefix():
    kept = Observation.of(record())
    tiles = kept.tiles((1, 2))
    token = 1 + 1 * 3 + 2
    for layer in range(3):
        rows = kept.record.layers[layer].probs()[:, token, 1:]
        assert tiles[layer].reshape(3, 6) == pytest.approx(rows.numpy())
    with pytest.raises(ValueError, match="read-only"):
        tiles[0] = 0


def test_the_share_that_the_padding_holds_is_said_apart():
    vit = models.load("vit_tiny_patch16_224", pretrained=False)
    obs = attnviz.observe(vit, Image.new("RGB", (900, 160), "green"), fit="pad")
    heat = attnviz.explain(obs, "attention", query="cls")
    # 160 of 900 rows are the picture's: patch rows 5 to 8 of 14 meet it.
    row = obs.layers[-1].probs().mean(0)[0, 1:].reshape(14, 14)
    held, beside = float(row[5:9].sum()), float(row.sum() - row[5:9].sum())
    said = sentence(heat, Ground.of(obs))
    assert f"The patches of the picture hold {held:.1%} of the whole." in said
    assert f"class token, the padding around the picture ({beside:.1%})" in said


def test_a_method_whose_values_are_no_shares_says_nothing_of_a_whole():
    obs = attnviz.observe(small_vit(), small_input(), target=1)
    for method, row in attnviz.METHODS.items():
        said = sentence(attnviz.explain(obs, method), Ground.of(obs))
        assert ("of the whole" in said) == row.is_share(
            {name: option.default for name, option in row.options.items()}
        )


@pytest.mark.parametrize(
    ("layers", "heads", "tile", "columns"),
    [
        (12, 6, (37, 37), 6),  # a layer a line, as always
        (
            12,
            12,
            (98, 32),
            24,
        ),  # 12 lines of 98 rows would be 1200 pixels, of 24 tiles they are 600
        (12, 6, (222, 14), 24),  # 3 lines of 224 pixels
        (12, 6, (14, 222), 3),  # 3 · 224 pixels across
        (12, 6, (684, 2), 72),
        (12, 12, (1, 3136), 1),  # and still not a pixel a patch
        (24, 16, (56, 56), 16),
        (1, 1, (1, 1), 1),
    ],
)
def test_tiles_are_laid_out_so_that_a_patch_has_a_pixel(layers, heads, tile, columns):
    assert columns_for(layers, heads, tile) == columns
    names = row_names(heads, columns, layers * heads // columns)
    assert len(names) == len(set(names)) == layers * heads // columns


def test_lines_of_tiles_say_whose_they_are():
    assert row_names(6, 6, 2) == ["L0", "L1"]
    assert row_names(6, 12, 2) == ["L0–1", "L2–3"]
    assert row_names(6, 3, 4) == ["L0 H0–2", "L0 H3–5", "L1 H0–2", "L1 H3–5"]
    assert row_names(2, 1, 4) == ["L0 H0", "L0 H1", "L1 H0", "L1 H1"]


def test_a_mere_line_is_shown_stretched_with_its_map():
    line = Image.new("RGB", (5000, 2), "red")
    kept = Observation.of(attnviz.observe(small_vit(dynamic_img_size=True), line, fit="squash"))
    assert kept.shown.size == (1000, 84)
    heat = kept.on_screen(kept.explain("attention", query="cls"))
    drawn = np.asarray(heat.overlay(alpha=1.0))
    assert len({tuple(colour) for colour in drawn[:, 0]}) == heat.grid[0] == 2
