"""A page with one player, for the test in a real browser: each frame has a colour of its own."""

import streamlit as st
from PIL import Image

from attnviz.ui.player import Caption, picked_frame, play

FILMS = {
    "five": ["#ff0000", "#00ff00", "#0000ff", "#ffff00", "#00ffff"],
    "other five": ["#800000", "#008000", "#000080", "#808000", "#008080"],
    "one": ["#ff00ff"],
}

state = st.session_state
state.setdefault("picks", [])


def picked() -> None:
    """What arrived in Python."""
    state.picks.append(picked_frame("player"))


with st.sidebar:
    film = st.radio("Film", FILMS)
colours = FILMS[film]
play(
    [Image.new("RGB", (48, 32), colour) for colour in colours],
    [Caption(f"layer {n}", (f"{n}", f"{n}.5", f"{n + 1}"), "weight", f"{n} to {n + 1}") for n in range(len(colours))],
    bar=Image.new("RGB", (256, 12), "#808080"),
    ratio=1.5,
    alt="Colours",
    key="player",
    on_pick=picked,
)  # fmt: skip
st.text(f"picks {state.picks}")
