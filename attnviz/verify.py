"""The proof that a captured map is the one the model used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args
from weakref import WeakKeyDictionary

import torch
from einops import rearrange
from torch import Tensor, nn

from attnviz.capture import checked_pass
from attnviz.contract import LoadedViT
from attnviz.errors import CaptureFailed
from attnviz.geometry import Geometry
from attnviz.keeping import Route
from attnviz.sources import Factors, Maps, Replayed
from attnviz.tap import Caught, finite, only_source
from attnviz.tokens import TokenLayout


@dataclass(frozen=True)
class LayerCheck:
    """How far a captured layer is from what its module did."""

    name: str
    route: Route
    row_sum_error: float
    """Largest |Σ_key A − 1|."""
    output_error: float
    """Largest |A V − what reached the projection|, over the largest value of the latter."""
    rounding: float = 0.0
    """What the rounding of its scores may make of that: 4 ε times the largest score, by factors."""


_PROVED: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
"""What each proved model was made of at the time."""


def verify(vit: LoadedViT, tensor: Tensor | None = None) -> tuple[LayerCheck, ...]:
    """Prove on one input that the captured maps are the ones the model used, by both routes.

    For each layer: rows sum to 1, unless heads are mixed afterwards, and map × values (plus the
    queries, where the module adds them) is what it sent to its projection, to 1e-5 and what
    rounding makes of large scores (2e-2 in half precision). The default input is a small one of
    the model's own choosing.

    Raises CaptureFailed with the layer and the size of the error.
    """
    tensor = vit.probe() if tensor is None else tensor
    tolerance = 1e-5 if tensor.dtype in (torch.float32, torch.float64) else 2e-2
    layout = vit.layout(*tensor.shape[-2:])
    checks: list[LayerCheck] = []
    for route in get_args(Route):
        tap = checked_pass(vit, tensor, keep=route)
        for name, caught in tap.caught.items():
            check = _check(name, route, caught, layout)
            rows = 0.0 if caught.site.mixed else check.row_sum_error
            allowed = tolerance + check.rounding
            if not (rows <= tolerance and check.output_error <= allowed):
                raise CaptureFailed(
                    f"The attention captured in layer {name} of {vit.name} by {route} is not what"
                    f" the layer used: its rows miss the sum 1 by {check.row_sum_error:.2g}, and"
                    f" map × values misses the layer's own output by {check.output_error:.2g} (at"
                    f" most {allowed:.2g} is allowed). It is not drawn."
                )
            checks.append(check)
    _PROVED[vit.module] = _makeup(vit.module)
    return tuple(checks)


def verify_once(vit: LoadedViT) -> None:
    """Verify a model the first time it is observed, and again once it is made otherwise."""
    with vit.lock:
        if _PROVED.get(vit.module) != _makeup(vit.module):
            verify(vit)


def _makeup(module: nn.Module) -> int:
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


def _check(name: str, route: Route, caught: Caught, layout: TokenLayout) -> LayerCheck:
    source = only_source(name, caught)
    if caught.values is None or caught.joined is None:
        raise CaptureFailed(f"Layer {name} never multiplied its map with values.")
    attention = source.block(0, source.shape[1])
    if not all(map(finite, (attention, caught.values, caught.joined))):
        short = caught.joined.dtype == torch.float16
        raise CaptureFailed(
            f"Layer {name} computes values that are not finite: check the weights and the input."
            + " float16 ends at 65504: try bfloat16 or float32." * short
        )
    mixed = attention @ caught.values.float()
    if caught.site.adds_queries:
        if caught.added is None:
            raise CaptureFailed(f"Layer {name} never multiplied its queries with keys.")
        mixed = mixed + caught.added.float()
    ours = rearrange(
        mixed,
        f"(window head) query ch -> {caught.site.order} {caught.site.join}",
        head=caught.site.heads,
    )
    if caught.site.on_grid and caught.site.geometry is not None:
        ours = _by_token(ours, caught.site.geometry(layout))
    axes = "window ch ..." if caught.site.channels_first else "window ... ch"
    theirs = rearrange(caught.joined.float(), f"{axes} -> (window ...) ch")
    if caught.site.alone is not None:
        beside = theirs.new_empty(0)
        if caught.beside is not None:
            beside = rearrange(caught.beside.float(), f"{axes} -> (window ...) ch")
        theirs = caught.site.alone(theirs, beside)
    if ours.shape != theirs.shape:
        raise CaptureFailed(
            f"In layer {name}, map × values has the shape {tuple(ours.shape)}, but"
            f" {tuple(theirs.shape)} reached the projection."
        )
    return LayerCheck(
        name=name,
        route=route,
        row_sum_error=float((attention.sum(-1) - 1).abs().max()),
        rounding=_rounding(source) if route == "factors" else 0.0,
        output_error=float((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1e-12)),
    )


def _by_token(rows: Tensor, geometry: Geometry) -> Tensor:
    """Rows of windows in the order of the tokens, without those of padding."""
    if geometry.rows is None:
        return rows
    tokens = rearrange(geometry.rows, "window query -> (window query)").to(rows.device)
    return rows[tokens >= 0][tokens[tokens >= 0].argsort()]


def _rounding(source: Maps | Factors | Replayed) -> float:
    """4 ε times the largest score: kernels that add up in another order differ by so much."""
    if not isinstance(source, Factors):
        return 0.0
    scores = source.queries.float() @ source.keys.float().mT * source.scale
    return 4 * torch.finfo(torch.float32).eps * float(scores.abs().max())
