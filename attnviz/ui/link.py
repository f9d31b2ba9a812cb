"""The address of the page: what was chosen, in plain values, so that a link brings it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attnviz.methods import METHODS
from attnviz.samples import SAMPLES
from attnviz.tokens import Query
from attnviz.ui import by_hand
from attnviz.ui.address import (
    MODEL_S_OWN,
    OWN,
    SETTINGS,
    Setting,
    one_of,
    own_picture,
    query_of,
    target_of,
    two,
)
from attnviz.ui.asked import OTHERS, Ground
from attnviz.ui.by_hand import is_by_hand
from attnviz.ui.state import note, picture, show_sample, verbatim
from attnviz.ui.target_panel import Wish
from attnviz.ui.tray import number_of, show_held

LONGEST = 120
"""Characters of a value; no name is longer."""

DEFAULT = "default"
"""In place of a query: the model's own."""


def follow() -> None:
    """At a visit's first run, and when the browser goes back or forward: do as the address says.

    To be called before any widget is drawn. What the address does not name is as on a first visit;
    what it names wrongly as well, with a note.
    """
    state = st.session_state
    went = getattr(get_script_run_ctx(), "is_history_navigation", False)
    if state.get("link/followed") and not went:
        return
    state["link/followed"], state["link/notes"] = True, []
    given = {name: text[:LONGEST] for name, text in st.query_params.items()}
    if not given and not went:
        return
    for name, setting in SETTINGS.items():
        _set(setting, _read(name, given.pop(name), setting.read) if name in given else None)
    _follow_picture(given.pop("picture", None))
    state["link/query"] = _read("query", given.pop("query", DEFAULT), query_of)
    state["link/with_query"] = _read("with_query", given.pop("with_query", DEFAULT), query_of)
    state["link/target"] = _read("target", given.pop("target", ""), target_of)
    for name in given:
        note(f"{verbatim(name)} is nothing that a link can set")


def _set(setting: Setting, value: Any) -> None:
    """Have a widget that is not drawn yet show a value, or what it shows at first."""
    if setting.default is MODEL_S_OWN:
        by_hand.choose(setting.key, value) if value is not None else by_hand.forget(setting.key)
    elif value is not None:
        st.session_state[setting.key] = value
    elif setting.default is None:
        st.session_state.pop(setting.key, None)
    elif setting.key in st.session_state:
        st.session_state[setting.key] = setting.default


def _read(name: str, text: str, read: Callable[[str], Any]) -> Any | None:
    try:
        return read(text)
    except ValueError:
        note(f"{verbatim(text)} is no {name}")
        return None


def _follow_picture(name: str | None) -> None:
    st.session_state["link/own"] = False
    if name is not None and name.startswith(OWN):
        try:
            show_held(own_picture(name) or "")
        except ValueError:
            st.session_state["link/own"] = True
        return
    name = None if name is None else _read("picture", name, one_of(SAMPLES))
    wanted, shown = name or next(iter(SAMPLES)), picture()
    if shown is None:
        st.session_state.first_sample = wanted
    elif shown.sample != wanted:
        show_sample(wanted)


def ask(ground: Ground) -> None:
    """Let the token ask that the link named, once it is known which there are."""
    _ask(ground, st.session_state.pop("link/query", None))
    _ask(replace(ground, key=OTHERS[0]), st.session_state.pop("link/with_query", None))


def _ask(ground: Ground, wanted: Query | None) -> None:
    rows, cols = ground.layout.grid
    match wanted:
        case None:
            return
        case "default":
            ground.ask(None)
        case (row, col) if row < rows and col < cols:
            ground.ask((row, col))
        case str() if wanted in ground.layout.query_names:
            ground.ask(wanted)
        case (row, col):
            note(f"there is no patch in row {row}, column {col} of {rows} × {cols}")
        case _:
            note(f"this model has no token {verbatim(wanted)}")


def show_notes() -> None:
    """What of the link could not be done, until something else is chosen."""
    state, shown = st.session_state, picture()
    if state.pop("link/own", False) and shown is not None and shown.sample is not None:
        note(
            "its picture was somebody's own and is not here any more (if it was yours, drop it in"
            " again), so another is shown"
        )
    if notes := state.get("link/notes"):
        st.info(f"Of the address that you came by: {'; '.join(notes)}.", icon=":material/link:")


def write(ground: Ground) -> None:
    """Let the address say what is on the page."""
    state, shown = st.session_state, picture()
    said = {}
    if shown is not None and shown.sample != next(iter(SAMPLES)):
        said["picture"] = shown.sample or f"{OWN}{number_of(shown.digest)}"
    for name, setting in SETTINGS.items():
        value = state.get(setting.key)
        own = setting.default is MODEL_S_OWN
        differs = is_by_hand(setting.key) if own else value != setting.default
        if value is not None and differs and setting.view in (None, state.get("view")):
            said[name] = setting.write(value)
    if (query := ground.query) != ground.layout.default_query:
        said["query"] = query if isinstance(query, str) else two(query)
    if (state.get("view"), state.get("compare")) == ("compare", "query"):
        other = replace(ground, key=OTHERS[0]).query
        said["with_query"] = other if isinstance(other, str) else two(other)
    wish: Wish | None = state.get("target/wish")
    if wish is not None and METHODS[state.get("method", "attention")].needs_gradient:
        kind, what = wish
        said["target"] = f"{kind}-{two(what) if isinstance(what, tuple) else what}"
    if said != st.query_params.to_dict():
        if state.get("link/written") is not None:
            state["link/notes"] = []
        st.query_params.from_dict(said)
    state["link/written"] = True
