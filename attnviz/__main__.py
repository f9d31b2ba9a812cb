"""The command line: the second front end over the façade."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from PIL import Image

import models
from attnviz import export, faithfulness_command
from attnviz.colour import COLORMAPS
from attnviz.contract import FITS, LoadedViT
from attnviz.errors import AttnVizError, BadOption
from attnviz.explain import explain, observe
from attnviz.heatmap import INTERPOLATIONS
from attnviz.images import open_image
from attnviz.interrupt import CODE, SENTENCE, raise_again
from attnviz.methods import METHODS
from attnviz.methods.options import Option, settle
from attnviz.paper import Paper
from attnviz.record import AttentionRecord
from attnviz.scale import SCALES
from attnviz.target import Target, similarity_to
from attnviz.tokens import Query

EXAMPLES = """\
examples:
  python -m attnviz cat.jpg -o cat.png
      what the class token attends to in the last layer of DINOv2 ViT-S/14
  python -m attnviz cat.jpg -o head.pdf --layer 11 --head 3 --no-caption
      one head, as a figure for a paper
  python -m attnviz cat.jpg -o patch.png --query 4,20
      what the patch in row 4, column 20 attends to
  python -m attnviz cat.jpg -o rollout.png --method rollout --clip 99
      attention added up over the layers; the few patches that collect most of it cut off
  python -m attnviz cat.jpg -o why.png --method relevance --similar-to other.jpg
      what makes the model find the two pictures alike
  python -m attnviz faithfulness cat.jpg -o curve.png --method rollout
      does the map point at what the model uses? (faithfulness --help says more)
  python -m attnviz cat.jpg -o map.npz --model vit_tiny_patch16_224 --checkpoint my.safetensors
      the numbers, from your own weights

Rows, columns, layers and heads are counted from 0; -1 is the last layer or head.
"""


_DRAWING = tuple(field.name for field in fields(Paper))
"""Handed on to the figure where they are given; their defaults are its own."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence, exit code 2."""
        self.exit(2, f"attnviz: {message}. See python -m attnviz --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code: 0, or 2 after a user's mistake."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    testing = words[:1] == [faithfulness_command.NAME]
    try:
        raise_again()
        _draw(_parser(testing).parse_args(words[testing:]))
    except AttnVizError as error:
        print(f"attnviz: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(SENTENCE, file=sys.stderr)
        return CODE
    return 0


def _draw(given: argparse.Namespace) -> None:
    drawing = {
        name: value for name in _DRAWING if (value := getattr(given, name, None)) is not None
    }
    output, _ = export.plan(given.output, **drawing)
    size, query = _size(given.size), _query(given.query)
    asked = _asked(given)
    image = open_image(given.picture)
    other: AttentionRecord | Image.Image | Query | None = _other(given.similar_to)
    try:
        itself = output.exists() and output.samefile(given.picture)
    except OSError as error:
        raise BadOption(f"{output} can't be written: {error.strerror}.") from error
    if itself:
        raise BadOption(f"The output {output} is the picture itself. Give another name with -o.")
    if sys.stderr.isatty():
        print(f"loading {given.model} …", file=sys.stderr)
    vit = models.load(
        given.model,
        pretrained=not given.random,
        seed=given.seed or 0,
        checkpoint=given.checkpoint,
        image_size=size,
        device=given.device,
    )
    given.fit = given.fit or ("aspect" if vit.any_size else "crop")
    _require_places(given, vit, image, asked, query)
    target: Target | None = _class(given.target)
    if isinstance(other, Image.Image):
        other = observe(vit, other, keep=given.keep, fit=given.fit)
    if other is not None:
        target = similarity_to(other)
    record = observe(
        vit, image, target=target, keep=given.keep, fit=given.fit, progress=_progress()
    )
    heat = explain(record, given.method, query=query, **asked).named(Path(given.picture).name)
    made = faithfulness_command.run(vit, record, heat, given) if "mode" in given else heat
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
) -> None:
    """Refuse a layer, a head or a token that does not exist, before the model runs."""
    layers: Any = SimpleNamespace(layers=vit.sites)  # how many, and their heads: as in a record
    settle(given.method, METHODS[given.method].options, asked, layers)
    if query is not None:
        height, width = vit.view(image, given.fit).tensor.shape[-2:]
        vit.layout(height, width).query_tokens(query)


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
    asked = {name: getattr(given, name) for name in _options() if getattr(given, name) is not None}
    _require_target(given)
    own = METHODS[given.method].options
    for name in asked:
        if name not in own:
            flags = ", ".join(f"--{each.replace('_', '-')}" for each in own)
            raise BadOption(
                f"--method {given.method} has no --{name.replace('_', '-')}; it has {flags}."
            )
    return asked


def _require_target(given: argparse.Namespace) -> None:
    """A target where the method needs one, and only there."""
    came = [given.target, given.similar_to]
    if METHODS[given.method].needs_gradient:
        if sum(each is not None for each in came) != 1:
            raise BadOption(
                f"--method {given.method} explains a target: give one, as --target predicted,"
                " --target CLASS, or --similar-to cls, ROW,COL or another PICTURE."
            )
    elif came != [None, None]:
        raise BadOption(f"--method {given.method} has no use for a target: leave it out.")


def _class(text: str | None) -> int | str | None:
    """A class by its number or its name."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else text


def _other(text: str | None) -> Image.Image | Query | None:
    """What the picture is compared with: a token of its own, or a file."""
    if text is None or re.fullmatch(r"cls|dist|reg\d+", text):
        return text
    if re.fullmatch(r"[(\[]?\s*-?\d+\s*,\s*-?\d+\s*[)\]]?", text):
        return _query(text)
    return open_image(text)


def _parser(testing: bool = False) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m attnviz",
        description="Draw what a Vision Transformer attends to in a picture.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("picture", help="the picture's file")
    add("-o", "--output", required=True, metavar="FILE", help=".png, .svg, .pdf or .npz")

    add = parser.add_argument_group("the model").add_argument
    words = "a timm name, digits, digits-fused-qkv, or %(default)s (the default)"
    add("--model", default="dinov2-small", help=words)
    add("--checkpoint", metavar="FILE", help="your own weights, a .safetensors file")
    add("--random", action="store_true", help="random weights: an untrained model")
    add("--seed", type=int, help="of the random weights (0)")
    add("--size", metavar="N or ROWSxCOLS", help="input in pixels (the model's own)")
    fits = "how the picture meets that size (aspect, its own shape; crop if only one size works)"
    add("--fit", choices=FITS, help=fits)
    add("--device", help="cpu, cuda or mps (the best there is)")
    keep = "dense maps or what rebuilds them (%(default)s)"
    add("--keep", choices=("auto", "maps", "factors"), default="auto", help=keep)

    add = parser.add_argument_group("the method").add_argument
    add("--method", choices=METHODS, default="attention", help="(%(default)s)")
    target = "what gradients are of: predicted, or a class by number or name"
    add("--target", metavar="CLASS", help=target)
    similar = "instead of a class, how alike: to cls, a patch ROW,COL, or another PICTURE"
    add("--similar-to", metavar="WHAT", help=similar)
    query = "cls, mean, reg1 …, or a patch as ROW,COL (the class token)"
    add("--query", metavar="TOKEN", help=query)
    for name, (option, methods) in _options().items():
        words = f"{option.help} [{', '.join(methods)}]"
        flag, choices = f"--{name.replace('_', '-')}", option.choices or None
        add(flag, type=option.text_type, choices=choices, help=words)

    if testing:
        faithfulness_command.add_options(parser)
        return parser
    add = parser.add_argument_group("the drawing").add_argument
    of = {field.name: field.default for field in fields(Paper)}
    add("--alpha", type=float, help=f"opacity of the colours, 0 to 1 ({of['alpha']})")
    add("--colormap", choices=COLORMAPS, help=f"({of['colormap']})")
    add("--scale", choices=SCALES, help=f"range of the colours ({of['scale']})")
    clip = "cut the scale at this percentile and its opposite: 99 cuts at 1 and 99 (off)"
    add("--clip", type=float, help=clip)
    smooth = f"between patches ({of['interpolation']}: one value a patch)"
    add("--interpolation", choices=INTERPOLATIONS, help=smooth)
    outlined = "outline the fewest patches that hold this share of the map, such as 0.6 (off)"
    add("--mass", type=float, help=outlined)
    add("--width-mm", type=float, help=f"width of the figure ({of['width_mm']:g})")
    add("--dpi", type=int, help=f"dots per inch of a .png ({of['dpi']})")
    bare = "leave out the words below the colour bar; the file's metadata keeps them"
    add("--no-caption", dest="caption", action="store_const", const=False, help=bare)
    return parser


def _options() -> dict[str, tuple[Option, list[str]]]:
    """Every option of every method, with the methods that have it."""
    found: dict[str, tuple[Option, list[str]]] = {}
    for method, row in METHODS.items():
        for name, option in row.options.items():
            found.setdefault(name, (option, []))[1].append(method)
    return found


def _size(text: str | None) -> int | tuple[int, int] | None:
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


def _query(text: str | None) -> Query | None:
    if text is None or "," not in text:
        return text
    try:
        row, col = (int(number) for number in text.strip("()[] ").split(","))
    except ValueError:
        raise BadOption(f"A patch is ROW,COL, such as 4,20; {text!r} came.") from None
    return row, col


def _progress() -> Any:
    """A line that counts layers, where somebody is watching."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\rlayer {done} of {total}", end=end, file=sys.stderr, flush=True)

    return show


if __name__ == "__main__":
    sys.exit(main())
