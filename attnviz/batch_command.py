"""`python -m attnviz batch`: the command line's way to many pictures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attnviz.batch import Engine, Report, Request, here, pictures_in, run
from attnviz.batch.bar import duration
from attnviz.batch.cluster import Cluster
from attnviz.batch.outputs import kind_of, output_of
from attnviz.batch.request import BATCH
from attnviz.contract import LoadedViT
from attnviz.errors import AttnVizError, BadOption
from attnviz.export import KINDS
from attnviz.interrupt import CODE
from attnviz.paper_flags import require_used
from attnviz.tokens import Query
from attnviz.usage import printable, say_loading

NAME = "batch"

EXAMPLES = """\
examples:
  python -m attnviz batch photos -o maps
      a figure of each picture in a folder and those below it, into the folder maps
  python -m attnviz batch "photos/*.jpg" more.png -o maps --as pdf --method rollout
      pictures that match, and one more, as figures for a paper
  python -m attnviz batch list.txt -o maps.parquet --model vit_small_patch16_224 --fit crop
      the numbers, as one table; the pictures' names stand in a text, one a line
  python -m attnviz batch /shared/photos -o maps.parquet --engine ray --address auto
      by all workers of a Ray cluster
  python -m attnviz batch photos -o maps.parquet --head-metrics
      entropy, distance and the like of every head as well

Stopped, or killed, it goes on where it was when the same command is given again.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What this command has besides the options of a map and for drawing it."""
    parser.prog += f" {NAME}"
    parser.description = "Draw, or measure, what a Vision Transformer attends to in many pictures."
    parser.epilog = EXAMPLES
    add = parser.add_argument_group("the batch").add_argument
    kinds = [kind.removeprefix(".") for kind in KINDS]
    add("--as", dest="figures", choices=kinds, help="what figures are written as (png)")
    heads = "in a table, every metric of every head too; takes about as long as the model"
    add("--head-metrics", action="store_true", help=heads)
    together = "pictures that pass the model together, where their sizes agree (%(default)s)"
    add("--together", type=int, default=BATCH, metavar="N", help=together)
    add = parser.add_argument_group("more than one machine").add_argument
    engines = "here, or the workers of a Ray cluster (%(default)s)"
    add("--engine", choices=("here", "ray"), default="here", help=engines)
    add("--address", help="where the cluster is (none: one is started, on this machine alone)")
    add("--workers", type=int, metavar="N", help="models at work (one a GPU, or a processor)")


def run_command(
    given: argparse.Namespace,
    asked: Mapping[str, Any],
    drawing: Mapping[str, Any],
    query: Query | None,
    aim: Mapping[str, Any],
    load: Callable[..., LoadedViT],
    model: Mapping[str, Any],
) -> int:
    """Do a batch and say what became of it: 0, or 1 where a picture could not be done.

    `asked` are the method's options, `aim` says what gradients are of, `model` is for `load`.
    """
    kind = kind_of(given.output, given.figures)
    require_used(kind, drawing)
    request = Request(
        model=model,
        kind=kind,
        method=given.method,
        query=query,
        options=asked,
        fit=given.fit,
        drawing=drawing,
        head_metrics=given.head_metrics,
        batch=given.together,
        **aim,
    )
    engine = _engine(given)
    path = Path(given.output)
    names = pictures_in(given.pictures, without=path)
    report = Report(len(names))
    try:
        loading, output = _Loading(load, model), output_of(path, request)
        run(names, output, request, loading, engine=engine, report=report)
    except KeyboardInterrupt:
        are = "is" if report.total == 1 else "are"
        print(
            f"attnviz: stopped; {report.before + report.done} of"
            f" {_count(report.total, 'picture')} {are} done, and the same command goes on from"
            " there.",
            file=sys.stderr,
        )
        return CODE
    except AttnVizError:
        _say_failed(report)
        raise
    _say(report, path, "row" if request.is_table else "figure")
    if given.random:
        print("note: random weights: these maps mean nothing")
    return 1 if report.failed else 0


def _engine(given: argparse.Namespace) -> Engine:
    """Who does the work."""
    if given.engine == "ray":
        return Cluster(given.address, given.workers)
    for name in ("address", "workers"):
        if getattr(given, name) is not None:
            raise BadOption(f"--{name} is of a cluster: give --engine ray with it.")
    return here


class _Loading:
    """Loads the model, on whichever machine it is called."""

    def __init__(self, load: Callable[..., LoadedViT], model: Mapping[str, Any]) -> None:
        self.load, self.model = load, dict(model)

    def __call__(self) -> LoadedViT:
        say_loading(self.model["name"])
        return self.load(**self.model)


def _say(report: Report, path: Path, kept: str) -> None:
    """What became of all pictures; `kept` is what is kept of each: a row or a figure."""
    parts = [f"{report.done} done"]
    if report.done:
        rate = report.done / max(report.seconds, 1e-9)
        parts[0] += f" in {duration(report.seconds)} ({rate:.3g} a second)"
    if report.before:
        parts.append(f"{report.before} {'was' if report.before == 1 else 'were'} done before")
    if report.failed:
        parts.append(f"{len(report.failed)} could not be done")
    print(printable(f"{path}: of {_count(report.total, 'picture')} {', '.join(parts)}"))
    for name in report.changed:
        if name in report.failed:
            away = "left out" if kept == "row" else "removed"
            done = f", and could not be done: its earlier {kept} is {away}"
        else:
            done = ": done again"
        print(printable(f"{name} is another picture than before{done}"))
    for name in report.gone:
        print(printable(f"{name} is not there any more: its {kept} is kept"))
    if report.others:
        are = "is of a picture that was" if report.others == 1 else "are of pictures that were"
        print(f"{_count(report.others, kept)} {are} not asked for this time")
    _say_failed(report)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _say_failed(report: Report) -> None:
    """A table of the pictures that could not be done."""
    wide = max(map(len, report.failed), default=0)
    for name, reason in sorted(report.failed.items()):
        print(printable(f"  {name.ljust(wide)}  {reason}"))
