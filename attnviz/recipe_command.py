"""A recipe as a command that makes the same array or figure elsewhere.

Names of files and models come from strangers: they are quoted by `shlex.quote`, and never written
as they stand.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from attnviz.contract import usual_fit
from attnviz.methods import METHODS
from attnviz.recipe import Recipe
from attnviz.scale import Scale
from attnviz.usage import METHOD, MODEL
from attnviz.used import EVERY, flag_words, used_by

COMMANDS = {"film": "film", "faithfulness": "faithfulness"} | dict.fromkeys(
    ("row", "grid", "plot"), "plate"
)
"""Kind → the command's name, where it has one."""


def command_of(recipe: Recipe, output: str | None = None) -> str | None:
    """What to type in a shell in the project's folder; None where there is no such command.

    `output` is the file that it writes, else the recipe's own.
    """
    if recipe.kind in ("metrics", "patches", "alike"):
        return None
    if recipe.kind == "row":
        if not _is_of_methods(recipe):
            return None
        asking = [part.query for part in recipe.parts if part.query is not None]
        recipe = replace(recipe, query=asking[0] if asking else None)
    if recipe.kind == "heads":
        numbers = " ".join(map(str, range(recipe.heads)))
        words = [*_words("film", recipe), "-o", '"head-$head.npz"', "--head", '"$head"']
        return f"for head in {numbers}; do {' '.join(words)}; done"
    output = output or recipe.file
    words = [*_words(COMMANDS.get(recipe.kind), recipe), "-o", shlex.quote(output)]
    flags: dict[str, Any] = {"method": recipe.method} if recipe.method != METHOD else {}
    flags |= {**_shown(recipe), **recipe.options, **_renamed(recipe.extra)}
    if recipe.kind != "faithfulness":
        flags |= recipe.drawing
        vain = EVERY - used_by(output)
        flags = {flag: value for flag, value in flags.items() if flag not in vain}
    scale = flags.get("scale")
    if isinstance(scale, Scale):
        del flags["scale"]
    for flag, value in flags.items():
        if value is not None:
            words += map(shlex.quote, flag_words(flag, value))
    command = " ".join(words)
    if not isinstance(scale, Scale):
        return command
    ends = f"{scale.low:g} to {scale.high:g}"
    return f"{command}\n# The colours' own scale, {ends}, can be given in Python alone."


def _is_of_methods(recipe: Recipe) -> bool:
    """Whether a row is of several methods with their usual options, of one picture and query."""
    methods = [part.method for part in recipe.parts]
    return (
        len({*methods}) == len(methods)
        and len({*recipe.sources}) == 1
        and not any(part.options for part in recipe.parts)
        and recipe.names == tuple(METHODS[method].label for method in methods)
    )


def _shown(recipe: Recipe) -> dict[str, Any]:
    """What a figure of several parts shows."""
    match recipe.kind:
        case "row":
            return {"show": "methods", "methods": tuple(part.method for part in recipe.parts)}
        case "grid":
            return {"show": "heads"}
        case "plot":
            return {"show": "metrics", "metrics": recipe.names}
    return {}


def _words(name: str | None, recipe: Recipe) -> list[str]:
    """The command up to what is asked, each word safe in a shell."""
    source = recipe.source
    words = ["python", "-m", "attnviz", *([name] if name else []), source.picture]
    flags: dict[str, object] = {}
    if source.model != MODEL:
        flags["model"] = source.model
    if source.checkpoint is not None:
        flags["checkpoint"] = source.checkpoint
    if source.image_size is not None:
        flags["size"] = "x".join(map(str, source.image_size))
    if source.fit != usual_fit(source.any_size):
        flags["fit"] = source.fit
    match source.aim:
        case ("class", number):
            flags["target"] = number
        case ("token" | "picture", what):
            flags["similar_to"] = what
    if recipe.query is not None:
        flags["query"] = recipe.query
    if source.random:
        words.append("--random")
    for flag, value in flags.items():
        words += flag_words(flag, value)
    return [shlex.quote(word) for word in words]


def _renamed(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The test's own seed has another flag: `--seed` is of random weights."""
    return {"order_seed" if name == "seed" else name: value for name, value in extra.items()}
