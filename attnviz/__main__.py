"""The command line: the second front end over the façade."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from PIL import Image

import models
from attnviz import batch_command, export, faithfulness_command, film_command, film_export
from attnviz.arguments import (
    DRAWING,
    SECOND,
    class_of,
    options_of_methods,
    other_of,
    parser_of,
    query_of,
    size_of,
)
from attnviz.commands import COMMANDS
from attnviz.contract import LoadedViT, Progress
from attnviz.errors import AttnVizError, BadOption
from attnviz.explain import Explanation, estimate, explain, observe
from attnviz.faithfulness import Faithfulness
from attnviz.film import Film, film
from attnviz.images import open_image
from attnviz.images.quiet import hush
from attnviz.interrupt import CODE, SENTENCE, raise_again
from attnviz.methods import METHODS
from attnviz.methods.options import check
from attnviz.record import AttentionRecord
from attnviz.target import Target, similarity_to
from attnviz.tokens import Query


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code: 0, or 2 after a user's mistake.

    It is 1 for a batch of which some pictures could not be done.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words[0] if words and words[0] in SECOND else None
    hush()
    try:
        raise_again()
        if words and words[0] in COMMANDS:
            COMMANDS[words[0]](words[1:])
        elif command == batch_command.NAME:
            return _many(parser_of(command).parse_args(words[1:]))
        else:
            _draw(parser_of(command).parse_args(words[command is not None :]), command)
    except AttnVizError as error:
        print(f"attnviz: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read the output has had enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print(SENTENCE, file=sys.stderr)
        return CODE
    return 0


def _many(given: argparse.Namespace) -> int:
    asked, other = _asked(given), given.similar_to
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
    filming = command == film_command.NAME
    output, _ = (film_export.plan_film if filming else export.plan)(given.output, **drawing)
    model, query = _model(given), query_of(given.query)
    asked = _asked(given)
    image = open_image(given.picture)
    other: AttentionRecord | Image.Image | Query | None = other_of(given.similar_to)
    try:
        itself = output.exists() and output.samefile(given.picture)
    except OSError as error:
        raise BadOption(f"{output} can't be written: {error.strerror}.") from error
    if itself:
        raise BadOption(f"The output {output} is the picture itself. Give another name with -o.")
    if sys.stderr.isatty():
        print(f"loading {given.model} …", file=sys.stderr)
    vit = models.load(**model)
    given.fit = given.fit or ("aspect" if vit.any_size else "crop")
    _require_places(given, vit, image, asked, query, filming=filming)
    target: Target | None = class_of(given.target)
    if isinstance(other, Image.Image):
        other = observe(vit, other, keep=given.keep, fit=given.fit)
    if other is not None:
        named = isinstance(other, AttentionRecord)
        target = similarity_to(other, name=Path(given.similar_to).name if named else None)
    record = observe(
        vit, image, target=target, keep=given.keep, fit=given.fit, progress=_progress("layer")
    )
    made: Explanation | Faithfulness | Film
    if filming:
        made = film(record, given.method, query=query, **asked).named(Path(given.picture).name)
    else:
        needed = estimate(record, given.method, **asked)
        if needed and sys.stderr.isatty():
            print(f"{METHODS[given.method].label} takes {needed}; Ctrl-C stops it", file=sys.stderr)
        heat = explain(record, given.method, query=query, progress=_progress("token"), **asked)
        made = heat = heat.named(Path(given.picture).name)
        if command == faithfulness_command.NAME:
            made = faithfulness_command.run(vit, record, heat, given, _progress("picture"))
    made.save(output, **drawing)
    _say(f"{output}: {made.summary}; on {record.device}")
    for note in made.notes:
        _say(f"note: {note}")


def _require_places(
    given: argparse.Namespace,
    vit: LoadedViT,
    image: Image.Image,
    asked: dict[str, Any],
    query: Query | None,
    *,
    filming: bool,
) -> None:
    """Refuse a layer, a head or a token that does not exist, before the model runs."""
    height, width = vit.view(image, given.fit).tensor.shape[-2:]
    # How many layers and heads, and which tokens: as in a record.
    places: Any = SimpleNamespace(layers=vit.sites, layout=vit.layout(height, width))
    if filming:  # a head that some layer has, a token that asks in some
        most = max(range(len(vit.sites)), key=lambda number: vit.sites[number].heads)
        asked = {**asked, "layer": most}
    found = check(given.method, METHODS[given.method].options, asked, places)
    if filming:
        places.layout.query_tokens(places.layout.default_query if query is None else query)
    elif query is not None:
        site = vit.sites[found.get("layer", found.get("last_layer", -1))]
        geometry = site.geometry_on(places.layout)
        geometry.queries.query_tokens(geometry.asked(query, places.layout))


def _say(line: str) -> None:
    """Print, where there is somebody to print to: the file is written anyway."""
    with suppress(OSError, UnicodeError):
        print(line, flush=True)


def _asked(given: argparse.Namespace) -> dict[str, Any]:
    """The method's options that were given; contradictions are known before a model runs."""
    if given.random and given.checkpoint:
        raise BadOption("--random and --checkpoint came: give one of them.")
    if given.seed is not None and not given.random:
        raise BadOption("--seed is of random weights: give --random with it.")
    if not 0 <= (given.seed or 0) < 2**63:
        raise BadOption(f"A seed is a whole number from 0 to 2^63 - 1; {given.seed} came.")
    asked = {
        name: getattr(given, name)
        for name in options_of_methods()
        if getattr(given, name, None) is not None
    }
    _require_target(given)
    own = METHODS[given.method].options
    for name in asked:
        if name not in own:
            flags = ", ".join(f"--{each.replace('_', '-')}" for each in own)
            raise BadOption(
                f"--method {given.method} has no --{name.replace('_', '-')}; it has {flags}."
            )
    settled = {name: option.default for name, option in own.items()} | asked
    if METHODS[given.method].in_colour(settled):
        _refuse_scales(given)
    return asked


def _refuse_scales(given: argparse.Namespace) -> None:
    """Red, green and blue have scales of their own, and no palette."""
    for name in ("colormap", "scale", "clip"):
        if getattr(given, name, None) is not None:  # the test of a map has none of them
            raise BadOption(
                f"--method {given.method} mixes its components as red, green and blue, each from"
                f" its lowest to its highest value: leave --{name} out, or choose one with"
                " --component."
            )


def _require_target(given: argparse.Namespace) -> None:
    """A target where the method needs one, and only there."""
    came = [given.target, given.similar_to]
    if None not in came:
        raise BadOption("--target and --similar-to came: give one of them.")
    if METHODS[given.method].needs_gradient:
        if came == [None, None]:
            raise BadOption(
                f"--method {given.method} explains a target: give one, as --target predicted,"
                " --target CLASS, or --similar-to cls, ROW,COL or another PICTURE."
            )
    elif came != [None, None] and "mode" not in given:  # a test watches it for any method
        raise BadOption(f"--method {given.method} has no use for a target: leave it out.")


def _progress(what: str) -> Progress | None:
    """A line that counts layers, tokens or pictures, where somebody is watching."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{what} {done} of {total}", end=end, file=sys.stderr, flush=True)

    return show


if __name__ == "__main__":
    sys.exit(main())
