"""The command line's other commands: which models there are, and the proof for one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import models
from attnviz.errors import UnknownName
from attnviz.keeping import Route
from attnviz.replay_command import replay_command
from attnviz.usage import NAMES, CommandParser, counted, printable, say_loading
from attnviz.verify import LayerCheck, verify
from models.search import Found, describe, search

SHOWN = 20
"""How many names a search describes: each is built, without weights, to be sure."""


def models_command(arguments: Sequence[str]) -> None:
    """List the models that have a card, or those of timm whose name holds a word.

    Raises UnknownName where none does.
    """
    parser = CommandParser(
        prog="python -m attnviz models", description="List or search the models."
    )
    parser.add_argument("word", nargs="?", help="a part of timm's names")
    word = parser.parse_args(arguments).word
    named = {name: card for name, card in models.MODELS.items() if word and word.lower() in name}
    if not word or named:
        cards = (named or models.MODELS).items()
        table = [(name, card.label, card.size, card.family, card.source) for name, card in cards]
        _print(("name", "model", "size", "kind", "weights from"), table)
        print("\nAll of timm's families that can be drawn: docs/models.md; search: models WORD.")
    if not word:
        return
    names = search(word)
    if not names and named:
        return
    if not names:
        raise UnknownName(f"No model of timm has {word!r} in its name.")
    rows = [_row(describe(name)) for name in islice(names, SHOWN)]
    _print(("name", "size", "input", "grid", "layers", "drawn"), rows)
    if len(names) > SHOWN:
        print(f"\n{len(names) - SHOWN} more: give a longer word.")


def check_command(arguments: Sequence[str]) -> None:
    """Run the verification of one model and print what each layer missed by.

    Raises CaptureFailed for a layer that misses by too much, and what `models.load` raises.
    """
    parser = CommandParser(
        prog="python -m attnviz check",
        description="Prove that a model's captured maps are those that it used.",
    )
    parser.add_argument("name", help=NAMES)
    parser.add_argument(
        "--pretrained", action="store_true", help="with its own weights, not random ones"
    )
    given = parser.parse_args(arguments)
    say_loading(given.name)
    vit = models.load(given.name, pretrained=given.pretrained)
    checks = verify(vit, progress=counted("proof"))
    tensor = vit.probe()
    layout = vit.layout(*tensor.shape[-2:])
    by_layer: dict[str, dict[Route, LayerCheck]] = {}
    for check in checks:
        by_layer.setdefault(check.name, {})[check.route] = check
    rows = []
    for site in vit.sites:
        geometry = site.geometry_on(layout)
        grid = " × ".join(map(str, geometry.keys.grid))
        misses = [f"{by_layer[site.name][route].output_error:.1e}" for route in ("maps", "factors")]
        sums = max(check.row_sum_error for check in by_layer[site.name].values())
        rows.append(
            (site.name, geometry.kind, str(site.heads), grid, site.mixed or f"{sums:.1e}", *misses)
        )
    head = ("layer", "attends to", "heads", "grid", "rows miss 1 by", "map × values", "by factors")
    _print(head, rows)
    height, width = tensor.shape[-2:]
    print(
        f"\n{given.name}: {len(rows)} layers verified on {height} × {width} pixels, by both routes."
    )


COMMANDS: Mapping[str, Callable[[Sequence[str]], None]] = {
    "models": models_command,
    "check": check_command,
    "replay": replay_command,
}
"""First word of the command line → what it does."""


def _row(found: Found) -> tuple[str, ...]:
    if found.grid is None:
        return found.name, "", "", "", "", f"no: {found.why_not}"
    return (
        found.name,
        f"{found.parameters / 1e6:.0f} M",
        " × ".join(map(str, found.size)),
        " × ".join(map(str, found.grid)),
        str(found.layers),
        "yes",
    )


def _print(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they need to be."""
    wide = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True))
        print(printable(line.rstrip()))
