"""What was chosen to get an array or a figure, without what would be so anyway.

`recipe_text` and `recipe_command` write it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from attnviz.altering import BASELINE
from attnviz.curves import MODE, ORDERS, SEED, STEPS
from attnviz.methods import METHODS
from attnviz.methods.options import settle
from attnviz.paper import Paper
from attnviz.record import AttentionRecord
from attnviz.strip import FilmPaper
from attnviz.tokens import Query
from attnviz.usage import METHOD
from attnviz.venue import PlotPaper

Kind = Literal[
    "map",
    "heads",
    "film",
    "metrics",
    "mask",
    "faithfulness",
    "patches",
    "alike",
    "row",
    "grid",
    "plot",
]
"""One map, every head's, every layer's, head metrics, the mass mask, the test of a map, what the
model saw, or which patches of two pictures are alike; and the figures of several maps, of every
head's, and of metrics."""

Aim = tuple[Literal["class", "token", "picture"], Any]
"""What gradients are of: a class by its number, or likeness to a token or to another picture."""

TEST = {"mode": MODE, "steps": STEPS, "baseline": BASELINE, "orders": ORDERS, "seed": SEED}
"""What the test of a map does unless told otherwise."""


MAKES: Mapping[Kind, str] = {
    "map": "map.png",
    "film": "film.gif",
    "mask": "mask.png",
    "faithfulness": "curve.png",
    "row": "row.png",
    "grid": "heads.png",
    "plot": "metrics.png",
}
"""What is written, by kind, of those that are drawn."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Which model saw which picture, and how."""

    model: str
    picture: str
    """Where its file lies, as somebody who has it would say; `picture_path` makes it of a name."""
    fit: str = "crop"
    any_size: bool = False
    """Whether the model takes any size: the command line's own fit is then `"aspect"`."""
    random: bool = False
    checkpoint: str | None = None
    """A file of weights in place of the model's own."""
    image_size: tuple[int, int] | None = None
    """(rows, columns) in pixels, where that is not the model's own."""
    aim: Aim | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What makes one array; `recipe_of` leaves the defaults out."""

    source: Source
    kind: Kind = "map"
    method: str = METHOD
    query: Query | None = None
    """None: what is asked where nothing is said."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The method's."""
    drawing: Mapping[str, Any] = field(default_factory=dict)
    """How it is drawn: of `Paper`, or of `FilmPaper` for a film."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Of a mask its `mass`, of a test its `mode`, `steps`, `baseline`, `orders` and `seed`."""
    layers: tuple[int, ...] | None = None
    """Of every head: the layers in which the query asks; None for all."""
    heads: int = 1
    """Of every head: how many the layer with the most has."""
    other: Source | None = None
    """Of patches that are alike: what saw the second picture."""
    other_asks: bool = False
    """Whether the query is a patch of that one."""
    name: str = ""
    """What the picture is called on a figure, if it is called anything."""
    names: tuple[str, ...] = ()
    """Of a row what its maps are called, of a plot its metrics."""
    parts: tuple[Recipe, ...] = ()
    """Of a row: its maps."""
    output: str | None = None
    """The file that is written, where it is not the usual one of its kind."""

    @property
    def file(self) -> str:
        """The file that is written; its suffix may be changed to another."""
        return self.output or MAKES[self.kind]

    @property
    def sources(self) -> tuple[Source, ...]:
        """All that it needs."""
        other = () if self.other is None else (self.other,)
        return (self.source, *other, *(part.source for part in self.parts))


def recipe_of(
    record: AttentionRecord,
    source: Source,
    kind: Kind = "map",
    method: str = METHOD,
    *,
    query: Query | None = None,
    options: Mapping[str, Any] | None = None,
    drawing: Mapping[str, Any] | None = None,
    extra: Mapping[str, Any] | None = None,
    name: str = "",
    names: Sequence[str] = (),
    output: str | None = None,
) -> Recipe:
    """The recipe of what was asked of a record, without what would be so anyway.

    Raises what `explain` raises for a method's option.
    """
    drawn = _drawn(kind, drawing or {})
    kept = {name: value for name, value in (extra or {}).items() if TEST.get(name) != value}
    if kind in ("metrics", "patches"):
        return Recipe(source=source, kind=kind)
    if kind == "plot":
        return Recipe(source=source, kind=kind, drawing=drawn, name=name, names=tuple(names))
    if kind in ("heads", "grid", "film"):
        asked = {name: value for name, value in (options or {}).items() if name != "layer"}
        given = _needed(record, method, asked) if kind == "film" else {}
    else:
        given = _needed(record, method, options or {})
    asks = METHODS[method].asks or kind in ("heads", "grid", "film")
    usual_query = _usual_query(record, kind, method, given)
    return Recipe(
        source=source,
        kind=kind,
        method=method,
        query=query if asks and query != usual_query else None,
        options=given,
        drawing=drawn,
        extra=kept,
        layers=_asking(record, query) if kind == "heads" else None,
        heads=max(layer.heads for layer in record.layers),
        name=name,
        output=output,
    )


def row_of(parts: Sequence[Recipe], names: Sequence[str], *, drawing: Mapping[str, Any]) -> Recipe:
    """The recipe of maps beside each other, which are called by these names."""
    return Recipe(
        source=parts[0].source,
        kind="row",
        drawing=_drawn("row", drawing),
        names=tuple(names),
        parts=tuple(parts),
    )


def _drawn(kind: Kind, drawing: Mapping[str, Any]) -> dict[str, Any]:
    """What of a figure's options is not as usual."""
    paper: type[Paper | FilmPaper | PlotPaper] = _PAPERS.get(kind, Paper)
    usual = {each.name: each.default for each in fields(paper)}
    return {name: value for name, value in drawing.items() if value != usual[name]}


_PAPERS: Mapping[Kind, type[FilmPaper | PlotPaper]] = {"film": FilmPaper, "plot": PlotPaper}


def alike_of(here: Source, there: Source, query: Query, *, other_asks: bool = False) -> Recipe:
    """The recipe of which patches of two pictures are alike, to a patch of either and both ways."""
    return Recipe(source=here, kind="alike", query=query, other=there, other_asks=other_asks)


def picture_path(name: str, *, sample: bool = False) -> str:
    """A picture's name as a path: a sample's lies in the project; unprintable ones get another."""
    if sample:
        return f"samples/{name}"
    plain = name.replace("/", "_").replace("\\", "_")
    if not plain.isprintable() or plain.strip(" .") == "":
        return "picture.jpg"
    # What begins with a dash is read as an option, and what has no suffix may be a command's name.
    return f"./{plain}" if plain.startswith(("-", "~")) or "." not in plain else plain


def _needed(record: AttentionRecord, method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options without which something else would be computed, and that are not idle."""
    table = METHODS[method].options
    asked = settle(method, table, options, record)
    left = {name: asked[name] for name in options if not table[name].idle(asked)}
    for name in [*left]:
        without = {other: value for other, value in left.items() if other != name}
        if settle(method, table, without, record) == settle(method, table, left, record):
            left = without
    return left


def _usual_query(
    record: AttentionRecord, kind: Kind, method: str, options: Mapping[str, Any]
) -> Query | None:
    """What is asked where no query is given."""
    if kind in ("film", "grid"):
        return record.layout.default_query
    if kind == "heads":  # in every layer the same, or it has to be said
        usual = {record.geometry(layer).default_query for layer in record.layers}
        return usual.pop() if len(usual) == 1 else None
    settled = settle(method, METHODS[method].options, options, record)
    return record.geometry_of(settled).default_query


def _asking(record: AttentionRecord, query: Query | None) -> tuple[int, ...] | None:
    """The layers in which the query asks, or None for all."""
    named = record.layout.default_query if query is None else query
    asking = tuple(
        number
        for number, layer in enumerate(record.layers)
        if record.geometry(layer).takes(named, record.layout)
    )
    return None if len(asking) == len(record.layers) else asking
