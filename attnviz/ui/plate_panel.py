"""Several maps on one figure, as they will be printed: methods, two compared, layers, heads."""

from __future__ import annotations

from typing import Any

import streamlit as st

from attnviz.errors import BadOption, unknown
from attnviz.figure import Figure
from attnviz.methods import METHODS
from attnviz.plates import beside, heads
from attnviz.plot_export import MetricPlot
from attnviz.scale import Scale
from attnviz.ui.look_panel import Look
from attnviz.ui.methods_offered import keep_offered, offered_methods, say_not_offered
from attnviz.ui.stage import Stage

KINDS = {
    "map": "This map",
    "methods": "Methods",
    "compared": "Compared",
    "layers": "Layers",
    "heads": "All heads",
    "numbers": "Heads in numbers",
}
"""What a figure shows."""

FREE = tuple(
    name
    for name, method in METHODS.items()
    if not method.needs_gradient and method.estimate is None
)
"""Methods that a row may have: none runs the model again or takes long."""

USUAL = ("attention", "rollout")

NUMBERS = ("entropy",)
"""Of each head, that a figure shows at first."""


def choose_figure() -> str:
    """The widget at the top of the view."""
    st.session_state.setdefault("export_what", "map")
    kind = st.segmented_control(
        "What the figure shows",
        KINDS,
        format_func=KINDS.__getitem__,
        key="export_what",
        required=True,
        wrap=True,
        persist_state="session",
    )
    return kind or "map"


def plate_of(stage: Stage, kind: str) -> Figure:
    """The figure of that kind, by its widgets; raises BadOption where nothing is chosen."""
    name = stage.picture_name
    if kind == "methods":
        st.session_state.setdefault("export_methods", [*USUAL])
        offered = offered_methods(stage.record, FREE)
        keep_offered("export_methods", offered)
        chosen = st.pills(
            "Methods on the figure",
            offered,
            selection_mode="multi",
            wrap=True,
            key="export_methods",
            format_func=lambda each: METHODS[each].label,
            persist_state="session",
        )
        say_not_offered(stage.record, FREE)
        if not chosen:
            raise BadOption("Choose one method or more.")
        with stage.computing("Computing the maps …"):
            heats = [stage.seen.explain(each, query=stage.query) for each in FREE if each in chosen]
        return beside([heat.named(name) for heat in heats], [heat.title for heat in heats])
    if kind == "layers":
        with stage.computing("Computing the layers' maps …"):
            return stage.seen.film(query=stage.query).named(name)
    if kind == "heads":
        with stage.computing("Computing the heads' maps …"):
            return heads(stage.record, query=stage.query).named(name)
    if kind == "numbers":
        return _numbers(stage)
    raise unknown("figure", kind, KINDS)


def _numbers(stage: Stage) -> MetricPlot:
    with stage.computing("Measuring the heads …"):
        metrics = stage.seen.metrics()
    st.session_state.setdefault("export_metrics", [*NUMBERS])
    keep_offered("export_metrics", [*metrics.about])
    chosen = st.pills(
        "Numbers on the figure",
        metrics.about,
        selection_mode="multi",
        wrap=True,
        key="export_metrics",
        format_func=lambda each: metrics.about[each].label,
        persist_state="session",
    )
    if not chosen:
        raise BadOption("Choose one number or more.")
    names = tuple(each for each in metrics.about if each in chosen)
    return MetricPlot(metrics.named(stage.picture_name), names)


def drawing_of_plate(look: Look, kind: str, scale: Scale | None = None) -> dict[str, Any]:
    """How maps of such a figure are drawn; on a ready scale, if there is one."""
    drawing: dict[str, Any] = {"alpha": look.alpha, "colormap": look.colormap}
    drawing["interpolation"] = look.interpolation
    if scale is not None:
        return drawing | {"scale": scale}
    named = "own"
    if look.scale == "zero" and kind != "heads":
        named = "zero"
    elif look.scale == "shared" and kind not in ("methods", "compared"):
        named = "shared"
    return drawing | {"scale": named, "clip": look.clip}
