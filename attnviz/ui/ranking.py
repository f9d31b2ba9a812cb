"""In which order all heads are shown: layer by layer, or by what each one does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.errors import BadOption
from attnviz.ui.stage import Stage

LAYERS = "layer and head"

OFFERED = ("entropy", "distance", "to_prefix", "agreement")
"""Metrics to sort by, of `METRICS`."""


@dataclass(frozen=True)
class Ranking:
    """Heads in the order of a number each."""

    label: str
    values: Float[np.ndarray, "layer head"]
    unit: str
    descending: bool

    @property
    def first(self) -> str:
        """Which heads come first, in words."""
        return "highest" if self.descending else "lowest"


def choose_ranking(stage: Stage) -> Ranking | None:
    """The widgets; None for layer by layer."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox(
            "Sort by",
            (LAYERS, *OFFERED),
            key="sort",
            width=260,
            persist_state="session",
            format_func={
                LAYERS: "layer and head",
                "entropy": "entropy: how widely it looks",
                "distance": "distance: how far it looks",
                "to_prefix": "attention to prefix tokens",
                "agreement": "agreement with its layer",
            }.__getitem__,
            help="What each head does over all patches of this picture, as in *Head metrics*.",
        )
        if chosen == LAYERS:
            return None
        high = st.toggle("Highest first", key="sort_high", persist_state="session")
    try:
        with stage.computing("Measuring the heads …"):
            metrics = stage.seen.metrics()
    except BadOption as error:
        st.info(f"They stay in their order. {error}", icon=":material/sort:")
        return None
    about = metrics.describe(chosen)
    return Ranking(about.label.lower(), metrics[chosen], about.unit, high)
