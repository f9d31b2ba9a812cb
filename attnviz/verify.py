"""The proof that a captured map is the one the model used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, get_args
from weakref import WeakKeyDictionary

import torch
from einops import rearrange
from torch import Tensor, nn

from attnviz.bias import PIECE
from attnviz.capture import checked_pass
from attnviz.contract import LoadedViT, Progress
from attnviz.errors import CaptureFailed
from attnviz.failures import HALF
from attnviz.geometry import Geometry
from attnviz.keeping import Route
from attnviz.sources import Factors, Maps, Replayed
from attnviz.tap import Caught, Tap, finite, only_source
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
    """What the fused kernel's own rounding may make of that, by factors: `kernel_rounding`."""


TOLERANCE = 1e-5
"""By how much map × values may miss what reached the projection, over the largest of that."""

EXPONENTIAL = 2 * 2.0**-20
"""Twice the relative error of the exponentials in torch's fused attention on the processor."""

_PROVED: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
"""What each proved model was made of at the time."""


def verify(
    vit: LoadedViT, tensor: Tensor | None = None, *, progress: Progress | None = None
) -> tuple[LayerCheck, ...]:
    """Prove on one input that the captured maps are the ones the model used, by both routes.

    For each layer: rows sum to 1, unless heads are mixed afterwards, and map × values (plus the
    queries, where the module adds them) is what it sent to its projection, to 1e-5 (2e-2 in half
    precision), and by factors to the fused kernel's own rounding beside that. The default input is
    a small one of the model's own choosing. `progress` hears of each layer that is proved, by one
    route and then the other.

    Raises CaptureFailed with the layer and the size of the error.
    """
    tensor = vit.probe() if tensor is None else tensor
    layout = vit.layout(*tensor.shape[-2:])
    checks: list[LayerCheck] = []
    routes = get_args(Route)
    done = count(1)

    def step() -> None:
        if progress is not None:
            progress(next(done), len(routes) * len(vit.sites))

    for route in routes:
        tap = _Proving(vit, route, layout, TOLERANCE if tensor.dtype not in HALF else 2e-2, step)
        checked_pass(vit, tensor, tap, keep=route)
        checks += tap.checks()
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


class _Proving(Tap):
    """A tap that proves a layer once the next one begins, and lets its map go."""

    def __init__(
        self,
        vit: LoadedViT,
        route: Route,
        layout: TokenLayout,
        tolerance: float,
        step: Callable[[], None],
    ) -> None:
        super().__init__(vit.sites, check=True)
        self.step = step
        self.name, self.route, self.layout, self.tolerance = vit.name, route, layout, tolerance
        self.proofs: dict[str, LayerCheck] = {}

    def enter(
        self, caught: Caught, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        """Before an attention module runs: those that are done are proved."""
        for each in self.caught.values():
            if _is_whole(each) and each.site.name not in self.proofs:
                self._prove(each)
        super().enter(caught, module, given, named)

    def checks(self) -> list[LayerCheck]:
        """All layers' proofs, once the pass is over.

        Raises CaptureFailed for a layer that fails, did not run, or ran more than once.
        """
        for name, caught in self.caught.items():
            if name not in self.proofs:
                self._prove(caught)
            elif caught.runs > 1:
                only_source(name, caught)
        return [self.proofs[name] for name in self.caught]

    def _prove(self, caught: Caught) -> None:
        check = _check(caught.site.name, self.route, caught, self.layout)
        rows = 0.0 if caught.site.mixed else check.row_sum_error
        allowed = self.tolerance + check.rounding
        if not (rows <= self.tolerance and check.output_error <= allowed):
            raise CaptureFailed(
                f"The attention captured in layer {check.name} of {self.name} by {self.route} is"
                f" not what the layer used: its rows miss the sum 1 by {check.row_sum_error:.2g},"
                f" and map × values misses the layer's own output by {check.output_error:.2g} (at"
                f" most {allowed:.2g} is allowed). It is not drawn."
            )
        self.proofs[check.name] = check
        self.step()
        caught.source = caught.values = caught.joined = caught.beside = None


def _is_whole(caught: Caught) -> bool:
    """Whether all that its proof needs is there, and nothing runs in it any more."""
    parts = [caught.source, caught.values, caught.joined]
    if caught.site.beside is not None:
        parts.append(caught.beside)
    return caught.done and all(part is not None for part in parts)


def _check(name: str, route: Route, caught: Caught, layout: TokenLayout) -> LayerCheck:
    source = only_source(name, caught)
    if caught.values is None or caught.joined is None:
        raise CaptureFailed(f"Layer {name} never multiplied its map with values.")
    mixed, row_sum_error = _mixed(source, caught.values.float())
    if not all(map(finite, (mixed, caught.values, caught.joined))):
        short = caught.joined.dtype == torch.float16
        raise CaptureFailed(
            f"Layer {name} computes values that are not finite: check the weights and the input."
            + " float16 ends at 65504: try bfloat16 or float32." * short
        )
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
    scale = float(theirs.abs().max().clamp_min(1e-12))
    largest = float(caught.values.float().abs().max())
    return LayerCheck(
        name=name,
        route=route,
        row_sum_error=row_sum_error,
        rounding=_rounding(source, largest / scale) if route == "factors" else 0.0,
        output_error=float((ours - theirs).abs().max()) / scale,
    )


def _by_token(rows: Tensor, geometry: Geometry) -> Tensor:
    """Rows of windows in the order of the tokens, without those of padding."""
    if geometry.rows is None:
        return rows
    tokens = rearrange(geometry.rows, "window query -> (window query)").to(rows.device)
    return rows[tokens >= 0][tokens[tokens >= 0].argsort()]


def _mixed(source: Maps | Factors | Replayed, values: Tensor) -> tuple[Tensor, float]:
    """Map × values (window · head, query, ch), and by how much rows miss the sum 1 at most."""
    parts, error = [], 0.0
    for start, stop in _pieces(source):
        attention = source.block(start, stop)
        parts.append(attention @ values)
        error = max(error, float((attention.sum(-1) - 1).abs().max()))
    return torch.cat(parts, dim=1), error


def _pieces(source: Maps | Factors | Replayed) -> Iterator[tuple[int, int]]:
    """(start, stop) of queries: few enough that a large map is never built whole."""
    heads, queries, keys = source.shape
    step = max(1, PIECE // (heads * keys))
    return ((start, min(start + step, queries)) for start in range(0, queries, step))


def kernel_rounding(largest: float, cancelled: float) -> float:
    """How far a fused kernel may be from softmax(scores) × values, over the latter's largest value.

    4 ε times the `largest` score, as kernels add up in another order; and 2 of torch's 2⁻²⁰ by
    which its exponentials on the processor are off, of the values that `cancelled` says how many
    times as large they are.
    """
    return 4 * torch.finfo(torch.float32).eps * largest + EXPONENTIAL * cancelled


def _rounding(source: Maps | Factors | Replayed, cancelled: float) -> float:
    """What the kernel's own rounding may make of all rows; of maps there is no kernel."""
    if not isinstance(source, Factors):
        return 0.0
    keys = source.keys.float().mT
    largest = max(
        float((source.queries[:, start:stop].float() @ keys * source.scale).abs().max())
        for start, stop in _pieces(source)
    )
    return kernel_rounding(largest, cancelled)
