"""The address of the page: what was chosen, in plain values, so that a link brings it back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attnviz.methods import METHODS
from attnviz.record import AttentionRecord
from attnviz.samples import SAMPLES
from attnviz.ui import by_hand
from attnviz.ui.address import (
    MODEL_S_OWN,
    OWN,
    SETTINGS,
    Setting,
    own_picture,
    query_of,
    target_of,
)
from attnviz.ui.asked import ASKED, OTHERS, Ground
from attnviz.ui.by_hand import is_by_hand
from attnviz.ui.has_a_say import second_query
from attnviz.ui.kept_choice import away_of
from attnviz.ui.linked import ask_as_linked, drop_what_lacks, wish
from attnviz.ui.model_choice import forget_error
from attnviz.ui.readers import one_of, two
from attnviz.ui.same_cell import is_waiting
from attnviz.ui.state import note, picture, plain, show_sample, verbatim
from attnviz.ui.target_panel import Wish
from attnviz.ui.tray import mark_of, show_held
from attnviz.ui.views import methods_shown

LONGEST = 4000
"""Characters of a value that are read; what the page writes is shorter."""

MOST = 5
"""Notes that are shown; of more there is only the number."""

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
    state["link/followed"], state["link/notes"], state["link/written"] = True, [], False
    state["link/arrived"] = state["link/fresh"] = True
    state.pop("link/said", None)
    forget_error()
    given = {name: text[:LONGEST] for name, text in st.query_params.items()}
    if not given and not went:
        return
    gone = [name for name in ("picture", "with_picture") if _is_gone(given.get(name, ""))]
    state["link/gone"] = {name: given.pop(name) for name in gone}
    for name, setting in SETTINGS.items():
        _set(setting, _read(name, given.pop(name), setting.read) if name in given else None)
    if not SETTINGS["with_picture"].counts():  # no picture is compared
        state["link/gone"].pop("with_picture", None)
    if "picture" not in gone:
        _follow_picture(given.pop("picture", None))
    elif picture() is None:
        # Not the sample that it is compared with: that would then be another one.
        other = state.get("compare_picture")
        state.first_sample = next(name for name in SAMPLES if f"sample/{name}" != other)
    wish(ASKED, _read("query", given.pop("query", DEFAULT), query_of))
    other, asks = _read("with_query", given.pop("with_query", DEFAULT), query_of), second_query()
    for key in OTHERS:
        state[key] = None
        wish(key, other if key == asks else None)
    state["link/target"] = _read("target", given.pop("target", ""), target_of)
    for name in given:
        note(f"{verbatim(name)} is nothing that a link can set")


def _set(setting: Setting, value: Any) -> None:
    """Have a widget that is not drawn yet show a value, or what it shows at first."""
    st.session_state.pop(away_of(setting.key), None)
    if setting.default is MODEL_S_OWN:
        by_hand.choose(setting.key, value) if value is not None else by_hand.forget(setting.key)
    elif value is not None:
        st.session_state[setting.key] = value
    elif setting.default is None:
        st.session_state.pop(setting.key, None)
    elif by_hand.is_settled(setting.key):
        by_hand.forget(setting.key)
    elif setting.key in st.session_state:
        st.session_state[setting.key] = setting.default


def _read(name: str, text: str, read: Callable[[str], Any]) -> Any | None:
    try:
        return read(text)
    except ValueError as error:
        _, *why = error.args
        note(f"{verbatim(text)} " + (plain(why[0]) if why else f"is no {name}"))
        return None


def _is_gone(name: str) -> bool:
    """Whether it is a visitor's own picture that the tray has not, or not any more."""
    try:
        own_picture(name)
    except ValueError:
        return True
    return False


def _follow_picture(name: str | None) -> None:
    if name is not None and name.startswith(OWN):
        show_held(own_picture(name) or "")
        return
    name = None if name is None else _read("picture", name, one_of(SAMPLES))
    wanted, shown = name or next(iter(SAMPLES)), picture()
    if shown is None:
        st.session_state.first_sample = wanted
    elif shown.sample != wanted:
        show_sample(wanted)


def ask(ground: Ground, record: AttentionRecord) -> None:
    """Let the token ask that the link named, and note what the model lacks of what it named."""
    drop_what_lacks(record)
    ask_as_linked(ground)
    ask_as_linked(ground.of_other(OTHERS[0]))


def show_notes() -> None:
    """What of the link could not be done, until something else is chosen."""
    state, shown = st.session_state, picture()
    gone: dict[str, str] = state.pop("link/gone", {})
    if shown is None or shown.sample is None:
        gone.pop("picture", None)  # one of the visitor's own is shown all the same
    if gone:
        note(_said_gone(gone))
    if notes := state.get("link/notes"):
        more = [f"and {len(notes) - MOST} more"] if notes[MOST:] else []
        said = "; ".join([*notes[:MOST], *more])
        st.info(f"Of the address that you came by: {said}.", icon=":material/link:")


def _said_gone(gone: Mapping[str, str]) -> str:
    words = {"picture": "its picture", "with_picture": "the picture that it compares with"}
    which = " and ".join(f"{words[name]} ({verbatim(own)})" for name, own in gone.items())
    if len(gone) > 1:
        return f"{which} were somebody's own, which no link can carry, so others are shown"
    return f"{which} was somebody's own, which no link can carry, so another is shown"


def write_ahead() -> None:
    """Say what was just chosen before the model runs for it: a reload meanwhile keeps it.

    Who asks stays as the address has it, until it is known which tokens there are.
    """
    if st.session_state.get("link/written"):
        kept = st.query_params.to_dict()
        _say(_chosen() | {name: kept[name] for name in _still_meant() if name in kept} | _target())


def _still_meant() -> list[str]:
    """What the address has that is known for sure only once the model has looked."""
    of = {ASKED: "query", second_query(): "with_query"}
    names = [of[key] for key in of if key is not None and _is_meant(key)]
    return [*names, *(["target"] if _explains() else [])]


def _is_meant(key: str) -> bool:
    state = st.session_state
    return state.get(key) is not None or is_waiting(key) or state.get(f"link/{key}") is not None


def write(ground: Ground) -> None:
    """Let the address say what is on the page."""
    said = _chosen()
    if (query := ground.query) != ground.layout.default_query:
        said["query"] = _token(query)
    other = _other_ground(ground)
    if other is not None and (kept := other.query) != other.usual:
        said["with_query"] = _token(kept)
    _say(said | _target())
    st.session_state["link/written"], st.session_state["link/fresh"] = True, False


def _target() -> dict[str, str]:
    """What is explained, where a method is shown that explains something."""
    state = st.session_state
    wanted: Wish | None = state.get("link/target") or state.get("target/wish")
    if not _explains():
        state.pop("link/target", None)  # of no use where the link led, nor later
    elif wanted is not None:
        return {"target": "-".join((wanted[0], _token(wanted[1])))}
    return {}


def _explains() -> bool:
    """Whether a method is shown that has a target."""
    return any(METHODS[name].needs_gradient for name in methods_shown())


def _chosen() -> dict[str, str]:
    """The picture, and all settings that are not as on a first visit."""
    state, shown, said = st.session_state, picture(), {}
    if shown is not None and shown.sample != next(iter(SAMPLES)):
        said["picture"] = shown.sample or f"{OWN}{mark_of(shown.digest)}"
    for name, setting in SETTINGS.items():
        value = state.get(setting.key)
        own = setting.default is MODEL_S_OWN
        differs = is_by_hand(setting.key) if own else value != setting.default
        if value is not None and differs and setting.counts():
            said[name] = setting.write(value)
    return said


def _other_ground(ground: Ground) -> Ground | None:
    """Where the second query is picked, if the view has one."""
    asks = second_query()
    if asks == OTHERS[1]:
        return st.session_state.get("alike/ground")
    return None if asks is None else ground.of_other(asks)


def _token(query: Any) -> str:
    return two(query) if isinstance(query, tuple) else str(query)


_NONE = {"": ""}
"""No address."""


def _say(said: dict[str, str]) -> None:
    """What could not be done of a link is said until something else is chosen."""
    state, shown = st.session_state, st.query_params.to_dict()
    if said != shown and state.get("link/written"):
        state["link/notes"] = []
    # What a run that was cut off has said may reach the browser after it asked for this one.
    before = state.get("link/said", said)
    state["link/said"] = _NONE  # until it has been said: a run may be cut off in between
    if said != shown or said != before:
        st.query_params.from_dict(said)
    state["link/said"] = said
