"""What a classifier's outputs are called."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from timm.data import ImageNetInfo
from timm.data.imagenet_info import infer_imagenet_subset
from torch import Tensor

from attnviz.contract import Prediction

TOP = 5


def top_classes(output: Tensor, names: Sequence[str]) -> tuple[Prediction, ...]:
    """The five most probable classes of logits (1, classes): softmax, the largest first.

    () where there are no classes to choose from: no names, or a single output.
    """
    if len(names) < 2:
        return ()
    probabilities = output.detach().float().softmax(dim=-1)[0]
    values, classes = probabilities.topk(min(TOP, len(probabilities)))
    return tuple(
        (names[index], index, value)
        for index, value in zip(classes.tolist(), values.tolist(), strict=True)
    )


def imagenet_subset(classes: int) -> str | None:
    """The ImageNet set that has this many classes, if one has."""
    return infer_imagenet_subset({"num_classes": classes}) or None


@cache
def class_names(count: int) -> tuple[str, ...]:
    """The names of ImageNet's classes where there are as many; else their numbers.

    A single output is no class: its name is "output".
    """
    if count == 1:
        return ("output",)
    # timm reads tables of all WordNet names for it, so once for each set.
    if subset := imagenet_subset(count):
        return tuple(ImageNetInfo(subset).label_descriptions())
    return tuple(f"class {index}" for index in range(count))
