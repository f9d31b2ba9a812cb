"""The page between a plain model and one in stages: defaults, queries on coarser grids, heads."""

from dataclasses import replace

import pytest
import timm
from page_visit import DISTILLED, calm, choose_model, record_on, stand_ins, texts, visit, widget

import models

STAGED = "swin_tiny_patch4_window7_224.ms_in1k"
SPAN = "start at layer 2"


def swin(name):
    """4 layers: two of 1 head on 16 × 16 cells, two of 4 heads on 8 × 8."""
    module = timm.models.swin_transformer.SwinTransformer(
        img_size=64, window_size=4, embed_dim=16, depths=(2, 2), num_heads=(1, 4), num_classes=3
    )
    return replace(models.wrap(module.eval()), name=name)


@pytest.fixture
def page(monkeypatch):
    """A visitor's page, drawn once; one of its models is the small one in stages."""
    with stand_ins(monkeypatch):
        others = models.load

        def load(name, **options):
            return swin(name) if name == STAGED else others(name, **options)

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
    method(page, "attention")
    calm(page.slider(key="layer").set_value(0).run())
    assert "of the **patch (row 13, column 6)**: layer 0" in texts(page)
