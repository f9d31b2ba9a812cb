"""A module with exactly the weights of a file: all of them, or a clear error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from timm.models.vision_transformer import VisionTransformer, checkpoint_filter_fn
from torch import Tensor, nn

from attnviz.errors import BadWeights
from models.weights import named

Rename = Callable[[dict[str, Tensor], nn.Module], dict[str, Tensor]]
"""timm's filter of a family: (tensors, module) → the tensors under the module's names."""

Blank = Callable[..., VisionTransformer]
"""Makes the module without weights, on no device; takes `img_size` and `num_classes`."""

SHOWN = 3
"""How many tensors an error names before it only counts."""


def assemble(
    blank: Blank,
    state: Mapping[str, Tensor],
    *,
    source: str,
    image_size: tuple[int, int] | None = None,
) -> VisionTransformer:
    """The module with exactly these weights.

    timm's own filter renames the tensors of DINOv2's, OpenAI's and OpenCLIP's files. The number of
    classes is the file's. So is the grid of learned positions: the native one or the one of
    `image_size` if it has that many, else a square.

    Raises:
        BadWeights: a tensor is missing, left over, or of another shape; the message says which.
    """
    draft = blank()
    _require_patch(draft, state, source)
    patch = draft.patch_embed.patch_size
    positions = draft.pos_embed
    draft.pos_embed = None  # so that the filter only renames, and leaves the positions alone
    renamed = _renamed(state, draft, source)
    head, learned = renamed.get("head.weight"), renamed.get("pos_embed")
    options: dict[str, object] = {"num_classes": len(head) if head is not None else 0}
    if learned is not None and positions is not None and learned.ndim == 3:
        prefix = positions.shape[1] - draft.patch_embed.num_patches
        grid = _grid(learned.shape[1] - prefix, draft, image_size, source)
        options["img_size"] = (grid[0] * patch[0], grid[1] * patch[1])
    module = blank(**options)
    tensors = _renamed(state, module, source)
    if module.attn_pool is None:
        tensors = {name: kept for name, kept in tensors.items() if not name.startswith("attn_pool")}
    require_fit(module, tensors, source)
    # They take the place of parameters that were never filled.
    module.load_state_dict(tensors, strict=True, assign=True)
    return module


def fill(
    build: Callable[..., nn.Module],
    state: Mapping[str, Tensor],
    *,
    source: str,
    rename: Rename | None = None,
) -> nn.Module:
    """A module of any other family with exactly these weights, at the size it is built for.

    The family's own filter, or `rename`, puts tensors under timm's names where there is one; the
    number of classes is the file's.

    Raises:
        BadWeights: a tensor is missing, left over, or of another shape; the message says which.
    """
    module = build(device="cpu")
    classes = _classes(module, _filtered(state, module, source, rename))
    if classes != getattr(module, "num_classes", classes):
        module = build(device="cpu", num_classes=classes)
    tensors = _filtered(state, module, source, rename)
    require_fit(module, tensors, source)
    module.load_state_dict(tensors, strict=True)
    return module


def _classes(module: Any, tensors: Mapping[str, Tensor]) -> int:
    """How many outputs the file's classifier has, by the place of timm's own; 0 without one."""
    last = module.get_classifier() if hasattr(module, "get_classifier") else None
    at = next((name for name, part in module.named_modules() if part is last), None)
    if at is None:
        return 0
    matrices = (tensors[name] for name in tensors if name.startswith(f"{at}."))
    return next((len(matrix) for matrix in matrices if matrix.ndim == 2), 0)


def _filtered(
    state: Mapping[str, Tensor], module: nn.Module, source: str, rename: Rename | None = None
) -> dict[str, Tensor]:
    """The tensors by the names that timm's module has for them now."""
    home = import_module(type(module).__module__)
    part = "classifier" if hasattr(module, "encoder") else "encoder"
    for name in ("checkpoint_filter_fn", f"checkpoint_filter_fn_{part}"):
        rename = rename or getattr(home, name, None)
    return dict(state) if rename is None else _by(rename, state, module, source)


def _renamed(
    state: Mapping[str, Tensor], module: VisionTransformer, source: str
) -> dict[str, Tensor]:
    # adapt_layer_scale is DeiT III's old naming, which nothing else uses.
    return _by(partial(checkpoint_filter_fn, adapt_layer_scale=True), state, module, source)


def _by(
    rename: Rename,
    state: Mapping[str, Tensor],
    module: nn.Module,
    source: str,
) -> dict[str, Tensor]:
    try:
        tensors = rename(dict(state), module)
        return {name: tensor.contiguous() for name, tensor in tensors.items()}
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise BadWeights(
            f"timm cannot read the tensors of {source} as weights of this model"
            f" ({str(error)[:200]}). Give the name of the model that they were made for."
        ) from error


def _require_patch(module: VisionTransformer, state: Mapping[str, Tensor], source: str) -> None:
    """timm's filter would resample another patch size without a word."""
    expected = tuple(module.patch_embed.patch_size)
    for name, tensor in state.items():
        kernel = name.endswith(("patch_embed.proj.weight", "visual.conv1.weight"))
        if kernel and tensor.ndim == 4 and tuple(tensor.shape[2:]) != expected:
            raise BadWeights(
                f"{source} does not fit the model: {named(name)} has patches of"
                f" {tensor.shape[2]} × {tensor.shape[3]} pixels, expected"
                f" {expected[0]} × {expected[1]}. Give the name of a model with that patch size."
            )


def _grid(
    patches: int, module: VisionTransformer, image_size: tuple[int, int] | None, source: str
) -> tuple[int, int]:
    """The grid that has so many learned positions."""
    rows, cols = module.patch_embed.grid_size
    side = math.isqrt(max(patches, 0))
    grids = [(rows, cols), (side, side)]
    if image_size:
        patch = module.patch_embed.patch_size
        grids.insert(1, (image_size[0] // patch[0], image_size[1] // patch[1]))
    for grid in grids:
        if patches > 0 and math.prod(grid) == patches:
            return grid
    raise BadWeights(
        f"{source} has positions for {patches} patches, which is no square; expected"
        f" {rows} × {cols}. Give the image_size=(rows, cols) that it was trained with, or the name"
        " of its own model."
    )


def require_fit(module: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Refuse tensors that are not exactly the module's own, by name and shape.

    Raises:
        BadWeights: some are missing, left over or of another shape; the message says which.
    """
    own = module.state_dict()
    shapes = {
        name: f"{named(name)} {tuple(tensor.shape)}, expected {tuple(own[name].shape)}"
        for name, tensor in tensors.items()
        if name in own and own[name].shape != tensor.shape
    }
    faults = [
        f"{fault}: {_first(names)}"
        for fault, names in (
            ("missing", [name for name in own if name not in tensors]),
            ("left over", [named(name) for name in tensors if name not in own]),
            ("of another shape", list(shapes.values())),
        )
        if names
    ]
    if faults:
        raise BadWeights(
            f"{source} does not fit the model. Tensors {'; '.join(faults)}. Give the name of the"
            " model that the weights were made for."
        )


def _first(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
