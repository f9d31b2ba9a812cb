"""A page with one stack, for the test in a real browser. `?maps=` says of how many maps."""

import json
from types import SimpleNamespace

import numpy as np
import streamlit as st
from PIL import Image

from attnviz.tokens import TokenLayout
from attnviz.ui.asked import Ground
from attnviz.ui.look_panel import Look
from attnviz.ui.stack_panel import show_stack

SIZES = {"few": (3, 4, 6, 9), "many": (24, 16, 74, 74)}
"""Layers, heads, rows, columns."""

MISSING = [(0, 3), (1, 2), (1, 3)]
"""Of the few: heads that their layers have not."""


@st.cache_resource
def tiles(maps: str, seed: int) -> np.ndarray:
    """A bright spot in each map, elsewhere than in the others."""
    layers, heads, rows, cols = SIZES[maps]
    chance = np.random.default_rng(seed)
    at = chance.uniform(0.1, 0.9, (2, layers, heads, 1, 1))
    down, across = (np.arange(n) / (n - 1) for n in (rows, cols))
    far = (down[:, None] - at[0]) ** 2 + (across - at[1]) ** 2
    values = (0.01 + np.exp(-far / 0.03) * chance.uniform(0.05, 0.5, (layers, heads, 1, 1))).astype(
        np.float32
    )
    if maps == "few":
        for head in MISSING:
            values[head] = np.nan
    return values


st.session_state.setdefault("runs", 0)
st.session_state.runs += 1
maps = st.query_params.get("maps", "few")
shown = Image.linear_gradient("L").resize((450, 300)).convert("RGB")
seen = SimpleNamespace(shown=shown, shown_box=(0.0, 0.0, 450.0, 300.0))
_, _, rows, cols = SIZES[maps]
ground = Ground(TokenLayout(("cls",), (rows, cols)), (0.0, 0.0, 450.0, 300.0))
look = Look(
    alpha=0.5,
    colormap=st.segmented_control("Colours", ["inferno", "viridis"], default="inferno"),
    interpolation="nearest",
    scale="shared" if st.toggle("One scale") else "own",
    clip=None,
)
if st.button("Run again"):
    pass
if st.button("Ask a patch"):
    ground.ask((1, 2))
of = tiles(maps, 1 if isinstance(ground.query, tuple) else 0)
chosen = (st.session_state.get("layer"), st.session_state.get("head"))
if st.toggle("Stack", value=True):
    show_stack(
        seen, of, look, look.shared_scale(of), chosen if None not in chosen else None, ground
    )
with st.container(key="log"):
    said = {
        name: st.session_state.get(name)
        for name in ("runs", "method", "layer", "head", "stack/see_through")
    }
    st.text("page " + json.dumps(said))
st.html("<div style='height: 1500px'></div>")
