"""Nonsense in the page's address: every parameter falls back, and the notes are few, short and plain."""

from __future__ import annotations

import re

import pytest
from page_visit import APP, calm, picker, stand_ins
from streamlit.testing.v1 import AppTest

from attnviz.ui import link, state
from attnviz.ui.address import SETTINGS, query_of, target_of
from attnviz.ui.state import verbatim

NONSENSE = [
    *("", " ", "-1", "1e9", "99999", "1.5", "0x10", "nan", "inf", "-inf", "NaN", "1_0", "+1", "1 "),
    *("9" * 120, "-" * 120, "1-2-3", "1-", "-1-1", "1--2", "None", "null", "[]", "{}", "True"),
    *("١٢", "１-２", "½", "²", "é", "\u202eabc", "\x00", "a\n\n# b", "😀", "\ud800", "x" * 120),
    *("<script>alert(1)</script>", "![x](https://example.org/x)", "`", "``x``", "$x$", ":red[x]"),
    *("../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "own-", "own--1", "own-99999"),
    *("sample/cat", "class-", "class-1e3", "class-999999", "token-", "token-x y", "sample-nobody"),
    *("' OR 1=1 --", "{{7*7}}", "${x}", "__class__", "%s%s%n", "attention,", ",", "rollout,,pca"),
]
READERS = {
    **{name: setting.read for name, setting in SETTINGS.items()},
    "query": query_of,
    "target": target_of,
}


@pytest.fixture(autouse=True)
def _stand_ins(monkeypatch):
    with stand_ins(monkeypatch):
        yield


def read_or_refused(read, text):
    try:
        return read(text)
    except ValueError:
        return ValueError


@pytest.mark.parametrize("name", READERS)
def test_nonsense_is_refused_or_is_a_plain_value_in_plain_letters(name):
    # Of what is taken, nothing is beyond the letters that a link of the page's own has.
    taken = {text for text in NONSENSE if read_or_refused(READERS[name], text) is not ValueError}
    assert all(re.fullmatch(r"[0-9a-z.-]*", text) for text in taken), taken
    for text in taken - {""}:
        value = READERS[name](text)
        assert isinstance(value, str | int | float | bool | tuple | list), text
        assert value == value and value not in (float("inf"), float("-inf")), text


def visit(**params):
    at = AppTest.from_file(str(APP), default_timeout=60)
    for name, text in params.items():
        at.query_params[name] = text
    return calm(at.run())


def assert_stands(at, *, notes):
    """The page is drawn, with so many notes, of which none is read as markup."""
    assert not at.error and picker(at, "map")["values"]
    (info,) = at.info
    said = info.value.removeprefix("Of the address that you came by: ").removesuffix(".")
    parts = said.split("; ")
    assert len(parts) == notes
    assert len(info.value) <= 60 + link.MOST * (state.LONGEST + 60) and "\n" not in info.value
    for part in parts:
        outside = re.sub(r"`[^`]*`", "", part)
        assert re.fullmatch(r"[a-z_0-9 ']*", outside), part


def test_every_parameter_at_once_may_be_nonsense():
    script = "<script>alert(1)</script>\n\n![x](https://example.org/x.png)`"
    everything = dict.fromkeys([*READERS, "picture", "with_query"], script)
    at = visit(**everything)
    assert_stands(at, notes=link.MOST + 1)
    assert f"and {len(everything) - link.MOST} more" in at.info[0].value
    assert not at.query_params


def test_parameters_that_do_not_exist_are_counted_and_cut():
    at = visit(**{f"{'x' * 500}{number}": "1" for number in range(500)})
    assert_stands(at, notes=link.MOST + 1)
    assert "and 495 more" in at.info[0].value


def test_of_a_parameter_given_twice_the_last_counts():
    at = visit(layer=["9999999", "1"], head=["2", "<b>"])
    assert_stands(at, notes=1)
    assert "`<b>` is no head" in at.info[0].value
    assert at.session_state["layer"] == 1 and at.session_state["head"] == "mean"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cat.png", "`cat.png`"),
        ("a`b``c", "`a'b''c`"),
        ("a\n\n# b", "`a  # b`"),
        ("x\u202egnp.exe", "`x gnp.exe`"),  # would be read as xexe.png
        ("", "` `"),
        ("\x00\x1b[31m", "`[31m`"),
        ("é 😀", "`é 😀`"),
        ("y" * 121, f"`{'y' * 120}…`"),
    ],
)
def test_a_strangers_text_stays_on_one_line_and_is_cut(text, shown):
    assert verbatim(text) == shown
