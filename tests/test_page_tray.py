"""The tray: several pictures of one visitor, kept within bounds, and a photo of their own."""

import io
import re
from types import SimpleNamespace

import pytest
from odd_pictures import REFUSED
from page_visit import (
    calm,
    png,
    press,
    stand_ins,
    texts,
    tray_of,
    upload,
    upload_all,
    visit,
    widget,
)
from PIL import Image
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from attnviz.samples import SAMPLES
from attnviz.ui import tray, uploader
from attnviz.ui.camera import lends_camera


@pytest.fixture
def page(monkeypatch):
    """A visitor's page, drawn once."""
    with stand_ins(monkeypatch):
        yield visit()


class SessionState(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


def shown(at):
    return at.session_state["picture"].name.strip("`")


# What is dropped at once: a picture of that size, or a file that cannot be opened.
DROPPED = {
    "notes.png": "text",
    "one.png": (40, 30),
    "paper.png": "PDF",
    "two.png": (30, 40),
    "phone.png": "HEIC",
}


def test_several_at_once_and_the_bad_ones_are_each_named_and_cost_the_good_ones_nothing(page):
    made = {n: REFUSED[k][0]() if isinstance(k, str) else png(k) for n, k in DROPPED.items()}
    upload_all(page, made)
    assert tray_of(page) == ["one.png", "two.png"]
    assert shown(page) == "two.png" and "30 × 40 pixels" in texts(page)
    bad = [(name, REFUSED[kind][1]) for name, kind in DROPPED.items() if isinstance(kind, str)]
    for error, (name, reason) in zip(page.error, bad, strict=True):
        assert error.value.startswith(f"`{name}`") and re.search(reason, error.value)
    press(page, "show", "one.png")
    assert shown(page) == "one.png" and not page.error


def test_that_a_reload_forgets_them_is_said_once_there_are_any(page):
    assert "loaded again" not in texts(page)
    upload(page, "mine.png", png((48, 32)))
    assert texts(page).count("gone when the page is closed or loaded again") == 1


def test_the_same_file_twice_is_one_picture_by_its_newest_name(page):
    upload(page, "first.png", png((40, 30)))
    upload(page, "other.png", png((30, 40)))
    upload(page, "second.png", png((40, 30)))
    assert tray_of(page) == ["other.png", "second.png"] and shown(page) == "second.png"


def test_a_picture_that_is_removed_leaves_the_newest_other_one(page):
    upload_all(page, {f"{n}.png": png((40 + n, 30)) for n in range(3)})
    press(page, "remove", "0.png")
    assert tray_of(page) == ["1.png", "2.png"] and shown(page) == "2.png"  # was not shown
    press(page, "remove", "2.png")
    assert tray_of(page) == ["1.png"] and shown(page) == "1.png"
    calm(widget(page, "Sample").set_value("coffee").run())
    press(page, "remove", "1.png")
    assert tray_of(page) == [] and SAMPLES["coffee"].credit in texts(page)
    calm(page.run())
    assert tray_of(page) == []  # the uploader lists it still, but it was taken once


def test_the_oldest_go_first_and_that_is_said(page, monkeypatch):
    monkeypatch.setattr(tray, "MOST", 3)
    upload_all(page, {f"{n}.png": png((40 + n, 30)) for n in range(3)})
    assert not page.info
    upload_all(page, {f"{n}.png": png((40 + n, 30)) for n in (3, 4)})
    assert tray_of(page) == ["2.png", "3.png", "4.png"]
    (info,) = page.info
    assert all(f"`{n}.png` was let go" in info.value for n in (0, 1))
    assert "newest 3 pictures" in info.value
    press(page, "show", "2.png")
    assert not page.info
    upload(page, "5.png", png((50, 30)))
    assert tray_of(page) == ["3.png", "4.png", "5.png"]


# (sizes in bytes, the oldest first; what stays of them in a budget of 100)
BUDGETS = [
    ([40, 40, 20], [40, 40, 20]),
    ([40, 40, 21], [40, 21]),
    ([90, 5, 5, 5], [5, 5, 5]),
    ([10, 10, 300], [300]),  # the newest stays, whatever it has
    ([300, 10], [10]),
    ([1] * 14, [1] * 12),
]


@pytest.mark.parametrize(("sizes", "left"), BUDGETS)
def test_the_tray_has_a_budget_in_bytes(monkeypatch, sizes, left):
    monkeypatch.setattr(tray, "BUDGET", 100)
    kept = [tray.Held(str(n), bytes(size), str(n), "") for n, size in enumerate(sizes)]
    gone = list(tray._too_many(kept))
    assert gone == kept[: len(gone)]
    assert [len(held.data) for held in kept[len(gone) :]] == left


def test_a_file_is_held_once_and_not_by_streamlit_as_well(page, monkeypatch):
    released = []
    monkeypatch.setattr(uploader, "_release", released.append)
    upload_all(page, {f"{n}.png": png((40 + n, 30)) for n in range(2)})
    assert len(released) == 2 and set(released) == page.session_state["taken"]
    calm(page.run())
    assert len(released) == 2


def test_streamlit_lets_go_of_a_file_that_was_taken(monkeypatch):
    files = MemoryUploadedFileManager("/upload")
    for number in ("a", "b"):
        files.add_file("mine", UploadedFileRec(number, "x.png", "image/png", b"x"))
    context = SimpleNamespace(session_id="mine", uploaded_file_mgr=files)
    monkeypatch.setattr(uploader, "get_script_run_ctx", lambda: context)
    uploader._release("a")
    assert [file.file_id for file in files.get_files("mine", ["a", "b"])] == ["b"]


# (listed by the browser, taken in this run, whether tray or list alone had some before, forgotten)
RESTARTS = [
    ([], [], False, False),
    (["old"], [], False, True),
    (["old"], [], True, False),  # all had been removed
    ([], [], True, True),  # photos alone
    (["old", "new"], ["new"], False, True),
    (["new"], ["new"], False, False),
]


@pytest.mark.parametrize(("listed", "taken", "odd", "forgotten"), RESTARTS)
def test_a_server_started_again_says_what_it_has_no_longer(
    monkeypatch, listed, taken, odd, forgotten
):
    files = [SimpleNamespace(file_id=number) for number in listed]
    state = SessionState({uploader.KEY: files, "taken": set(taken)})
    monkeypatch.setattr(uploader.st, "session_state", state)
    uploader.find_forgotten(odd=odd)
    assert (uploader.FORGOTTEN in str(state.get("messages"))) == forgotten
    assert state.taken == {*listed, *taken}


def test_a_photo_is_taken_only_when_asked_for_and_the_camera_goes_off(page):
    assert not page.camera_input
    calm(page.toggle(key="camera-on-1").set_value(True).run())
    photo = io.BytesIO()
    Image.new("RGB", (64, 48), "red").save(photo, "JPEG")
    (camera,) = page.camera_input
    calm(camera.set_value(("camera-input.jpg", photo.getvalue(), "image/jpeg")).run())
    assert not page.camera_input and page.toggle(key="camera-on-2").value is False
    assert tray_of(page) == ["photo 1"] and shown(page) == "photo 1"
    assert "64 × 48 pixels" in texts(page)
    calm(page.toggle(key="camera-on-2").set_value(True).run())
    (camera,) = page.camera_input
    calm(camera.set_value(("camera-input.jpg", png((10, 10)), "image/jpeg")).run())
    assert tray_of(page) == ["photo 1", "photo 2"]


ADDRESSES = [
    ("https://example.org/", True),
    ("http://localhost:8501/", True),
    ("http://127.0.0.1:8501", True),
    ("http://[::1]:8501/", True),
    ("http://192.168.0.7:8501/", False),
    ("http://example.org/", False),
    (None, True),  # not known: the widget says what is wrong
]


@pytest.mark.parametrize(("address", "lends"), ADDRESSES)
def test_a_camera_is_offered_where_browsers_lend_one(address, lends):
    assert lends_camera(address) == lends
