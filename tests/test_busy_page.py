"""The page while the model is busy with others."""

import threading

import pytest
from page_visit import calm, choose_model, picker, stand_ins, visit

from attnviz.ui import cache, turns
from attnviz.ui.turns import Turns


@pytest.fixture
def page(monkeypatch):
    with stand_ins(monkeypatch):
        yield visit()


def test_a_full_line_is_said_and_asked_again_by_a_button(page):
    shown = picker(page, "map")
    cache.observations().line = full = Turns(longest=0)
    with full.turn("somebody else"):
        choose_model(page, "digits")
        (error,) = page.error
        assert "0 are waiting for it already: no more can. Try again in about" in error.value
        assert picker(page, "map") == shown  # the last result still stands
        (again,) = (button for button in page.button if button.label == "Try again")
    calm(again.click().run())
    assert not page.error and page.selectbox(key="model").value == "digits"
    assert picker(page, "map") != shown


def test_a_pass_waits_for_the_one_before_it(page, monkeypatch):
    monkeypatch.setattr(turns, "LOOK", 0.01)
    line = cache.observations().line
    with line.turn("somebody else"):
        thread = threading.Thread(target=choose_model, args=(page, "digits"))
        thread.start()
        with line._changed:
            assert line._changed.wait_for(lambda: line._count() == 1, 30)
    thread.join(60)
    assert calm(page).selectbox(key="model").value == "digits"
    assert line.waiting == 0


def test_a_map_that_is_there_waits_for_nobody(page):
    page.session_state.method = "flow"
    calm(page.run())
    shown = picker(page, "map")
    calm(page.segmented_control(key="method").set_value("attention").run())
    assert picker(page, "map") != shown
    with cache.observations().line.turn("somebody else"):
        calm(page.segmented_control(key="method").set_value("flow").run())
    assert picker(page, "map") == shown
