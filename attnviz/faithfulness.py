"""Faithfulness: does a map point at what the model uses?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Bool, Int64
from torch import Tensor

from attnviz import plot_export
from attnviz.altering import BASELINE, baseline_of
from attnviz.contract import LoadedViT, Progress
from attnviz.curves import MODE, ORDERS, SEED, STEPS, Curves, Mode, as_mode
from attnviz.errors import BadOption
from attnviz.heatmap import Heatmap
from attnviz.record import AttentionRecord
from attnviz.shapes import as_whole
from attnviz.watch import Watch


class Faithfulness(Curves):
    """Curves that can save themselves."""

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write .png, .svg, .pdf or .npz; options as in `plot_export.save_curves`."""
        return plot_export.save_curves(self, path, **options)


def faithfulness(
    vit: LoadedViT,
    record: AttentionRecord,
    heat: Heatmap,
    *,
    mode: Mode = MODE,
    steps: int = STEPS,
    baseline: str | Tensor = BASELINE,
    orders: int = ORDERS,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Faithfulness:
    """Take patches away in the order of a map, or put them in, and watch a score of the model's.

    Deletion starts from the picture, insertion from the baseline. The patch of the highest value
    goes first; patches of equal values go in a random order of their own, drawn from `seed` before
    the others, so that a level map is one more random order and no sweep from the top. What is
    watched is the probability of the record's target class, or of the predicted one; where there
    is none, the cosine of the picture's feature with the unaltered one (or with what the record's
    target compares it with). It takes about (1 + orders) · (steps − 1) passes.

    Args:
        vit: the model that the record was made by.
        record: what `observe` gave.
        heat: a map of that record.
        mode: `"deletion"` or `"insertion"`.
        steps: in how many steps all patches go, as equal as whole patches allow; at most one step
            a patch.
        baseline: what stands where a patch is not: `"mean"` (the picture's mean colour), `"zero"`
            (the colour that is 0 after normalisation), `"blur"` (the picture blurred by σ of one
            patch), or a ready tensor of the input's shape.
        orders: how many random orders are run beside the map's, at least 2.
        seed: of the random orders, from 0.
        progress: called with (pictures done, pictures in all); may raise, to stop.

    Raises:
        BadOption: map, record and model do not belong together, or an option has no such value.
        UnknownName: there is no such mode or baseline.
        CaptureFailed: the model's output for an altered picture is not finite.

    Source: Petsiuk et al. 2018, "RISE: Randomized input sampling for explanation of black-box
    models", section 4.1, with patches for pixels.
    """
    (result,) = compare_maps(
        vit,
        record,
        [heat],
        mode=mode,
        steps=steps,
        baseline=baseline,
        orders=orders,
        seed=seed,
        progress=progress,
    )
    return result


def compare_maps(
    vit: LoadedViT,
    record: AttentionRecord,
    heats: Sequence[Heatmap],
    *,
    mode: Mode = MODE,
    steps: int = STEPS,
    baseline: str | Tensor = BASELINE,
    orders: int = ORDERS,
    seed: int = SEED,
    progress: Progress | None = None,
) -> tuple[Faithfulness, ...]:
    """Several maps of one record beside the same random orders; all else as in `faithfulness`."""
    mode = as_mode(mode)
    for name, value, least in (("steps", steps, 2), ("orders", orders, 2), ("seed", seed, 0)):
        _require_whole(name, value, least)
    require_testable(vit, record, heats)
    layout, picture = record.layout, record.view.tensor.to(vit.device)
    patch = picture.shape[2] // layout.grid[0], picture.shape[3] // layout.grid[1]
    bare = baseline_of(picture, baseline, patch)
    watch = Watch.of(vit, record, picture, bare.picture)
    counts = stops(layout.patches, steps)
    ranks = torch.stack(list(_ranks(heats, layout.patches, orders, seed)))
    kept = _kept(ranks, counts[1:-1], mode)
    found = watch.scores(rearrange(kept, "n (row col) -> n row col", row=layout.grid[0]), progress)
    inner = rearrange(found.double(), "(order step) -> order step", order=len(ranks))
    ends = (watch.whole, watch.bare) if mode == "deletion" else (watch.bare, watch.whole)
    first, last = (torch.full((len(ranks), 1), end, dtype=torch.float64) for end in ends)
    scores = torch.cat([first, inner, last], dim=1).numpy()
    fractions = (counts.double() / layout.patches).numpy()
    return tuple(
        Faithfulness(
            mode=mode,
            score=watch.score.words,
            title=heat.title,
            facts=(
                *heat.facts,
                ("score", watch.score.words),
                ("baseline", bare.words),
                ("steps", str(len(counts) - 1)),
                ("random orders", f"{orders}, seed {seed}"),
            ),
            fractions=fractions,
            scores=scores[number],
            random=scores[len(heats) :],
            notes=(*heat.notes, *_said_of_ties(heat)),
        )
        for number, heat in enumerate(heats)
    )


def stops(patches: int, steps: int) -> Int64[Tensor, " stop"]:
    """How many patches are gone at each stop, from none to all: k · patches / steps, rounded."""
    steps = min(steps, patches)
    return torch.tensor([(2 * k * patches + steps) // (2 * steps) for k in range(steps + 1)])


def _ranks(
    heats: Sequence[Heatmap], patches: int, orders: int, seed: int
) -> Iterator[Int64[Tensor, " patch"]]:
    """Each patch's place in each map's order, counted from 0; then in random orders."""
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(patches, generator=generator)
    for heat in heats:
        values = torch.tensor(heat.values).flatten()[shuffled]
        yield shuffled[values.argsort(descending=True, stable=True)].argsort()
    for _ in range(orders):
        yield torch.randperm(patches, generator=generator).argsort()


def _kept(
    ranks: Int64[Tensor, "order patch"], counts: Int64[Tensor, " stop"], mode: Mode
) -> Bool[Tensor, "altered patch"]:
    """Which patches show the picture: one order after the other, at each stop."""
    reached = rearrange(ranks, "order patch -> order 1 patch") < rearrange(counts, "stop -> stop 1")
    kept = reached if mode == "insertion" else ~reached
    return rearrange(kept, "order stop patch -> (order stop) patch")


def _said_of_ties(heat: Heatmap) -> tuple[str, ...]:
    values, counts = torch.tensor(heat.values).unique(return_counts=True)
    tied = int(counts[counts > 1].sum())
    if tied < heat.values.size / 2:
        return ()
    return (
        f"{tied} of {heat.values.size} patches share their value with another"
        f" ({len(values)} different values), and go in a random order among themselves",
    )


def _require_whole(name: str, value: object, least: int) -> None:
    try:
        number = as_whole(value)
    except TypeError:
        number = least - 1
    if not least <= number < 2**63:
        raise BadOption(f"{name} is a whole number from {least}; {value!r} came.")


def _require_tiled(vit: LoadedViT, record: AttentionRecord) -> None:
    """Patches that overlap or reach past the picture cannot be taken away one by one."""
    (height, width), (rows, cols) = record.view.tensor.shape[-2:], record.layout.grid
    if height % rows or width % cols:
        raise BadOption(
            f"The {rows} × {cols} patches of {vit.name} do not tile its input of {height} × {width}"
            " pixels, so they cannot be taken away one by one. Choose another model or size."
        )


def require_testable(vit: LoadedViT, record: AttentionRecord, heats: Sequence[Heatmap]) -> None:
    """Refuse a map of another picture or of colours, or a record of another model.

    Raises BadOption where a map puts no patches in an order that could be tested.
    """
    _require_tiled(vit, record)
    if vit.name != record.model:
        raise BadOption(
            f"The record was made by {record.model}, but this model is {vit.name}: give the model"
            " that saw the picture."
        )
    for heat in heats:
        if heat.in_colour:
            raise BadOption(
                f"{heat.title} has three values a patch here, which give no order: choose one of"
                " them, such as component=0."
            )
        if heat.grid != record.layout.grid:
            (rows, cols), (own_rows, own_cols) = heat.grid, record.layout.grid
            raise BadOption(
                f"{heat.title} is a map of {rows} × {cols} patches, and the picture has {own_rows}"
                f" × {own_cols}: the test takes these away, so it needs a map of that grid. Choose"
                " an earlier layer, or a method whose map is on that grid."
            )
        if heat.blank is not None:
            raise BadOption(
                f"{heat.title} leaves {int(heat.blank.sum())} of {heat.blank.size} patches blank,"
                " which puts them in no order: choose a layer in which the query reaches all"
                " patches, or a method that goes through several layers."
            )
        other_model = heat.fact("model") not in (None, record.model)
        same_picture = heat.image is record.image or heat.image == record.image
        if other_model or heat.box != record.view.box or not same_picture:
            what = "another model" if other_model else "another picture, or another part of it"
            raise BadOption(
                f"{heat.title} is a map of {what} than the record: give one that was made of this"
                " record."
            )
