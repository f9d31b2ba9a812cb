"""A page with three pickers, for the test in a real browser: photo, mosaic, and one in a fragment.

The photo's box reaches past its left and bottom edge and leaves a margin at its top and right; the
tall picture's does the opposite.
"""

import json

import numpy as np
import streamlit as st
from PIL import Image

from attnviz.ui.picker import pick_cell, picked_cell

SIZE = (700, 467)
GRID = (5, 8)
BOX = (-100.5, 41.25, 655.75, 520.0)
TALL_SIZE = (300, 900)
TALL_BOX = (30.0, -40.0, 310.0, 800.0)
HEADS = (4, 12)

state = st.session_state
state.setdefault("runs", 0)
state.setdefault("callbacks", [])
state.setdefault("returned", [])
state.setdefault("in_fragment", [])
state.setdefault("photo_cell", None)
state.setdefault("head", (0, 0))
state.runs += 1


def gradient(blue: int, size: tuple[int, int] = SIZE) -> Image.Image:
    """Red grows to the right, green downwards; blue says which picture it is."""
    width, height = size
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[..., 0] = np.linspace(0, 255, width)
    pixels[..., 1] = np.linspace(0, 255, height)[:, None]
    pixels[..., 2] = blue
    return Image.fromarray(pixels)


def mosaic() -> Image.Image:
    """One tile a head, four pixels wide, each in its own grey."""
    layers, heads = HEADS
    tiles = np.linspace(20, 235, layers * heads).reshape(HEADS).astype(np.uint8)
    return Image.fromarray(np.repeat(np.repeat(tiles, 4, axis=0), 4, axis=1))


def photo_picked() -> None:
    """Keep the cell before the page runs, so that the same run draws its outline."""
    state.photo_cell = picked_cell("photo")
    state.callbacks.append(state.photo_cell)


with st.sidebar:
    other = st.toggle("Other picture")
    tall = st.toggle("Tall picture")
    show_grid = st.toggle("Grid", value=True)
    crowded = st.toggle("24 heads")
    removed = st.toggle("Remove the pickers")
if st.button("Choose 4, 7 from Python"):
    state.photo_cell = (4, 7)

if not removed:
    cell = pick_cell(
        gradient(220 if other else 20, TALL_SIZE if tall else SIZE),
        grid=GRID,
        box=TALL_BOX if tall else BOX,
        chosen=state.photo_cell,
        key="photo",
        alt="A colour gradient",
        values=np.arange(40).reshape(GRID) / 100,
        unit="bits",
        show_grid=show_grid,
        on_pick=photo_picked,
    )
    if cell is not None:
        state.returned.append(cell)

    heads = 24 if crowded else HEADS[1]
    head = pick_cell(
        mosaic(),
        grid=(HEADS[0], heads),
        box=None,
        chosen=state.head,
        key="mosaic",
        alt="One tile a head",
        row_names=[f"L{i}" for i in range(HEADS[0])],
        col_names=[f"H{i}" for i in range(heads)],
        cell_word="head",
        show_grid=False,
        crisp=True,
    )
    if head is not None and head != state.head:
        state.head = head
        st.rerun()


@st.fragment
def part() -> None:
    """A picker whose picks rerun nothing but this."""
    cell = pick_cell(gradient(120), grid=(2, 2), box=None, chosen=None, key="part", alt="Again")
    if cell is not None:
        state.in_fragment.append(cell)
    st.text("fragment " + json.dumps(state.in_fragment))


part()
with st.container(key="log"):
    names = ("runs", "callbacks", "returned", "head")
    st.text("page " + json.dumps({name: state[name] for name in names}))
st.html("<div style='height: 1500px'></div>")
