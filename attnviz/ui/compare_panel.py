"""Two of one kind side by side: pictures, models, resolutions or queries, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz.errors import AttnVizError, BadOption
from attnviz.explain import Explanation
from attnviz.heatmap import shared_scale
from attnviz.legend import legend
from attnviz.methods import METHODS, Method
from attnviz.methods.options import settle
from attnviz.record import AttentionRecord
from attnviz.scale import Scale
from attnviz.ui.alike_panel import show_alike
from attnviz.ui.asked import ASKED, OTHERS
from attnviz.ui.bar import show_bar
from attnviz.ui.code_panel import drawing_of, recipe_on, show_code
from attnviz.ui.look_panel import Look
from attnviz.ui.map_panel import sentence, subject
from attnviz.ui.method_panel import Ask, choose_method
from attnviz.ui.one_map import MapAsked, aim
from attnviz.ui.other_side import KINDS, Other, choose_kind, choose_other
from attnviz.ui.picker import pick_cell, picked_cell
from attnviz.ui.query_panel import choose_name
from attnviz.ui.stage import Stage, show_provenance
from attnviz.ui.target_panel import Wish

SHOWN = {"maps": "The same map of both", "alike": "Which patches are alike"}
"""What is shown of two pictures."""

SCALE_WORDS = {"own": "Each map its own", "both": "One for both"}


@dataclass(frozen=True)
class Side:
    """One map of the two, and where it is drawn."""

    wanted: MapAsked
    heat: Explanation
    key: str
    place: Place


def show_compare(stage: Stage) -> None:
    """The widgets, then both maps; what fails on one side is said there, and the other stands."""
    kind = choose_kind()
    other = choose_other(stage, kind)
    if kind == "picture" and _choose_shown() == "alike":
        show_alike(stage, other)
        return
    asked = choose_method(stage.record)
    method = METHODS[asked.method]
    request, seen = aim(stage) if method.needs_gradient else (stage.request, stage.seen)
    both = _choose_scale()
    st.subheader(f"{method.label}: {KINDS[kind].lower()} beside it", anchor=False)
    own_query = kind == "query"
    st.caption(_what_to_do(method, own_query=own_query))
    if method.asks and not own_query:
        choose_name(stage.ground)
    left, right = st.columns(2, gap="medium")
    for place, words, key in ((left, other.here, ASKED), (right, other.there, OTHERS[0])):
        with place:
            st.markdown(words)
            if method.asks and own_query:
                choose_name(replace(stage, asks=key).ground)
    first = MapAsked(stage, asked, seen, request)
    here = Side(first, first.compute(), "compare-here", left.container())
    if not both:
        _show(here, _own(here))
    with right:
        there = _stand(other, here, both=both, place=right.container(), own_query=own_query)
    if there is not None:
        _say_differences(here, there)


def _what_to_do(method: Method, *, own_query: bool) -> str:
    if not method.asks:
        return "This map is of the whole picture: it has no query."
    if own_query:
        return "**Pick a patch** on either side: each has a query of its own."
    return "**Pick a patch** on either side: the patch at the same place asks on both."


def _stand(other: Other, here: Side, *, both: bool, place: Place, own_query: bool) -> Side | None:
    """The second map, or why there is none; with `both`, the first is drawn with it."""
    look = here.wanted.stage.look
    try:
        second = _ask(other.stand(), here.wanted, same=own_query)
        there = Side(second, second.compute(), "compare-there", place)
    except AttnVizError as error:
        st.error(str(error), icon=":material/error:")
        if both:
            _show(here, _own(here))
        return None
    shared = _shared([here.heat, there.heat], look) if both else None
    if both and shared is None:
        st.caption("Maps in different units, or in colour, have no scale in common.")
    for side in (here, there) if both else (there,):
        _show(side, shared or _own(side))
    return there


def _ask(stage: Stage, first: MapAsked, *, same: bool) -> MapAsked:
    """The same of the other side: what was left as it is means each model's own, as its last layer.

    With `same`, both are of one record, and of one target.
    """
    asked = first.asked if same else _by_hand(first.asked, first.stage.record)
    if not METHODS[asked.method].needs_gradient:
        return MapAsked(stage, asked, stage.seen, stage.request)
    if same:
        return MapAsked(stage, asked, first.aimed, first.request)
    request, aimed = stage.model_run.observe(_wish(first.request[4], stage))
    return MapAsked(stage, asked, aimed, request)


def _wish(wish: object, stage: Stage) -> Wish:
    """The same target on the other side: a patch is the one at the same place."""
    match wish:
        case ("token", (int(), int())):
            return "token", stage.query
        case ("class" | "token" | "sample" as kind, what):
            return cast("Wish", (kind, what))
    raise BadOption("The target of the first side is none of the other's: choose another.")


def _by_hand(asked: Ask, record: AttentionRecord) -> Ask:
    """Without the options that are the record's own defaults."""
    usual = settle(asked.method, METHODS[asked.method].options, {}, record)
    kept = {name: value for name, value in asked.options.items() if usual[name] != value}
    return Ask(asked.method, kept)


def _shared(heats: Sequence[Explanation], look: Look) -> Scale | None:
    try:
        return shared_scale(heats, "zero" if look.scale == "zero" else "own", clip=look.clip)
    except BadOption:
        return None


def _own(side: Side) -> Scale | None:
    """The scale of one map by itself; None where three components are mixed."""
    return None if side.heat.in_colour else side.wanted.stage.look.scale_of(side.heat)


def _show(side: Side, scale: Scale | None) -> None:
    """The map with its bar, what it shows in words, what saw it, and the code that makes it."""
    stage, heat = side.wanted.stage, side.heat
    shown, look, ground = stage.seen.on_screen(heat), stage.look, stage.ground_of(heat)
    drawing = {} if scale is None else {"colormap": look.colormap, "scale": scale}
    with side.place:
        pick_cell(
            shown.overlay(alpha=look.alpha, interpolation=look.interpolation, **drawing),
            grid=shown.grid,
            box=shown.box,
            chosen=heat.query_cell,
            key=side.key,
            alt=f"{subject(heat)}, as colours over {stage.picture_name}",
            values=heat.values,
            show_grid=False,
            on_pick=lambda: ground.ask(picked_cell(side.key)),
        )
        if scale is None:
            st.caption(legend(heat, interpolation=look.interpolation)[1])
        else:
            show_bar(scale, look.colormap, unit=heat.unit, values=heat.drawn)
        for note in heat.notes:
            st.caption(f":material/warning: {note}")
        st.caption(sentence(heat, stage.ground))
        show_provenance(stage.record)
        asked = side.wanted.asked
        show_code(
            recipe_on(
                stage,
                "map",
                asked.method,
                request=side.wanted.request,
                options=asked.options,
                drawing=drawing_of(heat, look, scale),
            )
        )


def _say_differences(here: Side, there: Side) -> None:
    """What of the two cannot be read off their colours."""
    one, other = here.heat, there.heat
    said = []
    if one.grid != other.grid:
        rows, cols = (f"{grid[0]} × {grid[1]}" for grid in (one.grid, other.grid))
        said.append(f"The grids differ: {rows} patches on the first side, {cols} on the second.")
        if one.share_of_all and other.share_of_all:
            said.append(
                "Each map's shares sum to 1, so that on the finer grid a patch has less: compare"
                " where they lie, or each map on a scale of its own."
            )
    stages = [side.wanted.stage for side in (here, there)]
    linked = stages[0].asks == stages[1].asks and METHODS[here.wanted.asked.method].asks
    if linked and isinstance(stages[0].query, str) and stages[0].query != stages[1].query:
        said.append(f"The second side has no {stages[0].asker}: there the {stages[1].asker} asks.")
    if one.unit != other.unit:
        said.append(f"The units differ: {one.unit} and {other.unit}.")
    if said:
        st.info(" ".join(said), icon=":material/compare_arrows:")


def _choose_shown() -> str:
    st.session_state.setdefault("compare_shown", "maps")
    return (
        st.segmented_control(
            "Shown",
            SHOWN,
            key="compare_shown",
            format_func=SHOWN.__getitem__,
            required=True,
            persist_state="session",
            label_visibility="collapsed",
        )
        or "maps"
    )


def _choose_scale() -> bool:
    """Whether both maps have one scale."""
    return (
        st.radio(
            "Colour scale of the two",
            SCALE_WORDS,
            key="compare_scale",
            horizontal=True,
            persist_state="session",
            format_func=SCALE_WORDS.__getitem__,
            help="*One for both*: equal colours are equal values on both sides.",
        )
        == "both"
    )
