"""The view Compare: two of a kind side by side, linked; and patches of two pictures that are alike."""

from types import SimpleNamespace

import numpy as np
import pytest
from page_visit import (
    FAR,
    FIXED,
    SHALLOW,
    calm,
    open_view,
    picker,
    png,
    press,
    stand_ins,
    texts,
    upload,
    visit,
    widget,
)

import attnviz
import models
from attnviz.correspond import best_cell, mutual_matches, similar
from attnviz.errors import BadOption
from attnviz.samples import open_sample
from attnviz.ui import cache, pair, tray
from attnviz.ui.one_map import MapAsked
from attnviz.ui.other_side import OPENED
from attnviz.ui.turns import Turns

HERE, THERE = "compare-here", "compare-there"


@pytest.fixture
def page(monkeypatch):
    """A visitor's page, with the view open."""
    with stand_ins(monkeypatch):
        at = visit()
        at.session_state.view = "compare"
        yield calm(at.run())


def seen(picture="cat", name="dinov2-small", size=None, **loaded):
    vit = models.load(name, **loaded)
    vit = vit if size is None else vit.at(size)
    return attnviz.observe(vit, open_sample(picture), fit="aspect" if vit.any_size else "crop")


def on(at, key, heat):
    """Whether a picker shows that map, to the three digits that it says."""
    said = picker(at, key)["values"]
    return said == [[f"{value:.3g}" for value in row] for row in heat.values]


def choose(at, key, value):
    control = next(each for each in at.get("button_group") if each.key == key)
    return calm(control.set_value(value).run())


def html(at):
    return "\n".join(each.proto.body for each in at.get("html"))


def said_there(at):
    return [error.value for error in at.error]


def test_another_picture(page):
    assert on(page, HERE, attnviz.explain(seen()))
    assert on(page, THERE, attnviz.explain(seen("coffee")))
    calm(page.selectbox(key="compare_picture").set_value("sample/rocket").run())
    assert on(page, THERE, attnviz.explain(seen("rocket")))
    assert "sample/cat" not in page.selectbox(key="compare_picture").options
    calm(widget(page, "Sample").set_value("rocket").run())  # the same on both sides says nothing
    assert not on(page, THERE, attnviz.explain(seen("rocket")))


def test_ones_own_picture_from_the_tray(page):
    upload(page, "mine *1*.png", png((48, 32)))
    calm(widget(page, "Sample").set_value("cat").run())
    options = page.selectbox(key="compare_picture").options
    assert options[0] == "mine *1*.png"  # before the samples
    own = f"own/{page.session_state['tray'][0].digest}"
    calm(page.selectbox(key="compare_picture").set_value(own).run())
    assert "**`mine *1*.png`**" in [each.value for each in page.markdown]
    assert picker(page, THERE)["alt"].endswith("mine *1*.png")
    python = [block.value for block in page.code if block.language == "python"]
    assert "cat.jpg" in python[0] and "mine *1*.png" in python[1]


@pytest.mark.parametrize("way", ["removed", "pushed out"])
def test_a_picture_that_the_tray_lets_go_does_not_stay_opened(page, monkeypatch, way):
    upload(page, "mine.png", png((48, 32)))
    calm(widget(page, "Sample").set_value("cat").run())
    own = f"own/{page.session_state['tray'][0].digest}"
    calm(page.selectbox(key="compare_picture").set_value(own).run())
    assert page.session_state[OPENED][0] == own
    if way == "removed":
        press(page, "remove")
    else:
        monkeypatch.setattr(tray, "MOST", 1)
        upload(page, "next.png", png((40, 30)))
    assert page.session_state[OPENED][0] != own


def test_the_other_picture_stays_opened_only_where_it_is_shown(page):
    assert page.session_state[OPENED][0].startswith("sample/")
    open_view(page, "map")
    assert OPENED not in page.session_state
    open_view(page, "compare")
    assert OPENED in page.session_state and picker(page, THERE)["values"]
    choose(page, "compare", "query")
    assert OPENED not in page.session_state


def test_a_class_that_the_other_model_calls_otherwise_is_no_target_of_its_own(page):
    choose(page, "method", "relevance")
    choose(page, "compare", "model")
    assert said_there(page) == []  # the same classes, untrained
    calm(page.selectbox(key="compare_model").set_value("digits").run())
    (error,) = page.error
    assert "this model has no class of that number and name" in error.value
    assert picker(page, HERE)["values"]


def test_another_model_untrained_at_first_and_at_the_same_size(page):
    choose(page, "compare", "model")
    assert page.toggle(key="compare_random").value is True
    assert on(page, HERE, attnviz.explain(seen()))
    assert "random weights: this map means nothing" in texts(page)
    calm(page.selectbox(key="compare_model").set_value(SHALLOW).run())
    calm(page.toggle(key="compare_random").set_value(False).run())
    heat = attnviz.explain(seen(name=SHALLOW))  # its own last layer, its own default query
    assert on(page, THERE, heat)
    (info,) = page.info
    assert "2 × 3 patches on the first side, 4 × 6 on the second" in info.value
    assert "no class token: there the mean of all patches asks" in info.value
    calm(page.slider(key="layer").set_value(1).run())  # which the other has not
    assert said_there(page) and "layer 1" in said_there(page)[0]
    assert on(page, HERE, attnviz.explain(seen(), layer=1))


def test_a_model_that_cannot_be_loaded_leaves_the_first_side_standing(page):
    choose(page, "compare", "model")
    calm(page.selectbox(key="compare_model").set_value(FAR).run())
    calm(page.toggle(key="compare_random").set_value(False).run())
    (said,) = said_there(page)
    assert "could not be loaded: The hub is far." in said and "*Random weights*" in said
    assert on(page, HERE, attnviz.explain(seen()))
    calm(page.selectbox(key="compare_model").set_value("dinov2-small").run())
    assert "Both sides are the same" in said_there(page)[0]


def test_another_resolution(page):
    choose(page, "compare", "size")
    assert on(page, HERE, attnviz.explain(seen()))
    side = page.select_slider(key="compare_side")
    calm(side.set_value(128).run())
    assert on(page, THERE, attnviz.explain(seen(size=(128, 128))))
    calm(page.selectbox(key="model").set_value(FIXED).run())
    assert "one size alone" in said_there(page)[0]


def test_another_query(page):
    choose(page, "compare", "query")
    assert on(page, HERE, attnviz.explain(seen()))
    assert on(page, THERE, attnviz.explain(seen(), query=(1, 1)))  # the middle of 2 × 3
    page.session_state["asked/query"] = "mean"  # as its chip does
    page.session_state["asked"] = (1.0, 1.0)
    calm(page.run())
    assert on(page, HERE, attnviz.explain(seen(), query=(0, 0)))
    assert on(page, THERE, attnviz.explain(seen(), query="mean"))
    calm(widget(page, "Sample").set_value("coffee").run())
    assert picker(page, HERE)["chosen"] == [0, 0]  # the same row and column


def test_another_query_of_a_method_that_has_none_is_refused(page):
    page.session_state["method"] = "pca"
    choose(page, "compare", "query")
    assert "is of the whole picture, the same for every query" in page.error[0].value
    page.session_state["method"] = "attention"
    calm(page.run())
    assert not page.error


def test_a_first_map_that_fails_leaves_the_second_side_standing(page, monkeypatch):
    real = MapAsked.compute

    def compute(asked):
        if not asked.stage.name:
            raise BadOption("Not this one.")
        return real(asked)

    choose(page, "compare", "picture")
    monkeypatch.setattr(MapAsked, "compute", compute)
    calm(page.run())
    assert [error.value for error in page.error] == ["Not this one."]
    assert picker(page, THERE)["values"]


# (what differs, a place in 451 × 300 pixels, the cell that asks in the first and the second grid)
PLACES = [
    ("picture", (440.0, 290.0), [1, 2], [1, 2]),  # the other has 600 × 400 pixels
    ("picture", (160.0, 160.0), [1, 1], [1, 1]),  # there (213, 213) in patches of 200 × 200
    ("size", (160.0, 160.0), [1, 1], [3, 3]),  # of 6 × 9: 0.533 · 6 and 0.355 · 9
]


@pytest.mark.parametrize(("kind", "place", "first", "second"), PLACES)
def test_the_patch_at_the_same_place_asks_on_both(page, kind, place, first, second):
    choose(page, "compare", kind)
    if kind == "size":
        calm(page.select_slider(key="compare_side").set_value(128).run())
    page.session_state["asked"] = place
    calm(page.run())
    assert picker(page, HERE)["chosen"] == first
    assert picker(page, THERE)["chosen"] == second


# (the first model, the second, the place in 451 × 300 pixels, both askers, what is said of it):
# of digits' square crop, x from 75.5 to 375.5, the first place lies outside.
MISSED = [
    ("dinov2-small", "digits", (440.0, 290.0), [[1, 2], None], "second side has no patch at that place: there the class token asks."),
    ("dinov2-small", "digits", (225.0, 290.0), [[1, 1], [7, 3]], ""),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "place", "chosen", "said"), MISSED)
def test_a_place_that_one_side_lacks_is_said(page, first, second, place, chosen, said):
    calm(page.selectbox(key="model").set_value(first).run())
    page.session_state["compare_random"] = False
    choose(page, "compare", "model")
    calm(page.selectbox(key="compare_model").set_value(second).run())
    page.session_state["asked"] = place
    calm(page.run())
    assert [picker(page, key)["chosen"] for key in (HERE, THERE)] == chosen
    (info,) = page.info  # the grids differ, at least
    assert said in info.value and ("no patch" in info.value) == bool(said)


ASKERS = [
    ("cls", (1, 2), ["The first side has no patch at that place: there the cls asks, and on the second side the (1, 2)."]),
    ((1, 2), "mean", ["The second side has no patch at that place: there the mean asks."]),
    ("cls", "mean", ["The second side has no cls: there the mean asks."]),
    ("cls", "cls", []),
    ((1, 1), (3, 3), []),  # the same place on a finer grid
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "said"), ASKERS)
def test_another_asker_on_either_side_is_said(one, other, said):
    sides = (SimpleNamespace(query=query, asker=str(query)) for query in (one, other))
    assert [*pair._other_asker(*sides)] == said


def test_a_patch_that_the_other_side_lacks_is_no_target_there(page):
    page.session_state["compare_random"], page.session_state["asked"] = False, (440.0, 290.0)
    choose(page, "compare", "model")
    calm(page.selectbox(key="compare_model").set_value("digits").run())
    choose(page, "method", "relevance")
    target = page.selectbox(key="target")
    (patch,) = (each for each in target.options if "patch (row 1, column 2)" in each)
    calm(target.set_value(patch).run())
    (said,) = said_there(page)
    assert "no patch at that place" in said
    assert picker(page, HERE)["values"]


def test_likes_for_which_there_was_no_place_are_asked_for_again(page):
    choose(page, "compare_shown", "alike")
    cache.observations().line = full = Turns(longest=0)
    with full.turn("somebody else"):
        calm(page.selectbox(key="compare_picture").set_value("sample/rocket").run())
        assert "nobody can wait here" in said_there(page)[0]
        (again,) = (button for button in page.button if button.label == "Try again")
    calm(again.click().run())
    assert not said_there(page) and on(page, "alike-there", similar(seen(), "cls", seen("rocket")))


def test_one_scale_for_both(page):
    first, second = attnviz.explain(seen()), attnviz.explain(seen("coffee"))
    assert "shared by 2 maps" not in html(page)
    calm(page.radio(key="compare_scale").set_value("both").run())
    low = min(first.values.min(), second.values.min())
    high = max(first.values.max(), second.values.max())
    assert html(page).count("shared by 2 maps") == 2
    assert html(page).count(f"<span>{low:.3g}</span>") == 2
    assert html(page).count(f"<span>{high:.3g}</span>") == 2
    choose(page, "method", "pca")
    assert "have no scale in common" in texts(page)
    assert "it has no query" in texts(page)


def test_a_method_with_a_target_explains_the_same_on_both_sides(page):
    choose(page, "method", "gradcam")
    target = page.selectbox(key="target").value
    heads = [picker(page, key) for key in (HERE, THERE)]
    assert all(head["values"] for head in heads) and not page.error
    assert "class" in target


def test_which_patches_are_alike(page):
    choose(page, "compare_shown", "alike")
    first, second = seen(), seen("coffee")
    page.session_state["asked"] = (440.0, 10.0)  # row 0, column 2
    calm(page.run())
    heat = similar(first, (0, 2), second)
    assert picker(page, "alike-here")["chosen"] == [0, 2]
    assert on(page, "alike-there", heat)
    assert picker(page, "alike-there")["chosen"] == list(best_cell(heat))
    assert "patch (row 0, column 2) of Cat" in texts(page)
    row, col = np.unravel_index(heat.values.argmax(), heat.values.shape)
    assert f"row {row}, column {col}, with a similarity of {heat.values.max():.3f}" in texts(page)
    assert row != col
    matches = mutual_matches(first, second)[:6]
    table = page.dataframe[0].value
    assert table["cosine similarity"].tolist() == [match.similarity for match in matches]
    assert table.iloc[0, 1] == "{}, {}".format(*matches[0].here)
    # The other way round, as a pick on the second picture does.
    page.session_state["alike/asks"] = "there"
    page.session_state["asked/picture"] = (10.0, 390.0)  # row 1, column 0
    calm(page.run())
    assert picker(page, "alike-there")["chosen"] == [1, 0]
    back = similar(second, (1, 0), first)
    assert on(page, "alike-here", back)
    assert picker(page, "alike-here")["chosen"] == list(best_cell(back))


def test_marks_are_numbered_on_both_pictures(page):
    choose(page, "compare_shown", "alike")
    marked = [picker(page, key)["picture"] for key in ("alike-here", "alike-there")]
    calm(page.slider(key="alike_pairs").set_value(0).run())
    plain = [picker(page, key)["picture"] for key in ("alike-here", "alike-there")]
    assert marked[0] != plain[0] and marked[1] != plain[1]
    assert not page.dataframe
