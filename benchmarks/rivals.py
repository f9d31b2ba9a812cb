"""One job, done three ways: how attention adds up from the picture to the class token.

With the mean of the heads and a residual of one half, all three compute the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torchxai import AttentionRollout

from attnviz import explain, observe, similarity_to
from benchmarks.subject import Subject


def ours(subject: Subject) -> np.ndarray:
    """Factors kept; each head's map of the class token, and its rollout."""
    record = observe(subject.vit, subject.image, keep="factors")
    for layer in record.layers:
        layer.rows(0)
    return explain(record, "rollout", query="cls").values


def dense(subject: Subject) -> np.ndarray:
    """Every map kept, and multiplied as whole matrices."""
    record = observe(subject.vit, subject.image, keep="maps")
    identity = product = torch.eye(record.layout.tokens)
    for layer in record.layers:
        product = (0.5 * identity + 0.5 * layer.probs().mean(0)) @ product
    return record.layout.to_grid(product[0]).numpy()


def torchxai(subject: Subject) -> np.ndarray:
    """torchxai-explain's rollout: no head's map can be had, and the result is scaled to 0–1.

    It switches timm's fused kernels off for its pass, so it makes no difference whether they are.
    """
    rollout = AttentionRollout(subject.vit.module, head_fusion="mean", discard_ratio=0.0)
    return rollout(subject.tensor)


def relevance(subject: Subject) -> np.ndarray:
    """The pass with its gradients, and the relevance of the class token: from picture to map."""
    record = observe(subject.vit, subject.image, keep="factors", target=similarity_to("cls"))
    return explain(record, "relevance", query="cls").values


def dense_relevance(subject: Subject) -> np.ndarray:
    """The same with every map and every gradient built, and multiplied as whole matrices."""
    record = observe(subject.vit, subject.image, keep="maps", target=similarity_to("cls"))
    gradients = [layer.gradient.block(0, layer.tokens) for layer in record.layers]
    product = torch.eye(record.layout.tokens)
    for layer, gradient in zip(record.layers, gradients, strict=True):
        product = product + (gradient * layer.probs()).relu().mean(0) @ product
    return record.layout.to_grid(product[0]).numpy()


JOBS: dict[str, Callable[[Subject], object]] = {
    "the model's own pass": Subject.forward,
    "attnviz, factors kept": ours,
    "every map kept, dense products": dense,
    "torchxai-explain 0.3 (rollout only)": torchxai,
}
"""What is compared, beside the pass that all of them need."""

GRADIENTS: dict[str, Callable[[Subject], object]] = {
    "attnviz, two factors of each gradient": relevance,
    "every map and gradient built": dense_relevance,
}
"""One relevance map, two ways."""
