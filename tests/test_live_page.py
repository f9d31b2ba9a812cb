"""What the page sends for its live map, and what it says of both directions."""

import numpy as np
import pytest
from page_visit import calm, picker, record_on, stand_ins, texts, visit, widget

from attnviz.colour import palette


@pytest.fixture(scope="module")
def opened():
    with pytest.MonkeyPatch.context() as patch, stand_ins(patch):
        yield


@pytest.fixture
def page(opened):
    return visit()


def held(at):
    """The bytes that were sent for a live map, or none."""
    protos = [element.proto for element in at.get("bidi_component")]
    return [proto.bytes for proto in protos if proto.id.endswith("-live_map")]


def test_the_whole_map_is_sent_apart_from_how_it_is_drawn(page):
    (sent,) = held(page)
    look = picker(page, "live")
    assert sent[:16].decode() == look["map"]
    assert picker(page, "patches")["scene"] == look["scenes"]["under"]
    assert picker(page, "map")["scene"] == f"{look['scenes']['over']}#"
    calm(page.slider(key="alpha").set_value(0.8).run())
    assert held(page) == [sent]
    assert picker(page, "live")["alpha"] == 0.8


def test_a_pick_changes_neither(page):
    before = held(page), picker(page, "live")
    page.session_state.asked = (700.0, 10.0)
    calm(page.run())
    assert "patch (row 0, column 2)" not in texts(page)  # the picture is 451 pixels wide
    page.session_state.asked = (400.0, 10.0)
    calm(page.run())
    assert "patch (row 0, column 2)" in texts(page)
    assert (held(page), picker(page, "live")) == before
    assert picker(page, "map")["scene"] == f"{before[1]['scenes']['over']}#0,2"


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [("slider", "layer", 0), ("selectbox", "head", 2), ("segmented_control", "direction", "to")],
)
def test_another_map_has_another_name_on_the_map_but_not_on_the_picture(page, kind, key, value):
    before, sent = picker(page, "live"), held(page)
    calm(getattr(page, kind)(key=key).set_value(value).run())
    after = picker(page, "live")
    assert after["scenes"]["over"] != before["scenes"]["over"]
    assert after["scenes"]["under"] == before["scenes"]["under"]
    assert after["map"] != before["map"] and held(page) != sent


def test_other_methods_and_another_picture_leave_no_old_map(page):
    before = picker(page, "live")["scenes"]["under"]
    calm(widget(page, "Sample").set_value("coffee").run())
    assert picker(page, "live")["scenes"]["under"] != before
    calm(page.segmented_control(key="method").set_value("rollout").run())
    assert held(page) == []
    assert picker(page, "patches")["scene"] == picker(page, "map")["scene"] == ""


def test_colours_are_those_of_the_palette(page):
    calm(page.selectbox(key="colormap").set_value("viridis").run())
    red, green, blue = map(int, palette("viridis")[200])
    assert picker(page, "live")["palette"][200] == int.from_bytes(
        bytes([red, green, blue, 255]), "little"
    )


def test_who_looks_at_the_query_is_its_column(page):
    calm(page.segmented_control(key="direction").set_value("to").run())
    expected = record_on(page).layers[2].probs().mean(0)[1:, 0].tolist()
    shown = [cell for row in picker(page, "map")["values"] for cell in row]
    assert [float(text.split()[0]) for text in shown] == pytest.approx(expected, rel=5e-3)
    bar = next(element.value for element in page.html if "Colour bar" in element.value)
    assert "attention weight given to the query" in bar
    assert "Who looks at the class token" in texts(page)
    assert "**Attention** to the **class token**" in texts(page)
    assert "of the whole" not in texts(page)
    assert "Who looks at the patch" in picker(page, "live")["words"]["now"]


@pytest.mark.parametrize("clip", [False, True])
def test_a_live_map_has_the_page_s_scale_and_clip(page, clip):
    calm(page.toggle(key="clip").set_value(clip).run())
    for name in ("own", "zero", "shared"):
        calm(page.radio(key="scale").set_value(name).run())
        scale = picker(page, "live")["scale"]
        assert scale["clip"] == (99.0 if clip else None) and scale["fromZero"] == (name == "zero")
        heads = [layer.probs()[:, 0, 1:].numpy() for layer in record_on(page).layers]
        ends = np.percentile(heads, [1, 99] if clip else [0, 100])
        assert scale["fixed"] == (pytest.approx([*ends]) if name == "shared" else None)


def test_a_live_map_says_the_unit_of_the_pinned_one(page):
    for direction, unit in (("from", ""), ("to", " given to the query")):
        calm(page.segmented_control(key="direction").set_value(direction).run())
        words = picker(page, "live")["words"]["now"]
        assert f"{{range}} attention weight{unit}. Colours" in words
