"""The proof that a captured map is the one the model used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args
from weakref import WeakKeyDictionary

import torch
from einops import rearrange
from torch import Tensor, nn

from attnviz.capture import Route, checked_pass
from attnviz.contract import LoadedViT
from attnviz.errors import CaptureFailed
from attnviz.tap import Caught, only_source


@dataclass(frozen=True)
class LayerCheck:
    """How far a captured layer is from what its module did."""

    name: str
    route: Route
    row_sum_error: float
    """Largest |Σ_key A − 1|."""
    output_error: float
    """Largest |A V − what reached the projection|, over the largest value of the latter."""


_PROVED: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
"""What each proved model was made of at the time."""


def verify(vit: LoadedViT, tensor: Tensor | None = None) -> tuple[LayerCheck, ...]:
    """Prove on one input that the captured maps are the ones the model used, by both routes.

    For each layer: rows sum to 1, and map × values is what the module sent to its projection, to
    1e-5 (2e-2 in half precision). The default input is a small one of the model's own choosing.

    Raises CaptureFailed with the layer and the size of the error.
    """
    tensor = vit.probe() if tensor is None else tensor
    tolerance = 1e-5 if tensor.dtype in (torch.float32, torch.float64) else 2e-2
    checks: list[LayerCheck] = []
    for route in get_args(Route):
        tap = checked_pass(vit, tensor, keep=route)
        for name, caught in tap.caught.items():
            check = _check(name, route, caught)
            if not (check.row_sum_error <= tolerance and check.output_error <= tolerance):
                raise CaptureFailed(
                    f"The attention captured in layer {name} of {vit.name} by {route} is not what"
                    f" the layer used: its rows miss the sum 1 by {check.row_sum_error:.2g}, and"
                    f" map × values misses the layer's own output by {check.output_error:.2g} (at"
                    f" most {tolerance:g} is allowed). It is not drawn."
                )
            checks.append(check)
    _PROVED[vit.module] = _make(vit.module)
    return tuple(checks)


def verify_once(vit: LoadedViT) -> None:
    """Verify a model the first time it is observed, and again once it is made otherwise."""
    with vit.lock:
        if _PROVED.get(vit.module) != _make(vit.module):
            verify(vit)


def _make(module: nn.Module) -> int:
    """A number for which submodules there are, and what was put on them: hooks, other forwards."""
    return hash(
        tuple(
            (
                id(part),
                type(part),
                part.__dict__.get("forward"),
                *map(id, part._forward_hooks.values()),
                *map(id, part._forward_pre_hooks.values()),
            )
            for part in module.modules()
        )
    )


def _check(name: str, route: Route, caught: Caught) -> LayerCheck:
    source = only_source(name, caught)
    if caught.values is None or caught.joined is None:
        raise CaptureFailed(f"Layer {name} never multiplied its map with values.")
    attention = source.block(0, source.shape[1])
    if not all(bool(torch.isfinite(t).all()) for t in (attention, caught.values, caught.joined)):
        raise CaptureFailed(
            f"Layer {name} computes values that are not finite: check the weights and the input."
        )
    ours = rearrange(attention @ caught.values.float(), "head query ch -> query (head ch)")
    theirs = caught.joined[0].float()
    if ours.shape != theirs.shape:
        raise CaptureFailed(
            f"In layer {name}, map × values has the shape {tuple(ours.shape)}, but"
            f" {tuple(theirs.shape)} reached the projection."
        )
    return LayerCheck(
        name=name,
        route=route,
        row_sum_error=float((attention.sum(-1) - 1).abs().max()),
        output_error=float((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1e-12)),
    )
