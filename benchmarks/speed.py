"""Times as ratios: each job between two plain forward passes, and divided by their mean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from statistics import fmean

from attnviz import explain, observe
from benchmarks.rivals import GRADIENTS, JOBS
from benchmarks.subject import Subject, seconds

Ratios = dict[str, list[float]]

OBSERVE = 'observe(keep="factors")'
ROLLOUT = "rollout of one query after that"
QUERY = "a new query, all layers and heads"
HEAD = "another head, in each layer"
MEAN_QUERY = 'the query "mean" (all patches), all layers and heads'


def measure(subject: Subject, rounds: int) -> tuple[Ratios, list[float]]:
    """Ratios of each job, one a round, and the forward passes' seconds."""
    record = observe(subject.vit, subject.image, keep="factors")
    tokens = record.layout.tokens
    patches = record.layout.query_tokens("mean")
    rows, cols = record.layout.grid

    def jobs(number: int) -> dict[str, Callable[[], object]]:
        """This round's: each asks for another patch, so that nothing can be remembered."""
        cell = (7 * number % rows, 11 * number % cols)
        token = 1 + 97 * number % (tokens - 1)
        layers = range(len(record.layers))
        return {
            OBSERVE: lambda: observe(subject.vit, subject.image, keep="factors"),
            ROLLOUT: lambda: explain(record, "rollout", query=cell),
            QUERY: lambda: [layer.rows(token) for layer in record.layers],
            HEAD: lambda: [
                explain(record, "attention", layer=layer, head=number % 6, query=cell)
                for layer in layers
            ],
            MEAN_QUERY: lambda: [layer.rows(patches) for layer in record.layers],
            **{name: partial(job, subject) for name, job in (JOBS | GRADIENTS).items()},
        }

    one_round(subject, jobs(0))  # the first of anything is slower
    ratios: Ratios = {name: [] for name in jobs(0)}
    passes = []
    for number in range(1, rounds + 1):
        print(f"round {number} of {rounds}", file=sys.stderr)
        found, took = one_round(subject, jobs(number))
        passes += took
        for name, ratio in found.items():
            ratios[name].append(ratio)
    return ratios, passes


def one_round(
    subject: Subject, jobs: Mapping[str, Callable[[], object]]
) -> tuple[dict[str, float], list[float]]:
    """Each job's time over the mean of the passes right before and after it; those passes."""
    passes, ratios = [seconds(subject.forward)], {}
    for name, job in jobs.items():
        took = seconds(job)
        passes.append(seconds(subject.forward))
        ratios[name] = took / fmean(passes[-2:])
    return ratios, passes
