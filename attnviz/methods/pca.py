"""Feature PCA: the directions in which the patches' features differ most, as colours."""

from __future__ import annotations

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Float, Float64
from torch import Tensor

from attnviz.errors import BadOption, CaptureFailed
from attnviz.facts import Facts
from attnviz.methods.method import Method
from attnviz.methods.options import COMPONENTS, Option
from attnviz.methods.similarity import features_of
from attnviz.record import AttentionRecord

ROUNDING = 8 * torch.finfo(torch.float32).eps
"""A component shorter than this share of all features is float32's rounding and nothing else."""

EQUAL = 1e-3
"""What differs by a smaller share is taken for equal, so that rounding chooses no sign."""


def pca(
    record: AttentionRecord, query: range, *, component: int | None
) -> Float64[Tensor, "*component token"]:
    """`(x − x̄) · v_i` of each token: its score in component i, or in the first three.

    x are the last layer's features after the model's own norm, x̄ their mean over the patches, and
    v_i the unit eigenvectors of their covariance over the patches, largest variance first. Prefix
    tokens take no part in x̄ and v_i. The sign is such that the border patches' mean is negative,
    hence what lies inside is positive; where border and inside don't differ, as in a grid without
    an inside, v_i's longest loading is positive (of equals, the first channel's). Where two
    components have the same variance, neither their order nor their directions within the plane
    mean anything. A component that holds nothing but rounding is 0 everywhere.

    All is computed in float64 on the processor, so that every device gives the same colours.
    Raises BadOption where there are fewer components than were asked for, and CaptureFailed for
    features that are not finite.

    Source: Oquab et al. 2023, "DINOv2", figure 1, with one PCA of all patches and no mask.
    """
    features, prefix = _features(record), len(record.last_layout.prefix)
    patches = features[prefix:]
    needed = COMPONENTS if component is None else component + 1
    count, channels = patches.shape
    if needed > (most := min(channels, count - 1)):
        raise BadOption(
            f"{count} × {channels} features (patches × channels) have {most} of the {needed}"
            " components that were asked for: choose a larger input, another model or another"
            " method."
        )
    mean = patches.mean(0)
    directions = _directions(patches - mean, needed)
    scores = einsum(
        directions, features - mean, "component channel, token channel -> component token"
    )
    scores *= _signs(directions, record.last_layout.to_grid(scores))
    lengths = scores[:, prefix:].norm(dim=1, keepdim=True)
    scores = torch.where(lengths > ROUNDING * patches.norm(), scores, 0.0)
    return scores if component is None else scores[component]


def explained(record: AttentionRecord, scores: Float[Tensor, "*component token"]) -> Facts:
    """Which share of the patches' variance the components hold, together and one by one."""
    prefix = len(record.last_layout.prefix)
    patches = _features(record)[prefix:]
    whole = (patches - patches.mean(0)).square().sum()
    held = torch.atleast_2d(scores)[:, prefix:].square().sum(1)
    shares = (held / whole.clamp_min(torch.finfo(whole.dtype).tiny)).tolist()
    each = f" ({', '.join(f'{share:.1%}' for share in shares)})" if len(shares) > 1 else ""
    return (("variance explained", f"{sum(shares):.1%}{each}"),)


def _features(record: AttentionRecord) -> Float64[Tensor, "token channel"]:
    features = features_of(record).cpu().double()
    if not features.isfinite().all():
        raise CaptureFailed(
            f"The features of {record.model} hold values that are not finite; check the weights"
            " and the input."
        )
    return features


def _directions(
    centred: Float64[Tensor, "patch channel"], count: int
) -> Float64[Tensor, "component channel"]:
    """The first eigenvectors of the covariance, of either sign."""
    covariance = einsum(centred, centred, "patch channel, patch other -> channel other")
    _, vectors = torch.linalg.eigh(covariance)  # smallest variance first
    return rearrange(vectors, "channel component -> component channel").flip(0)[:count]


def _signs(
    directions: Float64[Tensor, "component channel"], scores: Float64[Tensor, "component row col"]
) -> Float64[Tensor, "component 1"]:
    """1 or −1 a component: what its scores are to be multiplied by, by the rule."""
    lengths = directions.abs()
    longest = lengths >= (1 - EQUAL) * lengths.amax(1, keepdim=True)
    # argmax gives the first of those that are True.
    loading = directions.gather(1, longest.int().argmax(1, keepdim=True))
    # All scores add up to 0, so the inside's sum is that of the border with the other sign.
    inside = reduce(scores[:, 1:-1, 1:-1], "component row col -> component 1", "sum")
    size = reduce(scores.square(), "component row col -> component 1", "sum").sqrt()
    return torch.where(inside.abs() > EQUAL * size, inside, loading).sign()


METHOD = Method(
    label="Feature PCA",
    unit="component score",
    summary="What the model's last features tell apart: like features, like colours.",
    formula="(x − mean of x) · v with x the features after the last norm and v the unit"
    " eigenvectors of their covariance over the patches; the mean of the border is negative",
    source="Oquab et al., DINOv2, 2023, figure 1, with one PCA of all patches and no mask",
    compute=pca,
    requires=features_of,
    options={
        "component": Option(
            None, "component", "which component, from 0; the first three as colours, if left out"
        )
    },
    asks=False,
    signed=True,
    centred=True,
    in_colour=lambda settled: settled["component"] is None,
    remarks=explained,
)
