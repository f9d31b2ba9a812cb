"""Several pictures observed with as few passes of the model as their sizes allow."""

from __future__ import annotations

from collections.abc import Container, Sequence

import torch
from PIL import Image

from attnviz import capture, together
from attnviz.contract import LoadedViT, View, as_fit
from attnviz.explain import record_of, upright_rgb
from attnviz.record import AttentionRecord
from attnviz.verify import verify_once


def observe_many(
    vit: LoadedViT, images: Sequence[Image.Image], *, fit: str = "crop"
) -> list[AttentionRecord]:
    """Run the model on several pictures, those that come to one size in one pass.

    Each record is the one that `observe(vit, image, keep="factors", fit=fit)` gives, but for the
    rounding of another order of sums. Models of which pictures can't pass together, as those whose
    layers attend in windows, see one after the other. Records of one pass share their memory.

    Raises what `observe` raises, for any of the pictures.
    """
    known_fit = as_fit(fit)
    verify_once(vit)
    upright = [upright_rgb(image) for image in images]
    return observe_views(vit, upright, [vit.view(image, known_fit) for image in upright])


def observe_views(
    vit: LoadedViT,
    images: Sequence[Image.Image],
    views: Sequence[View],
    *,
    layers: Container[int] | None = None,
) -> list[AttentionRecord]:
    """The same of pictures that `vit.view` has fitted already.

    Of other layers than `layers` nothing need be kept: who reads them gets CaptureFailed.
    """
    verify_once(vit)
    by_size: dict[tuple[int, ...], list[int]] = {}
    for number, view in enumerate(views):
        by_size.setdefault(tuple(view.tensor.shape), []).append(number)
    if not together.go_together(vit):
        by_size = {(number,): [number] for number in range(len(views))}
    records: dict[int, AttentionRecord] = {}
    for numbers in by_size.values():
        tensors = torch.cat([views[number].tensor for number in numbers])
        layout = vit.layout(*tensors.shape[-2:])
        if len(numbers) == 1:
            passes = [capture.run(vit, tensors, keep="factors")]
        else:
            passes = together.run(vit, tensors, layers=layers)
        for number, seen in zip(numbers, passes, strict=True):
            records[number] = record_of(vit, images[number], views[number], layout, seen)
    return [records[number] for number in range(len(views))]
