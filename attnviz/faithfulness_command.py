"""`python -m attnviz faithfulness`: the command line's way to deletion and insertion curves."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields

from attnviz.altering import BASELINE, BASELINES
from attnviz.contract import LoadedViT, Progress
from attnviz.curves import MODE, MODES, ORDERS, SEED, STEPS
from attnviz.faithfulness import Faithfulness, faithfulness
from attnviz.heatmap import Heatmap
from attnviz.paper_flags import add_paper
from attnviz.record import AttentionRecord
from attnviz.venue import PlotPaper

NAME = "faithfulness"

EXAMPLES = """\
examples:
  python -m attnviz faithfulness cat.jpg -o curve.png --method rollout
      how fast the model's feature is lost as patches go in the order of the rollout
  python -m attnviz faithfulness cat.jpg -o curve.pdf --method relevance --similar-to cls \\
      --mode insertion --baseline blur --steps 32
      how fast it comes back, from a blurred picture
  python -m attnviz faithfulness cat.jpg -o curve.npz --model deit_tiny_patch16_224 \\
      --target 281 --orders 20
      the numbers of one class, beside twenty random orders
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What this command has instead of the options for drawing a map."""
    parser.prog += f" {NAME}"
    parser.description = "Test whether a map points at what the model uses."
    parser.epilog = EXAMPLES
    watched = (
        "the score is of --target or --similar-to, or else of what the model makes of the picture"
    )
    add = parser.add_argument_group("the test", watched).add_argument
    modes = "patches go (deletion), or come back (insertion), the map's highest first (%(default)s)"
    add("--mode", choices=MODES, default=MODE, help=modes)
    add("--steps", type=_whole(2), default=STEPS, help="in how many steps (%(default)s)")
    stands = "what stands where a patch is not (%(default)s)"
    add("--baseline", choices=BASELINES, default=BASELINE, help=stands)
    random = "how many random orders to compare with (%(default)s)"
    add("--orders", type=_whole(2), default=ORDERS, help=random)
    add("--order-seed", type=_whole(0), default=SEED, help="of the random orders (%(default)s)")
    add = parser.add_argument_group("the drawing").add_argument
    of = {field.name: field.default for field in fields(PlotPaper)}
    del of["letters"]  # it is one plot
    add_paper(add, of, "the plot")


def run(
    vit: LoadedViT,
    record: AttentionRecord,
    heat: Heatmap,
    given: argparse.Namespace,
    progress: Progress | None = None,
) -> Faithfulness:
    """The curves of a map, as asked for; raises what `faithfulness` raises."""
    return faithfulness(
        vit,
        record,
        heat,
        mode=given.mode,
        steps=given.steps,
        baseline=given.baseline,
        orders=given.orders,
        seed=given.order_seed,
        progress=progress,
    )


def _whole(least: int) -> Callable[[str], int]:
    """Reads a whole number, so that what is none is said before a model runs."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) < 2**63:
            raise argparse.ArgumentTypeError(f"a whole number from {least}; {text!r} came")
        return int(text)

    return read
