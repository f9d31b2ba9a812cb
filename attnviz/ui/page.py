"""The page: widgets make a request, the façade answers it, figures show the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import numpy as np
import streamlit as st
from PIL import Image
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz.colour import colourise, stretched
from attnviz.contract import Progress
from attnviz.errors import AttnVizError, BadOption
from attnviz.explain import Explanation, estimate
from attnviz.methods import METHODS, Method
from attnviz.methods.values import in_words
from attnviz.record import AttentionRecord
from attnviz.scale import Scale
from attnviz.ui import cache
from attnviz.ui.asked import Ground
from attnviz.ui.heads_panel import show_heads
from attnviz.ui.look_panel import Look, choose_look
from attnviz.ui.map_panel import show_chart, show_map
from attnviz.ui.mask_panel import show_masks
from attnviz.ui.method_panel import Ask, choose_method
from attnviz.ui.model_panel import choose_model
from attnviz.ui.mosaic_panel import show_mosaic
from attnviz.ui.picture_panel import choose_picture
from attnviz.ui.query_panel import choose_query
from attnviz.ui.run import Run
from attnviz.ui.sinks_panel import leave_out_sinks
from attnviz.ui.state import plain
from attnviz.ui.target_panel import choose_target
from attnviz.ui.trust_panel import show_trust

PANORAMA = 2.2
"""Width over height from which two pictures are shown below each other."""

TILES_UNIT = METHODS["attention"].unit
"""What the tiles of all heads show."""

VIEWS = ("All heads", "Heads in numbers", "Object mask", "Can I trust this map?")
"""What can be seen below the map."""

INTRODUCTION = """\
A picture is cut into patches, and each becomes a *token*; one more, the *class token*, stands for
the whole picture. In every layer, each *head* lets each token gather from the others, by weights
that sum to 1: its **attention**. These are the weights that the model really used: where it gathers
from, not why it decides.

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
    run: Run | None = None
    try:
        with model_place:
            vit, choice, fit = choose_model(status)
        run = Run(vit, choice, picture, fit, status)
        st.session_state.seen, seen = run.observe()
        st.session_state.seen_name = picture.name.strip("`")
    except AttnVizError as error:
        st.error(str(error), icon=":material/error:")
        before = cache.observations().find(st.session_state.get("seen"))
        if before is None:
            return
        st.info("Below is still the last result.", icon=":material/history:")
        run, seen = None, before
    try:
        _explore(run, seen, look, status)
    except AttnVizError as error:
        st.error(str(error), icon=":material/error:")


def _icon() -> Image.Image:
    """A small heatmap."""
    values = np.array([[0.1, 0.3, 0.2], [0.3, 1.0, 0.7], [0.2, 0.7, 0.4]])
    cells = Image.fromarray(colourise(values, Scale(0, 1, "icon")))
    return cells.resize((48, 48), Image.Resampling.NEAREST)


def _explore(run: Run | None, seen: cache.Observation, look: Look, status: Place) -> None:
    """Everything that is drawn of one picture; only a new target asks for another pass."""
    record = seen.record
    if record.random:
        st.warning(plain(record.weights), icon=":material/casino:")
    asked = choose_method(record)
    ground = Ground.of(record)
    method = METHODS[asked.method]
    asker = record.layout.query_label(ground.query)
    request, aimed = st.session_state.seen, seen
    if method.needs_gradient:
        if run is None:
            raise BadOption(f"{method.label} runs the model again: mend what failed above first.")
        wish = choose_target(run.vit, record, ground.query, run.picture.sample)
        request, aimed = run.observe(wish)
    _say_what_is_shown(method, aimed.record, asker)
    left, right = _side_by_side(seen)
    with left:
        choose_query(seen, ground, named=method.asks)
        _show_provenance(record)
    place = st.empty()
    with seen.turn(place.empty), _busy(aimed.record, asked, status) as progress:
        place.empty()  # a run that was cut off while it waited ends here
        tiles = seen.tiles(ground.query)
        heat = aimed.explain(asked.method, query=ground.query, progress=progress, **asked.options)
    # What others call the same picture is not kept with it.
    heat = heat.named(st.session_state.seen_name)
    shared = look.shared_scale(tiles)

    def begin_at(layer: int) -> Explanation:
        options = {**asked.options, "first_layer": layer}
        with seen.turn(place.empty), status, st.spinner("Computing the map …", show_time=True):
            return aimed.explain(asked.method, query=ground.query, **options)

    with right:
        left_out = () if heat.in_colour else leave_out_sinks(heat, asked, begin_at)
        scale = _scale_of(heat, look, shared, left_out)
        shown = seen.on_screen(heat)
        show_map(heat, shown, look, scale, ground)
    show_chart(shown, look, scale)
    match _choose_view():
        case "Heads in numbers":
            with seen.turn(place.empty), status, st.spinner("Measuring the heads …"):
                metrics = seen.metrics()
            show_heads(metrics.named(st.session_state.seen_name))
        case "Object mask":
            _show_masks(seen, heat, asked, ground)
        case "Can I trust this map?":
            vit = None if run is None else run.vit
            show_trust(vit, aimed.record, heat, status, request=request)
        case _:
            show_mosaic(tiles, look, shared, asked.head, asker)


@contextmanager
def _busy(record: AttentionRecord, asked: Ask, status: Place) -> Iterator[Progress | None]:
    """A spinner while a map is computed; for a long method a bar, which any move stops."""
    needed = estimate(record, asked.method, **asked.options)
    if needed is None:
        with status, st.spinner("Computing the map …", show_time=True):
            yield None
        return
    label, start = METHODS[asked.method].label, monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal start
        if done < 2:  # what comes before the second is done once for all
            start, left = monotonic(), str(needed)
        else:
            left = in_words((monotonic() - start) / (done - 1) * (total - done))
        status.progress(done / total, f"{label}: {done} of {total} tokens, {left} to go")

    try:
        yield progress
    finally:
        status.empty()


def _choose_view() -> str | None:
    """What is seen below the map."""
    st.session_state.setdefault("view", VIEWS[0])
    return st.segmented_control(
        "Below the map", VIEWS, key="view", required=True, wrap=True, label_visibility="collapsed"
    )


def _show_masks(seen: cache.Observation, heat: Explanation, asked: Ask, ground: Ground) -> None:
    layer = asked.options.get("layer", len(seen.record.layers) - 1)
    heads = [
        seen.explain("attention", query=ground.query, layer=layer, head=head)
        for head in range(seen.record.layers[layer].heads)
    ]
    show_masks(heat, seen.on_screen, heads)


def _scale_of(
    heat: Explanation, look: Look, shared: Scale | None, left_out: Sequence[tuple[int, int]]
) -> Scale | None:
    """The map's one scale, if it has one; only maps in the same unit can share it."""
    if heat.in_colour:
        return None
    return shared if shared and heat.unit == TILES_UNIT else look.scale_of(heat, left_out)


def _say_what_is_shown(method: Method, record: AttentionRecord, asker: str) -> None:
    """One heading, and what a patch that is picked will do."""
    rows, cols = record.layout.grid
    grid = f"The model sees {_count(rows, 'row')} × {_count(cols, 'column')} of patches."
    pick = "**Pick a patch**, on either picture, to see what it attends to."
    if method.needs_gradient:
        words = f"What speaks for the {record.target}"
        pick = f"The query is the {asker}; pick a patch to make it the query."
    elif not method.asks:
        words = f"{method.label} of the whole picture"
    elif method is METHODS["similarity"]:
        words, pick = f"What is like the {asker}", "**Pick a patch** to see what is like it."
    elif method is METHODS["attention"]:
        words = f"What the {asker} attends to"
    else:
        words, pick = f"{method.label} of the {asker}", "**Pick a patch** to see its map."
    if not method.asks:
        pick = "This map is of the whole picture: it has no query."
    st.subheader(words, anchor=False)
    st.caption(f"{grid} {pick}")
    if note := stretched(record.image.size):
        st.warning(f"A very long picture, {note}.", icon=":material/straighten:")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _side_by_side(seen: cache.Observation) -> tuple[Place, Place]:
    """Two places beside each other; a panorama's patches need the page's whole width."""
    if seen.shown.width > PANORAMA * seen.shown.height:
        return st.container(), st.container()
    left, right = st.columns(2, gap="medium")
    return left, right


def _show_provenance(record: AttentionRecord) -> None:
    """What the weights are, where they ran, and what the model says of the picture."""
    named = ", ".join(f"**{label}** {share:.0%}" for label, _, share in record.predictions)
    says = f" It says: {named}." if named else ""
    seen = f" Seen as {record.input_words} (width × height)."
    st.caption(f"**{record.model}** on {record.device}. {plain(record.weights)}{seen}{says}")
