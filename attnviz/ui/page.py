"""The page: widgets make a request, the façade answers it, figures show the answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import streamlit as st
from PIL import Image
from streamlit.delta_generator import DeltaGenerator as Place

import models
from attnviz.colour import colourise
from attnviz.contract import Fit
from attnviz.errors import AttnVizError
from attnviz.record import AttentionRecord
from attnviz.scale import Scale
from attnviz.ui import cache
from attnviz.ui.asked import Ground
from attnviz.ui.look_panel import Look, choose_look
from attnviz.ui.map_panel import show_chart, show_map
from attnviz.ui.method_panel import choose_method
from attnviz.ui.model_panel import choose_model
from attnviz.ui.mosaic_panel import show_mosaic
from attnviz.ui.picture_panel import choose_picture
from attnviz.ui.query_panel import choose_query
from attnviz.ui.state import Picture

PANORAMA = 2.2
"""Width over height from which two pictures are shown below each other."""

INTRODUCTION = """\
A picture is cut into patches, and each patch becomes a *token*. In every layer, each *head* lets
each token gather from the others, by weights that sum to 1: its **attention**. Here you see the
weights that the model really used. They say where it gathers from, not why it decides.

**Start here:** pick a patch on a picture, move the layer, or open one of the heads at the bottom.
Your own picture and other models: in the sidebar.
"""


def show() -> None:
    """Draw the page once, as Streamlit does after each move of a widget."""
    st.set_page_config("attnviz", page_icon=_icon(), layout="wide")
    st.html(Path(__file__).with_name("page.css"))
    st.title("What does a Vision Transformer look at?", anchor=False)
    st.markdown(INTRODUCTION)
    with st.container(key="status"):
        status = st.empty()
    with st.sidebar:
        picture = choose_picture()
        model_place = st.container()
        look = choose_look()
    try:
        with model_place:
            vit, fit = choose_model(status)
        seen = _observe(vit, picture, fit, status)
    except AttnVizError as error:
        st.error(str(error), icon=":material/error:")
        before = cache.observations().find(st.session_state.get("seen"))
        if before is None:
            return
        st.info("Below is still the last result.", icon=":material/history:")
        seen = before
    try:
        _explore(seen, look, status)
    except AttnVizError as error:
        st.error(str(error), icon=":material/error:")


def _icon() -> Image.Image:
    """A small heatmap."""
    values = np.array([[0.1, 0.3, 0.2], [0.3, 1.0, 0.7], [0.2, 0.7, 0.4]])
    cells = Image.fromarray(colourise(values, Scale(0, 1, "icon")))
    return cells.resize((48, 48), Image.Resampling.NEAREST)


def _observe(vit: models.TimmViT, picture: Picture, fit: Fit, status: Place) -> cache.Observation:
    """Run the model, with a bar that grows layer by layer; a move of any widget stops it."""

    def progress(done: int, total: int) -> None:
        status.progress(done / total, f"Running {vit.name}: layer {done} of {total}")

    def waiting() -> None:
        status.progress(0.0, "Waiting until another visitor's picture is done")

    try:
        st.session_state.seen, seen = cache.observation(vit, picture, fit, progress, waiting)
        st.session_state.seen_name = picture.name.strip("`")
    finally:
        status.empty()
    return seen


def _explore(seen: cache.Observation, look: Look, status: Place) -> None:
    """Everything that is drawn from one record, without another pass."""
    record = seen.record
    if record.random:
        st.warning(record.weights, icon=":material/casino:")
    asked = choose_method(record)
    ground = Ground.of(record)
    asker = record.layout.query_label(ground.query)
    rows, cols = record.layout.grid
    st.subheader(f"What the {asker} attends to", anchor=False)
    st.caption(
        f"The model sees {rows} rows × {cols} columns of patches. **Pick a patch**, on either "
        "picture, to see what it attends to."
    )
    left, right = _side_by_side(seen)
    with left:
        choose_query(seen, ground)
        _show_provenance(record)
    place = st.empty()
    with seen.turn(place.empty), status, st.spinner("Computing the map …", show_time=True):
        place.empty()  # a run that was cut off while it waited ends here
        tiles = seen.tiles(ground.query)
        heat = seen.explain(asked.method, query=ground.query, **asked.options)
    # What others call the same picture is not kept with it.
    heat = heat.named(st.session_state.seen_name)
    shared = look.shared_scale(tiles)
    with right:
        # Only maps in the same unit can share a scale.
        scale = (asked.method == "attention" and shared) or look.scale_of(heat.values)
        shown = seen.on_screen(heat)
        show_map(heat, shown, look, scale, ground)
    show_chart(shown, look, scale)
    show_mosaic(tiles, look, shared, asked.head, asker)


def _side_by_side(seen: cache.Observation) -> tuple[Place, Place]:
    """Two places beside each other; a panorama's patches need the page's whole width."""
    if seen.shown.width > PANORAMA * seen.shown.height:
        return st.container(), st.container()
    left, right = st.columns(2, gap="medium")
    return left, right


def _show_provenance(record: AttentionRecord) -> None:
    """What the weights are, where they ran, and what the model says of the picture."""
    named = ", ".join(f"{label} {share:.0%}" for label, _, share in record.predictions)
    says = f" It says: {named}." if named else ""
    st.caption(f"**{record.model}** on {record.device}. {record.weights}{says}")
