"""What has to be known of a module that is not timm's, and the ways to find it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from torch import Tensor, nn

from attnviz.contract import AttentionSite, Readout
from attnviz.errors import BadOption, CaptureFailed, UnsupportedModel
from attnviz.scout import Found, Sighting, scout
from attnviz.tokens import TokenLayout
from models.locks import lock_of
from models.preprocess import Recipe
from models.sizes import Size

Run = Callable[[Tensor], Any]

IMAGENET = Recipe(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), interpolation="bilinear")
CLIP = Recipe(mean=(0.48145466, 0.4578275, 0.40821073), std=(0.26862954, 0.26130258, 0.27577711))
UNKNOWN_RECIPE = (
    "How it wants its pictures is not known: they are normalised with ImageNet's mean and std"
    " unless mean= and std= are given."
)


@dataclass(frozen=True)
class Asked:
    """What the user said of the module."""

    layout: TokenLayout | None = None
    image_size: Size | None = None
    classes: tuple[str, ...] | int | None = None


@dataclass(frozen=True)
class Plan:
    """A module's tokens, layers, pass and readout."""

    native: Size
    """The size of picture that it was made for."""
    patch: Size
    """(rows, cols) in pixels of a cell of the grid."""
    prefix: tuple[str, ...]
    any_size: bool
    """Whether any multiple of the patch will do."""
    sites: tuple[AttentionSite, ...]
    readout: Readout
    run: Callable[[Tensor], Tensor]
    recipe: Recipe
    recipe_remark: str = ""
    """Why the recipe may be another; a sentence that belongs to every figure."""
    classes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """More sentences that belong to every figure of it."""

    def layout(self, size: Size) -> TokenLayout:
        """The tokens of an input of that size."""
        high, wide = self.patch
        return TokenLayout(self.prefix, (size[0] // high, size[1] // wide))


def probe_size(native: Size, patch: Size, any_size: bool) -> Size:
    """A small size to prove captures on: 3 × 5 patches where any size will do."""
    return (3 * patch[0], 5 * patch[1]) if any_size else native


def watch(name: str, module: nn.Module, run: Run, tensor: Tensor, *, alone: bool = False) -> Found:
    """One pass of the module, and the attention that was seen in it.

    With `alone` each token is made to attend to itself alone.

    Raises:
        UnsupportedModel: its forward pass fails, or there is no attention in it.
    """
    like = next(module.parameters(), tensor)
    with lock_of(module):
        try:
            found = scout(module, run, tensor.to(like.device, like.dtype), alone=alone)
        except Exception as error:
            shape = " × ".join(map(str, tensor.shape))
            raise UnsupportedModel(
                f"{name} failed in its own forward pass on an input of {shape}:"
                f" {type(error).__name__}: {error}"
            ) from error
    if not found.sightings:
        raise UnsupportedModel(
            f"{name} has no attention that could be drawn: in one pass of it no softmax over tokens"
            " was seen to be multiplied with values."
        )
    return found


def fitting(found: Found, layout: TokenLayout) -> list[Sighting]:
    """The attention from all tokens of the layout to all."""
    return [
        each
        for each in found.sightings
        if each.windows == 1 and each.queries == each.keys == layout.tokens
    ]


def sites_in(
    name: str, found: Found, layout: TokenLayout
) -> tuple[tuple[AttentionSite, ...], tuple[Sighting, ...]]:
    """The layers in which all tokens attend to all, and the sightings of others.

    Raises:
        BadOption: none has as many tokens as the layout.
        CaptureFailed: a layer holds values that are not finite.
        UnsupportedModel: a layer runs more than once, or its effect cannot be seen.
    """
    chosen = fitting(found, layout)
    if not chosen:
        rows, cols = layout.grid
        seen = dict.fromkeys(attends(each) for each in found.sightings)
        raise BadOption(
            f"The layout has {layout.tokens} tokens, {len(layout.prefix)} before {rows} × {cols}"
            f" patches, but in {name} attention goes {'; '.join(islice(seen, 5))}: give the layout"
            " that the module has."
        )
    for each in found.sightings:
        held = [each.values, *([] if each.mixed is None else [each.mixed])]
        if not all(bool(tensor.isfinite().all()) for tensor in held):
            raise CaptureFailed(
                f"Layer {each.label} of {name} holds values that are not finite: check the weights."
            )
    modules = [each.module for each in found.sightings]
    for each in chosen:
        if each.runs > 1 or modules.count(each.module) > 1:
            times = max(each.runs, modules.count(each.module))
            raise UnsupportedModel(
                f"Layer {each.label} of {name} attends {times} times in one pass, and one map"
                " cannot stand for all: give each attention a module of its own."
            )
        if not each.fed:
            raise UnsupportedModel(
                f"In layer {each.label} of {name}, map × values reach no module of its own with"
                " heads side by side, so that nothing proves the map. Let a submodule (a linear"
                " layer, or nn.Identity) be fed with them."
            )
    rest = tuple(each for each in found.sightings if each not in chosen)
    return tuple(each.site() for each in chosen), rest


def attends(sighting: Sighting) -> str:
    """From how many tokens to how many."""
    windows = "" if sighting.windows == 1 else f" in {sighting.windows or 'many'} windows"
    return f"from {sighting.queries} to {sighting.keys} tokens{windows}"


def left_out(rest: Sequence[Sighting]) -> tuple[str, ...]:
    """A sentence on the attention that is not drawn, if there is any."""
    names = [f"{each.label} ({attends(each)})" for each in rest]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    said = f"Not drawn, as it is not from all tokens to all: {', '.join(names[:3])}{more}."
    return (said,) if names else ()


def tensor_in(output: Any) -> Tensor:
    """The one tensor of an output that stands for it: logits if it has some, else the first.

    Raises:
        UnsupportedModel: there is none.
    """
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        parts = [output.get("logits"), *output.values()]
    else:
        parts = list(output) if isinstance(output, tuple | list) else []
    for part in parts:
        if isinstance(part, Tensor):
            return part
    raise UnsupportedModel(
        f"The module gives a {type(output).__name__} without a tensor: let its forward pass give a"
        " tensor, a tuple that begins with one, or a mapping."
    )


def named(classes: tuple[str, ...] | int | None) -> tuple[str, ...]:
    """The names of classes that were given by their names or their number."""
    if isinstance(classes, int):
        return tuple(f"class {index}" for index in range(classes))
    return classes or ()
