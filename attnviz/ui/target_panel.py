"""What a gradient method explains: a class, or why features are alike."""

from __future__ import annotations

from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz.contract import LoadedViT
from attnviz.record import AttentionRecord
from attnviz.samples import SAMPLES
from attnviz.tokens import Query
from attnviz.ui.state import note, plain

Wish = tuple[Literal["class", "token", "sample"], int | Query]
"""A target as a visitor chose it: a class's number, a token of the picture, a sample's name."""

ANOTHER = "another class"

LISTED = 1000
"""More classes than this are chosen by their number: a list of them would be too long to send."""


def choose_target(
    vit: LoadedViT, record: AttentionRecord, query: Query, sample: str | None
) -> Wish:
    """The widgets; classes where the model has them, and similarity for every model."""
    state, offered = st.session_state, _offered(vit, record, query, sample)
    choices = [*offered, *([ANOTHER] if len(vit.classes) > len(record.predictions) > 0 else [])]
    classes = len(vit.classes) if ANOTHER in choices else 0
    _drop_class_of_another(vit)
    _follow_link(offered, classes)
    if state.get("target") not in choices:
        again = _kept(vit, offered, classes)
        state.target, state["target/by_hand"] = again or choices[0], again is not None
    left, right = st.columns([3, 2], gap="medium")
    chosen: str = left.selectbox(
        "Explain",
        choices,
        key="target",
        persist_state="session",
        on_change=_by_hand,
        help="What the gradient is taken of: the output of a class, or how alike two features are. "
        "A sample is compared by the one feature that the model makes of each picture; the class "
        "token, with the mean of the patches.",
    )
    if record.features is not None and not isinstance(query, tuple):
        left.caption("Pick a patch, and the similarity to it can be explained too.")
    if lost := state.get("target/lost"):
        left.caption(lost)
    wish: Wish = offered[chosen] if chosen in offered else ("class", _choose_class(vit, right))
    state["target/wish"], state["target/label"] = wish, _label(vit, wish)
    return wish


def _by_hand() -> None:
    st.session_state["target/by_hand"], st.session_state["target/lost"] = True, None


def _drop_class_of_another(vit: LoadedViT) -> None:
    """A class that was chosen of a model with other names: its number means another thing here."""
    state = st.session_state
    wish: Wish | None = state.get("target/wish")
    if wish is None or not state.get("target/by_hand") or wish[0] != "class":
        return
    label = state["target/label"]
    if _label(vit, wish) != label:
        state.target, state["target/by_hand"] = None, False
        state["target/lost"] = (
            f"You chose class {wish[1]}: {plain(label)}; this model has no class of that number and"
            " name, so the first of this list is explained."
        )


def _follow_link(offered: dict[str, Wish], classes: int) -> None:
    """Choose what a link named, where it is offered here."""
    state = st.session_state
    named: Wish | None = state.pop("link/target", None)
    if named is None:
        return
    if (words := _words(named, offered, classes)) is None:
        kind, what = named
        note(f"this model has no target {kind} {what} for this picture")
        return
    state["target/lost"] = None
    # The address names the likeliest class too, which is another one for each picture.
    state.target, state["target/by_hand"] = words, words != next(iter(offered))


def _kept(vit: LoadedViT, offered: dict[str, Wish], classes: int) -> str | None:
    """What the target that was chosen by hand is called by now: shares and patches change.

    None where there is no such target here, or none was chosen: then it is the likeliest.
    """
    state = st.session_state
    wish: Wish | None = state.get("target/wish")
    if wish is None or not state.get("target/by_hand"):
        return None
    if wish[0] == "token" and isinstance(wish[1], tuple):  # similarity to who asks
        asked = (words for words, (_, what) in offered.items() if isinstance(what, tuple))
        return next(asked, None)
    if _label(vit, wish) != state["target/label"]:  # another model's class of that number
        return None
    return _words(wish, offered, classes)


def _words(wish: Wish, offered: dict[str, Wish], classes: int) -> str | None:
    """Under which words a target is chosen; a class that is not listed, by its number."""
    for words, each in offered.items():
        if each == wish:
            return words
    match wish:
        case ("class", int(number)) if number < classes:
            st.session_state["class"] = number
            return ANOTHER
    return None


def _label(vit: LoadedViT, wish: Wish) -> str | None:
    """What the model calls a class."""
    match wish:
        case ("class", int(number)) if number < len(vit.classes):
            return vit.classes[number]
    return None


def _choose_class(vit: LoadedViT, place: Place) -> int:
    count = len(vit.classes)
    if count > LISTED:
        return int(
            place.number_input("Class", 0, count - 1, 0, key="class", persist_state="session")
        )
    if st.session_state.get("class") not in range(count):
        st.session_state["class"] = 0
    return int(
        place.selectbox(
            "Class",
            range(count),
            key="class",
            format_func=lambda number: f"{number}: {vit.classes[number]}",
            persist_state="session",
        )
    )


def _offered(
    vit: LoadedViT, record: AttentionRecord, query: Query, sample: str | None
) -> dict[str, Wish]:
    """Words → target, the likeliest first."""
    found: dict[str, Wish] = {
        f"class {number}: {label} ({share:.0%})": ("class", number)
        for label, number, share in record.predictions
    }
    if len(vit.classes) == 1:
        found["the model's one output"] = ("class", 0)
    tokens: list[Query] = ["cls"] if "cls" in record.layout.prefix else []
    tokens += [query] if isinstance(query, tuple) else []
    # Some networks hand on no features of single tokens.
    for token in tokens if record.features is not None else []:
        mean = "" if isinstance(token, tuple) else " of the patches' mean"
        found[f"similarity{mean} to the {record.layout.query_label(token)}"] = ("token", token)
    for name, card in SAMPLES.items():
        if name != sample:
            found[f"similarity to the sample: {card.label}"] = ("sample", name)
    return found
