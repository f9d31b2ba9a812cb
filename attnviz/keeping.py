"""What a pass keeps of each layer, by the memory that it would need."""

from __future__ import annotations

from typing import Literal, NamedTuple

from attnviz.contract import LoadedViT
from attnviz.errors import BadOption

KEEPS = ("maps", "factors", "auto")

MAPS_BUDGET = 256 * 2**20
"""`keep="auto"` keeps dense maps up to this many bytes in all, and factors beyond."""

VALUES_BUDGET = 16 * 2**20
"""`keep="factors"`, asked for by name, keeps values only up to this many bytes in all."""

LEAN_FROM = 512 * 2**20
"""Where queries and keys would need more bytes in all, and no values are kept, the layers' inputs
are kept in their place, which are half as large."""

Route = Literal["maps", "factors"]
"""What one pass keeps: dense maps, or what rebuilds them."""


class Kept(NamedTuple):
    """What is kept of each layer."""

    route: Route
    values: bool
    """Whether what the map multiplies is kept too."""
    lean: bool
    """Whether the layers' inputs stand for their factors."""


def choose(keep: str, vit: LoadedViT, tokens: int, *, graph: bool = False) -> Kept:
    """Settle what `keep` means for that many tokens; with `graph`, gradients are asked for.

    Each layer is taken to attend from all tokens to all: windows and coarser grids need less.

    Raises BadOption for a `keep` that there is not.
    """
    if keep not in KEEPS:
        raise BadOption(f"keep is one of {', '.join(KEEPS)}; {keep!r} came.")
    dense = sum(4 * site.heads * tokens**2 for site in vit.sites)
    maps = keep == "maps" or (keep == "auto" and dense <= MAPS_BUDGET)
    widths = (site.projection.in_features for site in vit.sites if site.projection is not None)
    values_bytes = 4 * tokens * sum(widths)
    values = graph or keep != "factors" or values_bytes <= VALUES_BUDGET
    # Queries and keys are as large as values, each.
    lean = not maps and not values and 2 * values_bytes > LEAN_FROM
    return Kept("maps" if maps else "factors", values, lean)
