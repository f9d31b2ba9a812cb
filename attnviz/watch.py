"""The score that is watched while a picture is altered, and how it is read many times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attnviz.altering import Size, altered
from attnviz.capture import plain_pass
from attnviz.contract import LoadedViT, Progress
from attnviz.errors import AttnVizError, BadOption
from attnviz.record import AttentionRecord

BATCH_BYTES = 64 * 2**20
"""A batch holds as many pictures as need about this much memory at once, and at least one.

That is 10 of DINOv2 ViT-S/14 at 224 px, or 1 at 518: more at once is hardly faster on a processor,
and `progress` is heard only between batches.
"""

WIDTHS = 16
"""What a block holds of a token at its fullest, over its width: stream, q, k, v, MLP, copies."""

Outputs = Float[Tensor, "picture output"]
Features = Float[Tensor, "picture channel"] | None


@dataclass(frozen=True)
class Score:
    """A number of each picture, and what it is in words."""

    words: str
    of: Callable[[Outputs, Features], Float[Tensor, " picture"]]


def score_of(vit: LoadedViT, record: AttentionRecord, output: Outputs, feature: Features) -> Score:
    """What is watched: the record's target, or what the model makes of the unaltered picture.

    A class: its probability, by softmax over all classes; of a model with one output, that output.
    Without a class: the cosine of the picture's feature with the one that the target compares it
    with, or with the unaltered picture's own. `output` and `feature` are of the unaltered picture.

    Raises BadOption where a model has neither classes nor one feature.
    """
    if record.target_class is not None or (record.target is None and vit.classes):
        number, chosen = record.target_class, record.target
        if number is None:
            number = int(output[0].argmax())
            chosen = f"the predicted class {number} ({vit.classes[number]})"
        if len(vit.classes) == 1:
            return Score(f"the model's {vit.classes[0]}", lambda output, _: output[:, 0].float())
        return Score(
            f"probability of {chosen}",
            lambda output, _: output.float().softmax(-1)[:, number],
        )
    if feature is None:
        raise BadOption(
            f"{vit.name} has no classes, and no one feature of a picture: there is no score to"
            " watch. Choose another model."
        )
    words, fixed = "cosine similarity of the picture's feature to that of the unaltered", feature[0]
    if record.reference is not None:
        words, fixed = f"cosine {record.target}", record.reference.to(feature)
    return Score(words, lambda _, features: _cosines(features, fixed))


def _cosines(features: Features, fixed: Float[Tensor, " channel"]) -> Float[Tensor, " picture"]:
    if features is None:
        raise BadOption("The model gave no feature of an altered picture, so nothing is compared.")
    return F.cosine_similarity(features.float(), fixed.float()[None], dim=-1)


@dataclass(frozen=True)
class Watch:
    """One picture, its baseline, and the score of anything in between."""

    vit: LoadedViT
    picture: Float[Tensor, "1 channel height width"]
    baseline: Float[Tensor, "1 channel height width"]
    patch: Size
    score: Score
    whole: float
    """The score of the unaltered picture."""
    bare: float
    """The score of the baseline."""
    batch: int
    """How many pictures run at once."""

    @classmethod
    def of(
        cls,
        vit: LoadedViT,
        record: AttentionRecord,
        picture: Float[Tensor, "1 channel height width"],
        baseline: Float[Tensor, "1 channel height width"],
    ) -> Watch:
        """Look at both ends, each alone.

        A model is given several pictures at once only if it then says of these two what it said of
        each alone; otherwise it gets them one by one.
        """
        rows, cols = record.layout.grid
        patch = picture.shape[2] // rows, picture.shape[3] // cols
        alone = [plain_pass(vit, end) for end in (picture, baseline)]
        _require_same_model(vit, record, alone[0][1])
        score = score_of(vit, record, *alone[0])
        whole, bare = (float(score.of(*seen)[0]) for seen in alone)
        batch = batch_size(vit, record)
        if batch > 1 and not _takes_batches(vit, torch.cat([picture, baseline]), alone):
            batch = 1
        return cls(vit, picture, baseline, patch, score, whole, bare, batch)

    def scores(
        self, kept: Bool[Tensor, "altered row col"], progress: Progress | None = None
    ) -> Float[Tensor, " altered"]:
        """The score of each altered picture; `progress` hears of each batch, and may raise."""
        found = [torch.empty(0)]
        for start in range(0, len(kept), self.batch):
            masks = kept[start : start + self.batch].to(self.picture.device)
            pictures = altered(self.picture, self.baseline, masks, self.patch)
            found.append(self.score.of(*plain_pass(self.vit, pictures)).cpu())
            if progress is not None:
                progress(start + len(masks), len(kept))
        return torch.cat(found)


def batch_size(vit: LoadedViT, record: AttentionRecord) -> int:
    """How many pictures fit `BATCH_BYTES`, by what one layer holds of each.

    That is its tokens' features, and where its kernel is not fused, its map, before softmax and
    after.
    """
    tokens, feature = record.layout.tokens, record.feature
    width = 1024 if feature is None else feature.shape[-1]
    dense = [site.heads for site in vit.sites if site.setting != site.settings[True]]
    heads = max(dense, default=0)
    numbers = tokens * (WIDTHS * width + 2 * heads * tokens)
    return max(1, BATCH_BYTES // (numbers * record.view.tensor.element_size()))


def _takes_batches(vit: LoadedViT, pair: Tensor, alone: Sequence[tuple[Outputs, Features]]) -> bool:
    """Whether two pictures at once come out as they do alone, outputs and features."""
    try:
        together = plain_pass(vit, pair)
    except AttnVizError:
        return False  # what is wrong with one alone would have been said of it
    tolerance = 1e-3 if pair.dtype in (torch.float32, torch.float64) else 5e-2
    return all(
        _alike(both, one, other, tolerance)
        for both, one, other in zip(together, *alone, strict=True)
    )


def _alike(
    both: Float[Tensor, "2 number"] | None,
    one: Float[Tensor, "1 number"] | None,
    other: Float[Tensor, "1 number"] | None,
    tolerance: float,
) -> bool:
    """Whether two rows are those two, up to rounding; or nothing, where those are nothing."""
    if both is None or one is None or other is None:
        return both is one is other
    single = torch.cat([one, other]).float()
    error = (both.float() - single).abs().max()
    return bool(error <= tolerance * single.abs().max().clamp_min(1e-12))


def _require_same_model(vit: LoadedViT, record: AttentionRecord, feature: Features) -> None:
    """BadOption where the record was made by a model that makes something else of its picture."""
    kept = record.feature
    if kept is None or feature is None:
        return
    kept, seen = kept.float(), feature[0].float().to(kept.device)
    if kept.shape != seen.shape or float((kept - seen).norm()) > 0.05 * float(kept.norm()):
        raise BadOption(
            f"This {vit.name} makes another feature of the record's picture than the record holds:"
            " it was made with other weights. Observe the picture again with this model."
        )
