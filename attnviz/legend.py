"""What is said of a map's colours: a scale for a colour bar, or the ranges of three components."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from einops import rearrange

from attnviz.errors import BadOption
from attnviz.heatmap import Heatmap
from attnviz.scale import Scale, choose_scale, numbers
from attnviz.sinks import in_words, swallowed_by

CHANNELS = ("red", "green", "blue")
"""What a patch's three values are drawn as, in their order."""

CLIPS = (99.0, 95.0, 90.0, 75.0)
"""Percentiles that are tried, the mildest first, for a map that a few patches swallow."""


def channels(
    heat: Heatmap,
    *,
    colormap: str = "inferno",
    scale: str | Scale = "own",
    clip: float | None = None,
) -> tuple[Scale, ...]:
    """The scales of red, green and blue: each component from its lowest to its highest value.

    Raises `BadOption` for a palette, a clip or another scale: they are for one value a patch.
    """
    if (colormap, scale, clip) != ("inferno", "own", None):
        raise BadOption(
            "Three components are drawn as red, green and blue, each from its lowest to its"
            f" highest value; colormap={colormap!r}, scale={scale!r}, clip={clip!r} came. Leave"
            " these out, or draw one component alone."
        )
    return tuple(map(choose_scale, rearrange(heat.drawn, "patch part -> part patch")))


def legend(
    heat: Heatmap,
    *,
    colormap: str = "inferno",
    scale: str | Scale = "own",
    clip: float | None = None,
    interpolation: str = "nearest",
) -> tuple[Scale | None, str]:
    """A colour bar's scale, and its words: unit, scale, and smoothing if there is any.

    Where three components are mixed there is no scale to show; the words say which colour each is,
    and its range. Raises what `channels` and `choose_scale` raise.
    """
    smoothed = "" if interpolation == "nearest" else f"; smoothed ({interpolation})"
    if not heat.in_colour:
        chosen = choose_scale(heat.drawn, scale, clip=clip)
        return chosen, f"{heat.unit}, {chosen.name}{smoothed}"
    three = channels(heat, colormap=colormap, scale=scale, clip=clip)
    parts = [
        f"{colour} is component {at}, {each.reach}"
        for at, (colour, each) in enumerate(zip(CHANNELS, three, strict=True))
    ]
    said = f"{heat.unit}, each component from its lowest to its highest value: {'; '.join(parts)}"
    return None, f"{said}{smoothed}"


def swallowed(
    heats: Sequence[Heatmap],
    scales_by: Callable[[float | None], Sequence[Scale]],
    clip: float | None,
    *,
    ready: bool = False,
) -> tuple[list[str], str]:
    """Who leaves nothing else to see of each map, "" where nobody does; and what that does.

    What lies above a scale's upper end is drawn as this end, and counts as that. What the query
    keeps by itself is told from sinks.

    Args:
        heats: maps of one figure.
        scales_by: gives their scales by a clip.
        clip: what they are drawn by.
        ready: whether the scales have their ends, so that there is no way out by another clip.
    """
    who = [_who_swallows(*drawn) for drawn in zip(heats, scales_by(clip), strict=True)]
    done = "so much that nothing else is seen"
    tried = () if ready or not any(who) else (each for each in CLIPS if not clip or each < clip)
    for other in tried:
        drawn = [*zip(heats, scales_by(other), strict=True)]
        hidden = [each for each, words in zip(drawn, who, strict=True) if words]
        if not any(scale.flat or _who_swallows(heat, scale) for heat, scale in hidden):
            return who, f"{done}; clip={other:g} shows the others"
    return who, done


def _who_swallows(heat: Heatmap, scale: Scale) -> str:
    if heat.in_colour:
        return ""
    values = heat.values.clip(max=scale.high)
    who = []
    if set(heat.itself) & set(swallowed_by(values, heat.filled)):
        (row, col), *others = heat.itself
        pooled = f" and the {len(others)} pooled with it" if others else ""
        who.append(f"the query itself (row {row}, column {col}{pooled}) keeps")
    if sinks := swallowed_by(values, heat.filled, itself=heat.itself):
        who.append(in_words(sinks))
    return ", and ".join(who)


def value_texts(heat: Heatmap) -> list[str]:
    """Each patch's value, or its three, row by row, with enough digits to tell patches apart."""
    parts = rearrange(heat.values, "row col ... -> (...) (row col)")
    told = [numbers(part, float(np.ptp(part))) for part in parts]
    return [", ".join(patch) for patch in zip(*told, strict=True)]
