"""A recipe as a few lines of Python, and as a command, that make the same array elsewhere.

Names of files and models come from strangers: they are written as literals, by `repr` in Python and
`shlex.quote` in a shell, and never as they stand.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from attnviz.contract import usual_fit
from attnviz.mass import MASS
from attnviz.recipe import Recipe
from attnviz.scale import Scale
from attnviz.usage import METHOD, MODEL
from attnviz.used import EVERY, flag_words, used_by

WIDTH = 88
"""A call longer than this has an argument a line."""

MAKES = {"map": "map.png", "film": "film.gif", "mask": "mask.png", "faithfulness": "curve.png"}
"""What a command writes, by kind; its suffix may be changed to .npz, for the numbers."""


def python_of(recipe: Recipe) -> str:
    """The lines, to be run in the project's folder."""
    return "\n".join([*_observing(recipe), *_ASKING[recipe.kind](recipe)])


def command_of(recipe: Recipe, output: str | None = None) -> str | None:
    """What to type in a shell in the project's folder; None where there is no such command.

    `output` is the file that it writes, else one of `MAKES`.
    """
    if recipe.kind in ("metrics", "patches", "alike"):
        return None
    if recipe.kind == "heads":
        numbers = " ".join(map(str, range(recipe.heads)))
        words = [*_words("film", recipe), "-o", '"head-$head.npz"', "--head", '"$head"']
        return f"for head in {numbers}; do {' '.join(words)}; done"
    name = recipe.kind if recipe.kind in ("film", "faithfulness") else None
    output = output or MAKES[recipe.kind]
    words = [*_words(name, recipe), "-o", shlex.quote(output)]
    flags = {"method": recipe.method} if recipe.method != METHOD else {}
    flags |= {**recipe.options, **_renamed(recipe.extra)}
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


class _Code(str):
    """Python as it stands, and no literal."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _call(name: str, *args: object, **named: object) -> str:
    """A call with its arguments as literals, in a line if that is short."""
    parts = [*map(repr, args), *(f"{word}={value!r}" for word, value in named.items())]
    line = f"{name}({', '.join(parts)})"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), ")"])


def _observing(recipe: Recipe) -> list[str]:
    """The imports, the model, the picture, and the pass."""
    source = recipe.source
    load: dict[str, Any] = {}
    if source.checkpoint is not None:
        load["checkpoint"] = source.checkpoint
    if source.random:
        load["pretrained"] = False
    if source.image_size is not None:
        load["image_size"] = _size(source.image_size)
    fit = {} if source.fit == "crop" else {"fit": source.fit}
    scaled = isinstance(recipe.drawing.get("scale"), Scale)
    lines = [
        "import attnviz",
        "import models",
        *(["from attnviz.scale import Scale"] if scaled else []),
        "",
        f"vit = {_call('models.load', source.model, **load)}",
        f"image = {_call('attnviz.open_image', source.picture)}",
    ]
    vit, image = _Code("vit"), _Code("image")
    aim: dict[str, Any] = {}
    match source.aim:
        case ("class", number):
            aim["target"] = number
        case ("token", query):
            aim["target"] = _Code(_call("attnviz.similarity_to", query))
        case ("picture", path):
            other = _Code(_call("attnviz.open_image", path))
            lines.append(f"other = {_call('attnviz.observe', vit, other, **fit)}")
            aim["target"] = _Code("attnviz.similarity_to(other)")
    return [*lines, f"obs = {_call('attnviz.observe', vit, image, **fit, **aim)}"]


def _asked(recipe: Recipe) -> dict[str, Any]:
    query = {} if recipe.query is None else {"query": recipe.query}
    return {**query, **recipe.options}


def _explaining(recipe: Recipe) -> str:
    named = [] if recipe.method == METHOD else [recipe.method]
    return f"heat = {_call('attnviz.explain', _Code('obs'), *named, **_asked(recipe))}"


def _map(recipe: Recipe) -> list[str]:
    return [
        _explaining(recipe),
        "heat.values  # rows × columns of patches",
        _call("heat.save", MAKES["map"], **recipe.drawing),
    ]


def _film(recipe: Recipe) -> list[str]:
    named = [] if recipe.method == METHOD else [recipe.method]
    return [
        f"film = {_call('attnviz.film', _Code('obs'), *named, **_asked(recipe))}",
        "maps = [heat.values for heat in film.maps.values()]  # one a layer",
        _call("film.save", MAKES["film"], **recipe.drawing),
    ]


def _heads(recipe: Recipe) -> list[str]:
    layers = "range(len(obs.layers))" if recipe.layers is None else repr(recipe.layers)
    query = "" if recipe.query is None else f", query={recipe.query!r}"
    return [
        "maps = [",
        "    [",
        f'        attnviz.explain(obs, "attention", layer=layer, head=head{query}).values',
        "        for head in range(obs.layers[layer].heads)",
        "    ]",
        f"    for layer in {layers}",
        "]  # by layer and head: rows × columns of patches",
    ]


def _metrics(recipe: Recipe) -> list[str]:
    return [
        "metrics = attnviz.head_metrics(obs)",
        "metrics.values  # by name: layers × heads; metrics.about says what each means",
    ]


def _patches(recipe: Recipe) -> list[str]:
    return [
        "pixels = obs.view.pixels  # height × width × 3: what the model saw",
        "obs.view.box  # where that lies in the picture: left, top, right, bottom",
        "obs.layout.prefix, obs.layout.grid  # tokens without a place, rows × columns of patches",
    ]


def _mask(recipe: Recipe) -> list[str]:
    share = recipe.extra.get("mass", MASS)
    return [
        _explaining(recipe),
        f"mask = {_call('attnviz.mass_mask', _Code('heat.values'), share)}",
        "mask.kept  # rows × columns: which patches hold that share",
        _call("heat.save", MAKES["mask"], mass=share, **recipe.drawing),
    ]


def _faithfulness(recipe: Recipe) -> list[str]:
    three = map(_Code, ("vit", "obs", "heat"))
    return [
        _explaining(recipe),
        f"curves = {_call('attnviz.faithfulness', *three, **recipe.extra)}",
        "curves.scores  # at each of curves.fractions; curves.random: the random orders'",
        _call("curves.save", MAKES["faithfulness"]),
    ]


def _alike(recipe: Recipe) -> list[str]:
    there = recipe.source if recipe.other is None else recipe.other
    fit = {} if there.fit == "crop" else {"fit": there.fit}
    sides = [_Code("obs"), _Code("other")]
    asks, answers = reversed(sides) if recipe.other_asks else sides
    return [
        f"picture = {_call('attnviz.open_image', there.picture)}",
        f"other = {_call('attnviz.observe', _Code('vit'), _Code('picture'), **fit)}",
        f"heat = {_call('attnviz.similar', asks, recipe.query, answers)}",
        f"matches = {_call('attnviz.mutual_matches', *sides)}  # the likest pair first",
    ]


_ASKING = {
    "alike": _alike,
    "map": _map,
    "heads": _heads,
    "film": _film,
    "metrics": _metrics,
    "mask": _mask,
    "faithfulness": _faithfulness,
    "patches": _patches,
}


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


def _size(size: tuple[int, int]) -> int | tuple[int, int]:
    rows, cols = size
    return rows if rows == cols else size
