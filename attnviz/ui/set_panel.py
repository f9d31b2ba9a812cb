"""The visitor's set: figures of this visit that are kept as files, to be downloaded as one zip."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import streamlit as st

from attnviz.bundle import MANIFEST, ZIP, Packed, names_of, pack, zip_of
from attnviz.errors import AttnVizError, BadOption
from attnviz.figure import Figure
from attnviz.ui.figure_files import offer_file
from attnviz.ui.stage import Stage
from attnviz.ui.state import plain

MOST = 20
"""Figures that are kept."""

BUDGET = 40 * 2**20
"""Bytes that their files may have together."""


def kept() -> tuple[Packed, ...]:
    """The visitor's set, the oldest first."""
    figures: tuple[Packed, ...] = st.session_state.get("figure_set", ())
    return figures


def offer_place() -> bool:
    """The button for another figure; whether it was pressed."""
    return st.button(
        "Keep for the set", key="keep_figure", icon=":material/library_add:", on_click=_remember
    )


def _remember() -> None:
    st.session_state.figure_set_pressed = True


def keep(stage: Stage, figure: Figure, options: Mapping[str, Any]) -> None:
    """Take the figure in as it is drawn now, and say what came of it."""
    try:
        _require_place()
        with stage.computing("Making the figure's files …"):
            _keep(pack(figure, options))
    except AttnVizError as error:
        st.warning(f"Not kept: {error}", icon=":material/inventory_2:")
        _forget()
    else:
        _forget()
        st.success(f"Kept: the set, below, has {_count(len(kept()))}.", icon=":material/check:")


def _require_place() -> None:
    if len(kept()) >= MOST:
        raise BadOption(
            f"The set holds {MOST} figures and is full. Download it, or take a figure out of it."
        )


def _keep(new: Packed) -> None:
    if new in kept():
        raise BadOption("The set has this very figure already.")
    if (needed := sum(each.nbytes for each in (*kept(), new))) > BUDGET:
        raise BadOption(
            f"With this figure the set would take {_mb(needed)}, and {_mb(BUDGET)} is the most."
            " Download it, or take a figure out of it."
        )
    st.session_state.figure_set = (*kept(), new)


def _take_out(figure: Packed) -> None:
    st.session_state.figure_set = tuple(each for each in kept() if each != figure)


def _forget() -> bool:
    """Whether a press was remembered that nothing came of yet."""
    return bool(st.session_state.pop("figure_set_pressed", False))


def show_set() -> None:
    """A row for each figure that is kept, with a way out, and all of them as one file."""
    if _forget():  # what was chosen next cut that run off
        st.warning(
            "Not kept: something else was chosen before the figure's files were made. Press the"
            " button again once they are.",
            icon=":material/inventory_2:",
        )
    if not (figures := kept()):
        return
    st.subheader("The set", anchor=False)
    size = _mb(sum(each.nbytes for each in figures))
    st.caption(
        f"{_count(len(figures))} of at most {MOST}, {size} of at most {_mb(BUDGET)}. What is kept"
        " stays as it was drawn, whatever you choose next. It is gone when the page is closed or"
        " loaded again."
    )
    with st.container(key="figure_set"):
        for name, figure in zip(names_of(figures), figures, strict=True):
            _show_row(name, figure)
    offer_file(
        f"The set as one zip ({_count(len(figures))})",
        lambda: zip_of(figures),
        f"attnviz-figures{ZIP}",
        "application/zip",
    )


def _show_row(name: str, figure: Packed) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False):
        st.markdown(f"**{plain(name)}**  \n{plain(figure.summary)}")
        st.button(
            f"Take {plain(name)} out of the set",
            key=f"take-out-{sha256(figure.files[MANIFEST]).hexdigest()[:16]}",
            on_click=_take_out,
            args=(figure,),
            icon=":material/close:",
            type="tertiary",
            width="content",
        )


def _count(figures: int) -> str:
    return "1 figure" if figures == 1 else f"{figures} figures"


def _mb(size: int) -> str:
    return f"{size / 2**20:.1f} MB"
