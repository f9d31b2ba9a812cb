"""The page without a browser: what each widget does, and that nothing a visitor does breaks it."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
import torch
from conftest import small_vit
from odd_pictures import OPENED, REFUSED
from PIL import Image
from streamlit.testing.v1 import AppTest

import models
from attnviz.colour import COLORMAPS
from attnviz.errors import BadWeights
from attnviz.methods import METHODS
from attnviz.samples import SAMPLES
from attnviz.ui import cache
from attnviz.ui.look_panel import SCALE_WORDS
from attnviz.ui.method_panel import _WIDGETS
from attnviz.ui.model_panel import FIT_WORDS
from attnviz.ui.state import verbatim

APP = Path(__file__).parents[1] / "app.py"

# Small stand-ins on 32 × 48 pixels: 3 layers of 3 heads on 2 × 3 patches unless said otherwise.
DISTILLED = "deit_small_distilled_patch16_224.fb_in1k"
SMALLER = "deit_tiny_patch16_224.fb_in1k"
SHALLOW = "vit_base_patch16_siglip_224.webli"
FIXED = "vit_base_patch16_224.mae"
FAR = "vit_small_patch16_224.dino"
STAND_INS = {
    DISTILLED: (("cls", "dist"), {}),
    SMALLER: (("cls",), {"depth": 2, "num_heads": 2}),
    SHALLOW: ((), {"depth": 1, "num_heads": 2, "patch_size": 8}),
    FIXED: (("cls",), {"dynamic_img_size": False}),
}


@pytest.fixture
def loads(monkeypatch):
    """Names of the models that were loaded, in order; `FAR` cannot be, unless random."""
    names = []

    def load(name, *, pretrained=True):
        names.append(name)
        if name == FAR and pretrained:
            raise BadWeights("The hub is far.")
        prefix, changes = STAND_INS.get(name, (("cls",), {}))
        vit = small_vit(prefix, **{"dynamic_img_size": True, **changes})
        return replace(vit, name=name, random=not pretrained)

    monkeypatch.setattr(models, "load", load)
    st.cache_resource.clear()
    yield names
    st.cache_resource.clear()


@pytest.fixture
def page(loads):
    """A visitor's page, drawn once."""
    return visit()


def visit():
    return calm(AppTest.from_file(str(APP), default_timeout=60).run())


def calm(at):
    """The page, after it was made sure that nothing in it went wrong."""
    assert [element.value for element in at.exception] == []
    return at


def picker(at, key):
    """What a picker was given."""
    protos = [element.proto for element in at.get("bidi_component")]
    return json.loads(next(proto.json for proto in protos if proto.id.endswith(f"-{key}")))


def texts(at):
    return "\n".join(element.value for element in [*at.caption, *at.subheader, *at.warning])


def widget(at, label):
    """By its label: widgets that follow the picture or the query have keys that change."""
    kinds = (at.selectbox, at.pills, at.number_input)
    return next(each for kind in kinds for each in kind if each.label == label)


def upload(at, name, data):
    (uploader,) = at.file_uploader
    return calm(uploader.set_value((name, data, "image/png")).run())


def png(size, colour="red"):
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def record_on(at):
    return cache.observations().find(at.session_state["seen"]).record


def choose_model(at, name):
    return calm(at.selectbox(key="model").set_value(name).run())


def test_every_method_has_widgets():
    missing = METHODS.keys() - _WIDGETS.keys()
    assert not missing, f"attnviz/ui/method_panel.py: give {sorted(missing)} a row in _WIDGETS"
    assert _WIDGETS.keys() <= METHODS.keys()


def test_opens_with_a_sample_already_explained(page):
    assert not page.error and not page.warning
    first = next(iter(SAMPLES.values()))
    assert first.credit in texts(page)
    patches, shown = picker(page, "patches"), picker(page, "map")
    assert (patches["rows"], patches["cols"]) == ([0, 1], [0, 2])  # 6 patches
    assert patches["size"] == [902, 600]  # 451 × 300 pixels, enlarged twice
    assert "2 rows × 3 columns" in texts(page)
    # The last layer, mean over heads, class token's row, without the class token itself.
    expected = record_on(page).layers[2].probs().mean(0)[0, 1:].numpy()
    seen = np.array(shown["values"], dtype=float).ravel()
    assert seen == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (0, 2), (1, 1)])
def test_shows_the_head_that_was_asked_for(page, layer, head):
    page.slider(key="layer").set_value(layer)
    calm(page.selectbox(key="head").set_value(head).run())
    expected = record_on(page).layers[layer].probs()[head, 0, 1:].numpy()
    assert np.array(picker(page, "map")["values"], dtype=float).ravel() == pytest.approx(
        expected, rel=5e-3
    )
    bar = next(element.value for element in page.html if "Colour bar" in element.value)
    low, middle, high = (float(text) for text in re.findall(r"<span>(.*?)</span>", bar))
    ends = float(expected.min()), float(expected.max())
    assert (low, high) == pytest.approx(ends, rel=5e-3)
    assert middle == pytest.approx(sum(ends) / 2, rel=5e-3)
    assert "attention weight" in bar
    assert picker(page, "mosaic")["chosen"] == [layer, head]
    share = re.search(r"hold ([\d.]+)% of the whole", texts(page))
    assert float(share[1]) == pytest.approx(100 * expected.sum(), abs=0.06)


def test_says_no_share_of_a_whole_where_there_is_none(page):
    calm(page.selectbox(key="head").set_value("max").run())
    assert "of the whole" not in texts(page)


def test_the_mosaic_holds_every_head(page):
    mosaic = picker(page, "mosaic")
    assert (mosaic["rows"], mosaic["cols"]) == ([0, 2], [0, 2])
    layers = record_on(page).layers
    for layer in range(3):
        for head in range(3):
            most, *unit = mosaic["values"][layer][head].split()
            assert unit == ["at", "most"]
            expected = float(layers[layer].probs()[head, 0, 1:].max())
            assert float(most) == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        *[("selectbox", "sample", name) for name in SAMPLES],
        *[("selectbox", "fit", fit) for fit in FIT_WORDS],
        *[("selectbox", "colormap", name) for name in COLORMAPS],
        *[("radio", "scale", scale) for scale in SCALE_WORDS],
        ("slider", "alpha", 0.0),
        ("slider", "alpha", 1.0),
        ("toggle", "smooth", True),
        ("toggle", "clip", True),
        ("toggle", "chart", True),
        ("toggle", "random", True),
        ("select_slider", "side", 128),
    ],
)
def test_every_choice_draws(page, kind, key, value):
    chosen = widget(page, "Sample") if key == "sample" else getattr(page, kind)(key=key)
    calm(chosen.set_value(value).run())
    # Two pictures, the mosaic, and who listens for what is pasted.
    assert len(page.get("bidi_component")) == 4
    assert len(page.get("plotly_chart")) == (key == "chart")
    if key == "sample":
        assert SAMPLES[value].credit in texts(page)
    calm(page.segmented_control(key="method").set_value("rollout").run())
    assert not page.error


def test_rollout_takes_its_options(page):
    page.segmented_control(key="method").set_value("rollout").run()
    page.slider(key="span").set_value((0, 0))
    calm(page.slider(key="residual").set_value(0.0).run())
    # Over one layer and without a residual, rollout is that layer's attention.
    expected = record_on(page).layers[0].probs().mean(0)[0, 1:].numpy()
    seen = np.array(picker(page, "map")["values"], dtype=float).ravel()
    assert seen == pytest.approx(expected, rel=5e-3)


def test_a_methods_options_outlive_a_look_at_another(page):
    page.slider(key="layer").set_value(1).run()
    page.segmented_control(key="method").set_value("rollout").run()
    page.slider(key="span").set_value((1, 2)).run()
    page.segmented_control(key="method").set_value("attention").run()
    assert page.slider(key="layer").value == 1
    calm(page.segmented_control(key="method").set_value("rollout").run())
    assert page.slider(key="span").value == (1, 2)


def test_row_and_column_ask_and_one_is_enough(page):
    calm(widget(page, "Row").set_value(1).run())
    assert picker(page, "patches")["chosen"] == picker(page, "map")["chosen"] == [1, 0]
    assert widget(page, "Who asks").value is None
    calm(widget(page, "Column").set_value(2).run())
    assert picker(page, "patches")["chosen"] == [1, 2]
    assert "What the patch (row 1, column 2) attends to" in texts(page)
    token = 1 + 1 * 3 + 2
    expected = record_on(page).layers[2].probs().mean(0)[token, 1:].numpy()
    assert np.array(picker(page, "map")["values"], dtype=float).ravel() == pytest.approx(
        expected, rel=5e-3
    )
    calm(widget(page, "Row").set_value(None).run())  # emptied: stays as it was
    assert picker(page, "patches")["chosen"] == [1, 2]
    calm(widget(page, "Row").set_value(0).run())
    assert picker(page, "patches")["chosen"] == [0, 2]
    calm(widget(page, "Who asks").set_value("cls").run())
    assert picker(page, "patches")["chosen"] is None
    assert widget(page, "Row").value is None


def test_a_mean_query_asks_all_patches(page):
    calm(widget(page, "Who asks").set_value("mean").run())
    expected = record_on(page).layers[2].probs().mean(0)[1:, 1:].mean(0).numpy()
    assert np.array(picker(page, "map")["values"], dtype=float).ravel() == pytest.approx(
        expected, rel=5e-3
    )


def test_what_a_smaller_model_lacks_falls_back(page):
    page.slider(key="layer").set_value(2)
    page.selectbox(key="head").set_value(2)
    choose_model(page, DISTILLED)
    calm(widget(page, "Who asks").set_value("dist").run())
    assert "distillation token" in texts(page)
    assert (page.slider(key="layer").value, page.selectbox(key="head").value) == (2, 2)
    page.segmented_control(key="method").set_value("rollout").run()
    assert page.slider(key="span").value == (0, 2)
    choose_model(page, SMALLER)
    assert page.slider(key="span").value == (0, 1)
    calm(page.segmented_control(key="method").set_value("attention").run())
    assert (page.slider(key="layer").value, page.selectbox(key="head").value) == (1, "mean")
    assert widget(page, "Who asks").value == "cls"
    choose_model(page, SHALLOW)  # one layer, two heads, no token but patches
    assert page.selectbox(key="head").value == "mean"
    assert widget(page, "Who asks").value == "mean"
    assert picker(page, "mosaic")["rows"] == [0, 0]
    assert "of the whole" not in texts(page)  # nothing lies outside the picture
    calm(page.segmented_control(key="method").set_value("rollout").run())
    choose_model(page, DISTILLED)
    assert widget(page, "Who asks").value == "dist"


def test_a_patch_stays_at_its_place_when_the_grid_changes(page):
    widget(page, "Row").set_value(1).run()
    calm(widget(page, "Column").set_value(2).run())
    x, y = 902 * 5 / 6, 600 * 3 / 4  # its middle, on 2 × 3 patches
    choose_model(page, SHALLOW)
    patches = picker(page, "patches")
    assert (patches["rows"], patches["cols"]) == ([0, 3], [0, 5])
    row, col = patches["chosen"]
    assert patches["ys"][row] <= y <= patches["ys"][row + 1]
    assert patches["xs"][col] <= x <= patches["xs"][col + 1]
    calm(widget(page, "Sample").set_value("coffee").run())  # another picture, another place
    assert picker(page, "patches")["chosen"] is None


def test_offers_a_model_of_one_size_only_what_it_takes(page):
    choose_model(page, FIXED)
    assert not page.error
    assert "aspect" not in [*page.selectbox(key="fit").options, page.selectbox(key="fit").value]
    assert FIT_WORDS["aspect"] not in page.selectbox(key="fit").options
    assert not page.select_slider
    assert "32 × 48 pixels and nothing else" in texts(page)


def test_a_model_that_cannot_be_loaded_leaves_the_one_before(page, loads):
    before = picker(page, "map")
    choose_model(page, FAR)
    (error,) = page.error
    kept, wanted = models.MODELS["dinov2-small"].label, models.MODELS[FAR].label
    assert error.value.startswith(f"{wanted} could not be loaded, and the page stays with {kept}.")
    assert "The hub is far." in texts(page)
    assert page.selectbox(key="model").value == "dinov2-small"
    assert picker(page, "map") == before
    calm(page.slider(key="layer").set_value(0).run())
    assert loads == ["dinov2-small", FAR]  # moving something else does not try again
    assert page.error
    choose_model(page, DISTILLED)
    assert not page.error
    page.toggle(key="random").set_value(True).run()
    choose_model(page, FAR)
    assert not page.error
    calm(page.toggle(key="random").set_value(False).run())  # the toggle comes back as well
    assert page.error and page.toggle(key="random").value is True


def test_says_what_is_missing_when_no_model_can_be_loaded(page, loads, monkeypatch):
    def load(name, **_):
        raise BadWeights("The package is missing.")

    st.cache_resource.clear()
    monkeypatch.setattr(models, "load", load)
    bare = visit()
    assert [error.value for error in bare.error] == ["The package is missing."]
    assert bare.selectbox(key="model") and bare.file_uploader


def test_random_weights_are_said_to_be_random(page):
    assert not page.warning
    calm(page.toggle(key="random").set_value(True).run())
    assert len(page.warning) == 1
    assert "random weights" in texts(page)


def test_too_little_memory_is_a_sentence_and_the_map_stays(page, monkeypatch):
    before = picker(page, "map")

    def observe(*_, **__):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(cache, "observe", observe)
    calm(page.select_slider(key="side").set_value(256).run())
    (error,) = page.error
    assert "choose a lower" in error.value
    assert picker(page, "map") == before
    calm(page.slider(key="layer").set_value(0).run())
    assert picker(page, "map") != before


REFUSED_HERE = ["empty", "text", "PDF", "HEIC", "PNG without pixels", "pixel bomb", "SVG"]
OPENED_HERE = ["one pixel", "a ribbon", "a pole", "CMYK JPEG, white", "animated GIF"]


@pytest.mark.parametrize("kind", REFUSED_HERE)
def test_a_bad_file_gets_a_sentence_and_the_page_keeps_what_it_had(page, kind):
    make, reason = REFUSED[kind]
    widget(page, "Row").set_value(1).run()
    before = [picker(page, key) for key in ("patches", "map", "mosaic")]
    upload(page, "some *file*.png", make())
    (error,) = page.error
    assert error.value.startswith("`some *file*.png`: ") and re.search(reason, error.value)
    assert [picker(page, key) for key in ("patches", "map", "mosaic")] == before
    calm(page.slider(key="layer").set_value(0).run())
    upload(page, "good.png", png((40, 30)))
    assert not page.error
    assert "`good.png`**, 40 × 30 pixels" in texts(page)


@pytest.mark.parametrize("kind", OPENED_HERE)
def test_an_odd_picture_is_explained(page, kind):
    make, (width, height), *_ = OPENED[kind]
    upload(page, "odd.png", make())
    assert not page.error
    assert f"`odd.png`**, {width} × {height} pixels" in texts(page)
    assert max(picker(page, "patches")["size"]) <= 1000  # no more than the screen needs


@pytest.mark.parametrize("replaced_in_one_step", [True, False])
def test_an_upload_outlives_a_bad_file_in_its_place(page, replaced_in_one_step):
    upload(page, "mine.png", png((40, 30)))
    assert widget(page, "Sample").value is None
    if not replaced_in_one_step:  # as browsers do it
        calm(page.file_uploader[0].set_value(None).run())
    upload(page, "bad.png", b"?")
    assert page.error and "`mine.png`" in texts(page)
    assert widget(page, "Sample").value is None
    calm(page.file_uploader[0].set_value(None).run())
    assert not page.error
    assert widget(page, "Sample").value == next(iter(SAMPLES))


def test_a_bad_file_long_after_a_removal_brings_nothing_back(page):
    upload(page, "mine.png", png((40, 30)))
    calm(page.file_uploader[0].set_value(None).run())
    calm(page.slider(key="layer").set_value(0).run())
    upload(page, "bad.png", b"?")
    assert page.error and "mine.png" not in texts(page)


def test_a_chosen_sample_takes_the_place_of_an_upload(page):
    upload(page, "mine.png", png((40, 30)))
    calm(widget(page, "Sample").set_value("coffee").run())
    assert SAMPLES["coffee"].credit in texts(page)
    assert page.file_uploader[0].value is None
    upload(page, "mine.png", png((40, 30)))
    calm(page.file_uploader[0].set_value(None).run())
    assert SAMPLES["coffee"].credit in texts(page)


def test_two_visitors_do_not_mix(page):
    other = visit()
    upload(page, "mine.png", png((40, 30), "red"))
    upload(other, "mine.png", png((40, 30), "blue"))
    for at in (page, other, page, other):
        calm(at.run())
    red, blue = (picker(at, "patches")["picture"] for at in (page, other))
    assert red != blue
    assert page.session_state["picture"].image.getpixel((0, 0)) == (255, 0, 0)
    assert other.session_state["picture"].image.getpixel((0, 0)) == (0, 0, 255)
    calm(widget(other, "Row").set_value(0).run())
    assert picker(calm(page.run()), "patches")["chosen"] is None


def test_the_same_picture_is_run_once_for_all(page, monkeypatch):
    passes = []
    observe = cache.observe
    monkeypatch.setattr(cache, "observe", lambda *a, **k: passes.append(a) or observe(*a, **k))
    other = visit()
    upload(page, "one.png", png((40, 30)))
    upload(other, "two.png", png((40, 30)))
    calm(page.slider(key="alpha").set_value(0.1).run())
    assert len(passes) == 1
    # But what one of them calls it stays with them.
    calm(other.toggle(key="chart").set_value(True).run())
    chart = other.get("plotly_chart")[0].proto.spec
    assert "two.png" in chart and "one.png" not in chart


@pytest.mark.parametrize(
    "name", ["a_b_c.png", "*a*", "![x](http://example.org/x.png)", "a`b", "``"]
)
def test_a_file_name_is_not_read_as_markdown(name):
    code = verbatim(name)
    assert code[0] == code[-1] == "`" and "`" not in code[1:-1]


@pytest.mark.parametrize("clip", [False, True])
def test_one_scale_for_all_heads_is_the_mosaics_too(page, clip):
    page.toggle(key="clip").set_value(clip)
    calm(page.radio(key="scale").set_value("shared").run())
    every = np.stack([layer.probs()[:, 0, 1:].numpy() for layer in record_on(page).layers])
    low, high = np.percentile(every, [1, 99]) if clip else (every.min(), every.max())
    bar = next(element.value for element in page.html if "Colour bar" in element.value)
    numbers = [float(text.strip("≤≥ ")) for text in re.findall(r"<span>(.*?)</span>", bar)]
    assert (numbers[0], numbers[-1]) == pytest.approx((low, high), rel=5e-3)
    assert "of all heads" in bar
    told = re.search(r"One scale for all: (\S+) to (\S+)\. ", texts(page))
    assert (float(told[1]), float(told[2])) == pytest.approx((low, high), rel=5e-3)
    # What adds up over layers has another unit, and keeps a scale of its own.
    calm(page.segmented_control(key="method").set_value("rollout").run())
    bar = next(element.value for element in page.html if "Colour bar" in element.value)
    assert "share of rollout" in bar and "of all heads" not in bar


def test_from_zero_starts_at_zero(page):
    calm(page.radio(key="scale").set_value("zero").run())
    bar = next(element.value for element in page.html if "Colour bar" in element.value)
    assert re.findall(r"<span>(.*?)</span>", bar)[0] == "0"
