"""The attention-mass mask: the fewest patches that hold most of a map, and their outline.

Source: the mask of Caron et al. 2021 (DINO), section 4.2.2 and its published code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64

from attnviz.errors import BadOption
from attnviz.scale import within

MASS = 0.6
"""The share of a map's mass that is held unless told otherwise: that of DINO's figures."""

ROUNDING = 1e-12
"""A mass that misses the threshold by less misses it by rounding alone, and has reached it."""

Segment = tuple[int, int, int, int]
"""From (row, col) to (row, col) of the grid's lines: 0 is the upper or left edge of the grid."""


@dataclass(frozen=True, eq=False)
class MassMask:
    """The patches kept, read-only, and what they hold."""

    kept: Bool[np.ndarray, "row col"]
    threshold: float
    mass: float
    """The share of the whole map's mass that they hold: the threshold or more, but for rounding."""

    @property
    def area(self) -> float:
        """The share of the patches that are kept."""
        return float(self.kept.mean())

    @property
    def summary(self) -> str:
        """What its outline means, for captions."""
        return f"outlined: {self.words}"

    @property
    def words(self) -> str:
        """What is kept."""
        count, patches = int(self.kept.sum()), self.kept.size
        return (
            f"the {count} of {patches} patches ({self.area:.1%}) that hold"
            f" {self.threshold:.4g} of the map's mass"
        )

    @property
    def outline(self) -> tuple[Segment, ...]:
        """The borders between kept and other patches (or the grid's edge), in grid units.

        Each straight stretch is one segment: the horizontal ones first, by row and column, then the
        vertical ones, by column and row.
        """
        across = tuple((line, start, line, end) for line, start, end in _borders(self.kept))
        down = tuple((start, line, end, line) for line, start, end in _borders(self.kept.T))
        return across + down


def require_mass(threshold: float) -> None:
    """BadOption for what is no share of a map's mass."""
    if not (within(threshold, 0.0, 1.0) and threshold > 0):
        raise BadOption(f"The mass to hold is above 0 and at most 1; {threshold!r} came.")


def mass_mask(values: Float[np.ndarray, "row col *rest"], threshold: float = MASS) -> MassMask:
    """The smallest set of patches, largest value first, whose share of the mass is `threshold`.

    Computed in float64; the mass is the sum over the patches, so prefix tokens play no part. Of
    equal values the first in the order of the tokens (row by row) is taken first.

    Raises:
        BadOption: a threshold that is not above 0 and at most 1; values that are negative, not
            finite, all 0, or several a patch.
    """
    require_mass(threshold)
    exact = _checked(values)
    order = np.argsort(-exact.ravel(), kind="stable")
    held = np.cumsum(exact.ravel()[order])
    held /= held[-1]
    count = int(np.searchsorted(held, threshold - ROUNDING)) + 1
    kept = np.zeros(exact.shape, dtype=bool)
    kept[np.unravel_index(order[:count], exact.shape)] = True
    kept.setflags(write=False)
    return MassMask(kept, float(threshold), float(held[count - 1]))


def _checked(values: Float[np.ndarray, "row col *rest"]) -> Float64[np.ndarray, "row col"]:
    """The values in float64, over the largest, if they are a spread of mass."""
    if values.ndim != 2:
        raise BadOption("A mass mask needs one value a patch; several came, drawn as a colour.")
    exact = values.astype(np.float64)
    if not exact.size or not np.isfinite(exact).all():
        raise BadOption(
            f"A mass mask needs a finite value for each patch; {exact.size} values came, of which"
            f" {int((~np.isfinite(exact)).sum())} are not finite."
        )
    negative = int((exact < 0).sum())
    if negative:
        raise BadOption(
            f"A mass mask needs values of at least 0; {negative} of {exact.size} patches have a"
            f" negative one, down to {exact.min():.3g}. Use a method whose map is a share, such as"
            " attention or rollout."
        )
    largest = exact.max()
    if not largest:
        raise BadOption(
            "Every patch has the value 0, so there is no mass to hold. Choose another layer, head"
            " or query."
        )
    return exact / largest


def _borders(kept: Bool[np.ndarray, "row col"]) -> list[tuple[int, int, int]]:
    """The straight stretches (line, start, end) along rows where kept meets not kept."""
    framed = np.pad(kept, 1)
    changes = framed[1:] != framed[:-1]  # (line, column), a column of False on either side
    turns = np.diff(changes.astype(int), axis=1)
    starts, ends = np.argwhere(turns == 1), np.argwhere(turns == -1)
    return [
        (int(line), int(start), int(end))
        for (line, start), (_, end) in zip(starts, ends, strict=True)
    ]
