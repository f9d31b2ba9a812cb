"""The page while the model is busy with others."""

import threading

import pytest
import streamlit as st
from page_visit import SMALLER, calm, choose_model, open_view, picker, stand_ins, visit

from attnviz.ui import cache, turns
from attnviz.ui.settings import Settings
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
        assert "The model is busy, and nobody can wait here. Try again in about" in error.value
        assert picker(page, "map") == shown  # the last result still stands
        (again,) = (button for button in page.button if button.label == "Try again")
    calm(again.click().run())
    assert not page.error and page.selectbox(key="model").value == "digits"
    assert picker(page, "map") != shown


def test_a_new_model_and_a_long_map_of_the_last_picture_are_both_asked_again(page):
    cache.observations().line = full = Turns(longest=0)
    with full.turn("somebody else"):
        page.session_state.method = "flow"
        choose_model(page, "digits")
        assert len(page.error) == 2
        assert [button.label for button in page.button].count("Try again") == 2


def test_a_test_that_found_no_place_is_asked_again_by_its_own_button(page):
    open_view(page, "trust")
    cache.observations().line = full = Turns(longest=0)
    (test,) = (button for button in page.button if button.label.startswith("Run the model"))
    with full.turn("somebody else"):
        calm(test.click().run())
        (error,) = page.error
        assert "Try again in about" in error.value
        assert "Try again" not in [button.label for button in page.button]
    (test,) = (button for button in page.button if button.label.startswith("Run the model"))
    assert not test.disabled


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


def test_what_is_waited_for_is_said_while_the_run_before_still_computes_it(page, monkeypatch):
    said, real = threading.Event(), st.spinner

    def spinner(words, **options):
        if words == "Computing the map …":
            said.set()
        return real(words, **options)

    monkeypatch.setattr(st, "spinner", spinner)
    thread = threading.Thread(target=page.run)
    with cache.observations().find(page.session_state["seen"]).computing:
        thread.start()
        assert said.wait(20)
    thread.join(60)
    calm(page)


def test_a_map_that_is_there_waits_for_nobody(page):
    page.session_state.method = "flow"
    calm(page.run())
    shown = picker(page, "map")
    calm(page.segmented_control(key="method").set_value("attention").run())
    assert picker(page, "map") != shown
    with cache.observations().line.turn("somebody else"):
        calm(page.segmented_control(key="method").set_value("flow").run())
    assert picker(page, "map") == shown


def test_a_pass_without_room_is_refused_with_a_size_that_fits_once_nothing_more_can_go(
    page, monkeypatch
):
    choose_model(page, "digits")
    store, free = cache.observations(), []
    assert len(store._kept) == 2
    monkeypatch.setattr(cache, "free_bytes", lambda: free.append(len(store._kept)) or 0)
    choose_model(page, SMALLER)
    (error,) = page.error
    assert "MB, and 0 MB are free here." in error.value
    assert set(free) == {2, 1}  # the older one was let go for it; the newest is on the screen
    assert picker(page, "map")
    monkeypatch.setattr(cache, "free_bytes", lambda: 2**40)
    calm(page.run())
    assert not page.error


def test_a_pass_that_takes_too_long_frees_the_place(page, monkeypatch):
    monkeypatch.setattr(cache, "settings", lambda: Settings(pass_seconds=-1))
    choose_model(page, "digits")
    (error,) = page.error
    assert "took longer than the -1 s that a pass may take here" in error.value
    assert cache.observations().line._running is None
