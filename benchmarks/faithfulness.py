"""`python -m benchmarks.faithfulness`: which methods point at what the models use.

Every method, on DINOv2 ViT-S/14 with the photographs that come along, and on the models of digits
with digits that they were not trained on; the table in docs/methods.md is what it writes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import fmean, stdev

import torch
from PIL import Image

import attnviz
import models
from attnviz.altering import BASELINE, BASELINES
from attnviz.contract import LoadedViT
from attnviz.curves import MODES, ORDERS, STEPS, Mode
from attnviz.faithfulness import Faithfulness, compare_maps
from attnviz.samples import SAMPLES, open_sample
from attnviz.target import Target
from benchmarks.subject import machine

METHODS = attnviz.METHODS
PAGE = Path(__file__).resolve().parents[1] / "docs" / "methods.md"
BEGIN = "<!-- what follows is written by `make faithfulness` -->"
END = "<!-- end of what is written by `make faithfulness` -->"

ASKED = {"pca": {"component": 0}}
"""Options that make one value a patch, where a method has more by itself."""

CHANCE = 0.05
"""A method is better than chance where a coin would do as well less often than this."""


@dataclass(frozen=True)
class Case:
    """A model, the pictures that it is shown, and what its maps explain."""

    title: str
    vit: LoadedViT
    pictures: Sequence[Image.Image]
    target: Target
    fit: str


@dataclass(frozen=True)
class Found:
    """What came of one method on all pictures of a case."""

    label: str
    curves: dict[Mode, list[Faithfulness]]

    def cells(self, mode: Mode) -> str:
        """The area, and on how many pictures it is better than random orders."""
        all_of_them = self.curves[mode]
        better = sum(curves.gain > 0 for curves in all_of_them)
        said = verdict(better, len(all_of_them))
        areas = spread([curves.area for curves in all_of_them])
        return f"{areas} | {better} of {len(all_of_them)}{said and f': {said}'}"


def verdict(better: int, pictures: int) -> str:
    """What a sign test says (one-sided, exact) of being better on so many of the pictures."""
    if tail(better, pictures) < CHANCE:
        return ""
    if tail(pictures - better, pictures) < CHANCE:
        return "**worse than chance**"
    return "no better than chance"


def needed(pictures: int) -> str:
    """What it takes to be better than chance, in words."""
    enough = [better for better in range(pictures + 1) if not verdict(better, pictures)]
    return f"at least {enough[0]} of {pictures}" if enough else "more pictures than these"


def tail(heads: int, throws: int) -> float:
    """How probable it is that a fair coin shows at least so many heads."""
    return sum(comb(throws, k) for k in range(heads, throws + 1)) / 2**throws


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation."""
    return f"{fmean(values):.3f} ± {stdev(values):.3f}"


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """DINOv2 with the photographs; then each model of digits there is, with digits."""
    vit = models.load(image_size=options.size, device="cpu")
    photographs = [open_sample(name) for name in SAMPLES if not name.startswith("digit")]
    title = f"DINOv2 ViT-S/14 at {options.size} px, {len(photographs)} photographs"
    yield Case(title, vit, photographs, attnviz.similarity_to("cls"), "crop")
    names = [name for name in models.MODELS if name.startswith("digits")]
    if not names:
        print("there are no models of digits", file=sys.stderr)
        return
    from models.digits import Digits

    digits = Digits.read()
    unseen = [digits.pictures[number] for number in digits.test[: options.digits].tolist()]
    for name in names:
        title = f"{models.MODELS[name].label} (`{name}`), {len(unseen)} unseen digits"
        yield Case(title, models.load(name, device="cpu"), unseen, "predicted", "squash")


def measure(case: Case, options: argparse.Namespace) -> tuple[list[Found], dict[str, str]]:
    """Every method on every picture; and the methods that the model has no map for, with why."""
    found = {name: Found(row.label, {mode: [] for mode in MODES}) for name, row in METHODS.items()}
    refused: dict[str, str] = {}
    for number, picture in enumerate(case.pictures, start=1):
        print(f"{case.title}: picture {number} of {len(case.pictures)}", file=sys.stderr)
        record = attnviz.observe(case.vit, picture, target=case.target, fit=case.fit)
        heats = {}
        for name in METHODS:
            try:
                heats[name] = attnviz.explain(record, name, **ASKED.get(name, {}))
            except attnviz.AttnVizError as error:
                refused[name] = str(error)
        for mode in MODES:
            made = compare_maps(
                case.vit,
                record,
                list(heats.values()),
                mode=mode,
                steps=options.steps,
                baseline=options.baseline,
                orders=options.orders,
            )
            for name, curves in zip(heats, made, strict=True):
                found[name].curves[mode].append(curves)
    return [row for name, row in found.items() if name not in refused], refused


def table(case: Case, found: Sequence[Found], refused: dict[str, str]) -> str:
    """What was measured of one case, in Markdown."""
    first = found[0].curves["deletion"]
    scores = {curves.score.split(" (")[0].rstrip("0123456789 ") for curves in first}
    floor = [spread([curves.random_area for curves in found[0].curves[mode]]) for mode in MODES]
    lines = [
        f"### {case.title}",
        "",
        f"Score: {' or '.join(sorted(scores))}. Of the whole picture"
        f" {fmean(curves.scores[0] for curves in first):.3f}, of the baseline"
        f" {fmean(curves.scores[-1] for curves in first):.3f}, on average. To be better than chance"
        f" takes {needed(len(first))}.",
        "",
        "| map | deletion area (small is good) | better than random on"
        " | insertion area (large is good) | better than random on |",
        "| --- | --- | --- | --- | --- |",
        *(f"| {row.label} | {' | '.join(row.cells(mode) for mode in MODES)} |" for row in found),
        f"| *random orders* | {floor[0]} |  | {floor[1]} |  |",
    ]
    for name, why in refused.items():
        lines.append(f"\n{METHODS[name].label}: {why}")
    return "\n".join(lines)


def written(page: str, between: str, begin: str = BEGIN, end: str = END) -> str:
    """The page with what stands between the markers replaced."""
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n\n{between}\n\n{end}{after}"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faithfulness", description=__doc__)
    add = parser.add_argument
    add("--steps", type=int, default=STEPS, help="(%(default)s)")
    add("--orders", type=int, default=ORDERS, help="random orders a picture (%(default)s)")
    add("--size", type=int, default=224, help="of DINOv2's input in pixels (%(default)s)")
    add("--digits", type=int, default=40, help="how many digits (%(default)s)")
    add("--baseline", choices=BASELINES, default=BASELINE, help="(%(default)s)")
    add("--threads", type=int, help="threads of torch; its own choice if left out")
    add("--print", action="store_true", help="print the tables and leave the page as it is")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    start = time.process_time()
    tables = [table(case, *measure(case, options)) for case in cases(options)]
    head = (
        f"{options.steps} steps, {options.orders} random orders a picture (seed 0); patches become"
        f" {BASELINES[options.baseline][0]}. Each method with its default options and query; of"
        " PCA, the first component.\n"
        f"It took {(time.process_time() - start) / 60:.0f} minutes of the processors' time on"
        f" {machine()}."
    )
    text = "\n\n".join([head, *tables])
    if options.print:
        print(text)
    else:
        PAGE.write_text(written(PAGE.read_text("utf-8"), text), "utf-8")
        print(f"{PAGE.name} is written")


if __name__ == "__main__":
    main()
