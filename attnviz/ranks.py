"""Maps in different units, compared by the order in which they put the patches."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from scipy.stats import rankdata

from attnviz.errors import BadOption
from attnviz.heatmap import Heatmap

UNIT = "rank among patches"

AnyHeatmap = TypeVar("AnyHeatmap", bound=Heatmap)


def ranked(heat: AnyHeatmap) -> AnyHeatmap:
    """The same map with ranks for values: 0 for the lowest patch, 1 for the highest.

    rank(i) = (#{j : vⱼ < vᵢ} + ½ #{j ≠ i : vⱼ = vᵢ}) / (patches - 1), over the patches that hold a
    value. What is the same order is the same map, whatever the unit.

    Raises:
        BadOption: the map has three values a patch.
    """
    if heat.in_colour:
        raise BadOption(f"{heat.title} has three values a patch, and no order.")
    held = heat.values[heat.filled]
    values = np.zeros(heat.grid, np.float32)
    values[heat.filled] = (rankdata(held) - 1) / max(held.size - 1, 1)
    return replace(heat, values=values, unit=UNIT, share_of_all=False)


def agreement(one: Heatmap, other: Heatmap) -> float | None:
    """Spearman's ρ: how far two maps order the patches alike, from -1 (reversed) to 1 (the same).

    The correlation of their ranks, over the patches that hold a value in both. None where there is
    no order to compare: on different grids, among fewer than two patches, or with equal values.

    Raises:
        BadOption: a map has three values a patch.
    """
    if one.in_colour or other.in_colour:
        raise BadOption("A map of three values a patch has no order to compare.")
    if one.grid != other.grid:
        return None
    both = one.filled & other.filled
    first, second = (rankdata(heat.values[both]) for heat in (one, other))
    if both.sum() < 2 or not np.ptp(first) or not np.ptp(second):
        return None
    return float(np.corrcoef(first, second)[0, 1])
