"""What a pass keeps of each layer, by the memory that it would need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from attnviz.contract import LoadedViT
from attnviz.errors import BadOption
from attnviz.geometry import Geometry

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


def choose(
    keep: str, vit: LoadedViT, geometries: Sequence[Geometry], *, graph: bool = False
) -> Kept:
    """Settle what `keep` means for what each layer's rows and columns stand for.

    With `graph`, gradients are asked for. Maps of layers in windows are small and always kept.

    Raises BadOption for a `keep` that there is not.
    """
    if keep not in KEEPS:
        raise BadOption(f"keep is one of {', '.join(KEEPS)}; {keep!r} came.")
    layers = list(zip(vit.sites, geometries, strict=True))
    dense = sum(4 * site.heads * geometry.pairs for site, geometry in layers)
    maps = keep == "maps" or (keep == "auto" and dense <= MAPS_BUDGET)
    widths = [
        (site.projection.in_features, geometry)
        for site, geometry in layers
        if site.projection is not None
    ]
    values_bytes = sum(4 * width * geometry.keys.tokens for width, geometry in widths)
    values = graph or keep != "factors" or values_bytes <= VALUES_BUDGET
    factors = sum(
        4 * width * (geometry.queries.tokens + geometry.keys.tokens)
        for width, geometry in widths
        if not geometry.in_windows
    )
    lean = not maps and not values and factors > LEAN_FROM
    return Kept("maps" if maps else "factors", values, lean)
