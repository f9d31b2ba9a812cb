"""What a classifier's outputs are called."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from timm.data import ImageNetInfo
from timm.data.imagenet_info import infer_imagenet_subset
from torch import Tensor

from attnviz.contract import Prediction

TOP = 5


def top_classes(output: Tensor, label: Callable[[int], str]) -> tuple[Prediction, ...]:
    """The five most probable classes of logits (1, classes): softmax, the largest first."""
    probabilities = output.detach().float().softmax(dim=-1)[0]
    values, classes = probabilities.topk(min(TOP, len(probabilities)))
    return tuple(
        (label(index), index, value)
        for index, value in zip(classes.tolist(), values.tolist(), strict=True)
    )


def imagenet_label(classes: int) -> Callable[[int], str] | None:
    """The names of the ImageNet set that has this many classes, if one has."""
    subset = infer_imagenet_subset({"num_classes": classes})
    return _imagenet(subset).index_to_description if subset else None


def plain_label(index: int) -> str:
    """The name of a class that nobody named."""
    return f"class {index}"


@cache
def _imagenet(subset: str) -> ImageNetInfo:
    # Reads tables of all WordNet names, so once for each set.
    return ImageNetInfo(subset)
