"""How a map is drawn: opacity, colours, smoothing, scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import streamlit as st
from einops import rearrange
from jaxtyping import Bool, Float

from attnviz.colour import COLORMAPS
from attnviz.heatmap import Heatmap
from attnviz.mosaic import tiles_there
from attnviz.scale import Scale, choose_scale

ScaleName = Literal["own", "zero", "shared"]

SCALE_WORDS: dict[ScaleName, str] = {
    "own": "Each map its own",
    "zero": "From zero",
    "shared": "One for all heads",
}

ALPHA = 0.5
"""Of the colours, at first."""

DARK = 0.2
"""Where the 99th percentile lies below this share of the scale, a map looks black at a glance."""


@dataclass(frozen=True)
class Look:
    """How maps are drawn on this page."""

    alpha: float
    colormap: str
    interpolation: str
    scale: ScaleName
    clip: float | None

    def drawing(self, scale: Scale | None) -> dict[str, Any]:
        """As options of a drawing; no palette where three components are mixed, with no scale."""
        mixed = {"alpha": self.alpha, "interpolation": self.interpolation}
        return mixed if scale is None else mixed | {"colormap": self.colormap, "scale": scale}

    def own_scale(self, heat: Heatmap) -> Scale | None:
        """The scale of one map by itself; None where three components are mixed."""
        return None if heat.in_colour else self.scale_of(heat)

    def scale_of(self, heat: Heatmap, left_out: Sequence[tuple[int, int]] = ()) -> Scale:
        """The scale of one map by itself; some of its patches may be left out."""
        name = "zero" if self.scale == "zero" else "own"
        if not left_out:
            return choose_scale(heat.drawn, name, clip=self.clip)
        others = heat.filled.copy()
        others[tuple(zip(*left_out, strict=True))] = False
        chosen = choose_scale(heat.values[others], name, clip=self.clip)
        return Scale(
            chosen.low, chosen.high, f"{chosen.name}, {len(left_out)} of the patches left out"
        )

    def shared_scale(self, tiles: Float[np.ndarray, "layer head row col"]) -> Scale | None:
        """The scale of all heads' maps together, if they are to share one."""
        if self.scale != "shared":
            return None
        if not (there := tiles_there(tiles)).any():  # as where the token asks in no layer
            return None
        chosen = choose_scale(tiles[there], clip=self.clip)
        return Scale(chosen.low, chosen.high, f"{chosen.name}, of all heads")


def looks_dark(values: Float[np.ndarray, "*maps value"], scale: Scale) -> Bool[np.ndarray, "*maps"]:
    """Which of the maps look black at a glance, by the rule of `DARK`; none that is one value."""
    if scale.flat:
        return np.zeros(values.shape[:-1], bool)
    return np.asarray(np.quantile(scale.position(values), 0.99, axis=-1) < DARK)


def offer_cut(
    tiles: Float[np.ndarray, "tile row col"], shared: Scale | None, look: Look, word: str
) -> None:
    """Where most of many maps look black: why that is, and a button; `shared` is that of all."""
    if look.clip is not None:
        return
    flat = rearrange(tiles, "tile row col -> tile (row col)")
    dark = sum(bool(looks_dark(one, shared or choose_scale(one))) for one in flat)
    if 2 * dark <= len(flat):
        return
    why = "a few patches hold so much that all others look alike"
    if shared:
        why = f"the values of a few heads reach {flat.max():.3g} and set the scale of all"
    st.caption(f":material/contrast: {dark} of the {len(flat)} {word} look black, because {why}.")
    st.button("Cut the scale at percentiles 1 and 99", key=f"cut_{word}", on_click=cut_scale)


def cut_scale() -> None:
    """As the toggle does; called before the page runs."""
    st.session_state.clip = True


def show_alone() -> None:
    """The map without the picture; called before the page runs."""
    st.session_state.alpha = 1.0


def choose_look() -> Look:
    """The widgets."""
    st.subheader("Drawing", anchor=False)
    st.session_state.setdefault("alpha", ALPHA)
    alpha = st.slider("Opacity of the colours", 0.0, 1.0, step=0.05, key="alpha")
    colormap = st.selectbox("Colours", COLORMAPS, key="colormap")
    smooth = st.toggle(
        "Smooth between patches",
        key="smooth",
        help="A patch has one value. Smoothing looks softer and shows detail that isn't there.",
    )
    scale = st.radio(
        "Colour scale",
        SCALE_WORDS,
        format_func=SCALE_WORDS.__getitem__,
        key="scale",
        help="*Each map its own*: its lowest value is the first colour, its highest the last. "
        "*From zero*: the first colour is 0. *One for all heads*: equal colours are equal values "
        "in every layer and head.",
    )
    clip = st.toggle(
        "Cut the scale at percentiles 1 and 99",
        key="clip",
        help="A few patches can collect so much that all others look dark. Their colour is then "
        "the last one, and the colour bar says so.",
    )
    return Look(
        alpha=alpha,
        colormap=colormap,
        interpolation="bilinear" if smooth else "nearest",
        scale=scale,
        clip=99.0 if clip else None,
    )
