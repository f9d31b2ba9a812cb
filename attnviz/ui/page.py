"""The page: widgets make a request, the façade answers it, figures show the answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import streamlit as st
from PIL import Image

from attnviz.colour import colourise
from attnviz.errors import AttnVizError
from attnviz.images.quiet import hush
from attnviz.scale import Scale
from attnviz.ui import cache, link
from attnviz.ui.ahead import show_ahead
from attnviz.ui.asked import Ground
from attnviz.ui.look_panel import choose_look
from attnviz.ui.model_panel import choose_model
from attnviz.ui.other_side import close_other
from attnviz.ui.picture_panel import choose_picture
from attnviz.ui.run import Run
from attnviz.ui.same_cell import arrive, say_what_stayed
from attnviz.ui.settings import settings
from attnviz.ui.stage import Stage, say_wrong
from attnviz.ui.state import plain
from attnviz.ui.status import show_status
from attnviz.ui.views import choose_view

INTRODUCTION = """\
A picture is cut into patches, and each becomes a *token*; one more, the *class token*, stands for
the whole picture. In every layer, each *head* lets each token, the *query*, gather from the others,
by weights that sum to 1: its **attention**. These are the weights that the model really used: where
it gathers from, not why it decides. **Start here:** pick a patch on a picture, move the layer, or
look at *All heads*; your own picture and other models are in the sidebar.
"""


def show() -> None:
    """Draw the page once, as Streamlit does after each move of a widget."""
    hush()
    st.set_page_config("attnviz", page_icon=_icon(), layout="wide")
    st.html(Path(__file__).with_name("page.css"))
    st.title("What does a Vision Transformer look at?", anchor=False)
    with st.container(key="introduction"):
        st.markdown(INTRODUCTION)
    with st.container(key="status"):
        status = st.empty()
    link.follow()
    with st.sidebar:
        picture = choose_picture()
        model_place = st.container()
        look = choose_look()
    said = st.container(key="said")
    view = choose_view()
    if not view.compares:
        close_other()
    with show_ahead(picture, view.share, below_widgets=view.chooses_map), said:
        run: Run | None = None
        try:
            with model_place:
                vit, choice, fit = choose_model(status)
            run = Run(vit, choice, picture, fit, status, link.write_ahead)
            st.session_state.seen, seen = run.observe()
            st.session_state.seen_name = picture.name.strip("`")
        except AttnVizError as error:
            say_wrong(error, again="observe")
            before = cache.observations().find(st.session_state.get("seen"))
            if before is None:
                return
            st.info("Below is still the last result.", icon=":material/history:")
            run, seen = None, before
        ground = Ground.of(seen.record)
        if run is not None:  # else what stands below is the last picture
            arrive(ground)
            link.ask(ground, seen.record)
        notes = st.empty()
        say_what_stayed()
        if seen.record.random:
            st.warning(plain(seen.record.weights), icon=":material/casino:")
    try:
        view.show(Stage(run, seen, st.session_state.seen, look, status))
    except AttnVizError as error:
        say_wrong(error)
    with notes:
        link.show_notes()
    if run is None:  # the address stays that of what could not be shown
        link.write_ahead()
    else:
        link.write(ground)
    if settings().status:
        show_status()


def _icon() -> Image.Image:
    """A small heatmap."""
    values = np.array([[0.1, 0.3, 0.2], [0.3, 1.0, 0.7], [0.2, 0.7, 0.4]])
    cells = Image.fromarray(colourise(values, Scale(0, 1, "icon")))
    return cells.resize((48, 48), Image.Resampling.NEAREST)
