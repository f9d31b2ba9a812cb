"""What a gradient is taken of: the output of one class, or how alike two features are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from attnviz.contract import LoadedViT
from attnviz.errors import BadOption, UnknownName
from attnviz.facts import called
from attnviz.geometry import Geometry
from attnviz.record import AttentionRecord
from attnviz.shapes import as_whole
from attnviz.tokens import Query, TokenLayout


@dataclass(frozen=True, eq=False)
class Similarity:
    """How alike the picture's feature is to a fixed one, by the cosine of their angle."""

    reference: AttentionRecord | Query
    name: str | None = None


Target = int | str | Similarity
"""A class by its number or its label, `"predicted"`, or what `similarity_to` gives."""


def similarity_to(reference: AttentionRecord | Query, *, name: str | None = None) -> Similarity:
    """A target that needs no classes, and asks why two features are alike.

    Args:
        reference: the record of another picture by the same model: its feature; or a token of
            the picture itself: a patch as (row, col), counted on the model's first grid as a query
            is, or a name such as `"cls"`. The class token is
            compared with the mean of the patches, all else with the picture's feature.
        name: what figures call the other picture.

    `observe` refuses what does not exist, or was seen by another model.
    """
    return Similarity(reference, None if name is None else called(name))


@dataclass(frozen=True)
class Reading:
    """What one pass made of the picture, with its graph where there is one."""

    tokens: Float[Tensor, "token channel"] | None
    """The last layer's, normed; None where it does not hand all of them on."""
    feature: Float[Tensor, " width"]
    """The picture's one feature, which the head is fed with."""
    output: Float[Tensor, " output"]


@dataclass(frozen=True)
class Goal:
    """A settled target."""

    words: str
    score: Float[Tensor, ""]
    """y: the number whose gradient is asked for."""
    of_feature: Callable[[Float[Tensor, " channel"]], Float[Tensor, ""]]
    """The same score of another feature: LeGrad asks each layer's own."""
    number: int | None = None
    """Which class, where it is one."""
    reference: Float[Tensor, " channel"] | None = None
    """What the picture's feature is compared with, where that is another one than its own."""


Readable = tuple[Tensor | None, Tensor | None]
"""What a pass of a model leaves to be compared: its feature, and its tokens (token, channel)."""


def require_target(
    target: object, vit: LoadedViT, layout: TokenLayout, readable: Callable[[], Readable]
) -> None:
    """Refuse, before the picture is seen, a target that the model does not have.

    `readable` is asked only for what to offer instead.

    Raises:
        UnknownName: no such class, token or patch.
        BadOption: it is no target, the model has no classes, or another model saw the reference.
    """
    last = vit.sites[-1].geometry_on(layout)
    if isinstance(target, Similarity):
        if not isinstance(target.reference, AttentionRecord):
            if target.reference == "mean":
                raise BadOption(
                    "The similarity to the mean of all patches is none of the targets: give a"
                    " record, a patch as (row, col), or a prefix token's name."
                )
            last.queries.query_tokens(last.asked(target.reference, layout))
        elif (came := target.reference.model) != vit.name:
            raise BadOption(
                f"The reference was seen by {came}, but this model is {vit.name}: features are"
                " alike or not only within one model. Observe it with the same model."
            )
    elif not vit.classes:
        raise BadOption(
            f"{vit.name} has no classes, so {target!r} is no target of it."
            f" {_offered(last.queries, *readable())}"
        )
    elif target != "predicted":
        class_index(target, vit.classes)


def require_feature(
    model: str, feature: Float[Tensor, "*picture width"] | None
) -> Float[Tensor, "*picture width"]:
    """What gradients are taken through; BadOption where a model makes no such feature."""
    if feature is None:
        raise BadOption(
            f"{model} makes no one feature of a picture, and gradients are taken through that: use"
            " a method without a target, such as attention."
        )
    return feature


def _offered(layout: TokenLayout, feature: Tensor | None, tokens: Tensor | None) -> str:
    """Which similarities a model without classes can be asked for."""
    if feature is None:
        return (
            "It has no one feature of a picture either, and so no targets: use a method that needs"
            " none."
        )
    alike = tokens is not None and tokens.shape[-1] == feature.shape[-1]
    references = [
        *(['"cls"'] if tokens is not None and "cls" in layout.prefix else []),
        *(["(row, col)"] if alike else []),
        "record",
    ]
    calls = ", ".join(f"attnviz.similarity_to({each})" for each in references)
    return f"What it has: {calls} of another picture (on the command line: --similar-to)."


def aim(target: Target, vit: LoadedViT, layout: TokenLayout, reading: Reading) -> Goal:
    """The score that the target stands for, of a picture that was just read.

    `target` has passed `require_target`; `layout` is the picture's, as there.

    Raises BadOption where features are to be compared and the model, or the reference, has none.
    """
    if isinstance(target, Similarity):
        return _similarity(target, vit.sites[-1].geometry_on(layout), layout, reading)
    if target == "predicted":
        number = int(reading.output.detach().argmax())
        chosen = "the predicted class "
    else:
        number, chosen = class_index(target, vit.classes), "class "
    read = vit.readout.classify
    return Goal(
        words=f"{chosen}{number} ({vit.classes[number]})",
        score=reading.output[number],
        of_feature=lambda feature: read(feature[None])[0, number],
        number=number,
    )


def _similarity(target: Similarity, last: Geometry, layout: TokenLayout, reading: Reading) -> Goal:
    subject, reference = reading.feature, target.reference
    own = reference == "cls"
    if isinstance(reference, AttentionRecord):
        if reference.feature is None:
            raise BadOption(f"{reference.model} has no one feature that could be compared with.")
        fixed = reference.feature.to(subject)
        words = f"similarity to {target.name or 'another picture'}"
    elif reading.tokens is None:
        raise BadOption(
            "This model hands on no features of single tokens that could be compared: give a class"
            " or another record."
        )
    else:
        asked = last.queries.query_tokens(last.asked(reference, layout))
        fixed = reading.tokens[asked.start].detach()
        named = last.queries if isinstance(reference, str) else layout
        here = last.here(reference, layout)
        words = f"similarity to the {named.query_label(reference)}{here and f', here {here}'}"
        if own:
            subject = reading.tokens[len(last.queries.prefix) :].mean(0)
            words = "similarity of the patches' mean to the class token"
    if subject.shape != fixed.shape:
        raise BadOption(
            f"The picture's feature has {len(subject)} channels and a token's {len(fixed)}: they"
            " cannot be compared. Give a class or another record."
        )
    return Goal(
        words=words,
        score=_cosine(subject, fixed),
        of_feature=lambda feature: _cosine(feature, fixed),
        # A copy: a row would keep all tokens.
        reference=None if own else fixed.clone(),
    )


def class_index(target: object, classes: Sequence[str]) -> int:
    """The number of a class given by its number or its label; letters' case does not matter.

    A label of several names ("tabby, tabby cat") answers to each of them.

    Raises:
        UnknownName: there is no such class, or several.
        BadOption: it is neither a number nor a label.
    """
    if isinstance(target, str):
        return _labelled(target, classes)
    try:
        number = as_whole(target)
    except TypeError:
        raise BadOption(
            "A target is a class's number or label, 'predicted', or attnviz.similarity_to(…);"
            f" {target!r} came."
        ) from None
    if not 0 <= number < len(classes):
        raise UnknownName(
            f"There is no class {number}: there are {len(classes)}, numbered from 0"
            f" to {len(classes) - 1}."
        )
    return number


def _labelled(wanted: str, classes: Sequence[str]) -> int:
    asked = wanted.strip().casefold()
    whole = [number for number, label in enumerate(classes) if label.casefold() == asked]
    names = [[name.strip() for name in label.casefold().split(",")] for label in classes]
    found = whole or [number for number, parts in enumerate(names) if asked in parts]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownName(
            f"{len(found)} classes are called {wanted!r}: give one of the numbers"
            f" {', '.join(map(str, found))}."
        )
    every = {name: number for number, parts in enumerate(names) for name in parts}
    near = [classes[every[name]] for name in get_close_matches(asked, every, n=3)]
    near = near or [*classes[:5], *(["…"] if len(classes) > 5 else [])]
    raise UnknownName(
        f"There is no class {wanted!r}. Nearest: {'; '.join(dict.fromkeys(near))}. Or give a number"
        f" from 0 to {len(classes) - 1}, or 'predicted'."
    )


def _cosine(one: Float[Tensor, " channel"], other: Float[Tensor, " channel"]) -> Float[Tensor, ""]:
    return F.cosine_similarity(one.float(), other.float(), dim=0)
