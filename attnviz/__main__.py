"""The command line: the second front end over the façade."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

import models
from attnviz import (
    batch_command,
    export,
    faithfulness_command,
    film_command,
    film_export,
    plate_command,
    plot_export,
)
from attnviz.arguments import (
    DRAWING,
    SECOND,
    class_of,
    kinds_of,
    other_of,
    parser_of,
    query_of,
    size_of,
)
from attnviz.bundle import PDF, ZIP, bundle
from attnviz.commands import COMMANDS
from attnviz.contract import LoadedViT, as_fit, usual_fit
from attnviz.errors import AttnVizError, BadOption
from attnviz.explain import Explanation, estimate, explain, observe
from attnviz.faithfulness import Faithfulness
from attnviz.figure import notes_of, summary_of
from attnviz.film import Film, film
from attnviz.images import open_image
from attnviz.images.quiet import hush
from attnviz.interrupt import CODE, SENTENCE, raise_again
from attnviz.methods import METHODS
from attnviz.paper_flags import require_used
from attnviz.places import require_in_some_layer, require_places
from attnviz.plates import Beside, HeadGrid
from attnviz.plot_export import MetricPlot
from attnviz.record import AttentionRecord
from attnviz.side_files import side_places, write_sides
from attnviz.target import Target, similarity_to
from attnviz.tokens import Query
from attnviz.usage import counted, escape_output, printable, say_loading
from attnviz.wishes import asked_of
from attnviz.writing import checked_target, kind_of, require_apart, require_free, write_whole
from models.devices import choose_device


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code: 0, or 2 after a user's mistake.

    It is 1 for a batch of which some pictures could not be done.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words[0] if words and words[0] in SECOND else None
    hush()
    escape_output()
    try:
        raise_again()
        if words and words[0] in COMMANDS:
            COMMANDS[words[0]](words[1:])
        elif command == batch_command.NAME:
            return _many(parser_of(command).parse_args(words[1:]))
        else:
            _draw(parser_of(command).parse_args(words[command is not None :]), command)
    except AttnVizError as error:
        print(printable(f"attnviz: {error}"), file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read the output has had enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print(SENTENCE, file=sys.stderr)
        return CODE
    return 0


def _many(given: argparse.Namespace) -> int:
    asked, other = asked_of(given, [given.method]), given.similar_to
    aim: dict[str, Any] = {"target": class_of(given.target)}
    if other is not None:
        picture = isinstance(other_of(other), Image.Image)
        aim |= {"similar_picture": other} if picture else {"similar_to": other_of(other)}
    query, model = query_of(given.query), _model(given)
    drawing = _drawing(given)
    return batch_command.run_command(given, asked, drawing, query, aim, models.load, model)


def _drawing(given: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name in DRAWING if (value := getattr(given, name, None)) is not None}


def _model(given: argparse.Namespace) -> dict[str, Any]:
    """What `models.load` is given."""
    return {
        "name": given.model,
        "pretrained": not given.random,
        "seed": given.seed or 0,
        "checkpoint": given.checkpoint,
        "image_size": size_of(given.size),
        "device": given.device,
    }


def _draw(given: argparse.Namespace, command: str | None) -> None:
    drawing = _drawing(given)
    output = _planned(given, command, drawing)
    sides = side_places(given)
    model, query = _model(given), query_of(given.query)
    asked = asked_of(given, _methods(given, command))
    image = open_image(given.picture)
    other = other_of(given.similar_to)
    sources = [given.picture, given.similar_to, given.checkpoint]
    for place in (output, *sides):
        require_apart(place, [source for source in sources if source is not None])
        if not given.overwrite:
            require_free(place)
    check = partial(_require_places, given, command, image, asked, query)
    observed = partial(_observed, given, image, other, model, check)
    made: Explanation | Faithfulness | Film | Beside | HeadGrid | MetricPlot
    if command == plate_command.NAME:
        made = plate_command.make(given, lambda name: observed(name)[1], query, asked)
    else:
        vit, record = observed(given.model)
        if command == film_command.NAME:
            made = film(record, given.method, query=query, **asked).named(Path(given.picture).name)
        else:
            made = _explained(given, record, query, asked)
            if command == faithfulness_command.NAME:
                made = faithfulness_command.run(vit, record, made, given, counted("picture"))
    if output.suffix.lower() == ZIP and not isinstance(made, Faithfulness):
        write_whole(output, bundle([(made, drawing)]), overwrite=given.overwrite)
    else:
        made.save(output, overwrite=given.overwrite, **drawing)
    kind = kind_of(output, kinds_of(command))
    if isinstance(made, Faithfulness):
        summary, notes = made.summary, [*made.notes]
    else:
        summary, notes = summary_of(made, kind), notes_of(made, kind, **drawing)
    _say(f"{output}: {summary}; on {choose_device(given.device)}")
    for note in notes:
        _say(f"note: {note}")
    if not isinstance(made, Faithfulness):
        write_sides(made, output, given, drawing)


def _methods(given: argparse.Namespace, command: str | None) -> list[str]:
    return plate_command.methods_of(given) if command == plate_command.NAME else [given.method]


def _planned(given: argparse.Namespace, command: str | None, drawing: dict[str, Any]) -> Path:
    """Where the figure goes; what is wrong with its options is known before a model runs."""
    require_used(kind_of(given.output, kinds_of(command)), drawing)
    if command != faithfulness_command.NAME and given.output.lower().endswith(ZIP):
        if given.manifest is not None or given.latex is not None:
            raise BadOption("The zip holds manifest and LaTeX: leave --manifest and --latex out.")
        output = checked_target(given.output, (ZIP,), True, "A set of files")
        as_one = argparse.Namespace(**{**vars(given), "output": str(output.with_suffix(PDF))})
        _planned(as_one, command, drawing)
        return output
    if command == plate_command.NAME:
        return plate_command.plan(given, drawing)
    output, _ = _PLANS.get(command, export.plan)(given.output, **drawing)
    return output


_PLANS: Mapping[str | None, Callable[..., tuple[Path, object]]] = {
    film_command.NAME: film_export.plan_film,
    faithfulness_command.NAME: plot_export.plan_curves,
}
"""Command → where and how its figure would be written, where that is no single map."""


def _observed(
    given: argparse.Namespace,
    image: Image.Image,
    other: Image.Image | Query | None,
    model: dict[str, Any],
    check: Callable[[LoadedViT, str], None],
    name: str,
) -> tuple[LoadedViT, AttentionRecord]:
    """The model of that name, and the picture as it saw it."""
    say_loading(name)
    vit = models.load(**{**model, "name": name})
    fit = given.fit or usual_fit(vit.any_size)
    check(vit, fit)
    target: Target | None = class_of(given.target)
    like: AttentionRecord | Query | None = None
    if isinstance(other, Image.Image):
        like = observe(vit, other, keep=given.keep, fit=fit)
    else:
        like = other
    if like is not None:
        named = isinstance(like, AttentionRecord)
        target = similarity_to(like, name=Path(given.similar_to).name if named else None)
    progress = counted("layer")
    return vit, observe(vit, image, target=target, keep=given.keep, fit=fit, progress=progress)


def _explained(
    given: argparse.Namespace, record: AttentionRecord, query: Query | None, asked: dict[str, Any]
) -> Explanation:
    needed = estimate(record, given.method, **asked)
    if needed and sys.stderr.isatty():
        print(f"{METHODS[given.method].label} takes {needed}; Ctrl-C stops it", file=sys.stderr)
    heat = explain(record, given.method, query=query, progress=counted("token"), **asked)
    return heat.named(Path(given.picture).name)


def _require_places(
    given: argparse.Namespace,
    command: str | None,
    image: Image.Image,
    asked: dict[str, Any],
    query: Query | None,
    vit: LoadedViT,
    fit: str,
) -> None:
    """Refuse a layer, a head or a token that does not exist, before the model runs."""
    layout = vit.layout(*vit.view(image, as_fit(fit)).tensor.shape[-2:])
    all_layers = command == film_command.NAME or getattr(given, "show", None) == "heads"
    require = require_in_some_layer if all_layers else require_places
    for method in _methods(given, command):
        require(vit, layout, method, plate_command.own_of(method, asked), query)


def _say(line: str) -> None:
    """Print, where there is somebody to print to: the file is written anyway."""
    with suppress(OSError, UnicodeError):
        print(printable(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
