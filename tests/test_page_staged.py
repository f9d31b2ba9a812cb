"""The page between a plain model and one in stages: defaults, queries on coarser grids, heads."""

import base64
import io
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st
import timm
from conftest import small_vit
from einops import rearrange
from page_visit import (
    APP,
    DISTILLED,
    calm,
    choose_model,
    open_view,
    picker,
    record_on,
    stand_ins,
    texts,
    visit,
    widget,
)
from PIL import Image
from streamlit.testing.v1 import AppTest

import attnviz
import models
from attnviz.errors import BadOption, CaptureFailed
from attnviz.methods import METHODS
from attnviz.mosaic import mosaic
from attnviz.samples import open_sample
from attnviz.ui.picker import CellGrid
from attnviz.ui.target_panel import ANOTHER, _kept

STAGED = "swin_tiny_patch4_window7_224.ms_in1k"
BRANCHED = "crossvit_tiny_240.in1k"
SPAN = "start at layer 2"


def swin(name):
    """4 layers: two of 1 head on 16 × 16 cells, two of 4 heads on 8 × 8."""
    module = timm.models.swin_transformer.SwinTransformer(
        img_size=64, window_size=4, embed_dim=16, depths=(2, 2), num_heads=(1, 4), num_classes=3
    )
    return replace(models.wrap(module.eval()), name=name)


def crossvit(name):
    """Two branches of one layer each; its head is fed with two features."""
    module = timm.create_model("crossvit_tiny_240", depth=((1, 1, 1),), num_classes=3)
    return replace(models.wrap(module.eval()), name=name)


SMALL = {STAGED: swin, BRANCHED: crossvit}


@pytest.fixture
def page(monkeypatch):
    """A visitor's page, drawn once; some of its models are the small ones above."""
    with stand_ins(monkeypatch):
        others = models.load

        def load(name, **options):
            return SMALL[name](name) if name in SMALL else others(name, **options)

        monkeypatch.setattr(models, "load", load)
        yield visit()


def method(page, name):
    calm(page.segmented_control(key="method").set_value(name).run())


def span_of(page):
    return tuple(page.slider(key="span").value)


def test_what_nobody_moved_is_the_next_model_s_own(page):
    method(page, "rollout")
    assert (span_of(page), page.selectbox(key="fit").value) == ((0, 2), "aspect")
    choose_model(page, STAGED)
    assert not page.error and "You chose" not in texts(page)
    assert (span_of(page), page.selectbox(key="fit").value) == ((2, 3), "crop")
    choose_model(page, DISTILLED)
    assert not page.error and "You chose" not in texts(page)
    assert (span_of(page), page.selectbox(key="fit").value) == ((0, 2), "aspect")
    method(page, "attention")
    assert page.slider(key="layer").value == 2  # the last of 3, and then of 4
    choose_model(page, STAGED)
    assert page.slider(key="layer").value == 3


def test_what_was_chosen_by_hand_is_kept_where_it_fits_and_said_where_not(page):
    page.selectbox(key="fit").set_value("pad")
    calm(page.select_slider(key="side").set_value(256).run())
    method(page, "rollout")
    calm(page.slider(key="span").set_value((0, 1)).run())
    choose_model(page, STAGED)
    assert (span_of(page), page.selectbox(key="fit").value) == ((0, 1), "pad")
    choose_model(page, DISTILLED)
    calm(page.slider(key="span").set_value((1, 2)).run())
    choose_model(page, STAGED)  # over the border of its stages
    assert span_of(page) == (2, 3) and not page.error
    said = "You chose layers 1 to 2; in this model they do not add up, so it is layers 2 to 3."
    assert said in texts(page)
    calm(page.run())
    assert said in texts(page)
    choose_model(page, DISTILLED)
    assert span_of(page) == (1, 2) and page.select_slider(key="side").value == 256
    assert "You chose" not in texts(page)
    method(page, "attention")
    choose_model(page, STAGED)
    calm(page.slider(key="layer").set_value(0).run())
    choose_model(page, DISTILLED)
    assert page.slider(key="layer").value == 0
    choose_model(page, STAGED)
    calm(page.slider(key="layer").set_value(2).run())
    calm(page.slider(key="layer").set_value(3).run())  # the default, chosen again, is none
    choose_model(page, DISTILLED)
    assert page.slider(key="layer").value == 2 and "You chose" not in texts(page)


def test_a_layer_that_the_next_model_lacks_is_said_to_be_missing(page):
    calm(page.select_slider(key="side").set_value(256).run())
    choose_model(page, STAGED)
    calm(page.slider(key="layer").set_value(1).run())
    page.selectbox(key="fit").set_value("pad").run()
    choose_model(page, "digits")
    assert page.slider(key="layer").value == 1 and page.selectbox(key="fit").value == "pad"
    calm(page.selectbox(key="fit").set_value("crop").run())
    choose_model(page, "vit_base_patch16_siglip_224.webli")  # one layer, any size
    assert "You chose layer 1; this model has none, so its last is shown." in texts(page)
    assert page.selectbox(key="fit").value == "aspect" and not page.error


def test_keeping_the_shape_by_hand_is_missed_where_the_model_takes_one_size(page):
    choose_model(page, STAGED)
    choose_model(page, DISTILLED)
    calm(page.selectbox(key="fit").set_value("squash").run())
    calm(page.selectbox(key="fit").set_value("aspect").run())  # the default: no choice
    choose_model(page, STAGED)
    assert page.selectbox(key="fit").value == "crop" and "You chose" not in texts(page)


def test_a_span_that_does_not_add_up_stays_where_it_was_put_with_an_error_of_the_page(page):
    choose_model(page, STAGED)
    method(page, "rollout")
    calm(page.slider(key="span").set_value((1, 3)).run())
    (error,) = page.error
    assert SPAN in error.value and "_layer" not in error.value
    assert span_of(page) == (1, 3)
    calm(page.slider(key="span").set_value((0, 1)).run())  # the first stage, on its own
    assert not page.error
    assert record_on(page).model == STAGED


def test_heading_and_caption_name_the_same_patch(page):
    choose_model(page, STAGED)
    widget(page, "Row").set_value(13).run()
    calm(widget(page, "Column").set_value(6).run())
    assert "What the patch (row 13, column 6) attends to" in texts(page)
    said = (
        "**Attention** of the **patch (row 13, column 6)**, here row 6, column 3 of 8 × 8: layer 3"
    )
    assert said in texts(page)
    method(page, "relevance")
    assert "**patch (row 13, column 6)**, here row 6, column 3 of 8 × 8, for the **" in texts(page)
    # It hands on no features of single tokens: what would be refused is not offered.
    assert not any("to the patch" in words for words in page.selectbox(key="target").options)
    method(page, "attention")
    calm(page.slider(key="layer").set_value(0).run())
    assert "of the **patch (row 13, column 6)**: layer 0" in texts(page)


def test_heads_that_a_layer_has_not_are_empty_not_counted_and_not_picked(page):
    choose_model(page, STAGED)
    open_view(page, "heads")
    tiles = picker(page, "mosaic")  # 4 layers: heads 1, 1, 4, 4
    assert tiles["empty"] == [[False, *[True] * 3]] * 2 + [[False] * 4] * 2
    assert "What each of the 10 heads makes" in texts(page)
    assert "There are 1 to 4 a layer; a place without a head is empty." in texts(page)
    assert "of 4 layers with 1 to 4 heads each" in tiles["alt"]
    drawn = Image.open(io.BytesIO(base64.b64decode(tiles["picture"].split(",")[1])))
    pixels = rearrange(np.asarray(drawn), "(l h) (c w) rgb -> l c h w rgb", l=4, c=4)
    white = (pixels == 255).all((2, 3, 4))
    assert white.tolist() == tiles["empty"]
    for scale in ("shared", "own"):
        calm(page.radio(key="scale").set_value(scale).run())
        assert not page.error
    choose_model(page, DISTILLED)
    assert picker(page, "mosaic")["empty"] is None and "3 × 3 heads" in texts(page)


def test_a_head_that_a_layer_has_not_is_missed_and_comes_back(page):
    said = "You chose head 3; there is only head 0 here, so all heads' mean is shown."
    choose_model(page, STAGED)
    calm(page.selectbox(key="head").set_value(3).run())
    calm(page.slider(key="layer").set_value(1).run())
    assert page.selectbox(key="head").value == "mean" and said in texts(page)
    calm(page.run())
    assert said in texts(page)
    calm(page.slider(key="layer").set_value(2).run())
    assert page.selectbox(key="head").value == 3 and "You chose" not in texts(page)
    calm(page.slider(key="layer").set_value(0).run())
    calm(page.selectbox(key="head").set_value("max").run())  # another choice: that one fits
    assert "You chose head" not in texts(page)
    calm(page.slider(key="layer").set_value(3).run())
    assert page.selectbox(key="head").value == "max"
    calm(page.selectbox(key="head").set_value(3).run())
    choose_model(page, DISTILLED)
    assert "there are only heads 0 to 2 here, so all heads' mean" in texts(page)
    open_view(page, "layers")
    assert "there are only heads 0 to 2 here, so all heads' mean" in texts(page)


def test_a_head_whose_values_are_weighted_is_one_of_that_layer(page):
    method(page, "value_weighted")
    choose_model(page, STAGED)
    calm(page.selectbox(key="one_head").set_value(2).run())
    calm(page.slider(key="layer").set_value(1).run())
    said = "You chose head 2; there is only head 0 here, so all are added."
    assert page.selectbox(key="one_head").value == "added" and said in texts(page)
    calm(page.slider(key="layer").set_value(2).run())
    assert page.selectbox(key="one_head").value == 2 and "You chose" not in texts(page)
    calm(page.selectbox(key="one_head").set_value("added").run())
    assert page.selectbox(key="one_head").value == "added"
    calm(page.slider(key="layer").set_value(1).run())
    assert page.selectbox(key="one_head").value == "added" and "You chose" not in texts(page)


def test_similarity_to_a_patch_is_hinted_at_until_one_is_picked(page):
    hint = "Pick a patch, and the similarity to it can be explained too."
    assert hint not in texts(page)
    method(page, "relevance")
    assert hint in texts(page)
    calm(widget(page, "Row").set_value(1).run())
    assert hint not in texts(page)
    assert "similarity to the patch (row 1, column 0)" in page.selectbox(key="target").options


def test_a_target_chosen_by_hand_stays_though_its_words_change(page):
    def wish():
        return page.session_state["target/wish"]

    def target():
        return page.selectbox(key="target")

    method(page, "relevance")
    calm(target().set_value(target().options[2]).run())
    chosen, words = wish(), target().value
    calm(widget(page, "Sample").set_value("rocket").run())
    assert wish() == chosen and target().value != words  # its share is another one
    calm(widget(page, "Row").set_value(1).run())
    calm(target().set_value("similarity to the patch (row 1, column 0)").run())
    calm(widget(page, "Column").set_value(2).run())
    assert target().value == "similarity to the patch (row 1, column 2)"


def test_a_target_that_nobody_chose_is_the_likeliest_of_each_picture(page):
    method(page, "relevance")
    for sample in ("rocket", "coffee"):
        calm(widget(page, "Sample").set_value(sample).run())
        target = page.selectbox(key="target")
        assert target.value == target.options[0]


@pytest.mark.parametrize(
    ("label", "words"), [("seven", ANOTHER), ("7", None)], ids=["same", "another model's"]
)
def test_a_class_that_is_not_offered_is_chosen_by_its_number(label, words):
    st.session_state["target/wish"], st.session_state["target/by_hand"] = ("class", 7), True
    st.session_state["target/label"] = label
    vit = SimpleNamespace(classes=("zero", *"123456", "seven"))
    try:
        assert _kept(vit, {"class 1": ("class", 1)}, len(vit.classes)) == words
        assert st.session_state.get("class") == (7 if words else None)
    finally:
        st.session_state.clear()


def test_an_empty_cell_cannot_be_picked():
    cells = CellGrid.on((40, 20), (1, 2), None)
    empty = np.array([[False, True]])
    assert cells.checked([0, 0], empty) == (0, 0) and cells.checked([0, 1]) == (0, 1)
    assert cells.checked([0, 1], empty) is None and cells.checked([0, 2], empty) is None


def test_a_tile_of_nan_alone_is_white_and_one_of_some_nan_is_refused():
    tiles = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    tiles[0, 1] = np.nan
    made = mosaic(tiles, scale="shared", max_side=40)
    assert (made.scale.low, made.scale.high) == (0, 15)
    high, wide = made.cell
    pixels = np.asarray(made.image)
    assert (pixels[:high, wide:] == 255).all() and not (pixels[high:, wide:] == 255).all()
    tiles[1, 1, 0, 0] = np.nan
    with pytest.raises(CaptureFailed):
        mosaic(tiles)


def levit():
    """Three stages, the last on 2 × 2 cells, with an activation between map × values and matrix."""
    small = {"depth": (1, 1, 1), "num_heads": (1, 2, 2), "embed_dim": (16, 32, 48)}
    return timm.create_model("levit_128s", img_size=128, num_classes=3, key_dim=8, **small)


REFUSED = {
    "swin": (lambda: swin(STAGED), {"gradcam", "legrad", "similarity", "pca"}),
    "levit": (lambda: models.wrap(levit().eval()), {"value_weighted"}),
    "plain": (small_vit, set()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_model_refuses_with_a_target_is_known_without_one(name):
    make, refused = REFUSED[name]
    vit = make()
    seen = attnviz.observe(vit, open_sample("cat"))
    assert {each for each in METHODS if METHODS[each].refusal(seen)} == refused
    aimed = attnviz.observe(vit, open_sample("cat"), target=0)
    for each in METHODS:
        with pytest.raises(BadOption) if each in refused else nullcontext():
            attnviz.explain(aimed, each)


def test_a_class_of_another_model_is_not_one_of_the_same_number(page):
    method(page, "relevance")
    target = page.selectbox(key="target")
    calm(target.set_value(target.options[1]).run())
    number = page.session_state["target/wish"][1]
    choose_model(page, DISTILLED)  # five classes without names, too
    assert page.session_state["target/wish"] == ("class", number) and "You chose" not in texts(page)
    choose_model(page, "digits")
    target = page.selectbox(key="target")
    said = f"You chose class {number}: class {number}; this model has no class of that number"
    assert target.value == target.options[0] and said in texts(page)
    calm(target.set_value(ANOTHER).run())
    assert "You chose" not in texts(page)
    calm(page.selectbox(key="class").set_value(3).run())
    choose_model(page, DISTILLED)
    target = page.selectbox(key="target")
    assert target.value == target.options[0] and page.session_state["target/wish"][0] == "class"
    assert "You chose class 3: 3; this model has no class" in texts(page).replace("\\", "")


def test_methods_that_a_model_cannot_be_asked_for_are_not_offered(page):
    page = AppTest.from_file(str(APP), default_timeout=60)
    page.query_params["model"], page.query_params["method"] = BRANCHED, "relevance"
    calm(page.run())
    assert record_on(page).model == BRANCHED
    offered = page.segmented_control(key="method").options
    refused = [METHODS[name] for name in METHODS if METHODS[name].label not in offered]
    assert {name.needs_gradient for name in refused} >= {True} and not page.error
    said = texts(page)
    assert f"{BRANCHED} makes no one feature of a picture" in said.replace("\\", "")
    assert all(method.label in said for method in refused)
    assert page.segmented_control(key="method").value == "attention"
    # What is not offered is what would be refused, and nothing else.
    for name, each in METHODS.items():
        with pytest.raises(BadOption) if each in refused else nullcontext():
            target = attnviz.similarity_to("cls") if each.needs_gradient else None
            seen = attnviz.observe(crossvit(BRANCHED), open_sample("cat"), target=target)
            attnviz.explain(seen, name)
    page.session_state["methods"] = ["attention", "relevance"]
    open_view(page, "methods")
    assert page.session_state["methods"] == ["attention"]
    open_view(page, "export")
    assert not page.error
    choose_model(page, DISTILLED)
    open_view(page, "map")
    assert METHODS["relevance"].label in page.segmented_control(key="method").options
