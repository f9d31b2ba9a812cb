"""Which settings have a say in what is chosen now: those alone stand in the page's address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from attnviz.ui.asked import OTHERS
from attnviz.ui.other_side import KINDS


def _chosen(key: str, usual: Any) -> Any:
    return st.session_state.get(key, usual)


def on_export() -> bool:
    """Whether a figure is made."""
    return bool(_chosen("view", None) == "export")


def on_stack() -> bool:
    """Whether all heads are shown as a stack."""
    return bool(_chosen("view", None) == "stack")


def on_trust() -> bool:
    """Whether a map is tested."""
    return bool(_chosen("view", None) == "trust")


def compares() -> bool:
    """Whether two are compared, on screen or on a figure."""
    view = _chosen("view", None)
    return bool(view == "compare" or (on_export() and _chosen("export_what", None) == "compared"))


def compares_by(kind: str) -> Callable[[], bool]:
    """Whether two are compared that differ in this."""
    return lambda: compares() and _chosen("compare", next(iter(KINDS))) == kind


def compares_pictures_on_screen() -> bool:
    """Whether two pictures are seen beside each other, and not on a figure."""
    return bool(_chosen("view", None) == "compare" and compares_by("picture")())


def shows_alike() -> bool:
    """Whether patches of two pictures are shown that are alike."""
    return compares_pictures_on_screen() and bool(_chosen("compare_shown", None) == "alike")


def second_query() -> str | None:
    """Under which of `OTHERS` the session keeps the second query, where there is one."""
    if shows_alike():
        return OTHERS[1]
    return OTHERS[0] if compares_by("query")() else None
