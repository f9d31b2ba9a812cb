"""Which model and which weights the visitor wants: the widgets, before anything is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

import models
from attnviz.ui import cache
from attnviz.ui.checkpoints import Checkpoint, checkpoint_folder, checkpoints
from attnviz.ui.offered import offered
from attnviz.ui.settings import settings
from attnviz.ui.state import verbatim
from models.search import Found, search

FEW = 6
"""How many names of timm's a search describes: each is built, without weights, to be sure."""


@dataclass(frozen=True)
class Choice:
    """What makes a loaded model."""

    name: str
    random: bool = False
    checkpoint: Checkpoint | None = None
    """A file of weights on the server, in place of the model's own."""

    @property
    def label(self) -> str:
        """What the page calls the model."""
        card = models.MODELS.get(self.name)
        return self.name if card is None else card.label

    @property
    def words(self) -> str:
        """The model and whose weights it has, if they are not its own."""
        if self.checkpoint is not None:
            return f"{self.label} with {verbatim(self.checkpoint.name)}"
        return f"{self.label}, untrained" if self.random else self.label


def choose() -> Choice:
    """The widgets: a kind, a model of it or any of timm's, and its weights."""
    st.subheader("Model", anchor=False)
    kinds = {name: _family(name) for name in offered()}
    kind = st.pills(
        "List only one kind",
        list(dict.fromkeys(kinds.values())),
        key="kind",
        format_func=str.capitalize,
        help="Shortens the list below; the model stays the one that is chosen in it.",
    )
    state = st.session_state
    names = [name for name, family in kinds.items() if kind in (None, family)]
    current = state.setdefault("model", next(iter(kinds)))
    if current not in names:  # found by a search, or of another kind: it stays until one is taken
        names = [current, *names]
    name = st.selectbox(
        "Vision Transformer",
        names,
        format_func=_label,
        key="model",
        on_change=forget_error,
        help="Those marked *download* are fetched from the model hub when there is a network; the "
        "others' weights are here already. The *digits* models name handwritten digits.",
    )
    if message := state.get("model_error"):
        st.error(message, icon=":material/cloud_off:")
        st.caption(state.model_why)
    if not settings().models:
        with st.expander("Any other of timm's models", icon=":material/search:"):
            _search()
    checkpoint = _choose_checkpoint()
    random = st.toggle(
        "Random weights",
        key="random",
        on_change=forget_error,
        disabled=checkpoint is not None,
        help="The same architecture, untrained: what its maps look like before it has learned "
        "anything. Needs no download.",
    )
    return Choice(name, random and checkpoint is None, checkpoint)


def go_back_to(choice: Choice) -> None:
    """Have the widgets, which are not drawn yet, show that choice."""
    state = st.session_state
    state.model, state.random, state.checkpoint = choice.name, choice.random, choice.checkpoint


def forget_error() -> None:
    """What was said of a model or a file of weights goes with the next choice."""
    st.session_state.model_error = None
    st.session_state["checkpoint/lost"] = ""


def _family(name: str) -> str:
    card = models.MODELS.get(name)
    return "other" if card is None else card.family


def _label(name: str) -> str:
    card = models.MODELS.get(name)
    label = name if card is None else card.label
    return f"{label} (download)" if card is None or card.is_fetched else label


def _search() -> None:
    """Free text over timm's names; what can be drawn of those found, and why the rest cannot."""
    word = st.text_input(
        "A part of its name", key="search", placeholder="swin, dinov3, levit …", max_chars=80
    ).strip()
    if not word:
        st.caption("Every model of timm that attends over tokens, by a part of its name.")
        return
    names = search(word)
    if not names:
        st.caption(f"No model of timm has {verbatim(word)} in its name.")
        return
    with st.spinner("Looking at what they are …"):
        found = [cache.described(name) for name in names[:FEW]]
    for each in found:
        if each.grid is None:
            st.caption(f"No map of `{each.name}`: {each.why_not}")
            continue
        st.button(
            each.name, key=f"take-{each.name}", on_click=_take, args=(each.name,), width="stretch"
        )
        st.caption(_offer(each))
    if len(names) > FEW:
        st.caption(f"And {len(names) - FEW} more: write more of the name.")


def _offer(found: Found) -> str:
    (rows, cols), (height, width) = found.grid or (0, 0), found.size
    return (
        f"{found.parameters / 1e6:.0f}\N{NO-BREAK SPACE}M parameters, {_by(width, height)} px,"
        f" {_by(rows, cols)} patches, {found.layers} layers"
    )


def _by(*sides: int) -> str:
    return "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}".join(map(str, sides))


def _take(name: str) -> None:
    st.session_state.model = name
    forget_error()


def _choose_checkpoint() -> Checkpoint | None:
    """A file of weights out of the host's folder; nothing is shown where there is none."""
    folder = checkpoint_folder()
    _say_lost(files := [] if folder is None else checkpoints(folder))
    if said := st.session_state.get("checkpoint/lost"):
        st.warning(said, icon=":material/sync_problem:")
    if folder is None:
        return None
    return st.selectbox(
        "Weights from a file on the server",
        files,
        index=None,
        format_func=lambda file: file.name,
        key="checkpoint",
        on_change=forget_error,
        placeholder="its own",
        help="Safetensors files that the host of this page offers. They must be of the model that"
        " is chosen above.",
    )


def _say_lost(files: Sequence[Checkpoint]) -> None:
    """A file that has changed since it was chosen is another, and one may be gone."""
    state = st.session_state
    chosen: Checkpoint | None = state.get("checkpoint")
    if chosen is None or chosen in files:
        return
    anew = next((file for file in files if file.name == chosen.name), None)
    became = "has changed: the new one is chosen" if anew else "is gone: none is chosen"
    state["checkpoint/lost"] = f"The file {verbatim(chosen.name)} {became}."
    state.checkpoint = anew
