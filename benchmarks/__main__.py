"""`python -m benchmarks`: what attnviz promises, and what it costs, measured in one run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch

from benchmarks import memory, rivals, speed
from benchmarks.subject import Subject, Watch, machine, ratio

LIMITS = {speed.OBSERVE: 1.10, speed.ROLLOUT: 0.45, speed.QUERY: 0.02, speed.HEAD: 0.02}
"""Times, over the model's own forward pass."""

HELD_LIMIT = 1.5
"""Memory of a record of factors, over the bytes of its queries and keys."""


RELEVANCE_LIMIT, PEAK_LIMIT = 4.0, 1.0
"""Of a relevance map: time over the forward pass, and GB above the model."""


@dataclass(frozen=True)
class Line:
    """One promise: what was measured, its limit, and each round's ratio."""

    what: str
    limit: float
    found: Sequence[float]

    @property
    def kept(self) -> bool:
        """Whether the median is within the limit."""
        return median(self.found) <= self.limit

    def __str__(self) -> str:
        verdict = "" if self.kept else " **missed**"
        return f"| {self.what} | {self.limit:g} | {ratio(self.found)}{verdict} |"


def main() -> int:
    """Measure, print, and say whether a limit was missed if `--check` asks for it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="measurements of each time (9)")
    parser.add_argument("--threads", type=int, help="threads of torch; its own choice if left out")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a limit is missed")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    held = memory.ask(memory.HELD)
    peaks = {name: memory.ask(name) for name in rivals.JOBS | rivals.GRADIENTS}
    subject = Subject.load()
    watch = Watch()
    ratios, passes = speed.measure(subject, options.rounds)
    others = watch.others()

    height, width = subject.tensor.shape[-2:]
    print(f"DINOv2 ViT-S/14, {height} × {width} px. {machine()}.")
    print(f"The model's own fused forward pass took {median(passes):.2f} s.")
    print(f"Other processes took {others:.0%} of the processors' time.\n")
    lines = [Line(f"{name} / forward pass", limit, ratios[name]) for name, limit in LIMITS.items()]
    ours = next(iter(rivals.GRADIENTS))
    lines.append(
        Line("relevance map, picture to map / forward pass", RELEVANCE_LIMIT, ratios[ours])
    )
    lines.append(Line("peak memory of that, in GB", PEAK_LIMIT, [peaks[ours] / 1e9]))
    lines.append(Line("memory of a record / its queries and keys", HELD_LIMIT, [held]))
    print("| what | at most | measured |\n| --- | --- | --- |")
    print(*lines, sep="\n")

    print("\n| rollout of the class token, picture to map | time / forward pass | peak memory |")
    print("| --- | --- | --- |")
    for name in rivals.JOBS:
        print(f"| {name} | {ratio(ratios[name])} | {peaks[name] / 1e6:.0f} MB |")
    print("\n| relevance of the class token, picture to map | time / forward pass | peak memory |")
    print("| --- | --- | --- |")
    for name in rivals.GRADIENTS:
        print(f"| {name} | {ratio(ratios[name])} | {peaks[name] / 1e6:.0f} MB |")
    print(f"\n{speed.MEAN_QUERY}: {ratio(ratios[speed.MEAN_QUERY])} forward passes.")
    print(f"The three maps differ by at most {disagreement(subject):.1g} of their range.")
    return int(options.check and not all(line.kept for line in lines))


def disagreement(subject: Subject) -> float:
    """How far the rivals' maps are from ours, each scaled to 0–1 as torchxai-explain scales its."""
    own = rivals.ours(subject)
    return max(
        float(np.abs(scaled(own) - scaled(rivals.dense(subject))).max()),
        float(np.abs(enlarged(own, subject) - rivals.torchxai(subject)).max()),
    )


def scaled(values: np.ndarray) -> np.ndarray:
    """From 0 to 1."""
    return (values - values.min()) / np.ptp(values)


def enlarged(values: np.ndarray, subject: Subject) -> np.ndarray:
    """Drawn bilinearly at the input's size, then from 0 to 1."""
    maps = torch.tensor(values)[None, None]
    size = tuple(subject.tensor.shape[-2:])
    return scaled(torch.nn.functional.interpolate(maps, size, mode="bilinear")[0, 0].numpy())


if __name__ == "__main__":
    sys.exit(main())
