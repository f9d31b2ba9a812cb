"""The stack's Python side: what travels to the browser, and what is believed of it.

That it works in a real browser is shown by `browser/test_stack_browser.py`.
"""

import base64
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from attnviz.colour import COLORMAPS
from attnviz.errors import BadOption
from attnviz.scale import Scale
from attnviz.ui import stack, stack_panel
from attnviz.ui.stack import Atlas, Sheets

PAGE = Path(__file__).parent / "browser" / "stack_page.py"
NAN = float("nan")


def tiles_of(layers, heads, rows, cols):
    return np.random.default_rng(3).random((layers, heads, rows, cols), np.float32)


def cut(atlas, layer, head, heads):
    """One tile's pixels, found by its number."""
    line, column = divmod(layer * heads + head, atlas.columns)
    rows, cols = atlas.tile
    pixels = np.asarray(atlas.image)
    return pixels[line * rows : (line + 1) * rows, column * cols : (column + 1) * cols]


def opened(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.split(",", 1)[1])))


def test_a_pixel_of_the_atlas_is_a_value_of_its_head():
    # On the scale from 0 to 4, 256 steps: 0 → 0, 1 → 64, 2 → 128, 3 → 192, 4 and more → 255.
    tiles = np.array([[[[0, 1, 2]], [[3, 4, 9]]], [[[4, 3, 1]], [[NAN] * 3]]], np.float32)
    atlas = Atlas.of(tiles, scale=Scale(0, 4, "given"))
    assert atlas.tile == (1, 3) and atlas.pooled == 1
    assert cut(atlas, 0, 0, 2).tolist() == [[0, 64, 128]]
    assert cut(atlas, 0, 1, 2).tolist() == [[192, 255, 255]]
    assert cut(atlas, 1, 0, 2).tolist() == [[255, 192, 64]]


def test_each_sheet_may_have_its_own_scale():
    tiles = np.array([[[[1, 2, 3]], [[10, 30, 20]]]], np.float32)
    atlas = Atlas.of(tiles, scale=None)
    assert cut(atlas, 0, 0, 2).tolist() == [[0, 128, 255]]
    assert cut(atlas, 0, 1, 2).tolist() == [[0, 255, 128]]
    assert [(scale.low, scale.high) for scale in atlas.scales] == [(1, 3), (10, 30)]


@pytest.mark.parametrize(
    ("shape", "pooled", "tile"),
    [
        ((24, 16, 74, 74), 1, (74, 74)),  # 24 × 74 = 1776 pixels
        ((12, 12, 128, 128), 1, (128, 128)),
        ((3, 1, 900, 2), 1, (900, 2)),  # side by side; above each other they would not fit
        ((2, 1, 5, 4097), 3, (2, 1366)),  # 4097 / 2 is over 2048
        ((1, 1, 2049, 3), 2, (1025, 2)),
    ],
)
def test_the_atlas_fits_into_any_browser(shape, pooled, tile):
    atlas = Atlas.of(tiles_of(*shape), scale=Scale(0, 1, "given"))
    assert max(atlas.image.size) <= 2048
    assert (atlas.pooled, atlas.tile) == (pooled, tile)


def test_what_does_not_fit_is_pooled_by_its_mean():
    tile = np.array([[0, 2, 4], [4, 2, 0], [1, 3, 8]], np.float32)
    # Blocks of 2 × 2, smaller at the right and below: (0+2+4+2)/4, (4+0)/2; (1+3)/2, 8.
    pooled = stack._pooled(tile[None, None], 2)
    assert pooled[0, 0].tolist() == [[2, 2], [2, 8]]
    atlas = Atlas.of(np.stack([[tile, tile * NAN]]), scale=Scale(0, 8, "given"), most=4)
    assert atlas.pooled == 2
    assert cut(atlas, 0, 0, 2).tolist() == [[64, 64], [64, 255]]


def test_what_the_browser_gets_is_exact():
    tiles = tiles_of(2, 3, 4, 5)
    picture = Image.new("RGB", (1200, 400), "teal")
    sheets = Sheets.of(
        tiles, picture, scale=Scale(0, 1, "g"), clip=None, colormap="viridis", unit="share"
    )
    palette = np.asarray(opened(sheets.data["palette"]).convert("RGB"))[0]
    np.testing.assert_array_equal(palette, COLORMAPS["viridis"])
    atlas = opened(sheets.data["atlas"])
    assert atlas.mode == "L"
    np.testing.assert_array_equal(np.asarray(atlas), np.asarray(sheets.atlas.image))
    assert opened(sheets.data["picture"]).size == (512, 171)
    assert sheets.data["aspect"] == 3
    assert sheets.data["there"] is None
    json.dumps(sheets.data)


def test_each_head_is_told_by_its_highest_value_and_the_highest_come_first():
    tiles = np.full((2, 2, 2, 3), 0.125, np.float32)
    tiles[0, 1, 1, 2], tiles[1, 0, 0, 1] = 0.25, 0.5
    tiles[1, 1] = NAN
    sheets = Sheets.of(
        tiles, Image.new("RGB", (3, 2)), scale=None, clip=None, colormap="gray", unit="share"
    )
    assert sheets.data["values"] == [
        ["highest share 0.125, in row 0, column 0", "highest share 0.25, in row 1, column 2"],
        ["highest share 0.5, in row 0, column 1", ""],
    ]
    names = [name for name, _ in sheets.data["table"]]
    assert names == ["Layer 1, head 0", "Layer 0, head 1", "Layer 0, head 0"]
    assert sheets.data["there"] == [[True, True], [True, False]]


HOSTILE = [
    None, True, 3, "0,1", {}, [], [0], [0, 1, 0], [[0, 1]], [0.0, 1], ["0", "1"], [False, True],
    [-1, 0], [0, -1], [2, 0], [0, 2], [10**30, 0],
    [1, 1],  # a head that its layer has not
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_what_a_browser_sends_is_a_head_or_nothing(value):
    tiles = tiles_of(2, 2, 1, 1)
    tiles[1, 1] = NAN
    sheets = Sheets.of(
        tiles, Image.new("RGB", (3, 2)), scale=None, clip=None, colormap="gray", unit=""
    )
    assert sheets.checked(value) is None
    assert sheets.checked([1, 0]) == (1, 0)


def test_a_chosen_head_that_is_not_there_is_refused():
    sheets = Sheets.of(
        tiles_of(1, 2, 2, 2), Image.new("RGB", (3, 2)),
        scale=None, clip=None, colormap="gray", unit="",
    )  # fmt: skip
    with pytest.raises(BadOption, match=r"\(0, 2\)"):
        stack.pick_sheet(sheets, chosen=(0, 2), query=None, key="k", alt="A", on_pick=print)


@pytest.mark.parametrize("file", [*stack.SCRIPTS, "stack.css"])
def test_nothing_is_loaded_from_elsewhere(file):
    text = Path(stack.__file__).with_name(file).read_text("utf-8")
    for way_out in ("//cdn", "http:", "https:", "@import", "url(", "fetch(", "import("):
        assert way_out not in text
    assert len(text.splitlines()) <= 300


@pytest.fixture
def page():
    run = AppTest.from_file(str(PAGE), default_timeout=60).run()
    assert not run.exception
    return run


def component(page):
    (one,) = page.get("bidi_component")
    return one.proto


def pick(page, value):
    """Send what a browser would send for a pick; AppTest has no public way to."""
    states = page._tree.get_widget_states()
    states.widgets.add(
        id=f"$$STREAMLIT_INTERNAL_KEY_{component(page).id}__events",
        json_trigger_value=json.dumps([{"event": "opened", "value": value}]),
    )
    return page._run(states)


def test_a_picked_sheet_opens_its_head(page):
    pick(page, [2, 3])
    assert page.session_state["method"] == "attention"
    assert (page.session_state["layer"], page.session_state["head"]) == (2, 3)
    assert json.loads(component(page).json)["chosen"] == [2, 3]
    pick(page, [1, 3])  # not there
    assert (page.session_state["layer"], page.session_state["head"]) == (2, 3)


def test_an_equal_stack_is_neither_drawn_nor_sent_again(page, monkeypatch):
    before, kept = component(page).json, page.session_state["stack_kept"]
    page.button[0].click().run()
    # Streamlit sends a message once if its bytes are the same.
    assert component(page).json == before
    assert page.session_state["stack_kept"] is kept
    page.toggle[0].set_value(True).run()  # one scale
    assert page.session_state["stack_kept"] is not kept
    assert component(page).json != before


def test_the_scale_is_said_in_numbers(page):
    def bar():
        return next(part.proto.body for part in page.get("html") if "Colour bar" in part.proto.body)

    assert "attention weight; each sheet has its own scale" in bar()
    first, last = (
        re.search(rf"<span>{word}: (.*?)<", bar())[1] for word in ("first colour", "last")
    )
    lows, highs = ([float(end) for end in ends.split(" to ")] for ends in (first, last))
    assert lows[0] <= lows[-1] < highs[0] <= highs[-1]
    page.toggle[0].set_value(True).run()
    assert "attention weight from 0.01" in bar() and "of all heads" in bar()


def test_the_patch_that_asks_is_marked_in_shares_of_the_picture():
    """Its row and column over those of the grid; top, left, bottom, right."""
    asking = SimpleNamespace(query=(0, 2), layout=SimpleNamespace(grid=(2, 3)))
    assert stack_panel._place(asking) == pytest.approx((0, 2 / 3, 1 / 2, 1))
    assert stack_panel._place(SimpleNamespace(query="cls", layout=asking.layout)) is None
