"""`python -m benchmarks.batch`: many pictures, against plain passes of the model; and memory.


Speed is a ratio: a batch from files to a table runs between two rounds of plain passes of the same
pictures, which lie decoded and fitted in memory, and is divided by their mean.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import psutil
import torch
from PIL import Image

import models
from attnviz.batch import Request, here, run
from attnviz.batch.outputs import output_of
from attnviz.images import open_image
from attnviz.samples import SAMPLES, open_sample
from benchmarks.subject import Watch, machine, ratio

MODEL = "vit_small_patch16_224"
SIZE = (500, 375)
"""(width, height) of the pictures, about what photographs in data sets have; they are JPEGs."""

LIMIT = 0.8
"""Pictures a second, over those of plain passes, at least."""

FLAT = 1.05
"""Memory over the last hundred pictures, over that of the second hundred, at most."""

TABLE = Request(model={"name": MODEL}, kind=".parquet", fit="crop")
JOBS = {
    "attention of the last layer, as a table": TABLE,
    "rollout, as a table": replace(TABLE, method="rollout"),
    "the first, with every head's metrics": replace(TABLE, head_metrics=True),
}


@dataclass(frozen=True)
class Times:
    """Seconds by the clock, and seconds of processors that this process used."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> Times:
        return cls(time.perf_counter(), time.process_time())

    def since(self) -> Times:
        now = Times.now()
        return Times(now.wall - self.wall, now.cpu - self.cpu)

    def mean(self, other: Times) -> Times:
        return Times((self.wall + other.wall) / 2, (self.cpu + other.cpu) / 2)

    def over(self, other: Times) -> Times:
        return Times(self.wall / other.wall, self.cpu / other.cpu)


def draw(folder: Path, count: int) -> list[str]:
    """So many pictures, no two alike: parts of the samples, with a little noise."""
    noise = np.random.default_rng(0)
    photographs = [open_sample(name) for name in SAMPLES if "digit" not in name]
    names = []
    for number in range(count):
        whole = photographs[number % len(photographs)]
        left, top = (noise.uniform(0, side / 3) for side in whole.size)
        box = (left, top, left + whole.width * 2 / 3, top + whole.height * 2 / 3)
        part = np.asarray(whole.resize(SIZE, Image.Resampling.BICUBIC, box)).astype(int)
        part += noise.integers(-6, 7, part.shape)
        names.append(str(folder / f"{number:05}.jpg"))
        Image.fromarray(part.clip(0, 255).astype(np.uint8)).save(names[-1], quality=90)
    return names


def speed(vit: models.AnyViT, folder: Path, count: int, rounds: int, together: int) -> bool:
    """Print each job's ratios; whether the first one's median keeps its promise."""
    names = draw(folder, count)
    inputs = torch.cat([vit.view(open_image(name), "crop").tensor for name in names])

    def plain() -> Times:
        start = Times.now()
        with torch.no_grad():
            for part in inputs.split(together):
                vit.module(part)
        return start.since()

    def batch(request: Request, number: int) -> Times:
        table = folder / f"{number}.parquet"
        asked = replace(request, batch=together)
        start = Times.now()
        report = run(names, output_of(table, asked), asked, lambda: vit)
        assert report.done == count
        return start.since()

    plain(), batch(TABLE, 0)  # warm
    watch, number, passes = Watch(), 0, [plain()]
    found: dict[str, list[Times]] = {name: [] for name in JOBS}
    for _ in range(rounds):
        for name, request in JOBS.items():
            number += 1
            took = batch(request, number)
            passes.append(plain())
            found[name].append(passes[-2].mean(passes[-1]).over(took))
    others = watch.others()
    print(
        f"{MODEL}, {count} pictures of {SIZE[0]} × {SIZE[1]} px, {together} together. {machine()}."
    )
    rate = count / median(each.wall for each in passes)
    print(f"The model's own fused passes: {rate:.1f} pictures a second.")
    print(f"Other processes took {others:.0%} of the processors' time.\n")
    print("| from files to a table | of the plain passes' pictures a second | by processor time |")
    print("| --- | --- | --- |")
    for name, each in found.items():
        print(f"| {name} | {ratio([t.wall for t in each])} | {ratio([t.cpu for t in each])} |")
    return median(each.cpu for each in found[next(iter(JOBS))]) >= LIMIT


def memory(vit: models.AnyViT, folder: Path, count: int, together: int) -> bool:
    """Print resident memory by hundreds of pictures; whether the last is like the second."""
    names, process, sizes = draw(folder, count), psutil.Process(), []

    def watched(*given: object) -> Iterator[object]:
        engine: Callable[..., Iterator[object]] = here
        for result in engine(*given):
            sizes.append(process.memory_info().rss)
            yield result

    asked = replace(TABLE, batch=together)
    run(names, output_of(folder / "m.parquet", asked), asked, lambda: vit, engine=watched)
    hundreds = [np.mean(sizes[start : start + 100]) / 2**20 for start in range(0, count, 100)]
    print(f"\nMemory over {count} pictures, in MB, mean of each hundred:")
    print(", ".join(f"{each:.0f}" for each in hundreds))
    grown = hundreds[-1] / hundreds[1]
    print(f"The last hundred over the second: {grown:.3f}, at most {FLAT}.")
    return grown <= FLAT


def main() -> int:
    """Measure, print, and say whether a limit was missed if `--check` asks for it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batch", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=7, help="measurements of each time (7)")
    add("--count", type=int, default=64, help="pictures of each measurement (64)")
    add("--together", type=int, default=TABLE.batch, help="pictures that pass together (8)")
    add("--threads", type=int, help="threads of torch; its own choice if left out")
    add("--memory", type=int, default=1000, help="pictures that memory is watched over (1000)")
    add("--check", action="store_true", help="exit code 1 where a limit is missed")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    vit = models.load(MODEL, pretrained=False, device="cpu")
    kept = []
    with tempfile.TemporaryDirectory() as name:
        if given.rounds:
            kept.append(speed(vit, Path(name), given.count, given.rounds, given.together))
    with tempfile.TemporaryDirectory() as name:
        if given.memory:
            kept.append(memory(vit, Path(name), given.memory, given.together))
    return int(given.check and not all(kept))


if __name__ == "__main__":
    sys.exit(main())
