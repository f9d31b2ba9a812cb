"""Patch similarity: how alike the last layer's features of the query and of each patch are."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from attnviz.errors import BadOption
from attnviz.methods.method import Method
from attnviz.record import AttentionRecord


def similarity(record: AttentionRecord, query: range) -> Float[Tensor, " token"]:
    """The cosine of the angle between the query's features and each token's, from −1 to 1.

    The features are the last layer's, after the model's own norm. Several query tokens are
    averaged first. Raises BadOption where the model hands on no features.

    Source: what DINO demos show; Amir et al. 2021, "Deep ViT features as dense visual descriptors".
    """
    features = features_of(record)
    asked = features[query.start : query.stop].mean(0, keepdim=True)
    return F.cosine_similarity(asked, features, dim=-1)


def features_of(record: AttentionRecord) -> Float[Tensor, "token channel"]:
    """The last layer's tokens, normed; BadOption where the model hands none on."""
    if record.features is None:
        raise BadOption(
            f"{record.model} hands on no features of single tokens. Choose a method that reads the"
            " attention."
        )
    return record.features.float()


METHOD = Method(
    label="Patch similarity",
    unit="cosine similarity",
    summary="How alike the model's last features of the query and of each patch are.",
    formula="cosine of the angle between the features of query and patch, after the last norm",
    source="Amir et al., Deep ViT features as dense visual descriptors, 2021",
    compute=similarity,
    requires=features_of,
    signed=True,
)
