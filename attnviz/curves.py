"""Deletion and insertion curves: a score against the share of patches that are gone, or there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float64

from attnviz.errors import BadOption, CaptureFailed, unknown
from attnviz.facts import Facts, said, with_notes

Mode = Literal["deletion", "insertion"]
MODES: tuple[Mode, ...] = get_args(Mode)

MODE: Mode = "deletion"
STEPS, ORDERS, SEED = 16, 5, 0
"""What the test of a map does unless told otherwise, with the baseline `altering.BASELINE`."""


def as_mode(name: object) -> Mode:
    """The mode of that name; UnknownName for any other."""
    for mode in MODES:
        if mode == name:
            return mode
    raise unknown("mode", name, MODES)


@dataclass(frozen=True, eq=False)
class Curves:
    """How a score goes as patches are taken away, or put in, in the order of a map.

    The same was done in random orders: what a map that knows nothing would do.

    Source: Petsiuk et al. 2018, "RISE", section 4.1, with patches for pixels.
    """

    mode: Mode
    score: str
    """What was watched, in words."""
    title: str
    """The map's method in words."""
    facts: Facts
    """(name, value) in words and in order: of the map, then of this test."""
    fractions: Float64[np.ndarray, " step"]
    """Share of the patches that are gone (deletion) or there (insertion), from 0 to 1."""
    scores: Float64[np.ndarray, " step"]
    """In the map's order, the highest value first."""
    random: Float64[np.ndarray, "order step"]
    """In random orders."""
    notes: tuple[str, ...] = ()
    """Warnings that belong on the figure."""

    def __post_init__(self) -> None:
        """Take private copies and check that they fit together."""
        for name in ("fractions", "scores", "random"):
            values = np.array(getattr(self, name), dtype=np.float64)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        steps = self.fractions.shape
        rising = steps[0] > 1 and bool((np.diff(self.fractions) > 0).all())
        if not rising or self.fractions[0] != 0 or self.fractions[-1] != 1:
            raise BadOption("The fractions of a curve rise from 0 to 1.")
        if self.scores.shape != steps or self.random.shape[1:] != steps or len(self.random) < 2:
            raise BadOption(
                f"One score a fraction is expected, of the map and of two or more random orders;"
                f" {self.scores.shape} and {self.random.shape} came for {steps[0]} fractions."
            )
        if not (np.isfinite(self.scores).all() and np.isfinite(self.random).all()):
            raise CaptureFailed("Some scores are not finite: check the weights and the input.")

    @property
    def area(self) -> float:
        """Under the map's curve, by the trapezoid rule: the mean score over all fractions."""
        return float(np.trapezoid(self.scores, self.fractions))

    @property
    def random_areas(self) -> Float64[np.ndarray, " order"]:
        """Under the curve of each random order."""
        areas: Float64[np.ndarray, " order"] = np.trapezoid(self.random, self.fractions, axis=1)
        return areas

    @property
    def random_area(self) -> float:
        """The mean over random orders."""
        return float(self.random_areas.mean())

    @property
    def random_area_spread(self) -> float:
        """The standard deviation over random orders (n − 1)."""
        return float(self.random_areas.std(ddof=1))

    @property
    def random_mean(self) -> Float64[np.ndarray, " step"]:
        """At each fraction, the mean over random orders."""
        mean: Float64[np.ndarray, " step"] = self.random.mean(0)
        return mean

    @property
    def random_spread(self) -> Float64[np.ndarray, " step"]:
        """At each fraction, the standard deviation over random orders (n − 1)."""
        spread: Float64[np.ndarray, " step"] = self.random.std(0, ddof=1)
        return spread

    @property
    def random_range(self) -> tuple[Float64[np.ndarray, " step"], Float64[np.ndarray, " step"]]:
        """At each fraction, the lowest and the highest score of any random order: a plot's band.

        Mean ± standard deviation would leave what a probability can be.
        """
        return self.random.min(0), self.random.max(0)

    @property
    def gain(self) -> float:
        """How much better the map is than random orders on average; below 0 it is worse.

        A good order makes the score fall fast when patches go, so a small area is good in deletion;
        and rise fast when they come, so a large one is good in insertion.
        """
        difference = self.random_area - self.area
        return difference if self.mode == "deletion" else -difference

    @property
    def beaten(self) -> int:
        """How many of the random orders the map is better than."""
        sign = 1 if self.mode == "deletion" else -1
        return int((sign * self.random_areas > sign * self.area).sum())

    @property
    def axis(self) -> str:
        """What the fractions are, in words."""
        done = "removed" if self.mode == "deletion" else "put back"
        return f"share of patches {done}"

    @property
    def labels(self) -> tuple[str, str]:
        """What a legend says of the map and of the random orders, with their areas."""
        spread = f"{self.random_area:.3f} ± {self.random_area_spread:.3f}"
        random = f"mean and range of {len(self.random)} random orders, area {spread}"
        return f"{self.title}, area {self.area:.3f}", random

    @property
    def verdict(self) -> str:
        """The areas against each other, in one sentence."""
        good = "small" if self.mode == "deletion" else "large"
        return (
            f"{self.mode} area {self.area:.3f} ({good} is good), random orders"
            f" {self.random_area:.3f} ± {self.random_area_spread:.3f}: better than {self.beaten} of"
            f" {len(self.random)}"
        )

    @property
    def summary(self) -> str:
        """The map, its facts, the test's, and the areas, in one line."""
        return "; ".join([*said(self.title, self.facts), self.verdict])

    def caption(self, *, facts: Facts | None = None) -> list[str]:
        """What a figure says beside the curves: method, facts, areas, then each warning.

        `facts` stand for its own, where some of those cannot be printed.
        """
        told = said(self.title, self.facts if facts is None else facts)
        return with_notes([*told, self.verdict], self.notes)
