"""What can be seen of one picture: a literal table of views, each a function of the stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import streamlit as st

from attnviz.errors import AttnVizError, BadOption
from attnviz.recipe import Kind, Recipe
from attnviz.ui.code_panel import drawing_of, recipe_on, show_code
from attnviz.ui.compare_panel import show_compare
from attnviz.ui.export_panel import as_chosen, options_for, show_export, show_figure
from attnviz.ui.go_to import chosen_head
from attnviz.ui.heads_panel import show_heads
from attnviz.ui.layers_panel import show_layers
from attnviz.ui.live_panel import show_live
from attnviz.ui.map_panel import show_chart, show_map, show_small
from attnviz.ui.mask_panel import show_masks
from attnviz.ui.methods_panel import show_methods
from attnviz.ui.mosaic_panel import show_mosaic
from attnviz.ui.one_map import MapAsked, ask_for_map
from attnviz.ui.other_side import choose_kind, choose_other
from attnviz.ui.pair import ask_for_pair
from attnviz.ui.patches_panel import show_patches
from attnviz.ui.plate_panel import Plate, choose_figure, plate_of, plate_of_two
from attnviz.ui.ranking import choose_ranking
from attnviz.ui.set_panel import show_set
from attnviz.ui.stack_panel import show_stack
from attnviz.ui.stage import Stage, say_wrong
from attnviz.ui.trust_panel import show_trust

PICTURE_SHARE = 0.32
"""Of the width, for the picture beside a view that needs room."""


TESTED_WIDTH = 320
"""Pixels of the map that is tested."""


@dataclass(frozen=True)
class View:
    """One way to look at it."""

    label: str
    show: Callable[[Stage], None]
    share: float = PICTURE_SHARE
    """Of the width, for the picture that stands there before the model has looked."""
    chooses_map: bool = False
    """Whether one map is chosen above the picture."""
    compares: bool = False
    """Whether a second picture may be seen beside it."""


def _one_map(stage: Stage) -> None:
    wanted = ask_for_map(stage)
    live = wanted.live
    right = stage.beside_picture(named=wanted.method.asks, scene=live.under if live else "")
    heat = wanted.compute()
    with right:
        scale = wanted.scale(heat)
        shown = stage.seen.on_screen(heat)
        scene = live.pinned(stage.query) if live else ""
        below = show_map(heat, shown, stage.look, scale, stage.ground, scene=scene)
    show_chart(shown, stage.look, scale)
    if live and scale:
        show_live(live, heat, stage.look, scale, stage.ground, below)
    _show_code(stage, "map", wanted, drawing=drawing_of(heat, stage.look, scale))


def _all_heads(stage: Stage) -> None:
    with stage.beside_picture(PICTURE_SHARE):
        tiles = stage.tiles()
        shared, chosen = stage.look.shared_scale(tiles), chosen_head(stage.record)
        st.subheader("All heads", anchor=False)
        by = choose_ranking(stage)
        show_mosaic(tiles, stage.look, shared, chosen, stage.asker, by)
    show_code(recipe_on(stage, "heads"))


def _stack(stage: Stage) -> None:
    with stage.beside_picture(PICTURE_SHARE):
        tiles = stage.tiles()
        shared, chosen = stage.look.shared_scale(tiles), chosen_head(stage.record)
        show_stack(stage.seen, tiles, stage.look, shared, chosen, stage.ground)
    show_code(recipe_on(stage, "heads"))


def _layers(stage: Stage) -> None:
    with stage.beside_picture(PICTURE_SHARE):
        show_layers(stage)


def _export(stage: Stage) -> None:
    try:
        _show_figure(stage, choose_figure())
    except AttnVizError as error:  # what is kept stands
        say_wrong(error)
    show_set()


def _show_figure(stage: Stage, kind: str) -> None:
    if kind == "map":
        wanted = ask_for_map(stage)
        with stage.beside_picture(PICTURE_SHARE, named=wanted.method.asks):
            options = show_export(stage, wanted)
        show_code(as_chosen(_recipe(stage, "map", wanted, drawing=options)))
    elif kind == "compared":
        compared = choose_kind()
        pair = ask_for_pair(stage, compared, choose_other(stage, compared))
        named, other = pair.first.method.asks, pair.second_ground
        with stage.beside_picture(PICTURE_SHARE, named=named, other=other):
            try:
                plate = plate_of_two(stage, pair)
            except AttnVizError as error:
                say_wrong(error)
                return
            _show_plate(stage, plate)
    else:
        # Metrics of heads are of all queries: there is none to pick.
        with st.container() if kind == "numbers" else stage.beside_picture(PICTURE_SHARE):
            try:
                plate = plate_of(stage, kind)
            except BadOption as error:
                st.info(str(error), icon=":material/info:")
                return
            _show_plate(stage, plate)


def _show_plate(stage: Stage, plate: Plate) -> None:
    drawing = options_for(plate.figure, plate.drawing)
    show_code(as_chosen(plate.recipe(show_figure(stage, plate.figure, drawing))))


def _heads(stage: Stage) -> None:
    with stage.computing("Measuring the heads …"):
        metrics = stage.seen.metrics()
    show_heads(metrics.named(stage.picture_name))
    show_code(recipe_on(stage, "metrics"))


def _mask(stage: Stage) -> None:
    wanted = ask_for_map(stage)
    right = stage.beside_picture(PICTURE_SHARE, named=wanted.method.asks)
    heat = wanted.compute()
    options, last = wanted.asked.options, len(stage.record.layers) - 1
    with right:
        mass = show_masks(stage, heat, options.get("layer", options.get("last_layer", last)))
    if mass is not None:
        _show_code(stage, "mask", wanted, extra={"mass": mass})


def _trust(stage: Stage) -> None:
    wanted = ask_for_map(stage)
    right = stage.beside_picture(PICTURE_SHARE, named=wanted.method.asks)
    heat = wanted.compute()
    vit = None if stage.run is None else stage.run.vit
    with right:
        with st.container(width=TESTED_WIDTH):
            show_small(heat, stage.seen.on_screen(heat), stage.look, "tested")
        asked = show_trust(vit, wanted.aimed.record, heat, stage.status, request=wanted.request)
    if asked is not None:
        _show_code(stage, "faithfulness", wanted, extra=asked)


def _show_code(stage: Stage, kind: Kind, wanted: MapAsked, **drawn: Any) -> None:
    show_code(_recipe(stage, kind, wanted, **drawn))


def _recipe(stage: Stage, kind: Kind, wanted: MapAsked, **drawn: Any) -> Recipe:
    """Of what is made from the one map that is asked for."""
    method, options = wanted.asked.method, wanted.asked.options
    name = stage.picture_name if kind == "map" else ""  # for the caption
    return recipe_on(
        stage, kind, method, request=wanted.request, options=options, name=name, **drawn
    )


VIEWS: Mapping[str, View] = {
    "map": View("One map", _one_map, 0.5, chooses_map=True),
    "heads": View("All heads", _all_heads),
    "stack": View("Stack", _stack),
    "layers": View("Layers", _layers),
    "methods": View("Methods", show_methods),
    "compare": View("Compare", show_compare, 0.5, compares=True),
    "patches": View("Patches", show_patches, 0.5),
    "numbers": View("Head metrics", _heads),
    "mask": View("Mask", _mask, chooses_map=True),
    "trust": View("Trust", _trust, chooses_map=True),
    "export": View("Export", _export, compares=True),
}
"""Name in the page's address → view, in the order in which they are offered."""


def choose_view() -> View:
    """The widget at the top."""
    st.session_state.setdefault("view", next(iter(VIEWS)))
    name = st.segmented_control(
        "View",
        VIEWS,
        format_func=lambda name: VIEWS[name].label,
        key="view",
        required=True,
        wrap=True,
        label_visibility="collapsed",
    )
    return VIEWS[name or next(iter(VIEWS))]


def methods_shown() -> Sequence[str]:
    """The methods that the view on the page draws by, or that wait for its return."""
    state = st.session_state
    if state.get("view") == "methods":
        return cast("Sequence[str]", state.get("methods") or ())
    return (state.get("method", "attention"),)
