"""Which method, and what it is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz.errors import BadOption
from attnviz.explain import estimate
from attnviz.methods import METHODS
from attnviz.methods.fusion import HEAD_FUSIONS
from attnviz.methods.options import COMPONENTS
from attnviz.methods.span import layers_between
from attnviz.record import AttentionRecord
from attnviz.ui.by_hand import owner_of, settle
from attnviz.ui.head_choice import choose_head, choose_one_head
from attnviz.ui.methods_offered import offered_methods, say_not_offered

POOLS = (8, 14, 20, 28)
"""Sides of the grids that patches can be pooled to."""

AS_THEY_ARE = 0

DIRECTIONS = {"from": "What it looks at", "to": "Who looks at it"}
"""Both ends of the attention of one query."""


@dataclass(frozen=True)
class Ask:
    """A method and its options."""

    method: str
    options: dict[str, Any]

    @property
    def head(self) -> tuple[int, int] | None:
        """(layer, head) where one head is asked for."""
        layer, head = self.options.get("layer"), self.options.get("head")
        return None if layer is None or head is None else (layer, head)


def choose_method(record: AttentionRecord) -> Ask:
    """The widgets; gives what to compute."""
    offered = offered_methods(record)
    if st.session_state.get("method") not in offered:
        st.session_state.method = "attention"
    method: str = (
        st.segmented_control(
            "Method",
            offered,
            format_func=lambda name: METHODS[name].label,
            key="method",
            required=True,
            wrap=True,
            persist_state="session",
        )
        or "attention"
    )
    chosen = METHODS[method]
    st.caption(chosen.summary, help=f"{chosen.formula}. Source: {chosen.source}.")
    say_not_offered(record)
    if not chosen.options:
        return Ask(method, {})
    left, right = st.columns([2, 3], gap="medium")
    return Ask(method, _WIDGETS.get(method, _plain)(method, record, left, right))


def _attention(_: str, record: AttentionRecord, left: Place, right: Place) -> dict[str, Any]:
    layer = _choose_layer(record, left)
    line = right.container(horizontal=True, vertical_alignment="bottom")
    head = choose_head(record.layers[layer].heads, line, right)
    chosen = {"layer": layer, "direction": _choose_direction(record, layer, line)}
    if head in HEAD_FUSIONS:
        return chosen | {"head": None, "head_fusion": head}
    return chosen | {"head": head}


def _choose_direction(record: AttentionRecord, layer: int, place: Place) -> str:
    """What the query looks at, or who looks at the query; the same in a layer without the other."""
    geometry = record.geometry(record.layers[layer])
    if not geometry.queries.to_grid(geometry.asks).any():
        place.caption(f"Who looks at the query cannot be drawn here: {geometry.kind}.")
        return "from"
    return choose_direction(place)


def choose_direction(place: Place) -> str:
    """From the query, or to it."""
    st.session_state.setdefault("direction", "from")
    return (
        place.segmented_control(
            "The map shows",
            DIRECTIONS,
            key="direction",
            required=True,
            wrap=True,
            persist_state="session",
            format_func=DIRECTIONS.__getitem__,
            help="*What it looks at*: the weights by which the query gathers from each patch; with "
            "all other tokens they sum to 1. *Who looks at it*: the weight that each patch gives "
            "the query. These do not sum to 1: a patch that all look at has many.",
        )
        or "from"
    )


def _rollout(method: str, record: AttentionRecord, left: Place, right: Place) -> dict[str, Any]:
    of = METHODS[method].options
    first_layer, last_layer = _choose_span(record, left)
    fusion = right.selectbox(
        "Heads become one map by their",
        HEAD_FUSIONS,
        key="fusion",
        persist_state="session",
        help="Head fusion: the mean of the heads' weights, their highest or their lowest, taken "
        "for each pair of tokens before layers are multiplied.",
    )
    with right.popover("More options"):
        return {
            "head_fusion": fusion,
            "first_layer": first_layer,
            "last_layer": last_layer,
            "residual": st.slider(
                "Residual",
                0.0,
                1.0,
                of["residual"].default,
                0.05,
                key="residual",
                persist_state="session",
                help="Beside its attention, a layer passes each token on as it was (the residual "
                "connection). This is that part's weight; at 0 only attention counts, at 1 nothing "
                "moves.",
            ),
            "discard_ratio": st.slider(
                "Discard",
                0.0,
                0.95,
                of["discard_ratio"].default,
                0.05,
                key="discard_ratio",
                persist_state="session",
                help="This share of the weakest weights between patches is set to 0 in each layer, "
                "so that many faint ones do not drown the few strong ones. The rest is scaled up "
                "to sum to 1 again.",
            ),
            "discard": st.radio(
                "Discard the weakest",
                of["discard"].choices,
                help="Which weights count as the weakest: those of each row, so that every token "
                "loses as many, or those of the whole map. Nothing is discarded at 0.",
                key="discard",
                persist_state="session",
                format_func={"row": "of each row", "global": "of the whole map"}.__getitem__,
            ),
        }


def _flow(method: str, record: AttentionRecord, left: Place, right: Place) -> dict[str, Any]:
    first_layer, last_layer = _choose_span(record, left)
    layout, usual = (
        record.geometry(record.layers[last_layer]).queries,
        METHODS[method].options["pool"].default,
    )
    rows, cols = layout.grid
    sides = [side for side in POOLS if side < max(rows, cols)]
    words = {side: "{} × {}".format(*layout.pooled(side).grid) for side in sides}
    # Where nothing has to be pooled, that is no choice against pooling on a finer grid.
    words[usual if max(rows, cols) <= usual else AS_THEY_ARE] = f"{rows} × {cols}, as they are"
    lacks = settle("pool", usual, words.__contains__, rows, strict=True)
    pool = right.selectbox(
        "Patches pooled to",
        words,
        key="pool",
        persist_state="session",
        format_func=words.__getitem__,
        help="The finer the grid, the longer it takes.",
    )
    options = {"first_layer": first_layer, "last_layer": last_layer, "pool": pool or None}
    needed = estimate(record, method, **options)
    if needed is not None and needed.most > METHODS[method].options["limit"].default:
        raise BadOption(
            f"The flow takes {needed}, too long for this page: pool the patches to fewer, or take"
            " fewer layers."
        )
    if lacks is not None:
        whole = words[pool].startswith(f"{rows} × {cols}")
        right.caption(
            f"You chose to pool to {lacks} a side; this grid has {rows} × {cols} patches, "
            + ("which stay as they are." if whole else f"pooled to {words[pool]}.")
        )
    right.caption(f"Takes {needed}. Any other choice stops it.")
    return options


def _pca(method: str, record: AttentionRecord, left: Place, right: Place) -> dict[str, Any]:
    chosen = left.selectbox(
        "Components",
        ["all", *range(COMPONENTS)],  # None would be a choice that can be cleared
        key="component",
        persist_state="session",
        format_func=lambda at: "0, 1, 2 as red, green, blue" if at == "all" else f"{at} alone",
        help=METHODS[method].options["component"].help,
    )
    return {"component": None if chosen == "all" else chosen}


def _plain(method: str, record: AttentionRecord, left: Place, right: Place) -> dict[str, Any]:
    """Widgets for options of the usual names: a layer, a head, a span of layers."""
    chosen: dict[str, Any] = {}
    for name in METHODS[method].options:
        if name == "layer":
            chosen[name] = _choose_layer(record, left)
        elif name == "head":
            layers = record.layers if "layer" not in chosen else [record.layers[chosen["layer"]]]
            chosen[name] = choose_one_head(min(layer.heads for layer in layers), right)
        elif name == "first_layer":
            chosen["first_layer"], chosen["last_layer"] = _choose_span(record, left)
    return chosen


def _choose_layer(record: AttentionRecord, place: Place) -> int:
    last = len(record.layers) - 1
    lacks = settle("layer", last, lambda layer: 0 <= layer <= last, owner_of(record))
    words = f"Layer (0 is the first, {last} the last)"
    layer = 0
    if last:  # a slider needs two places
        layer = int(place.slider(words, 0, last, key="layer", persist_state="session"))
    if lacks is not None:
        place.caption(f"You chose layer {lacks}; this model has none, so its last is shown.")
    return layer


def _choose_span(record: AttentionRecord, place: Place) -> tuple[int, int]:
    """From which layer to which; methods that have both share the widget's memory."""
    last = len(record.layers) - 1
    own = (record.shared_from(last), last)
    lacks = settle("span", own, partial(_adds_up, record), owner_of(record))
    if not last:
        return 0, 0
    first_layer, last_layer = cast(
        "tuple[int, int]",  # as its remembered value is
        place.slider("From layer, to layer", 0, last, key="span", persist_state="session"),
    )
    if lacks is not None:
        begin, end = lacks
        place.caption(
            f"You chose layers {begin} to {end}; in this model they do not add up, so it is layers"
            f" {first_layer} to {last_layer}."
        )
    return first_layer, last_layer


def _adds_up(record: AttentionRecord, span: tuple[int, int]) -> bool:
    """Whether the record has these layers, and their maps can be multiplied."""
    if not 0 <= span[0] <= span[1] < len(record.layers):
        return False
    try:
        layers_between(record, *span)
    except BadOption:
        return False
    return True


_WIDGETS: dict[str, Callable[[str, AttentionRecord, Place, Place], dict[str, Any]]] = {
    "attention": _attention,
    "rollout": _rollout,
    "flow": _flow,
    "pca": _pca,
}
"""Methods with widgets of their own, in two places of a row; the others' are `_plain`."""
