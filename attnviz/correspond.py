"""Which patches of two pictures are alike: by the features that one model has of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from attnviz.contract import Box
from attnviz.errors import BadOption
from attnviz.explain import Explanation
from attnviz.geometry import Geometry
from attnviz.methods import METHODS
from attnviz.record import AttentionRecord
from attnviz.tokens import Query

BLOCK = 2048
"""Patches that are compared with all others at once, so that no table of all pairs is held."""

METHOD = METHODS["similarity"]
"""Which is the same within one picture."""


@dataclass(frozen=True)
class Match:
    """A patch of one picture and one of another, each the likest that the other has there."""

    here: tuple[int, int]
    """(row, col) in the first picture."""
    there: tuple[int, int]
    """(row, col) in the second."""
    similarity: float
    """The cosine of the angle between their features, from −1 to 1."""


def similar(
    asks: AttentionRecord, query: Query, answers: AttentionRecord, *, name: str = "another picture"
) -> Explanation:
    """How alike each patch of one picture is to a patch of another: cos(f, g), from −1 to 1.

    f is the feature of the query in `asks` and g those of the patches in `answers`, from the last
    layer, after the model's own norm, as they are; several query tokens are averaged first. Of a
    picture with itself it is the method `"similarity"`.

    Source: Amir et al. 2021, "Deep ViT features as dense visual descriptors".

    Args:
        asks: the record whose patch, or token with a name, is compared.
        query: which, as in `explain`, counted on that record's grid.
        answers: the record over whose picture the map lies.
        name: what figures call the picture that asks.

    Raises:
        BadOption: two models saw them, or theirs hands on no features of single tokens.
        UnknownName: no such patch or token.
    """
    first, second = _features(asks, answers)
    geometry = Geometry(asks.last_layout, asks.last_layout)
    tokens = asks.last_layout.query_tokens(geometry.asked(query, asks.layout))
    asked = first[tokens.start : tokens.stop].mean(0, keepdim=True)
    layout = answers.last_layout
    on_grid = layout.to_grid(F.cosine_similarity(asked, second, dim=-1))
    label = f"{asks.layout.query_label(query)} of {name}"
    return Explanation(
        values=on_grid.cpu().numpy(),
        unit=METHOD.unit,
        title=METHOD.label,
        facts=(("method", METHOD.label), ("query", label), *answers.facts_on(layout)),
        image=answers.image,
        box=answers.view.box,
        notes=("random weights: this map means nothing",) if answers.random else (),
    )


def best_cell(heat: Explanation) -> tuple[int, int]:
    """The (row, col) of the highest value that lies in the picture, not in padding around it."""
    seen = _in_picture(heat.grid, heat.box, heat.image.size)
    row, col = divmod(int(np.where(seen, heat.values, -np.inf).argmax()), heat.grid[1])
    return row, col


def mutual_matches(first: AttentionRecord, second: AttentionRecord) -> tuple[Match, ...]:
    """The pairs of patches of two pictures that are each other's nearest, the likest first.

    A pair (p, q) is there if q has the highest cos(f_p, g_q) of all patches of the second picture,
    and p that of all of the first. Features are as in `similar`, patches are counted on the grid of
    the last layer, and those that lie beside the picture, in padding, have no part in it.

    Source: Amir et al. 2021 (there "best buddies", after Dekel et al. 2015).

    Raises:
        BadOption: as `similar`.
    """
    features = [
        F.normalize(tokens[len(record.last_layout.prefix) :], dim=-1)
        for tokens, record in zip(_features(first, second), (first, second), strict=True)
    ]
    own, other = (
        np.flatnonzero(_in_picture(each.last_layout.grid, each.view.box, each.image.size))
        for each in (first, second)
    )
    likest, back, best = _nearest(features[0][own], features[1][other])
    ours = torch.arange(len(own))
    mutual = back[likest] == ours
    cells = [record.last_layout.cells.tolist() for record in (first, second)]
    pairs = [
        Match(_cell(cells[0][own[p]]), _cell(cells[1][other[likest[p]]]), float(best[p]))
        for p in ours[mutual].tolist()
    ]
    return tuple(sorted(pairs, key=lambda match: -match.similarity))


def _nearest(
    first: Float[Tensor, "p channel"], second: Float[Tensor, "q channel"]
) -> tuple[Int[Tensor, " p"], Int[Tensor, " q"], Float[Tensor, " p"]]:
    """For each of both the nearest one of the others; and how near, for the first."""
    likest, best = [], []
    back = torch.zeros(len(second), dtype=torch.long)
    highest = torch.full((len(second),), -torch.inf)
    for start in range(0, len(first), BLOCK):
        table = (first[start : start + BLOCK] @ second.T).cpu()
        value, place = table.max(1)
        likest.append(place)
        best.append(value)
        value, place = table.max(0)
        higher = value > highest
        highest[higher], back[higher] = value[higher], place[higher] + start
    return torch.cat(likest), back, torch.cat(best)


def _in_picture(
    grid: tuple[int, int], box: Box, size: tuple[int, int]
) -> Bool[np.ndarray, "row col"]:
    """Which cells lie in a picture of that (width, height), at least in part."""
    left, top, right, bottom = box
    down, across = (
        low + (high - low) * np.arange(count + 1) / count
        for low, high, count in ((top, bottom, grid[0]), (left, right, grid[1]))
    )
    rows = (down[1:] > 0) & (down[:-1] < size[1])
    cols = (across[1:] > 0) & (across[:-1] < size[0])
    return np.logical_and.outer(rows, cols)


def _cell(pair: list[int]) -> tuple[int, int]:
    return pair[0], pair[1]


def _features(
    first: AttentionRecord, second: AttentionRecord
) -> tuple[Float[Tensor, "p channel"], Float[Tensor, "q channel"]]:
    """Both pictures' tokens, of one model."""
    ours, theirs = ((record.model, record.weights) for record in (first, second))
    if ours != theirs:
        whose = " and ".join((ours[0], theirs[0]) if ours[0] != theirs[0] else (ours[1], theirs[1]))
        raise BadOption(
            f"Patches are alike or not only by the features of one model, and two saw these:"
            f" {whose}. Observe both pictures with the same model."
        )
    if first.features is None or second.features is None:
        raise BadOption(
            f"{first.model} hands on no features of single tokens, so patches cannot be compared by"
            " them. Choose another model."
        )
    return first.features.float(), second.features.float()
