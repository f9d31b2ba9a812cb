"""Several maps on one figure, as they will be printed: methods, two compared, layers, heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from attnviz.errors import BadOption, unknown
from attnviz.figure import Figure
from attnviz.methods import METHODS
from attnviz.plates import Beside, HeadGrid, beside
from attnviz.plot_export import MetricPlot
from attnviz.recipe import Recipe, row_of
from attnviz.scale import Scale
from attnviz.ui.code_panel import recipe_on
from attnviz.ui.kept_choice import keep_offered
from attnviz.ui.layers_panel import ask_for_film
from attnviz.ui.look_panel import Look
from attnviz.ui.methods_offered import offered_methods, say_not_offered
from attnviz.ui.pair import Pair, printed
from attnviz.ui.stage import Stage

KINDS = {
    "map": "This map",
    "methods": "Methods",
    "compared": "Compared",
    "layers": "Layers",
    "heads": "All heads",
    "numbers": "Head metrics",
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


@dataclass(frozen=True)
class Plate:
    """A figure, and what makes it outside the page."""

    figure: Figure
    drawing: dict[str, Any]
    """How it is drawn, but for its size."""
    recipe: Callable[[Mapping[str, Any]], Recipe]
    """Of all options that it is printed with."""


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


def plate_of(stage: Stage, kind: str) -> Plate:
    """The figure of that kind, by its widgets; raises BadOption where nothing is chosen."""
    if kind not in _PLATES:
        raise unknown("figure", kind, KINDS)
    return _PLATES[kind](stage)


def plate_of_two(stage: Stage, pair: Pair) -> Plate:
    """The figure of two maps; raises AttnVizError where there is no second one."""
    row, scale, maps = printed(pair)
    recipes = [
        recipe_on(
            each.stage,
            "map",
            each.asked.method,
            request=each.request,
            options=each.asked.options,
            name=each.stage.picture_name,
        )
        for each in maps
    ]
    return _plate_of_row(row, recipes, drawing_of_plate(stage.look, "compared", scale))


def _plate_of_row(row: Beside, recipes: Sequence[Recipe], drawing: dict[str, Any]) -> Plate:
    """Three components that are mixed as colours have no palette and no scale."""
    if all(heat.in_colour for heat in row.heats):
        drawing = {name: drawing[name] for name in ("alpha", "interpolation")}
    return Plate(row, drawing, lambda drawn: row_of(recipes, row.names, drawing=drawn))


def _methods(stage: Stage) -> Plate:
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
    names = [each for each in FREE if each in chosen]
    with stage.computing("Computing the maps …"):
        heats = [stage.seen.explain(each, query=stage.query) for each in names]
    name = stage.picture_name
    row = beside([heat.named(name) for heat in heats], [heat.title for heat in heats])
    recipes = [recipe_on(stage, "map", each, name=name) for each in names]
    return _plate_of_row(row, recipes, drawing_of_plate(stage.look, "methods"))


def _layers(stage: Stage) -> Plate:
    wanted = ask_for_film(stage)

    def recipe(drawn: Mapping[str, Any]) -> Recipe:
        return recipe_on(
            stage,
            "film",
            options=wanted.options,
            drawing=drawn,
            name=stage.picture_name,
            output="film.png",
        )

    return Plate(wanted.film, wanted.drawing, recipe)


def _heads(stage: Stage) -> Plate:
    tiles = stage.tiles()
    grid = HeadGrid.of(stage.record, stage.query, tiles).named(stage.picture_name)
    return Plate(
        grid,
        drawing_of_plate(stage.look, "heads"),
        lambda drawn: recipe_on(stage, "grid", drawing=drawn, name=stage.picture_name),
    )


def _numbers(stage: Stage) -> Plate:
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
    name, names = stage.picture_name, tuple(each for each in metrics.about if each in chosen)
    return Plate(
        MetricPlot(metrics.named(name), names),
        {},
        lambda drawn: recipe_on(stage, "plot", drawing=drawn, name=name, names=names),
    )


_PLATES: Mapping[str, Callable[[Stage], Plate]] = {
    "methods": _methods,
    "layers": _layers,
    "heads": _heads,
    "numbers": _numbers,
}


def drawing_of_plate(look: Look, kind: str, scale: Scale | None = None) -> dict[str, Any]:
    """How maps of such a figure are drawn; on a ready scale, if there is one."""
    drawing: dict[str, Any] = {"alpha": look.alpha, "colormap": look.colormap}
    drawing["interpolation"] = look.interpolation
    if scale is not None:
        return drawing | {"scale": scale}
    named = "own"
    if look.scale == "zero" and kind != "heads":
        named = "zero"
    elif look.scale == "shared" and kind == "heads":
        named = "shared"
    return drawing | {"scale": named, "clip": look.clip}
