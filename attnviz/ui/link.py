"""The address of the page: what was chosen, in plain values, so that a link brings it back."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

import models
from attnviz.colour import COLORMAPS
from attnviz.methods import METHODS
from attnviz.methods.fusion import HEAD_FUSIONS
from attnviz.methods.options import COMPONENTS
from attnviz.samples import SAMPLES
from attnviz.tokens import Query
from attnviz.ui import by_hand
from attnviz.ui.asked import Ground
from attnviz.ui.by_hand import is_by_hand
from attnviz.ui.layers_panel import SCALE_WORDS as FILM_SCALES
from attnviz.ui.look_panel import SCALE_WORDS
from attnviz.ui.method_panel import DIRECTIONS
from attnviz.ui.model_panel import FIT_WORDS
from attnviz.ui.state import note, picture, show_sample, verbatim
from attnviz.ui.target_panel import Wish
from attnviz.ui.views import VIEWS
from models.search import search
from models.timm_names import may_be_drawn

OWN = "own"
"""In place of a sample's name: a picture of the visitor's, which no link can carry."""

LONGEST = 120
"""Characters of a value; no name is longer."""

DEFAULT = "default"
"""In place of a query: the model's own."""

MODEL_S_OWN = object()
"""A default that every model has for itself."""


@dataclass(frozen=True)
class Setting:
    """One widget's value in the address."""

    key: str
    """Under which the session keeps it."""
    read: Callable[[str], Any]
    """From the address; raises ValueError for what it cannot be."""
    default: Any
    """What is not written."""
    write: Callable[[Any], str] = str


def _one_of(values: Collection[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    return read


def _number(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        if not re.fullmatch(r"\d+(\.\d+)?", text) or not low <= float(text) <= high:
            raise ValueError(text)
        return float(text)

    return read


def _count(most: int = 9999) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"\d{1,5}", text) or int(text) > most:
            raise ValueError(text)
        return int(text)

    return read


def _word_or_count(words: Collection[str]) -> Callable[[str], str | int]:
    return lambda text: text if text in words else _count()(text)


def _switch(text: str) -> bool:
    return {"1": True, "0": False}[_one_of(("0", "1"))(text)]


def _pair(text: str) -> tuple[int, int]:
    first, second = map(_count(), text.split("-"))
    return first, second


def _model(text: str) -> str:
    known = text in models.MODELS or (text in search(text) and may_be_drawn(text))
    if not known:
        raise ValueError(text)
    return text


def _two(pair: tuple[int, int]) -> str:
    return f"{pair[0]}-{pair[1]}"


def _bit(on: bool) -> str:
    return str(int(on))


def _component(text: str) -> str | int:
    return text if text == "all" else _count(COMPONENTS - 1)(text)


def _choice(key: str, values: Collection[str], default: Any) -> Setting:
    return Setting(key, _one_of(values), default)


SETTINGS: Mapping[str, Setting] = {
    "view": _choice("view", VIEWS, next(iter(VIEWS))),
    "model": Setting("model", _model, next(iter(models.MODELS))),
    "random": Setting("random", _switch, False, _bit),
    "size": Setting("side", _count(), MODEL_S_OWN),
    "fit": _choice("fit", FIT_WORDS, MODEL_S_OWN),
    "method": _choice("method", METHODS, "attention"),
    "layer": Setting("layer", _count(), MODEL_S_OWN),
    "head": Setting("head", _word_or_count(HEAD_FUSIONS), "mean"),
    "direction": _choice("direction", DIRECTIONS, "from"),
    "layers": Setting("span", _pair, MODEL_S_OWN, _two),
    "fusion": _choice("fusion", HEAD_FUSIONS, "mean"),
    "residual": Setting("residual", _number(0, 1), 0.5, "{:g}".format),
    "discard": Setting("discard_ratio", _number(0, 0.95), 0.0, "{:g}".format),
    "discarded": _choice("discard", ("row", "global"), "row"),
    "pool": Setting("pool", _count(), METHODS["flow"].options["pool"].default),
    "one_head": Setting("one_head", _count(), None),
    "component": Setting("component", _component, "all"),
    "opacity": Setting("alpha", _number(0, 1), 0.5, "{:g}".format),
    "colours": _choice("colormap", COLORMAPS, next(iter(COLORMAPS))),
    "smooth": Setting("smooth", _switch, False, _bit),
    "scale": _choice("scale", SCALE_WORDS, "own"),
    "clip": Setting("clip", _switch, False, _bit),
    "film_scale": _choice("film_scale", FILM_SCALES, next(iter(FILM_SCALES))),
    "mass": Setting("mass", _number(0.05, 0.95), 0.6, "{:g}".format),
}
"""Name in the address → setting. What is neither here nor a picture, a query or a target cannot be
set by a link."""


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
    state["link/query"] = _read("query", given.pop("query", DEFAULT), _query)
    state["link/target"] = _read("target", given.pop("target", ""), _target)
    for name in given:
        note(f"{verbatim(name)} is nothing that a link can set")


def _set(setting: Setting, value: Any) -> None:
    """Have a widget that is not drawn yet show a value, or what it shows at first."""
    if setting.default is MODEL_S_OWN:
        by_hand.choose(setting.key, value) if value is not None else by_hand.forget(setting.key)
    elif value is not None or setting.key in st.session_state:
        st.session_state[setting.key] = setting.default if value is None else value


def _read(name: str, text: str, read: Callable[[str], Any]) -> Any | None:
    try:
        return read(text)
    except ValueError:
        note(f"{verbatim(text)} is no {name}")
        return None


def _follow_picture(name: str | None) -> None:
    st.session_state["link/own"] = name == OWN
    if name == OWN:
        return
    name = None if name is None else _read("picture", name, _one_of(SAMPLES))
    wanted, shown = name or next(iter(SAMPLES)), picture()
    if shown is None:
        st.session_state.first_sample = wanted
    elif shown.sample != wanted:
        show_sample(wanted)


def _query(text: str) -> Query:
    """A patch as row-column, or a token's name; whether there is such a one is seen later."""
    if re.fullmatch(r"\d{1,4}-\d{1,4}", text):
        return _pair(text)
    if not re.fullmatch(r"[a-z]{1,9}\d{0,3}", text):
        raise ValueError(text)
    return text


def _target(text: str) -> Wish | None:
    kind, _, what = text.partition("-")
    match kind:
        case "":
            return None
        case "class":
            return "class", _count(99_999)(what)
        case "token":
            return "token", _query(what)
        case "sample":
            return "sample", _one_of(SAMPLES)(what)
    raise ValueError(text)


def ask(ground: Ground) -> None:
    """Let the token ask that the link named, once it is known which there are."""
    wanted = st.session_state.pop("link/query", None)
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
        note("its picture was somebody's own and stays with them, so a sample is shown")
    if notes := state.get("link/notes"):
        st.info(f"Of the link that you followed: {'; '.join(notes)}.", icon=":material/link:")


def write(ground: Ground) -> None:
    """Let the address say what is on the page."""
    state, shown = st.session_state, picture()
    said = {}
    if shown is not None and shown.sample != next(iter(SAMPLES)):
        said["picture"] = shown.sample or OWN
    for name, setting in SETTINGS.items():
        value = state.get(setting.key)
        own = setting.default is MODEL_S_OWN
        if value is not None and (is_by_hand(setting.key) if own else value != setting.default):
            said[name] = setting.write(value)
    if (query := ground.query) != ground.layout.default_query:
        said["query"] = query if isinstance(query, str) else _two(query)
    wish: Wish | None = state.get("target/wish")
    if wish is not None and METHODS[state.get("method", "attention")].needs_gradient:
        kind, what = wish
        said["target"] = f"{kind}-{_two(what) if isinstance(what, tuple) else what}"
    if said != st.query_params.to_dict():
        if state.get("link/written") is not None:
            state["link/notes"] = []
        st.query_params.from_dict(said)
    state["link/written"] = True
