"""The way back: a target's gradient at each layer's map × values, asked of autograd.

With the values it is the gradient of the map, ∂y/∂A = ∂y/∂(A V) · Vᵀ, which is never built.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice

import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz.contract import LoadedViT, Progress
from attnviz.errors import CaptureFailed
from attnviz.geometry import Geometry
from attnviz.record import Activations, Maps, Product
from attnviz.tap import Caught, Tap, finite, hooks_of, only_source
from attnviz.target import Goal
from attnviz.tokens import TokenLayout
from attnviz.windows import Windows, in_windows


@contextmanager
def grad_mode(on: bool) -> Iterator[None]:
    """A graph is built, whatever the caller's own mode is; or none is."""
    with torch.inference_mode(False) if on else torch.no_grad(), torch.set_grad_enabled(on):
        yield


@dataclass(frozen=True)
class Gradients:
    """The gradients of one pass, in the order of its layers."""

    maps: tuple[Product | Windows, ...]
    """∂y/∂A."""
    own: tuple[Product | Maps | Windows | None, ...]
    """∂s/∂A, s the score that the layer's own tokens get."""
    activations: Activations | None


def gradients(
    vit: LoadedViT,
    tap: Tap,
    goal: Goal,
    layout: TokenLayout,
    geometries: tuple[Geometry | None, ...],
    progress: Progress | None,
) -> Gradients:
    """What autograd says of the score, layer by layer; the graph is gone afterwards.

    `geometries` are the layers', in their order; `layout` is what the last one hands on.

    Raises CaptureFailed where a layer showed no product with its values, or a gradient is not
    finite.
    """
    caught = tap.caught
    for name, layer in caught.items():
        only_source(name, layer)
        _shown(layer.values if layer.mixed else None, name)
    mixed = [part for layer in caught.values() for part in layer.mixed]
    end = list(caught.values())[-1]
    own: list[Product | Maps | Windows | None] = []
    for layer, geometry in zip(caught.values(), geometries, strict=True):
        # The readout is made for the last layer's tokens: only layers that hand on such have one.
        readable = vit.readout.of_tokens and _alike(layer.stream, end.stream)
        own.append(_own(vit, layer, geometry, goal, layout) if readable else None)
        tap.report(progress, len(caught) + len(own))
    last = end.given
    *found, of_last = _ask(goal.score, [*mixed, mixed[-1] if last is None else last])
    parts = iter(found)
    of_mixed = [layer.whole(list(islice(parts, len(layer.mixed)))) for layer in caught.values()]
    for name, gradient in zip(caught, of_mixed, strict=True):
        if not finite(gradient):
            raise CaptureFailed(f"The gradient in layer {name} is not finite: check the weights.")
    activations = None
    if last is not None and last.shape[:-1] == (1, layout.tokens):
        activations = Activations(last[0].detach().float(), of_last[0].float())
    return Gradients(
        maps=tuple(map(_of_map, caught.values(), of_mixed, geometries)),
        own=tuple(own),
        activations=activations,
    )


def _alike(stream: Tensor | None, end: Tensor | None) -> bool:
    """Whether both are tokens (1, token, channel), as many and as wide."""
    if stream is None or end is None:
        return False
    return stream.ndim == 3 and stream.shape == end.shape


def _ask(score: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    """∂score/∂tensor of each; zeros where the score does not depend on it."""
    if not score.requires_grad:
        return [torch.zeros_like(tensor) for tensor in tensors]
    found = torch.autograd.grad(score, tensors, materialize_grads=True)
    return [gradient.detach() for gradient in found]


def _of_map(layer: Caught, outputs: Tensor, geometry: Geometry | None) -> Product | Windows:
    """∂y/∂A from ∂y/∂(A V) (window · head, query, channel), for one layer."""
    product = Product(outputs.detach(), _shown(layer.values, layer.site.name))
    if geometry is None or not geometry.in_windows:
        return product
    return in_windows(product.block(0, outputs.shape[-2]), geometry, divided=False)


def _own(
    vit: LoadedViT, layer: Caught, geometry: Geometry | None, goal: Goal, layout: TokenLayout
) -> Product | Maps | Windows:
    """∂s/∂A for the score s that the model's readout gives the tokens of one layer."""
    readout, pooler = vit.readout, vit.readout.pooler
    stream = _shown(layer.stream, layer.site.name)
    if pooler is None or readout.pool is None:
        score = goal.of_feature(readout.norm(stream.mean(1))[0])
        outputs = torch.autograd.grad(score, layer.mixed, retain_graph=True)
        return _of_map(layer, layer.whole(list(outputs)), geometry)
    # A model that pools by attention is asked by that attention: its map is the pooler's.
    tap = Tap((pooler,), values=True, graph=True)
    caught = tap.caught[pooler.name]
    with ExitStack() as hooks:
        for handle in hooks_of(pooler, tap, caught, partial(tap.leave, None, 1)):
            hooks.callback(handle.remove)
        with tap:
            feature = readout.pool(readout.norm(stream.detach().requires_grad_()))
    values = _shown(caught.values, pooler.name)
    asked = torch.autograd.grad(goal.of_feature(feature[0]), caught.mixed)
    pooled = caught.whole(list(asked)).detach()
    rows = Product(pooled, values).block(0, pooled.shape[-2])
    return Maps(F.pad(rows, (layout.tokens - rows.shape[-1], 0)))  # it may leave out the prefix


def _shown(tensor: Tensor | None, name: str) -> Tensor:
    """What a layer must have shown when it multiplied its map with values, else CaptureFailed."""
    if tensor is None:
        raise CaptureFailed(f"Layer {name} never multiplied its map with values.")
    return tensor
