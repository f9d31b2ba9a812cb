"""The page from one model to another, and what it says when a model cannot be had."""

import os
import re
from pathlib import Path

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
    mosaic,
    picker,
    record_on,
    stand_ins,
    texts,
    visit,
    widget,
)
from safetensors.torch import save_file

import models
from attnviz.errors import BadWeights
from attnviz.ui import cache, checkpoints, room
from attnviz.ui.model_panel import FIT_WORDS
from attnviz.ui.settings import Settings
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
    assert mosaic(page)["rows"] == [0, 0]
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
    # Another picture, the same row and column.
    calm(widget(page, "Sample").set_value("coffee").run())
    assert picker(page, "patches")["chosen"] == [row, col]


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
    assert (picker(page, "patches")["rows"], mosaic(page)["rows"]) == ([0, 7], [0, 3])
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


def test_a_kind_leaves_its_models_and_the_one_that_is_shown(page, loads):
    calm(page.pills(key="kind").set_value("windowed").run())
    labels = page.selectbox(key="model").options
    assert labels[0].startswith("DINOv2 ViT-S/14")
    cards = [card.label for card in models.MODELS.values() if card.family == "windowed"]
    assert [label.removesuffix(" (download)") for label in labels[1:]] == cards
    assert page.selectbox(key="model").value == "dinov2-small" and loads == ["dinov2-small"]
    calm(page.pills(key="kind").set_value(None).run())
    assert len(page.selectbox(key="model").options) == len(models.MODELS)


def found_names(page):
    return [each.label for each in page.button if (each.key or "").startswith("take-")]


def test_any_of_timms_models_is_found_by_a_part_of_its_name(page, loads):
    calm(page.text_input(key="search").set_value(" PiT_ti ").run())
    assert found_names(page) == ["pit_ti_224", "pit_ti_distilled_224"]
    # 16 pixels of which each patch shares 8 with the next: (224 - 16) / 8 + 1 a side.
    assert "5 M parameters, 224 × 224 px, 27 × 27 patches, 12 layers" in texts(page).replace(
        "\N{NO-BREAK SPACE}", " "
    )
    calm(page.button(key="take-pit_ti_224").click().run())
    assert loads == ["dinov2-small", "pit_ti_224"]
    assert page.selectbox(key="model").value == "pit_ti_224"
    assert record_on(page).model == "pit_ti_224"
    choose_model(page, DISTILLED)  # and back among those with a card
    assert record_on(page).model == DISTILLED


def test_a_search_finds_weights_by_their_tag_and_says_why_there_is_no_map(page, loads):
    calm(page.text_input(key="search").set_value("edgenext_xx").run())
    assert found_names(page) == []
    assert re.search(r"No map of `edgenext_xx_small`: .* channels, not over tokens", texts(page))
    calm(page.text_input(key="search").set_value("16_224.mae").run())
    assert "vit_base_patch16_224.mae" in found_names(page)
    calm(page.text_input(key="search").set_value("`*[no such]*`").run())
    assert "No model of timm has `'*[no such]*'` in its name." in texts(page)
    assert loads == ["dinov2-small"]


def test_what_can_be_drawn_is_found_first(page):
    calm(page.text_input(key="search").set_value("tiny").run())  # coat_tiny would be the shortest
    assert len(found_names(page)) == 6 and "coat" not in texts(page)


def test_a_model_that_does_not_fit_is_refused_with_the_numbers_before_it_is_built(
    page, loads, monkeypatch
):
    monkeypatch.setattr(room, "free_bytes", lambda: 40_000_000_000)
    calm(page.text_input(key="search").set_value("vit_7b_patch16_dinov3").run())
    calm(page.button(key="take-vit_7b_patch16_dinov3").click().run())
    (error,) = page.error
    assert "stays with DINOv2 ViT-S/14" in error.value
    assert re.search(r"6,716 million parameters: .* about 53.7 GB, and 40.0 GB are", texts(page))
    assert loads == ["dinov2-small"]

    def load(name, **_):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 9 bytes")

    monkeypatch.setattr(models, "load", load)
    choose_model(page, SMALLER)
    assert f"There is too little memory for {SMALLER}: choose a smaller one." in texts(page)


def test_a_model_to_stay_with_that_is_gone_as_well_ends_in_its_error(page, monkeypatch):
    tries = []

    def load(name, **_):
        tries.append(name)
        raise BadWeights("The hub is far.")

    cache.model.clear()
    monkeypatch.setattr(models, "load", load)
    choose_model(page, DISTILLED)
    assert tries == [DISTILLED, "dinov2-small"]
    assert "The hub is far." in [error.value for error in page.error]
    calm(page.slider(key="layer").set_value(0).run())  # what was drawn is still there
    assert tries == [DISTILLED, "dinov2-small", "dinov2-small"]


def test_files_that_cannot_be_read_or_named_are_left_out(tmp_path):
    for name in ("b", "a", "sub/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.safetensors").write_bytes(b"?")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.safetensors")).write_bytes(b"?")
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    odd.mkdir()
    (odd / "d.safetensors").write_bytes(b"?")
    (tmp_path / "line\nbreak.safetensors").write_bytes(b"?")
    (tmp_path / "folder.safetensors").mkdir()
    os.mkfifo(tmp_path / "pipe.safetensors")
    (tmp_path / "gone.safetensors").symlink_to("nowhere")
    names = [file.name for file in checkpoints.checkpoints(tmp_path)]
    assert names == ["a.safetensors", "b.safetensors", "sub/c.safetensors"]


def test_a_file_on_the_server_is_offered_only_where_the_host_says_so(
    page, loads, monkeypatch, tmp_path
):
    assert "checkpoint" not in page.session_state
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "weights"
    folder.mkdir()
    for name in ("good", "elsewhere/out", "weights/bad"):
        path = (tmp_path if "/" in name else folder) / f"{name}.safetensors"
        save_file(models.load("digits").module.state_dict(), path)
    (folder / "bad.safetensors").write_bytes(b"no weights at all")
    (folder / "notes.txt").write_text("nothing")
    (folder / "link.safetensors").symlink_to(tmp_path / "elsewhere" / "out.safetensors")
    monkeypatch.setattr(checkpoints, "settings", lambda: Settings(checkpoints=folder))
    choose_model(page, "digits")
    chooser = page.selectbox(key="checkpoint")
    assert chooser.options == ["bad.safetensors", "good.safetensors"] and chooser.value is None
    own = record_on(page).weights
    bad, good = checkpoints.checkpoints(folder)
    calm(chooser.set_value(good).run())
    assert record_on(page).weights == "Weights of the host's file good.safetensors."
    assert page.toggle(key="random").disabled
    calm(page.selectbox(key="checkpoint").set_value(bad).run())
    (error,) = page.error
    assert re.match("Handwritten digits with `bad.safetensors` could not be loaded", error.value)
    assert "stays with Handwritten digits with `good.safetensors`" in error.value
    assert "bad.safetensors is not a whole" in texts(page) and str(tmp_path) not in texts(page)
    assert page.selectbox(key="checkpoint").value == good
    # Another model that the same file does not fit: it stays with what there was, the file too.
    choose_model(page, SMALLER)
    assert "could not be loaded, and the page stays with Handwritten digits with `good" in (
        page.error[0].value
    )
    assert page.selectbox(key="checkpoint").value == good
    good_again = folder / "good.safetensors"
    os.utime(good_again, ns=(1, 1))  # a file that changed is another one, of the same name
    calm(page.slider(key="layer").set_value(0).run())
    again = page.selectbox(key="checkpoint").value
    assert again != good and again.name == good.name and record_on(page).weights != own
    assert "has changed: the new one is chosen" in page.warning[0].value
    good_again.write_bytes(good_again.read_bytes()[:1000])
    calm(page.slider(key="layer").set_value(1).run())
    assert "could not be loaded since its file has changed" in page.error[0].value
    assert not page.warning and page.selectbox(key="checkpoint").value is None
    assert record_on(page).weights == own
