"""The methods, seen whole: one row each."""

from __future__ import annotations

from collections.abc import Mapping

from attnviz.methods import (
    attention,
    attention_gradcam,
    flow,
    gradcam,
    gradient_rollout,
    legrad,
    pca,
    relevance,
    rollout,
    similarity,
    value_weighted,
)
from attnviz.methods.method import Method

METHODS: Mapping[str, Method] = {
    "attention": attention.METHOD,
    "rollout": rollout.METHOD,
    "flow": flow.METHOD,
    "relevance": relevance.METHOD,
    "gradient_rollout": gradient_rollout.METHOD,
    "attention_gradcam": attention_gradcam.METHOD,
    "gradcam": gradcam.METHOD,
    "legrad": legrad.METHOD,
    "value_weighted": value_weighted.METHOD,
    "similarity": similarity.METHOD,
    "pca": pca.METHOD,
}
"""Name → method, in the order in which they are offered."""

__all__ = ["METHODS", "Method"]
