"""A colour bar in real numbers, as wide as what it stands under."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz import colour
from attnviz.scale import Scale, numbers
from attnviz.ui.data_uri import data_uri


def show_bar(
    scale: Scale, colormap: str, *, unit: str, values: Float[np.ndarray, "*shape"]
) -> None:
    """The scale's colours with its numbers and unit; ends that values lie beyond are marked."""
    texts = [text for _, text in colour.ticks(scale, values)]
    _draw(
        scale, colormap, texts, f"{unit} from {texts[0]} to {texts[-1]}", f"{unit} ({scale.name})"
    )


def show_own_bars(scales: Sequence[Scale], colormap: str, *, unit: str, of: str = "sheet") -> None:
    """One bar where each of many maps has its own scale: where these begin and end, as ranges."""
    lows, highs = (np.array([getattr(scale, end) for scale in scales]) for end in ("low", "high"))
    said = f"each {of} has its own scale, {scales[0].name}"
    ends = [f"first colour: {_range(lows)}", f"last: {_range(highs)}"]
    colours = Scale(0.0, 1.0, "each its own")
    _draw(colours, colormap, ends, f"{unit}, {said}; {', '.join(ends)}", f"{unit}; {said}")


def _range(ends: Float[np.ndarray, " map"]) -> str:
    low, high = numbers(np.array([ends.min(), ends.max()]))
    return low if low == high else f"{low} to {high}"


def _draw(scale: Scale, colormap: str, texts: Sequence[str], said: str, words: str) -> None:
    strip = data_uri(colour.colour_bar(scale, colormap), "PNG")
    spans = "".join(f"<span>{text}</span>" for text in texts)
    st.html(
        f'<figure style="margin:0 4px">'
        f'<img alt="Colour bar: {said}" src="{strip}" '
        'style="width:100%;height:14px;display:block;border-radius:2px">'
        '<figcaption style="font-size:0.875rem">'
        f'<div style="display:flex;justify-content:space-between">{spans}</div>'
        f"<div>{words}</div></figcaption></figure>"
    )
