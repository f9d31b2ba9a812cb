"""`python -m benchmarks.flow`: how long attention flow takes, and how exact it is."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

import models
from attnviz import AttentionRecord, estimate, explain, observe
from attnviz.methods import network
from attnviz.samples import open_sample
from benchmarks.subject import machine


@dataclass(frozen=True)
class Case:
    """What is asked of which model."""

    what: str
    side: int = 196
    random: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    long: bool = False

    def observe(self) -> AttentionRecord:
        """The cat cropped to a square, on the CPU."""
        vit = models.load(pretrained=not self.random, image_size=self.side, device="cpu")
        return observe(vit, open_sample("cat"))


CASES = (
    Case("14 × 14, class token"),
    Case("14 × 14, a patch", options={"query": (4, 9)}),
    Case("14 × 14, mean of all patches", options={"query": "mean"}),
    Case("14 × 14, class token, last 6 layers", options={"first_layer": 6}),
    Case("14 × 14, class token, last 3 layers", options={"first_layer": 9}),
    Case("14 × 14, class token, random weights", random=True),
    Case("37 × 37 pooled to 14 × 14, class token", side=518),
    Case("37 × 37 pooled to 24 × 24, class token", side=518, options={"pool": 24}, long=True),
    Case("37 × 37 as they are, class token", side=518, options={"pool": None}, long=True),
)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flow", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each time (3)")
    parser.add_argument("--long", action="store_true", help="what takes minutes as well, once")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"DINOv2 ViT-S/14, 12 layers. {machine()}.\n")
    print("| flow | estimate | seconds of one core | flow and cut differ by | cuts at the ends |")
    print("| --- | --- | --- | --- | --- |")
    for case in CASES:
        if case.long and not options.long:
            continue
        record, proofs = case.observe(), []
        asked = {name: value for name, value in case.options.items() if name != "query"}
        rounds = 1 if case.long else options.rounds
        took = [seconds(record, case, proofs) for _ in range(rounds)]
        gap = max(proof.cut - proof.flow for proof in proofs)
        outer = sum(proof.outer for proof in proofs)
        print(
            f"| {case.what} | {estimate(record, 'flow', **asked)} | {median(took):.2f}"
            f" | {gap:.1e} | {outer} of {len(proofs)} |",
            flush=True,
        )
    return 0


def seconds(record: AttentionRecord, case: Case, proofs: list[network.Proof]) -> float:
    """Of the processor, for one map; leaves what was proven."""
    proven = network.largest_flows
    proofs.clear()

    def listening(*given: Any) -> Any:
        for proof in proven(*given):
            proofs.append(proof)
            yield proof

    network.largest_flows = listening
    try:
        start = time.process_time()
        explain(record, "flow", **case.options)
        return time.process_time() - start
    finally:
        network.largest_flows = proven


if __name__ == "__main__":
    sys.exit(main())
