"""The page from one model to another, and what it says when a model cannot be had."""

import re

import pytest
import streamlit as st
import torch
from page_visit import (
    DISTILLED,
    FAR,
    FIXED,
    SHALLOW,
    SMALLER,
    calm,
    choose_model,
    picker,
    stand_ins,
    texts,
    visit,
    widget,
)

import models
from attnviz.errors import BadWeights
from attnviz.ui import cache
from attnviz.ui.model_panel import FIT_WORDS
from models import own_weights


@pytest.fixture
def loads(monkeypatch):
    """Names of the models that were loaded, in order."""
    with stand_ins(monkeypatch) as names:
        yield names


@pytest.fixture
def page(loads):
    """A visitor's page, drawn once."""
    return visit()


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
    assert "48 × 32 pixels (width × height) and nothing else" in texts(page)


@pytest.mark.parametrize("name", own_weights.TRAINED)
def test_a_digit_is_named_by_the_models_that_come_along(page, name):
    choose_model(page, name)
    calm(widget(page, "Sample").set_value("digit-3").run())
    assert not page.error and not page.warning
    assert re.search(r"It says: \*\*3\*\* (8|9)\d%", texts(page))
    assert "32 × 32 pixels (width × height) and nothing else" in texts(page)
    assert not page.select_slider and FIT_WORDS["aspect"] not in page.selectbox(key="fit").options
    assert (picker(page, "patches")["rows"], picker(page, "mosaic")["rows"]) == ([0, 7], [0, 3])
    calm(page.toggle(key="random").set_value(True).run())
    assert "random weights" in texts(page)
    calm(widget(page, "Sample").set_value("coffee").run())
    choose_model(page, DISTILLED)
    assert page.select_slider and FIT_WORDS["aspect"] in page.selectbox(key="fit").options


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
    (error,) = page.error
    assert error.value == f"The weights of {wanted} could not be loaded: it stays untrained."
    assert page.toggle(key="random").value is True


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
