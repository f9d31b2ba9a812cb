"""The heart: run a model once and keep the attention that it used.

Two routes, each the other's test. *Maps*: the module's fused kernel is switched off for the call
and its softmax is caught, before dropout. *Factors*: the fused kernel runs, and what goes into it
(queries, keys, bias, scale) is caught. Either way a `Tap` sees the calls, and hooks on the
attention modules say whose calls they are. In half precision a kernel rounds otherwise than its
module does without it, and the layers after it see that: there the pass runs as the model itself
would, and its factors are made maps afterwards. Where a target is given, its gradient at map ×
values is asked of autograd, layer by layer: with the values it is the map's gradient, which is
never built. Hooks live for one pass, and the model comes back as it was found, also when
the pass fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from attnviz.anew import LeanTap
from attnviz.backward import Gradients, grad_mode, gradients
from attnviz.contract import LoadedViT, Progress
from attnviz.errors import AttnVizError, CaptureFailed
from attnviz.failures import HALF, in_words
from attnviz.found import as_found
from attnviz.geometry import Geometry
from attnviz.keeping import Route, choose
from attnviz.record import Activations, LayerAttention
from attnviz.sources import Factors, Maps, Replayed
from attnviz.tap import Caught, Tap, finite, hooks_of, only_source, require_finite
from attnviz.target import Goal, Reading, Target, aim, require_feature
from attnviz.tokens import TokenLayout
from attnviz.windows import Windows, as_masked, in_windows, on_grid


@dataclass(frozen=True)
class Pass:
    """What one pass left behind; from `target` on, what only one with a target leaves."""

    layers: tuple[LayerAttention, ...]
    output: Tensor
    features: Tensor | None
    """The last layer's tokens after the model's last norm, (token, channel)."""
    feature: Tensor | None
    """What the head was fed with, (channel,); None where that is not one feature."""
    fed_whole: bool = True
    """Whether the last layer's attention was fed with all tokens in one piece."""
    scored: bool = True
    """Whether the model's head can score the tokens that a layer hands on."""
    target: str | None = None
    """What the gradient is taken of, in words."""
    score: float | None = None
    """The target's value."""
    target_class: int | None = None
    """Its number, where it is a class."""
    reference: Tensor | None = None
    """The feature that it is compared with, (channel,), where it is a likeness."""
    activations: Activations | None = None


def run(
    vit: LoadedViT,
    tensor: Tensor,
    *,
    keep: str,
    target: Target | None = None,
    progress: Progress | None = None,
) -> Pass:
    """One forward pass, and with a target its gradients.

    Raises CaptureFailed where a layer was missed, ran twice, or holds values that are not finite.
    """
    layout = vit.layout(*tensor.shape[-2:])
    graph = target is not None
    geometries = tuple(site.geometry and site.geometry(layout) for site in vit.sites)
    meant = [geometry or Geometry(layout, layout) for geometry in geometries]
    route, values, lean = choose(keep, vit, meant, graph=graph)
    tap = LeanTap(vit) if lean else Tap(vit.sites, values=values, graph=graph)
    own = route == "maps" and tensor.dtype in HALF
    with vit.lock, _as_found(vit, graph):
        output, feature = tapped_pass(
            vit, tensor, tap, keep=None if own else route, progress=progress
        )
        pairs = zip(tap.caught.values(), geometries, strict=True)
        layers = tuple(_layer(caught, geometry, route) for caught, geometry in pairs)
        if not finite(output):
            raise CaptureFailed(f"The output of {vit.name} holds values that are not finite.")
        with grad_mode(graph), _named_failures(vit, tap, tensor):
            last, end = last_layout(vit, layout), list(tap.caught.values())[-1]
            tokens = _features(vit, tap, last)
            aimed = None
            if target is not None:
                whole = require_feature(vit.name, feature)
                goal = aim(target, vit, layout, Reading(tokens, whole[0], output[0]))
                aimed = goal, gradients(vit, tap, goal, last, geometries, progress)
    seen = Pass(
        layers,
        output.detach(),
        None if tokens is None else tokens.detach(),
        # A copy: a view would keep all of what it is a part of.
        None if feature is None else feature[0].detach().clone(),
        fed_whole=end.fed is not None and end.fed[:-1] == (1, last.tokens),
        scored=vit.readout.of_tokens and end.stream is not None and end.stream.ndim == 3,
    )
    return seen if aimed is None else _with_gradients(seen, *aimed)


def _with_gradients(seen: Pass, goal: Goal, found: Gradients) -> Pass:
    triples = zip(seen.layers, found.maps, found.own, strict=True)
    return replace(
        seen,
        layers=tuple(replace(layer, gradient=g, own_gradient=own) for layer, g, own in triples),
        target=goal.words,
        score=float(goal.score.detach()),
        target_class=goal.number,
        reference=goal.reference,
        activations=found.activations,
    )


def last_layout(vit: LoadedViT, layout: TokenLayout) -> TokenLayout:
    """The tokens that the last layer hands on."""
    return vit.sites[-1].geometry_on(layout).queries


def readable(vit: LoadedViT) -> tuple[Tensor | None, Tensor | None]:
    """The feature (channel) and the tokens (token, channel) of noise; None for what it has not."""
    tensor, tap = vit.probe(), Tap(vit.sites)
    with vit.lock, _as_found(vit, False), grad_mode(False):
        _, feature = tapped_pass(vit, tensor, tap, keep="factors")
        tokens = _features(vit, tap, last_layout(vit, vit.layout(*tensor.shape[-2:])))
    return None if feature is None else feature[0], tokens


def checked_pass(vit: LoadedViT, tensor: Tensor, tap: Tap, *, keep: Route) -> None:
    """One forward pass under a tap of which values, and what reached the projections, are kept."""
    with vit.lock, _as_found(vit, False):
        tapped_pass(vit, tensor, tap, keep=keep)


def shared_pass(
    vit: LoadedViT, pictures: Tensor, tap: Tap
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Several pictures by factors: outputs, features, and the last layer's tokens after the norm.

    Each has the pictures as its first axis; a model without the like of it gives None.
    """
    layout = last_layout(vit, vit.layout(*pictures.shape[-2:]))
    with _as_found(vit, False), grad_mode(False):
        output, features = tapped_pass(vit, pictures, tap, keep="factors")
        stream = list(tap.caught.values())[-1].stream
        whole = stream is not None and stream.shape[:-1] == (len(pictures), layout.tokens)
        tokens = vit.readout.norm(stream) if whole and stream is not None else None
    return output.detach(), features, tokens


def tapped_pass(
    vit: LoadedViT,
    tensor: Tensor,
    tap: Tap,
    *,
    keep: Route | None,
    progress: Progress | None = None,
) -> tuple[Tensor, Tensor | None]:
    """One forward pass under the tap: outputs, and the features (picture, channel) that made them.

    Fused kernels are off for maps and on for factors; without either they are as they were found.
    """
    with ExitStack() as hooks, grad_mode(tap.graph), _met_by_head(vit) as met:
        for number, site in enumerate(vit.sites, start=1):
            caught = tap.caught[site.name]
            if keep is not None:
                site.fuse(keep == "factors")
            for handle in hooks_of(site, tap, caught, partial(tap.leave, progress, number)):
                hooks.callback(handle.remove)
        tap.dense = keep == "maps"
        if tap.graph:
            tensor = tensor.detach().clone().requires_grad_()
        with tap, _named_failures(vit, tap, tensor):
            output = vit.run(tensor)
    return output, _one_feature(met, len(tensor))


@contextmanager
def _met_by_head(vit: LoadedViT) -> Iterator[list[Tensor]]:
    """What the model's head is fed with, each time that it runs."""
    met: list[Tensor] = []
    hook = vit.readout.head.register_forward_pre_hook(lambda _, given: met.append(given[0]))
    try:
        yield met
    finally:
        hook.remove()


def _one_feature(met: list[Tensor], pictures: int) -> Tensor | None:
    """The features (picture, channel), if the head was fed with one of each picture, and once."""
    alone = len(met) == 1 and met[0].ndim == 2 and len(met[0]) == pictures
    return met[0] if alone else None


def plain_pass(vit: LoadedViT, pictures: Tensor) -> tuple[Tensor, Tensor | None]:
    """Several pictures at once, with nothing kept: outputs, and features (picture, channel).

    Raises CaptureFailed for an output that is not finite, or not one a picture.
    """
    with (
        vit.lock,
        _as_found(vit, False),
        grad_mode(False),
        _named_failures(vit, None, pictures),
        _met_by_head(vit) as met,
    ):
        output = vit.run(pictures)
    if len(output) != len(pictures) or not finite(output):
        raise CaptureFailed(
            f"{vit.name} gave an output of shape {tuple(output.shape)} for {len(pictures)} pictures"
            f"{'' if finite(output) else ', with values that are not finite'}."
        )
    return output, _one_feature(met, len(pictures))


def _features(vit: LoadedViT, tap: Tap, layout: TokenLayout) -> Tensor | None:
    """The last layer's tokens (token, channel), after the model's own norm."""
    stream = list(tap.caught.values())[-1].stream
    whole = stream is not None and stream.shape[:-1] == (1, layout.tokens)
    return vit.readout.norm(stream)[0] if whole and stream is not None else None


@contextmanager
def _named_failures(vit: LoadedViT, tap: Tap | None, tensor: Tensor) -> Iterator[None]:
    """A pass that fails says whose it was; what `progress` raised, to stop it, stays itself."""
    try:
        yield
    except AttnVizError:
        raise
    except Exception as error:
        if tap is not None and error is tap.stopped:
            raise
        raise in_words(vit.name, tensor, error) from error


@contextmanager
def _as_found(vit: LoadedViT, graph: bool) -> Iterator[None]:
    """Lent, with parameters held fixed: autograd then forgets what only theirs would need."""
    asking = [part for part in vit.module.parameters() if part.requires_grad] if graph else []
    with as_found(vit.module, vit.sites):
        try:
            for parameter in asking:
                parameter.requires_grad_(False)
            yield
        finally:
            for parameter in asking:
                parameter.requires_grad_(True)


def _layer(caught: Caught, geometry: Geometry | None, keep: Route) -> LayerAttention:
    site, name = caught.site, caught.site.name
    source = only_source(name, caught)
    windows = geometry is not None and geometry.in_windows
    # Maps in windows are small, and so is the work of rebuilding them.
    if isinstance(source, Factors) and (keep == "maps" or windows):
        source = Maps(source.block(0, source.shape[1]))
    require_finite(name, *source.held)
    projection = None if site.projection is None else site.projection.weight.detach()
    values: Tensor | None = caught.values
    placed: Maps | Factors | Replayed | Windows = source
    if geometry is not None and windows and isinstance(source, Maps):
        placed = in_windows(source.map, geometry)
        geometry = as_masked(placed, geometry)
        values = None if values is None else on_grid(values, geometry)
    return LayerAttention(name, placed, values, projection, geometry=geometry, mixed=site.mixed)
