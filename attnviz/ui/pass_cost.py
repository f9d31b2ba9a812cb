"""What memory a pass will need, before it is begun: refused with numbers where it has no room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.contract import LoadedViT
from attnviz.errors import BadOption
from attnviz.keeping import choose
from attnviz.ui.room import in_words
from attnviz.ui.tally import tally

FIXED = 16 * 2**20
"""Bytes of what does not grow with the picture."""

STREAM = 30
"""Tokens × width that a layer holds at its fullest while it runs: stream, q, k, v, MLP, copies.

This and the next three were measured on 12 layers of width 384 and 768, at 197 to 3137 tokens, with
and without a target: what they say is 1.0 to 1.5 times what was needed (tests/test_pass_cost.py).
"""

MAPS = 9
"""Maps of one layer that are there at once where maps are kept."""

SAVED, SAVED_MAPS = 19, 1.2
"""Of each layer, what a gradient needs: tokens × width, and maps."""


@dataclass(frozen=True)
class Cost:
    """Bytes of one pass."""

    kept: int
    """What its record holds afterwards."""
    peak: int
    """What it takes at its fullest, that included."""


def cost(vit: LoadedViT, size: tuple[int, int], *, gradient: bool) -> Cost:
    """Of a picture of (rows, cols) pixels, by what each layer of the model holds of its tokens."""
    layout = vit.layout(*size)
    geometries = [site.geometry_on(layout) for site in vit.sites]
    keeps = choose("auto", vit, geometries, graph=gradient)
    kept, streams, maps = 0, [0], [0]
    for site, geometry in zip(vit.sites, geometries, strict=True):
        width = 64 * site.heads if site.projection is None else site.projection.in_features
        queries, keys = (4 * width * side.tokens for side in (geometry.queries, geometry.keys))
        dense = 4 * site.heads * geometry.pairs
        as_map = keeps.route == "maps" or geometry.in_windows
        kept += (dense if as_map else queries + keys) + keys * keeps.values
        kept += 2 * queries * gradient
        streams.append(max(queries, keys))
        maps.append(dense * as_map)
    running = STREAM * max(streams) + MAPS * max(maps)
    saved = (SAVED - 2) * sum(streams) + SAVED_MAPS * sum(maps) if gradient else 0
    return Cost(kept, FIXED + kept + max(running, int(saved)))


def require_room_for_pass(
    vit: LoadedViT,
    size: tuple[int, int],
    free: int,
    *,
    gradient: bool,
    smaller: Sequence[tuple[int, int]] = (),
) -> None:
    """Refuse a pass that has no room in so many bytes.

    `smaller` are sizes that could be chosen instead. Raises BadOption with the numbers, and the
    largest of these that fits.
    """
    needed = cost(vit, size, gradient=gradient).peak
    if needed <= free:
        return
    tally().refuse("memory")
    fits = (
        each
        for each in sorted(smaller, reverse=True)
        if each < size and cost(vit, each, gradient=gradient).peak <= free
    )
    best = next(fits, None)
    way_out = (
        "Choose a smaller model."
        if best is None
        else f"{best[1]} × {best[0]} px would fit: choose that resolution, or a smaller model."
    )
    also = " with a gradient" if gradient else ""
    raise BadOption(
        f"{vit.name} at {size[1]} × {size[0]} px{also} needs about {in_words(needed)}, and"
        f" {in_words(free)} are free here. {way_out}"
    )


def said_cramped(vit: LoadedViT, free: int) -> str:
    """A sentence for the host where not even this model's own pass has room; else nothing."""
    needed = cost(vit, vit.image_size, gradient=False).peak
    if needed <= free:
        return ""
    return (
        f"Of the memory that this process is to stay under, {in_words(free)} are left, and a"
        f" picture in {vit.name} needs about {in_words(needed)}: give it more by ATTNVIZ_MEMORY_MB"
        " or the container's limit."
    )
