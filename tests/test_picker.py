"""The picker's Python side: geometry, what travels to the browser, and what is believed of it.

That it works in a real browser is shown by `browser/test_picker_browser.py`.
"""

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from attnviz.errors import BadOption
from attnviz.ui import picker
from attnviz.ui.picker import CellGrid

PAGE = Path(__file__).parent / "browser" / "picker_page.py"
EMPTY = range(0)


@pytest.mark.parametrize(
    ("size", "grid", "box", "ys", "xs", "rows", "cols"),
    [
        # Reaches past the left and the bottom; columns 0 and row 3 lie outside altogether.
        (
            (100, 60), (4, 5), (-50.0, 0.0, 75.0, 80.0),
            (0, 20, 40, 60, 60), (0, 0, 0, 25, 50, 75), range(3), range(2, 5),
        ),
        # Reaches past the top and the right, by part of a cell.
        ((90, 50), (2, 2), (10.0, -10.0, 110.0, 50.0), (0, 20, 50), (10, 60, 90), range(2), range(2)),
        # A margin all round, off whole pixels.
        ((10, 10), (1, 2), (0.5, 2.25, 9.5, 7.75), (2.25, 7.75), (0.5, 5, 9.5), range(1), range(2)),
        # All over the picture; rows before columns.
        ((6, 4), (2, 3), None, (0, 2, 4), (0, 2, 4, 6), range(2), range(3)),
        # The last column begins within rounding of the right edge.
        (
            (10, 10), (1, 2), (-10.0, 0.0, 29.9999999, 10.0),
            (0, 10), (0, 9.99999995, 10), range(1), range(1),
        ),
        # A crop in the middle of the cell: one cell larger than the picture.
        ((8, 8), (3, 3), (-12.0, -12.0, 24.0, 24.0), (0, 0, 8, 8), (0, 0, 8, 8), range(1, 2), range(1, 2)),
    ],
)  # fmt: skip
def test_edges_lie_where_the_box_says_and_end_with_the_picture(size, grid, box, ys, xs, rows, cols):
    cells = CellGrid.on(size, grid, box)
    assert cells.ys == pytest.approx(ys, abs=1e-9)
    assert cells.xs == pytest.approx(xs, abs=1e-9)
    assert (cells.rows, cells.cols) == (rows, cols)


@pytest.mark.parametrize(
    ("grid", "box"),
    [
        ((0, 3), None),
        ((3, 0), None),
        ((-1, 3), None),
        ((2, 2), (60.0, 0.0, 40.0, 40.0)),  # right before left
        ((2, 2), (0.0, 20.0, 40.0, 20.0)),  # no height
        ((2, 2), (100.0, 0.0, 200.0, 60.0)),  # begins where the picture ends
        ((2, 2), (0.0, -90.0, 40.0, 0.0)),
        ((2, 2), (float("nan"), 0.0, 40.0, 40.0)),
        ((2, 2), (0.0, 0.0, float("inf"), 40.0)),
    ],
)
def test_a_grid_without_a_cell_to_see_is_refused(grid, box):
    with pytest.raises(BadOption, match="partly on the picture"):
        CellGrid.on((100, 60), grid, box)


HOSTILE = [
    None, True, 3, "2,4", "24", {}, {"row": 2, "col": 4}, [], [2], [2, 4, 0], [[2, 4]], [2, None],
    [2.0, 4.0], [2.5, 4], ["2", "4"], [True, True], [-1, 4], [2, -1], [5, 4], [2, 8], [10**30, 4],
    [2, 0],  # in the grid, but wholly left of the picture
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_what_a_browser_sends_is_a_cell_or_nothing(value):
    # Columns are 94.53 pixels wide and begin at -100.5, so column 0 ends at -5.97.
    cells = CellGrid.on((700, 467), (5, 8), (-100.5, 41.25, 655.75, 520.0))
    assert cells.checked(value) is None
    assert cells.checked([2, 4]) == (2, 4)
    assert cells.checked([4, 1]) == (4, 1)


def opened(uri):
    head, body = uri.split(",", 1)
    return head, Image.open(io.BytesIO(base64.b64decode(body)))


@pytest.mark.parametrize(
    ("size", "crisp", "sent"),
    [
        ((3000, 1200), False, (1000, 400)),
        ((1000, 1), False, (1000, 1)),
        ((5000, 2), False, (1000, 1)),  # never thinner than a pixel
        ((30, 20), False, (30, 20)),  # the browser enlarges photos
        ((1400, 2100), True, (1400, 2100)),  # values are never averaged
        ((300, 120), True, (900, 360)),  # three times, not three and a third
        ((600, 120), True, (600, 120)),
    ],
)
def test_pictures_are_sent_no_larger_than_they_are_seen(size, crisp, sent):
    head, image = opened(picker._sent(Image.new("RGB", size, "teal"), crisp))
    assert image.size == sent
    assert (head, image.format) == (
        ("data:image/png;base64", "PNG") if crisp else ("data:image/jpeg;base64", "JPEG")
    )


def test_a_crisp_picture_keeps_every_value():
    pixels = np.random.default_rng(0).integers(0, 256, (3, 5, 3), dtype=np.uint8)
    _, image = opened(picker._sent(Image.fromarray(pixels), True))
    # 1000 // 5 = 200 pixels for one.
    expected = np.kron(pixels, np.ones((200, 200, 1), np.uint8))
    np.testing.assert_array_equal(np.asarray(image), expected)


def test_a_long_mosaic_keeps_every_value_and_a_huge_one_is_refused():
    pixels = np.random.default_rng(0).integers(0, 256, (2688, 96, 3), dtype=np.uint8)
    _, image = opened(picker._sent(Image.fromarray(pixels), True))
    np.testing.assert_array_equal(np.asarray(image), pixels)
    with pytest.raises(BadOption, match="8192"):
        picker._sent(Image.new("RGB", (8193, 1)), True)


def test_a_photo_keeps_its_colours_up_to_a_patch_edge():
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:, :31] = (255, 0, 0)
    pixels[:, 31:] = (0, 0, 255)
    _, image = opened(picker._sent(Image.fromarray(pixels), False))
    error = np.abs(np.asarray(image).astype(int) - pixels)
    assert error.max() < 60  # with halved colour resolution it is over 100 beside the edge


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "I;16"])
def test_any_kind_of_picture_can_be_sent(mode):
    _, image = opened(picker._sent(Image.new(mode, (4, 3)), False))
    assert (image.mode, image.size) == ("RGB", (4, 3))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (float("nan"), "bits", "nan bits"),
        (float("inf"), "", "inf"),
        (0.0, "%", "0 %"),
        (-0.00012345, "", "-0.000123"),
        (1234.0, "", "1.23e+03"),
        (0.5, "bits", "0.5 bits"),
    ],
)
def test_values_are_told_to_three_digits_with_their_unit(value, unit, text):
    assert picker._texts(np.array([[value]], np.float32), unit) == [[text]]


def test_several_numbers_of_a_cell_are_told_one_after_the_other():
    values = np.array([[[1, -2.5, 0.00012345], [1234, 0, 3]]])
    assert picker._texts(values, "score") == [["1, -2.5, 0.000123 score", "1.23e+03, 0, 3 score"]]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"chosen": (2, 0)}, r"\(2, 0\).*2 × 3"),
        ({"chosen": (0, -1)}, r"\(0, -1\).*2 × 3"),
        ({"values": np.zeros((3, 2))}, r"\(3, 2\).*\(2, 3\)"),
        ({"values": np.zeros((3, 2, 3))}, r"\(3, 2, 3\).*\(2, 3\)"),
        ({"row_names": ["L0", "L1", "L2"]}, "3 row names for 2 rows"),
        ({"col_names": []}, "0 column names for 3 columns"),
    ],
)
def test_options_that_do_not_fit_the_grid_are_refused(option, message):
    options = {"grid": (2, 3), "box": None, "chosen": None, "key": "k", "alt": "A", **option}
    with pytest.raises(BadOption, match=message):
        picker.pick_cell(Image.new("RGB", (6, 4)), **options)


@pytest.mark.parametrize("file", ["picker.js", "picker.css"])
def test_nothing_is_loaded_from_elsewhere(file):
    text = Path(picker.__file__).with_name(file).read_text("utf-8")
    for way_out in ("//cdn", "http:", "https:", "@import", "url(", "fetch(", "import("):
        assert way_out not in text


@pytest.fixture
def page():
    return AppTest.from_file(str(PAGE), default_timeout=60).run()


def pick(page, index, value):
    """Send what a browser would send for a pick; AppTest has no public way to."""
    states = page._tree.get_widget_states()
    component = page.get("bidi_component")[index].proto
    states.widgets.add(
        id=f"$$STREAMLIT_INTERNAL_KEY_{component.id}__events",
        json_trigger_value=json.dumps([{"event": "picked", "value": value}]),
    )
    return page._run(states)


def data(page, index):
    return json.loads(page.get("bidi_component")[index].proto.json)


def test_the_page_gets_a_pick_once_and_its_callback_before_it_runs(page):
    assert not page.exception
    assert data(page, 0)["chosen"] is None
    pick(page, 0, [2, 4])
    assert not page.exception
    assert page.session_state.callbacks == page.session_state.returned == [(2, 4)]
    assert data(page, 0)["chosen"] == [2, 4]  # in the very run of the pick
    page.run()
    assert page.session_state.callbacks == page.session_state.returned == [(2, 4)]


def test_picks_stay_with_their_own_picker(page):
    pick(page, 1, [3, 11])
    assert page.session_state["head"] == (3, 11)
    assert data(page, 1)["chosen"] == [3, 11]
    assert page.session_state.returned == []
    pick(page, 2, [1, 0])
    assert page.session_state.in_fragment == [(1, 0)]
    assert page.session_state["head"] == (3, 11)


def test_a_pick_of_no_cell_changes_nothing(page):
    for value in HOSTILE:
        pick(page, 0, value)
        assert not page.exception
        assert page.session_state.callbacks == page.session_state.returned == []


def test_what_travels_to_the_browser(page):
    photo, mosaic = data(page, 0), data(page, 1)
    assert photo["size"] == [700, 467]
    assert photo["rows"] == [0, 4]
    assert photo["cols"] == [1, 7]
    assert photo["values"][2][4] == "0.2 bits"  # cell 20 of 40, by hundredths
    assert photo["lines"] is True
    assert photo["picture"].startswith("data:image/jpeg")
    assert mosaic["rowNames"] == ["L0", "L1", "L2", "L3"]
    assert mosaic["colNames"][-1] == "H11"
    assert mosaic["values"] is None
    assert mosaic["picture"].startswith("data:image/png")
