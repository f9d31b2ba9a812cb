"""The page and its visitors' pictures: good ones, odd ones and bad ones, and whose they are."""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from odd_pictures import OPENED, REFUSED
from page_visit import (
    calm,
    picker,
    png,
    press,
    send_again,
    stand_ins,
    states_of,
    texts,
    tray_of,
    upload,
    visit,
    widget,
)
from streamlit.runtime.scriptrunner_utils.exceptions import StopException

from attnviz.images.limits import MAX_FILE
from attnviz.samples import SAMPLES
from attnviz.ui import cache, tray, uploader
from attnviz.ui.run import Run
from attnviz.ui.state import verbatim


@pytest.fixture
def page(monkeypatch):
    """A visitor's page, drawn once."""
    with stand_ins(monkeypatch):
        yield visit()


def ahead(at):
    """The picture that stands there until the model has looked."""
    return [each for each in at.html if 'class="picture"' in each.value]


REFUSED_HERE = ["empty", "text", "PDF", "HEIC", "PNG without pixels", "pixel bomb", "SVG"]
OPENED_HERE = ["one pixel", "a ribbon", "a pole", "CMYK JPEG, white", "animated GIF"]


@pytest.mark.parametrize("kind", REFUSED_HERE)
def test_a_bad_file_gets_a_sentence_and_the_page_keeps_what_it_had(page, kind):
    make, reason = REFUSED[kind]
    widget(page, "Row").set_value(1).run()
    before = [picker(page, key) for key in ("patches", "map")]
    upload(page, "some *file*.png", make())
    (error,) = page.error
    assert error.value.count("`some *file*.png`") == 1 and re.search(reason, error.value)
    assert "This file" not in error.value
    assert tray_of(page) == []
    assert [picker(page, key) for key in ("patches", "map")] == before
    calm(page.slider(key="layer").set_value(0).run())
    assert not page.error  # it goes with whatever is done next
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


def test_an_upload_outlives_a_bad_file_after_it(page):
    upload(page, "mine.png", png((40, 30)))
    assert widget(page, "Sample").value is None
    upload(page, "bad.png", b"?")
    assert page.error and "`mine.png`" in texts(page)
    assert widget(page, "Sample").value is None
    calm(page.toggle(key="smooth").set_value(True).run())
    assert not page.error and "`mine.png`" in texts(page)


def test_a_click_that_still_brings_the_old_sample_along_does_not_undo_an_upload(page):
    stale = states_of(page, "Sample")
    upload(page, "mine.png", png((40, 30)))
    send_again(page, stale)
    assert "`mine.png`" in texts(page)


def test_a_bad_file_brings_back_nothing_that_was_removed(page):
    upload(page, "mine.png", png((40, 30)))
    press(page, "remove")
    upload(page, "bad.png", b"?")
    assert page.error and "mine.png" not in texts(page)


def test_a_chosen_sample_takes_the_place_of_an_upload_which_stays_in_the_tray(page):
    upload(page, "mine.png", png((40, 30)))
    calm(widget(page, "Sample").set_value("coffee").run())
    assert SAMPLES["coffee"].credit in texts(page)
    assert tray_of(page) == ["mine.png"]
    press(page, "show")
    assert "`mine.png`**, 40 × 30 pixels" in texts(page)
    assert widget(page, "Sample").value is None
    press(page, "remove")  # of what is shown: the last sample takes its place
    assert SAMPLES["coffee"].credit in texts(page) and tray_of(page) == []


def test_what_comes_with_an_upload_moves_nothing_else_in_the_sidebar(page):
    """A run draws over what the one before drew, place by place; the rest stays seen meanwhile."""

    def places():
        return [(each.type, getattr(each, "label", "")) for each in page.sidebar.children.values()]

    first = places()
    upload(page, "bad.png", b"?")
    assert page.error and places() == first
    upload(page, "mine.png", png((40, 30)))
    assert tray_of(page) and places() == first


def test_a_first_visit_has_its_picture_before_the_model_has_looked(monkeypatch):
    def cut(run, *wish):
        raise StopException

    with stand_ins(monkeypatch):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Run, "observe", cut)
            at = visit()
        assert len(ahead(at)) == 1 and at.title and at.segmented_control(key="view").options
        calm(at.run())
        assert not ahead(at) and picker(at, "map")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Run, "observe", cut)
            calm(widget(at, "Sample").set_value("coffee").run())
        assert not ahead(at)  # what was seen last still stands


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


def test_one_limit_for_a_file_wherever_it_comes_in():
    config = tomllib.loads(Path(__file__).parents[1].joinpath(".streamlit/config.toml").read_text())
    assert config["server"]["maxUploadSize"] * 2**20 == MAX_FILE


@pytest.mark.parametrize(
    "name", ["a_b_c.png", "*a*", "![x](http://example.org/x.png)", "a`b", "``"]
)
def test_a_file_name_is_not_read_as_markdown(name):
    code = verbatim(name)
    assert code[0] == code[-1] == "`" and "`" not in code[1:-1]


def test_a_very_long_picture_is_said_to_be_stretched_and_a_tile_of_it_opens(page, monkeypatch):
    calm(widget(page, "Sample").set_value("coffee").run())
    assert not page.warning
    upload(page, "pole.png", png((2, 3000)))
    (warning,) = page.warning
    assert "1 : 12" in warning.value and "2 × 3000 pixels" in warning.value
    width, height = picker(page, "patches")["size"]
    assert height / width == pytest.approx(12, rel=0.02)


def test_what_the_tray_holds_is_the_visitors_own(page):
    other = visit()
    upload(page, "mine.png", png((40, 30)))
    assert tray_of(page) == ["mine.png"] and tray_of(calm(other.run())) == []


@pytest.mark.parametrize(
    ("where", "cut"),
    [(uploader, "take"), (uploader, "hold"), (tray, "open_image"), (tray, "show_picture")],
)
def test_a_file_whose_run_was_cut_off_while_it_was_taken_is_shown_all_the_same(
    page, monkeypatch, where, cut
):
    # Streamlit ends a run by StopException where another one follows.
    real, cuts = getattr(where, cut), iter([True])

    def interrupted(*given):
        if next(cuts, False):
            raise StopException
        return real(*given)

    first = page.session_state.picture
    monkeypatch.setattr(where, cut, interrupted)
    upload(page, "mine.png", png((96, 64)))
    calm(page.run())
    assert next(cuts, "it was") == "it was"
    assert "mine.png" in texts(page) and "96 × 64 pixels" in texts(page)
    assert first.credit not in texts(page) and tray_of(page) == ["mine.png"]


def test_what_a_photo_leads_to_is_done_before_its_file_is_given_up(monkeypatch):
    """A run that is cut off after that finds no photo any more: it could not close the camera."""
    done = []
    file = SimpleNamespace(file_id="1", getvalue=lambda: png((8, 8)))
    with monkeypatch.context() as patch:
        patch.setattr(uploader, "hold", lambda name, data: done.append("kept"))
        patch.setattr(uploader, "_release", lambda number: done.append("given up"))
        patch.setattr(uploader, "st", SimpleNamespace(session_state={}, empty=MagicMock()))
        uploader.take([(file, "photo 1")], lambda: done.append("closed"))
    assert done == ["kept", "closed", "given up"]
