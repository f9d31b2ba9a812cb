"""Which value gets which place in a palette: the named ways to choose a map's two ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from numbers import Real
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from attnviz.errors import BadOption, unknown
from attnviz.shapes import is_flag

CONSTANT = 8 * float(np.finfo(np.float32).eps)
"""A map whose values differ by less, relative to the largest, differs by rounding alone."""


@dataclass(frozen=True)
class Scale:
    """The two values that get the first and the last colour, and how they were chosen."""

    low: float
    high: float
    name: str

    def __post_init__(self) -> None:
        """Check that the ends are numbers, and in order; NumPy's become Python's, as JSON has."""
        real = isinstance(self.low, Real) and isinstance(self.high, Real)
        if not (real and isfinite(self.low) and isfinite(self.high) and self.low <= self.high):
            raise BadOption(
                f"A scale runs from a low to a high finite number; {self.low} to {self.high} came."
            )
        for end in ("low", "high"):
            object.__setattr__(self, end, float(getattr(self, end)))

    @property
    def flat(self) -> bool:
        """Whether both ends are one value, as for a constant map."""
        return self.low == self.high

    @property
    def reach(self) -> str:
        """Its two ends in words, or the one value of a flat one."""
        low, high = numbers(np.array([self.low, self.high]), self.high - self.low)
        return f"{low} throughout" if self.flat else f"{low} to {high}"

    def reach_over(self, values: Float[np.ndarray, "*shape"]) -> str:
        """The same of a scale that is flat though these values are not, as a clip makes it."""
        level = np.ptp(values) <= CONSTANT * np.abs(values).max()
        return self.one_value(values) if self.flat and not level else self.reach

    def one_value(self, values: Float[np.ndarray, "*shape"] | None = None) -> str:
        """A flat scale's number, marked ≤ or ≥ where some of the values lie beyond it."""
        (number,) = numbers(np.array([self.low]))
        if values is None:
            return number
        marks = {"≤": values.min() < self.low, "≥": values.max() > self.high}
        return " and ".join(f"{sign} {number}" for sign, some in marks.items() if some) or number

    def position(self, values: Float[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
        """(value - low) / (high - low), cut off at 0 and 1; on a flat scale 0, above it 1."""
        exact = np.asarray(values, dtype=np.float64)
        if self.flat:
            return (exact > self.high).astype(np.float64)
        return ((exact - self.low) / (self.high - self.low)).clip(0.0, 1.0)


SCALES: Mapping[str, tuple[str, Callable[[float, float], tuple[float, float]]]] = {
    "own": ("lowest to highest value", lambda low, high: (low, high)),
    "zero": ("from zero", lambda low, high: (min(low, 0.0), max(high, 0.0))),
}
"""Name -> (in words, the scale's ends from the lowest and the highest value)."""


def choose_scale(
    values: Float[np.ndarray, "*shape"], scale: str | Scale = "own", *, clip: float | None = None
) -> Scale:
    """The scale for these values: one of `SCALES` by name, or a ready one as it is.

    With `clip` (above 50, at most 100) the percentiles 100 - clip and clip stand for the lowest
    and the highest value, so that one hot token can't flatten the rest; the name says which.
    """
    if isinstance(scale, Scale):
        if clip is not None:
            raise BadOption(f"The scale {scale.name!r} has its ends already; leave clip out.")
        return scale
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    words, ends = SCALES[scale]
    require_clip(clip)
    low, high = float(values.min()), float(values.max())
    if high - low <= CONSTANT * max(abs(low), abs(high)):
        # Stretching a uniform map over the whole palette would draw its rounding errors.
        return Scale(*ends(high, high), f"{words}; constant map")
    if clip is not None:
        at = [100 - clip, clip]
        low, high = map(float, np.percentile(values.astype(np.float64), at))
        cut = [
            f"{place:g}"
            for place, found, end in zip(at, (low, high), ends(low, high), strict=True)
            if found == end  # else zero is that end
        ]
        words += f", clipped at percentile{'s' if len(cut) > 1 else ''} {' and '.join(cut)}"
    return Scale(*ends(low, high), words)


def scale_of_bar(scales: Sequence[Scale]) -> Scale:
    """One of which a bar shows every colour: a level map's has one alone."""
    return next((scale for scale in scales if not scale.flat), scales[0])


def require_clip(clip: float | None) -> None:
    """BadOption for what is no percentile to clip at."""
    if clip is not None and not (within(clip, 50.0, 100.0) and clip > 50):
        raise BadOption(f"clip is a percentile above 50, at most 100, such as 99; {clip!r} came.")


def within(value: object, low: float, high: float) -> bool:
    """Whether an option's value is a number from `low` to `high`; NaN, text and True are not."""
    if not isinstance(value, Real) or is_flag(value):
        return False
    number: Any = value  # a whole one may be too large for a fraction
    return bool(low <= number <= high)


def numbers(values: Float[np.ndarray, " number"], span: float = 0.0) -> tuple[str, ...]:
    """Numbers as text, with enough digits to tell apart what lies a hundredth of `span` apart."""
    largest = float(np.abs(values).max(initial=0.0))
    digits = 3
    if span > 0 and largest > 0:
        digits = max(3, 3 + floor(log10(largest / span)))
    return tuple(f"{value:.{digits}g}" for value in values + 0.0)  # + 0.0 turns -0 into 0
