"""Show me the code: the lines and the command that make the same array outside the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache as remember
from hashlib import sha256
from pathlib import PurePath
from typing import Any

import streamlit as st

from attnviz.heatmap import Heatmap
from attnviz.recipe import Aim, Kind, Recipe, Source, picture_path, recipe_of
from attnviz.recipe_command import command_of
from attnviz.recipe_text import python_of
from attnviz.samples import SAMPLES, sample_path
from attnviz.scale import Scale
from attnviz.ui import cache
from attnviz.ui.cache import Request
from attnviz.ui.look_panel import Look
from attnviz.ui.model_choice import Choice
from attnviz.ui.run import Run
from attnviz.ui.stage import Stage
from attnviz.usage import METHOD
from attnviz.used import used_in


def show_code(*recipes: Recipe) -> None:
    """The lines of Python and, where there is one, the command; folded away at first."""
    with st.expander("Show me the code", icon=":material/code:"):
        pictures = [source.picture for recipe in recipes for source in recipe.sources]
        own = not all(picture.startswith("samples/") for picture in pictures)
        st.caption(
            "The same numbers outside this page. Run it in the folder of attnviz with its Python"
            " (`.venv/bin/python`, after `make run`)"
            + (", with your picture there under this name." if own else ".")
        )
        for recipe in recipes:
            st.code(python_of(recipe), language="python", wrap_lines=True)
        if commands := [command for each in recipes if (command := command_of(each)) is not None]:
            plot = any(recipe.kind == "plot" for recipe in recipes)
            numbers = ".csv, and leave out the metrics and" if plot else ".npz, and leave out"
            drawn = not any(recipe.output and recipe.file.endswith(".npz") for recipe in recipes)
            st.caption(
                f"Or on the command line. For the numbers let the file end in {numbers} how it is"
                " drawn:"
                if drawn
                else "Or on the command line:"
            )
            st.code("\n".join(commands), language="bash", wrap_lines=True)


def recipe_on(
    stage: Stage,
    kind: Kind,
    method: str = METHOD,
    *,
    request: Request | None = None,
    **asked: Any,
) -> Recipe:
    """The recipe of what a view shows; `request` is of a record with a target, `asked` as there."""
    source = source_on(stage, request)
    return recipe_of(stage.record, source, kind, method, query=stage.query, **asked)


def written_as(suffix: str, recipe: Recipe) -> Recipe:
    """What writes that kind of file, with the options that change such a file."""
    output = str(PurePath(recipe.file).with_suffix(suffix))
    return replace(recipe, output=output, drawing=used_in(suffix, recipe.drawing))


def source_on(stage: Stage, request: Request | None = None) -> Source:
    """What saw the stage's picture, or the same with a target."""
    return source_of(stage.run, request or stage.request, stage.picture_name)


def drawing_of(heat: Heatmap, look: Look, scale: Scale | None) -> Mapping[str, Any]:
    """How one map is drawn: its scale by its name where that says it all, else by its numbers."""
    drawing: dict[str, Any] = {"alpha": look.alpha, "interpolation": look.interpolation}
    if scale is None:  # three components, mixed
        return drawing
    drawing["colormap"] = look.colormap
    if look.scale_of(heat) != scale:
        return drawing | {"scale": scale}
    return drawing | {"scale": "zero" if look.scale == "zero" else "own", "clip": look.clip}


def source_of(run: Run | None, request: Request, name: str) -> Source:
    """Which model saw the picture of that name, and how, by what the record is kept by.

    Where the model failed since and the last result still stands, nothing is known of its own size:
    size and fit are written then in any case.
    """
    digest, choice, size, fit, wish = request
    if not isinstance(choice, Choice):
        raise TypeError(f"A request holds a choice of a model; {type(choice).__name__} came.")
    any_size, own = fit != "aspect", None
    if run is not None and run.choice == choice:
        vit = cache.model(choice.name, choice.random, choice.checkpoint)
        any_size, own = vit.any_size, vit.image_size
    file = choice.checkpoint
    return Source(
        model=choice.name,
        picture=_path(str(digest), name),
        fit=fit,
        any_size=any_size,
        random=choice.random,
        checkpoint=None if file is None else picture_path(file.name),
        image_size=None if size == own else size,
        aim=_aim(wish),
    )


def _aim(wish: object) -> Aim | None:
    match wish:
        case ("sample", str(name)):
            return "picture", picture_path(SAMPLES[name].file, sample=True)
        case ("class" | "token" as kind, what):
            return kind, what
    return None


def _path(digest: str, own: str) -> str:
    """The sample of that content, or the visitor's picture by the name that it came with."""
    if (name := _samples().get(digest)) is not None:
        return picture_path(SAMPLES[name].file, sample=True)
    return picture_path(own)


@remember
def _samples() -> Mapping[str, str]:
    """Content → name of each sample."""
    return {sha256(sample_path(name).read_bytes()).hexdigest(): name for name in SAMPLES}
