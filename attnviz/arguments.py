"""What the command line understands: its flags, and values that are written as text."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from dataclasses import fields

from PIL import Image

from attnviz import batch_command, faithfulness_command, film_command, plate_command
from attnviz.bundle import ZIP
from attnviz.contract import FITS
from attnviz.errors import BadOption
from attnviz.export import KINDS, RENDERERS
from attnviz.film import FILMED
from attnviz.film_export import FILM_KINDS
from attnviz.images import open_image
from attnviz.mass import MASS
from attnviz.methods import METHODS
from attnviz.methods.options import Option
from attnviz.paper import Paper
from attnviz.paper_flags import add_colours, add_paper
from attnviz.plate_export import PLATE_KINDS
from attnviz.scale import SCALES
from attnviz.strip import FilmPaper
from attnviz.tokens import Query
from attnviz.usage import METHOD, MODEL, NAMES, CommandParser

EXAMPLES = """\
examples:
  python -m attnviz cat.jpg -o cat.png
      what the class token attends to in the last layer of DINOv2 ViT-S/14
  python -m attnviz cat.jpg -o head.pdf --layer 11 --head 3 --no-caption
      one head, as a figure for a paper
  python -m attnviz cat.jpg -o patch.png --query 4,20
      what the patch in row 4, column 20 attends to
  python -m attnviz cat.jpg -o to.png --query 4,20 --direction to
      which patches attend to that one
  python -m attnviz cat.jpg -o rollout.png --method rollout --clip 99
      attention added up over the layers; the few patches that collect most of it cut off
  python -m attnviz cat.jpg -o why.png --method relevance --similar-to other.jpg
      what makes the model find the two pictures alike
  python -m attnviz cat.jpg -o alike.png --method pca --alpha 0.8
      what the model's features tell apart, as colours
  python -m attnviz film cat.jpg -o cat.gif
      how that moves from layer to layer (film --help says more)
  python -m attnviz plate cat.jpg -o row.pdf --show methods --methods attention,rollout --original
      several methods on one figure (plate --help says more)
  python -m attnviz cat.jpg -o cat.pdf --manifest cat.json
  python -m attnviz replay cat.json cat.jpg -o again.pdf
      the same figure once more, byte for byte
  python -m attnviz faithfulness cat.jpg -o curve.png --method rollout
      does the map point at what the model uses? (faithfulness --help says more)
  python -m attnviz batch photos -o maps
      the same of every picture in a folder (batch --help says more)
  python -m attnviz cat.jpg -o map.npz --model vit_tiny_patch16_224 --checkpoint my.safetensors
      the numbers, from your own weights
  python -m attnviz models swin        which models have that in their name
  python -m attnviz check pit_ti_224   the proof that its maps are those it used

Rows, columns, layers and heads are counted from 0; -1 is the last layer or head.
"""

DRAWING = tuple(dict.fromkeys(field.name for kind in (Paper, FilmPaper) for field in fields(kind)))
"""Handed on to the figure where they are given; their defaults are its own."""


SECOND = (
    faithfulness_command.NAME,
    film_command.NAME,
    plate_command.NAME,
    batch_command.NAME,
)
"""Commands that draw something else than one map; all that comes before the drawing is the same."""


def parser_of(command: str | None = None) -> argparse.ArgumentParser:
    """Of a map, or of one of the commands in `SECOND`."""
    filming = command == film_command.NAME
    parser = CommandParser(
        prog="python -m attnviz",
        description="Draw what a Vision Transformer attends to in a picture.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    if many := command == batch_command.NAME:
        add("pictures", nargs="+", help="files, folders, patterns in quotes, .txt lists of these")
        add("-o", "--output", required=True, help="a folder of figures, or one table: NAME.parquet")
    else:
        add("picture", help="the picture's file")
        kinds = ", ".join(kinds_of(command))
        said = f"its suffix says what is written: {kinds}"
        add("-o", "--output", required=True, metavar="FILE", help=said)
        add("--overwrite", action="store_true", help="replace files that exist already")
        if command != faithfulness_command.NAME:
            manifest = "write what it takes to make the figure again, as manifest.json: see replay"
            add("--manifest", metavar="FILE", help=manifest)
            latex = "write a LaTeX figure with a caption; the BibTeX of its methods goes beside it"
            add("--latex", metavar="FILE.tex", help=latex)

    add = parser.add_argument_group("the model").add_argument
    words = f"{NAMES} (the default)"
    plate = command == plate_command.NAME  # which asks whether a flag came, and may be in vain
    add("--model", default=None if plate else MODEL, help=words)
    add("--checkpoint", metavar="FILE", help="your own weights, a .safetensors file")
    add("--random", action="store_true", help="random weights: an untrained model")
    add("--seed", type=int, help="of the random weights (0)")
    add("--size", metavar="N or ROWSxCOLS", help="input in pixels (the model's own)")
    fits = "how the picture meets that size (aspect, its own shape; crop if only one size works)"
    add("--fit", choices=FITS, help=fits)
    add("--device", help="cpu, cuda or mps (the best there is)")
    if command != batch_command.NAME:  # which lets each go before the next
        keep = "dense maps or what rebuilds them (%(default)s)"
        add("--keep", choices=("auto", "maps", "factors"), default="auto", help=keep)

    add = parser.add_argument_group("the method").add_argument
    methods = FILMED if filming else METHODS
    add("--method", choices=methods, default=None if plate else METHOD, help=f"({METHOD})")
    target = "what gradients are of: predicted, or a class by number or name"
    add("--target", metavar="CLASS", help=target)
    similar = "instead of a class, how alike: to cls, a patch ROW,COL, or another PICTURE"
    add("--similar-to", metavar="WHAT", help=similar)
    query = (
        "cls, mean, reg1 …, or a patch as ROW,COL (the class token); counted on the model's first,"
        " finest grid whatever the layer"
    )
    add("--query", metavar="TOKEN", help=query)
    for name, (option, having) in options_of_methods(methods).items():
        if filming and name == "layer":
            continue
        helps: dict[str, list[str]] = {}
        for method in having:
            helps.setdefault(METHODS[method].options[name].help, []).append(method)
        words = "; ".join(f"{each} [{', '.join(of)}]" for each, of in helps.items())
        flag, choices = f"--{name.replace('_', '-')}", option.choices or None
        add(flag, type=option.text_type, choices=choices, help=words)

    if command is not None:
        second = (faithfulness_command, film_command, plate_command, batch_command)
        commands = {each.NAME: each for each in second}
        commands[command].add_options(parser)
    if command is not None and not many:
        return parser
    add = parser.add_argument_group("the drawing").add_argument
    of = {field.name: field.default for field in fields(Paper)}
    add_colours(add, of, SCALES, "the")
    outlined = f"outline the fewest patches that hold this share of the map, such as {MASS} (off)"
    add("--mass", type=float, help=outlined)
    add_paper(add, of)
    return parser


def kinds_of(command: str | None) -> list[str]:
    """The suffixes that `-o` takes."""
    if command == faithfulness_command.NAME:
        return [*RENDERERS]
    kinds = {film_command.NAME: FILM_KINDS, plate_command.NAME: PLATE_KINDS}
    return [*kinds.get(command or "", KINDS), ZIP]


def options_of_methods(methods: Iterable[str] = METHODS) -> dict[str, tuple[Option, list[str]]]:
    """Every option of these methods, and which of them have it; they read its value alike."""
    found: dict[str, tuple[Option, list[str]]] = {}
    for method in methods:
        for name, option in METHODS[method].options.items():
            found.setdefault(name, (option, []))[1].append(method)
    return found


def size_of(text: str | None) -> int | tuple[int, int] | None:
    """N, or ROWSxCOLS; BadOption for anything else."""
    if text is None:
        return None
    numbers = text.lower().replace("×", "x").split("x")
    try:
        match [int(number) for number in numbers]:
            case [side]:
                return side
            case [rows, cols]:
                return rows, cols
    except ValueError:
        pass
    raise BadOption(f"A size is pixels as N, or ROWSxCOLS such as 224x336; {text!r} came.")


def query_of(text: str | None) -> Query | None:
    """A token's name, or a patch as ROW,COL; BadOption for a patch that is none."""
    if text is None or "," not in text:
        return text
    try:
        row, col = (int(number) for number in text.strip("()[] ").split(","))
    except ValueError:
        raise BadOption(f"A patch is ROW,COL, such as 4,20; {text!r} came.") from None
    return row, col


def class_of(text: str | None) -> int | str | None:
    """A class by its number or its name."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else text


def other_of(text: str | None) -> Image.Image | Query | None:
    """What the picture is compared with: a token of its own, or a file."""
    if text is None or re.fullmatch(r"cls|dist|reg\d+", text):
        return text
    if re.fullmatch(r"[(\[]?\s*-?\d+\s*,\s*-?\d+\s*[)\]]?", text):
        return query_of(text)
    return open_image(text)
