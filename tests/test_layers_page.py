"""The view of the layers: frames, what is said of them, and what opens; without a browser."""

import base64
import io

import numpy as np
import pytest
from page_visit import (
    calm,
    choose_model,
    open_view,
    picker,
    png,
    record_on,
    stand_ins,
    texts,
    upload,
    visit,
)
from PIL import Image
from test_page_staged import STAGED, swin

import attnviz
import models
from attnviz.colour import overlay
from attnviz.errors import BadOption
from attnviz.ui import cache
from attnviz.ui.player import MOST_PIXELS, WIDEST, atlas, frame_size
from attnviz.ui.state import plain


@pytest.fixture(scope="module")
def page():
    """A visitor's page; one of its models is the small one in stages."""
    with pytest.MonkeyPatch.context() as patch, stand_ins(patch):
        others = models.load

        def load(name, **options):
            return swin(name) if name == STAGED else others(name, **options)

        patch.setattr(models, "load", load)
        yield visit()


def frames(given):
    """The pictures that were sent."""
    data = base64.b64decode(given["atlas"].partition(",")[2])
    sheet = Image.open(io.BytesIO(data)).convert("RGB")
    (width, height), columns = given["size"], given["columns"]
    for number in range(len(given["frames"])):
        left, top = number % columns * width, number // columns * height
        yield sheet.crop((left, top, left + width, top + height))


def numbers_of(given):
    return [frame["numbers"] for frame in given["frames"]]


def test_the_frames_are_the_layers_maps(page):
    open_view(page, "layers")
    calm(page.selectbox(key="head").set_value(1).run())
    given = picker(page, "film")
    assert [frame["name"] for frame in given["frames"]] == ["layer 0", "layer 1", "layer 2"]
    seen = cache.observations().find(page.session_state["seen"])
    film = attnviz.film(record_on(page), head=1, query="cls")
    for sent, heat in zip(frames(given), film.maps.values(), strict=True):
        expected = overlay(seen.on_screen(heat), size=tuple(given["size"]))
        off = np.abs(np.asarray(sent).astype(int) - np.asarray(expected).astype(int))
        assert off.mean() < 3  # a JPEG's
    assert given["ratio"] == pytest.approx(451 / 300, rel=0.01)
    assert "By head 1, in layers 0 to 2 (of 3, counted from 0)" in texts(page)
    assert plain("query: class token; model: ") in texts(page)


def test_the_film_s_file_has_the_chosen_seconds(page, monkeypatch):
    files = []
    monkeypatch.setattr(
        "attnviz.ui.layers_panel.offer_file", lambda label, make, name, mime: files.append(make)
    )
    open_view(page, "layers")
    calm(page.number_input(key="film_seconds").set_value(0.3).run())
    with Image.open(io.BytesIO(files[-1]())) as film:
        assert film.format == "GIF" and film.info["duration"] == 300
    calm(page.number_input(key="film_seconds").set_value(0.6).run())


def test_scales_are_the_layers_own_or_one(page):
    open_view(page, "layers")
    calm(page.selectbox(key="head").set_value(1).run())
    calm(page.radio(key="film_scale").set_value("own").run())
    own = picker(page, "film")
    assert len({tuple(each) for each in numbers_of(own)}) == 3
    assert all(" to " in frame["short"] for frame in own["frames"])
    calm(page.radio(key="film_scale").set_value("shared").run())
    one = picker(page, "film")
    assert len({tuple(each) for each in numbers_of(one)}) == 1
    assert one["frames"][0]["words"].endswith("shared by 3 maps")
    assert not any(frame["short"] for frame in one["frames"])
    lows, highs = zip(*((float(each[0]), float(each[-1])) for each in numbers_of(own)), strict=True)
    low, _, high = map(float, numbers_of(one)[0])
    assert (low, high) == (min(lows), max(highs))
    calm(page.toggle(key="clip").set_value(True).run())
    maps = attnviz.film(record_on(page), head=1, query="cls").maps.values()
    ends = np.percentile(np.concatenate([heat.values.ravel() for heat in maps]), [1, 99])
    low, _, high = map(float, numbers_of(picker(page, "film"))[0])
    assert (low, high) == pytest.approx(tuple(ends), rel=0.01)
    calm(page.toggle(key="clip").set_value(False).run())
    calm(page.radio(key="scale").set_value("shared").run())
    assert picker(page, "film")["frames"][0]["words"].endswith("of all heads")
    calm(page.radio(key="scale").set_value("own").run())
    calm(page.radio(key="film_scale").set_value("own").run())


def test_layers_without_that_head_are_named(page):
    choose_model(page, STAGED)
    open_view(page, "layers")
    calm(page.selectbox(key="head").set_value(3).run())
    given = picker(page, "film")
    assert [frame["name"] for frame in given["frames"]] == ["layer 2", "layer 3"]
    assert "Layers 0 to 1 left out: there are 1 heads, and no head 3." in texts(page)


# --- the player's own parts ---------------------------------------------------------------------


def test_a_file_s_name_is_no_markdown(page):
    upload(page, "a *cat* [x](y).png", png((30, 20)))
    open_view(page, "layers")
    assert r"a \*cat\* \[x\](y).png" in texts(page)


@pytest.mark.parametrize("size", [(1000, 667), (600, 600), (1000, 84), (84, 1000)])
@pytest.mark.parametrize("count", [1, 12, 48])
def test_frames_are_whole_blocks_within_the_budget(size, count):
    width, height = frame_size(size, count)
    assert width % 8 == height % 8 == 0 and width <= WIDEST + 8
    assert width * height * count <= MOST_PIXELS * 1.1


def test_the_atlas_holds_every_frame_in_order():
    colours = ["red", "green", "blue", "white", "black"]
    sheet, columns = atlas([Image.new("RGB", (8, 16), colour) for colour in colours])
    assert columns == 3 and sheet.size == (24, 32)
    for number, colour in enumerate(colours):
        tile = Image.new("RGB", (8, 16), colour)
        left, top = number % 3 * 8, number // 3 * 16
        assert sheet.crop((left, top, left + 8, top + 16)).tobytes() == tile.tobytes()


@pytest.mark.parametrize("sizes", [[], [(8, 8), (8, 16)]])
def test_pictures_of_no_film_are_refused(sizes):
    with pytest.raises(BadOption, match="of one size"):
        atlas([Image.new("RGB", size) for size in sizes])
