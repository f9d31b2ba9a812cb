"""A recipe as a few lines of Python that make the same array or figure elsewhere.

Names of files and models come from strangers: they are written as literals, by `repr`, and never as
they stand.
"""

from __future__ import annotations

from typing import Any

from attnviz.mass import MASS
from attnviz.recipe import Recipe, Source
from attnviz.scale import Scale
from attnviz.usage import METHOD

WIDTH = 88
"""A call longer than this has an argument a line."""


def python_of(recipe: Recipe) -> str:
    """The lines, to be run in the project's folder."""
    asking = (
        _row(recipe)
        if recipe.kind == "row"
        else [*_observing(recipe.source), *_ASKING[recipe.kind](recipe)]
    )
    return "\n".join([*_imports(recipe), *asking])


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


def _imports(recipe: Recipe) -> list[str]:
    scaled = isinstance(recipe.drawing.get("scale"), Scale)
    named = ["from attnviz.scale import Scale"] if scaled else []
    return ["import attnviz", "import models", *named, ""]


def _observing(source: Source) -> list[str]:
    """The model, the picture, and the pass."""
    load: dict[str, Any] = {}
    if source.checkpoint is not None:
        load["checkpoint"] = source.checkpoint
    if source.random:
        load["pretrained"] = False
    if source.image_size is not None:
        load["image_size"] = _size(source.image_size)
    fit = {} if source.fit == "crop" else {"fit": source.fit}
    lines = [
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


def _explained(recipe: Recipe) -> str:
    named = [] if recipe.method == METHOD else [recipe.method]
    call = _call("attnviz.explain", _Code("obs"), *named, **_asked(recipe))
    return call + _naming(recipe)


def _explaining(recipe: Recipe) -> str:
    return f"heat = {_explained(recipe)}"


def _naming(recipe: Recipe) -> str:
    """What a figure calls the picture."""
    return f".named({recipe.name!r})" if recipe.name else ""


def _map(recipe: Recipe) -> list[str]:
    return [
        _explaining(recipe),
        "heat.values  # rows × columns of patches",
        _call("heat.save", recipe.file, **recipe.drawing),
    ]


def _film(recipe: Recipe) -> list[str]:
    named = [] if recipe.method == METHOD else [recipe.method]
    return [
        f"film = {_call('attnviz.film', _Code('obs'), *named, **_asked(recipe))}{_naming(recipe)}",
        "maps = [heat.values for heat in film.maps.values()]  # one a layer",
        _call("film.save", recipe.file, **recipe.drawing),
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


def _row(recipe: Recipe) -> list[str]:
    """Map by map; what saw the one before is not made again."""
    lines: list[str] = []
    before: list[str] = []
    for part in recipe.parts:
        seeing = _observing(part.source)
        changed = (n for n, line in enumerate(seeing) if [line] != before[n : n + 1])
        lines += seeing[next(changed, len(seeing)) :]
        lines.append(
            f"heats.append({_explained(part)})" if before else f"heats = [{_explained(part)}]"
        )
        before = seeing
    return [
        *lines,
        f"row = {_call('attnviz.beside', _Code('heats'), [*recipe.names])}",
        _call("row.save", recipe.file, **recipe.drawing),
    ]


def _grid(recipe: Recipe) -> list[str]:
    return [
        f"grid = {_call('attnviz.heads', _Code('obs'), **_asked(recipe))}{_naming(recipe)}",
        "grid.values  # layers × heads × rows × columns",
        _call("grid.save", recipe.file, **recipe.drawing),
    ]


def _plot(recipe: Recipe) -> list[str]:
    return [
        f"metrics = attnviz.head_metrics(obs){_naming(recipe)}",
        f"plot = {_call('attnviz.plot', _Code('metrics'), *recipe.names)}",
        _call("plot.save", recipe.file, **recipe.drawing),
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
        _call("heat.save", recipe.file, mass=share, **recipe.drawing),
    ]


def _faithfulness(recipe: Recipe) -> list[str]:
    three = map(_Code, ("vit", "obs", "heat"))
    return [
        _explaining(recipe),
        f"curves = {_call('attnviz.faithfulness', *three, **recipe.extra)}",
        "curves.scores  # at each of curves.fractions; curves.random: the random orders'",
        _call("curves.save", recipe.file),
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
    "grid": _grid,
    "plot": _plot,
}


def _size(size: tuple[int, int]) -> int | tuple[int, int]:
    rows, cols = size
    return rows if rows == cols else size
