"""How the query's attention moves with depth: a player, and a strip of all layers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from attnviz import film_export
from attnviz.colour import colour_bar, ticks
from attnviz.film import Film
from attnviz.frames import layers_of
from attnviz.heatmap import shared_scale
from attnviz.legend import legend, swallowed
from attnviz.methods.fusion import HEAD_FUSIONS
from attnviz.recipe import Recipe
from attnviz.scale import scale_of_bar
from attnviz.strip import FilmPaper
from attnviz.ui.code_panel import recipe_on, show_code, written_as
from attnviz.ui.figure_files import FILM_FORMATS, offer_file
from attnviz.ui.go_to import go_to_layer
from attnviz.ui.head_choice import choose_head
from attnviz.ui.look_panel import looks_dark
from attnviz.ui.map_panel import reveal_map
from attnviz.ui.method_panel import choose_direction
from attnviz.ui.player import Caption, frame_size, picked_frame, play
from attnviz.ui.stage import Stage
from attnviz.ui.state import plain
from attnviz.used import used_in

SCALE_WORDS = {"own": "Each layer its own", "shared": "One for all layers"}
"""How the layers' colours compare; the sidebar's scale says where they begin."""


SECONDS = FilmPaper().seconds
"""For which a layer stands, unless told otherwise."""

_WORDS = {"from": "What the {} attends to", "to": "Who attends to the {}"}


@dataclass(frozen=True)
class FilmAsked:
    """The film that was asked for, and how it is drawn."""

    film: Film
    options: dict[str, Any]
    """Of `attnviz.film`: the head and the direction."""
    drawing: dict[str, Any]
    """What the player and the files have in common."""
    own: bool
    """Whether each layer has a scale of its own."""


def ask_for_film(stage: Stage) -> FilmAsked:
    """The widgets, and the query's map in every layer."""
    left, right = st.columns(2, gap="medium")
    head = choose_head(max(layer.heads for layer in stage.record.layers), left, left)
    asked: dict[str, Any] = {"direction": choose_direction(right)}
    asked |= {"head": None, "head_fusion": head} if head in HEAD_FUSIONS else {"head": head}
    own = _choose_scale()
    with stage.computing("Computing the layers' maps …"):
        film = stage.seen.film(query=stage.query, **asked)
    film = film.named(stage.picture_name)
    return FilmAsked(film, asked, _drawing(stage, film, own=own), own)


def show_layers(stage: Stage) -> None:
    """The query's map in every layer: played, as a strip whose layers open, and as files."""
    wanted = ask_for_film(stage)
    film, asked, drawing = wanted.film, wanted.options, wanted.drawing
    head = asked["head_fusion"] if asked["head"] is None else asked["head"]
    by = f"all heads, by their {head}" if head in HEAD_FUSIONS else f"head {head}"
    words = _WORDS[asked["direction"]].format(stage.asker)
    st.subheader(f"{words}, layer by layer", anchor=False)
    st.caption(
        f"By {by}, in layers {film.fact('layers')}: 0 sees the patches first, the last is what the"
        " model's answer is made of. **Press Play**, or **pick a layer** in the strip to open it"
        " by itself."
    )
    for note in film.notes:
        st.caption(f":material/warning: {note[0].upper()}{note[1:]}.")
    _show(stage, film, drawing, words, own=wanted.own)
    st.caption(f"{plain(film.summary)}; opacity {stage.look.alpha:g}.")
    _offer(film, drawing, recipe_on(stage, "film", options=asked, drawing=drawing))


def _choose_scale() -> bool:
    """Whether each layer has a scale of its own."""
    chosen = st.radio(
        "Colour scale of the layers",
        SCALE_WORDS,
        format_func=SCALE_WORDS.__getitem__,
        key="film_scale",
        horizontal=True,
        persist_state="session",
        help="*Each layer its own*: its lowest value is the first colour and its highest the last,"
        " so that each layer's pattern is seen. *One for all layers*: equal colours are equal"
        " values, so that layers can be compared.",
    )
    return chosen == "own"


def _drawing(stage: Stage, film: Film, *, own: bool) -> dict[str, Any]:
    look = stage.look
    drawing: dict[str, Any] = {
        "alpha": look.alpha,
        "colormap": look.colormap,
        "interpolation": look.interpolation,
    }
    begin = "zero" if look.scale == "zero" else "own"
    if own:
        return drawing | {"scale": begin, "clip": look.clip}
    if look.scale == "own":
        return drawing | {"scale": "shared", "clip": look.clip}
    scale = shared_scale(film.maps.values(), begin, clip=look.clip)
    if look.scale == "shared" and film.fact("direction") is None:  # tiles are the query's own view
        scale = look.shared_scale(stage.tiles()) or scale
    return drawing | {"scale": scale}


def _show(stage: Stage, film: Film, drawing: dict[str, Any], words: str, *, own: bool) -> None:
    """The player with its strip; a layer that is opened there is shown as one map."""
    scales = film.scales(drawing["scale"], clip=drawing.get("clip"))
    size = frame_size(stage.seen.shown.size, len(film.maps))
    look = {name: drawing[name] for name in ("alpha", "colormap", "interpolation")}
    pictures, captions = [], []
    for (layer, heat), scale in zip(film.maps.items(), scales, strict=True):
        shown = stage.seen.on_screen(heat)  # type: ignore[arg-type]  # a Film's are Explanations
        pictures.append(shown.overlay(scale=scale, size=size, **look))
        _, said = legend(heat, scale=scale, interpolation=look["interpolation"])
        numbers = tuple(text for _, text in ticks(scale, heat.drawn))
        reach = scale.reach_over(heat.drawn) if own else ""
        captions.append(Caption(film.label(layer), numbers, said, reach))
    layers = [*film.maps]

    def open_layer() -> None:
        if (number := picked_frame("film")) is not None:
            go_to_layer(layers[number])
            reveal_map()

    width, height = stage.seen.shown.size
    play(
        pictures,
        captions,
        bar=colour_bar(scale_of_bar(scales), look["colormap"]),
        ratio=width / height,
        alt=f"{words}, as colours over the picture",
        key="film",
        on_pick=open_layer,
    )
    dark = [
        layer
        for (layer, heat), scale in zip(film.maps.items(), scales, strict=True)
        if bool(looks_dark(np.asarray(heat.drawn), scale))
    ]
    told, done = swallowed([*film.maps.values()], lambda clip: scales, None, ready=True)
    hidden = [layer for layer, who in zip(layers, told, strict=True) if who]
    if not own and len(dark) > len(layers) / 2:
        st.caption(
            f"{len(dark)} of the {len(layers)} layers look alike on this scale, because a few"
            " patches hold so much. *Each layer its own* shows the pattern of each"
            + (
                "; *Cut the scale* in the sidebar cuts those patches off."
                if stage.look.clip is None
                else "."
            )
        )
    elif hidden:
        words = layers_of(hidden)
        st.caption(
            f":material/warning: {words[0].upper()}{words[1:]}: a few patches hold {done}; *One"
            " map* can leave them out of its colours."
        )


@st.fragment
def _offer(film: Film, drawing: dict[str, Any], recipe: Recipe) -> None:
    """The film as a file, and the code that writes such a one."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox(
            "Film, strip or numbers",
            FILM_FORMATS,
            key="film_format",
            persist_state="session",
            width=190,
            help="*GIF* and *WebP* are animations: WebP keeps every colour, GIF has 256 in each"
            " frame. *PDF*, *SVG* and *PNG* are the strip, for a paper. *NPZ* holds the numbers.",
        )
        seconds = st.number_input(
            "Seconds a layer",
            0.1,
            10.0,
            SECONDS,
            0.1,
            key="film_seconds",
            persist_state="session",
            width=150,
            disabled=kind not in ("GIF", "WebP"),
        )
    suffix, mime = FILM_FORMATS[kind]
    options = {**drawing, "seconds": seconds}
    offer_file(
        f"Download as {kind}",
        lambda: film_export.render_film(film, suffix, **used_in(suffix, options)),
        f"{film_export.film_stem(film)}{suffix}",
        mime,
    )
    spelt = {} if seconds == SECONDS else {"seconds": seconds}
    show_code(written_as(suffix, replace(recipe, drawing={**recipe.drawing, **spelt})))
