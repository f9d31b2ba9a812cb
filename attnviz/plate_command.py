"""`python -m attnviz plate`: several maps on one figure, or head metrics against depth."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from attnviz.again import chosen_options
from attnviz.errors import BadOption, unknown
from attnviz.explain import explain
from attnviz.figure import options_of
from attnviz.head_maps import HeadMaps
from attnviz.mass import MASS
from attnviz.methods import METHODS
from attnviz.metrics import head_metrics
from attnviz.mosaic import TILE_SCALES
from attnviz.paper import Paper
from attnviz.paper_flags import add_colours, add_paper
from attnviz.plate_export import plan_plate
from attnviz.plates import Beside, HeadGrid, beside, heads
from attnviz.plot_export import DEPTH_KINDS, TABLE, MetricPlot
from attnviz.record import AttentionRecord
from attnviz.row import Row
from attnviz.scale import SCALES
from attnviz.tokens import Query
from attnviz.usage import METHOD, MODEL
from attnviz.venue import PlotPaper
from attnviz.writing import checked_target, kind_of

NAME = "plate"

SHOWN = {
    "methods": "the maps of several methods beside each other",
    "models": "the same map of several models",
    "heads": "the map of every head, layers downwards and heads across",
    "metrics": "what heads do, in numbers, against depth",
}

_MAPS = ("methods", "models")
_COLOURS = (*_MAPS, "heads")

_FIGURES = dict(zip(SHOWN, (Row, Row, HeadMaps, MetricPlot), strict=True))


def _shows_with(option: str) -> tuple[str, ...]:
    """What is shown by figures in which that option changes something."""
    return tuple(show for show, kind in _FIGURES.items() if option in options_of(kind))


OF: Mapping[str, tuple[str, ...]] = {
    **{show: (show,) for show in ("methods", "models", "metrics")},
    "method": ("models",),
    "model": ("methods", "heads", "metrics"),
    **{name: _MAPS for method in METHODS.values() for name in method.options},
    **dict.fromkeys(("target", "similar_to"), _MAPS),
    "query": _COLOURS,
    **{
        field.name: shows
        for field in fields(Paper)
        if len(shows := _shows_with(field.name)) < len(SHOWN)
    },
}
"""Flag, by its option's name → what is shown where it changes something; others always do."""

EXAMPLES = """\
examples:
  python -m attnviz plate cat.jpg -o methods.pdf --show methods \\
      --methods attention,rollout,value_weighted --original --letters --venue page
      a row of methods beside the picture, two columns wide
  python -m attnviz plate cat.jpg -o models.pdf --show models --models dinov2-small,digits
      one method, several models
  python -m attnviz plate cat.jpg -o heads.png --show heads --scale shared --clip 99 \\
      --venue cvpr-wide
      every head's map, equal colours for equal values; the clip keeps one head from making
      all others dark
  python -m attnviz plate cat.jpg -o depth.pdf --show metrics --metrics entropy,distance
      head metrics against depth
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What this command has instead of the options for drawing one map."""
    parser.prog += f" {NAME}"
    parser.description = "Draw several maps on one figure, or head metrics against depth."
    parser.epilog = EXAMPLES
    add = parser.add_argument_group("what is shown").add_argument
    shown = "; ".join(f"{name}: {words}" for name, words in SHOWN.items())
    add("--show", choices=SHOWN, required=True, help=shown)
    add("--methods", metavar="A,B", help="of a row of methods, in its order")
    add("--models", metavar="A,B", help="of a row of models, in its order")
    add("--metrics", metavar="A,B", help="of a plot (entropy); a .csv has every one")
    add = parser.add_argument_group("the drawing").add_argument
    of = {field.name: field.default for field in fields(Paper)}
    add_colours(add, of, (*SCALES, "shared"), "each map's")
    outlined = f"outline the fewest patches that hold this share of each map, such as {MASS} (off)"
    add("--mass", type=float, help=outlined)
    add_paper(add, of)


def plan(given: argparse.Namespace, drawing: Mapping[str, Any]) -> Path:
    """Where it is written; what is wrong with that, or asked for in vain, is known before."""
    for name, shows in OF.items():
        if getattr(given, name) is not None and given.show not in shows:
            *most, last = shows
            of = f"{', '.join(most)} or {last}" if most else last
            raise BadOption(
                f"--{name.replace('_', '-')} is of --show {of}: leave it out of --show"
                f" {given.show}."
            )
    if given.show == "heads" and given.scale not in (None, *TILE_SCALES):
        raise unknown("scale of a grid of heads", given.scale, TILE_SCALES)
    for flag in ("methods", "models"):
        if given.show == flag and getattr(given, flag) is None:
            raise BadOption(f"--show {flag} needs --{flag} A,B: name those to be shown.")
    names_in(given, given.show)
    for method in methods_of(given):
        if method not in METHODS:
            raise unknown("method", method, METHODS)
    if given.show == "metrics":
        chosen_options(PlotPaper, drawing)
        if given.metrics is not None and kind_of(given.output, DEPTH_KINDS) == TABLE:
            raise BadOption(
                f"A {TABLE} of --show metrics holds every metric of every head: leave --metrics"
                " out."
            )
        return checked_target(given.output, DEPTH_KINDS, overwrite=True)
    return plan_plate(given.output, **drawing)[0]


def names_in(given: argparse.Namespace, flag: str) -> list[str]:
    """The names, with commas between them, of `--methods`, `--models` or `--metrics`.

    Where that was not given: the one of `--method` or `--model`, or the entropy. Raises BadOption
    for none, and for one that is there twice.
    """
    usual = {
        "methods": given.method or METHOD,
        "models": given.model or MODEL,
        "metrics": "entropy",
    }
    if (text := getattr(given, flag, None)) is None:
        return [usual[flag]] if flag in usual else []
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise BadOption(f"--{flag} names nothing; {text!r} came: name what is to be shown, as A,B.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadOption(f"--{flag} names {twice} more than once: name each once.")
    return names


def methods_of(given: argparse.Namespace) -> list[str]:
    """The methods that are shown."""
    return names_in(given, "methods")


def own_of(method: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of that one among several methods: the options that it has."""
    return {name: value for name, value in asked.items() if name in METHODS[method].options}


def make(
    given: argparse.Namespace,
    record_of: Callable[[str], AttentionRecord],
    query: Query | None,
    asked: Mapping[str, Any],
) -> Beside | HeadGrid | MetricPlot:
    """What is shown; `record_of` observes the picture by a model's name."""
    picture = Path(given.picture).name
    records = [record_of(name) for name in names_in(given, "models")]
    first = records[0]
    if given.show == "metrics":
        metrics = head_metrics(first).named(picture)
        every = kind_of(given.output, DEPTH_KINDS) == TABLE
        return MetricPlot(metrics, tuple(metrics.about if every else names_in(given, "metrics")))
    if given.show == "heads":
        return heads(first, query=query).named(picture)
    heats = []
    for record in records:
        for method in methods_of(given):
            options = own_of(method, asked)
            heats.append(explain(record, method, query=query, **options).named(picture))
    return beside(heats, [] if given.show == "models" else [heat.title for heat in heats])
