"""The heart: run a model once and keep the attention that it used.

Two routes, each the other's test. *Maps*: the module's fused kernel is switched off for the call
and its softmax is caught, before dropout. *Factors*: the fused kernel runs, and what goes into it
(queries, keys, bias, scale) is caught. Either way a `TorchFunctionMode` sees the calls, and hooks
on the attention modules say whose calls they are. Hooks live for one pass, and the model comes
back as it was found, also when the pass fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attnviz.contract import AttentionSite, LoadedViT
from attnviz.errors import AttnVizError, BadOption, CaptureFailed
from attnviz.record import Factors, LayerAttention, Maps

KEEPS = ("maps", "factors", "auto")

MAPS_BUDGET = 256 * 2**20
"""`keep="auto"` keeps dense maps up to this many bytes in all, and factors beyond."""

Route = Literal["maps", "factors"]
"""What one pass keeps: dense maps, or what rebuilds them."""

Progress = Callable[[int, int], None]
"""Called after each attention layer with (layers done, layers in all)."""

_SOFTMAX = {torch.softmax, torch.Tensor.softmax, F.softmax, torch.special.softmax}
_MATMUL = {torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__}


@dataclass
class Caught:
    """What one attention module did during one pass."""

    number: int
    runs: int = 0
    source: Maps | Factors | None = None
    values: Tensor | None = None  # (1, head, key, channel)
    mixed: Tensor | None = None  # (1, query, head · channel): what reached the projection


class Tap(TorchFunctionMode):
    """Sees every torch call; keeps those that the running attention module makes."""

    def __init__(self, sites: tuple[AttentionSite, ...], check: bool) -> None:
        super().__init__()
        self.caught = {site.name: Caught(number) for number, site in enumerate(sites)}
        self.store: Tensor | None = None  # (layer, 2, head, token, channel): queries and keys
        self.running: Caught | None = None
        self.stopped: Exception | None = None  # what `progress` raised
        self.check = check

    def enter(self, caught: Caught, *_: object) -> None:
        """Before an attention module runs: calls are now its own."""
        caught.runs += 1
        self.running = caught

    def leave(self, progress: Progress | None, number: int, *_: object) -> None:
        """After it ran; `progress` may raise, to stop the pass."""
        self.running = None
        if progress is not None:
            try:
                progress(number, len(self.caught))
            except Exception as error:
                self.stopped = error
                raise

    def arrive(self, caught: Caught, _: nn.Module, given: tuple[Tensor, ...]) -> None:
        """Before the projection runs: what reached it."""
        if self.check:
            caught.mixed = given[0].detach()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self.running is not None:
            if func is F.scaled_dot_product_attention:
                self._fused(self.running, *args, **kwargs)
            elif func in _SOFTMAX:
                self._softmax(self.running, result)
            elif self.check and func in _MATMUL and isinstance(self.running.source, Maps):
                self._product(self.running, *args)
        return result

    def _fused(
        self,
        caught: Caught,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> None:
        if is_causal or enable_gqa:
            raise CaptureFailed("Causal and grouped-query attention are not drawn yet.")
        queries, keys = self._copies(caught.number, query[0].detach(), key[0].detach())
        caught.source = Factors(
            queries=queries,
            keys=keys,
            scale=query.shape[-1] ** -0.5 if scale is None else scale,
            bias=None if attn_mask is None else _as_bias(attn_mask),
        )
        if self.check:
            caught.values = value.detach()

    def _copies(self, number: int, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Copies, so that the values packed beside queries and keys are not kept alive.

        All layers' lie in one tensor: many small ones, allocated between the pass's short-lived
        ones, leave holes in the heap that are half as large again.
        """
        both = (len(self.caught), 2, *queries.shape)
        if self.store is None:
            self.store = queries.new_empty(both)
        alike = self.store.dtype == queries.dtype == keys.dtype and queries.shape == keys.shape
        if not alike or self.store.shape != both or self.store.device != queries.device:
            kind = torch.contiguous_format
            return queries.clone(memory_format=kind), keys.clone(memory_format=kind)
        room = self.store[number]
        return room[0].copy_(queries), room[1].copy_(keys)

    def _softmax(self, caught: Caught, result: Tensor) -> None:
        if result.ndim == 4:
            caught.source = Maps(result[0].detach())

    def _product(self, caught: Caught, left: Tensor, right: Tensor) -> None:
        if caught.values is None and left.shape[1:] == caught.source.map.shape:  # type: ignore[union-attr]
            caught.values = right.detach()


def run(
    vit: LoadedViT,
    tensor: Tensor,
    *,
    keep: Route,
    progress: Progress | None = None,
) -> tuple[tuple[LayerAttention, ...], Tensor]:
    """One forward pass: the attention of every layer, and the model's output.

    Raises CaptureFailed where a layer was missed, ran twice, or holds values that are not finite.
    """
    tap, output = tapped_pass(vit, tensor, keep=keep, check=False, progress=progress)
    layers = tuple(_layer(name, caught, keep) for name, caught in tap.caught.items())
    if not bool(torch.isfinite(output).all()):
        raise CaptureFailed(f"The output of {vit.name} holds values that are not finite.")
    return layers, output


def choose(keep: str, vit: LoadedViT, tokens: int) -> Route:
    """Settle `"auto"`: maps while all of them fit `MAPS_BUDGET`, else factors."""
    if keep == "maps":
        return "maps"
    if keep == "factors":
        return "factors"
    if keep != "auto":
        raise BadOption(f"keep is one of {', '.join(KEEPS)}; {keep!r} came.")
    nbytes = sum(4 * site.heads * tokens**2 for site in vit.sites)
    return "maps" if nbytes <= MAPS_BUDGET else "factors"


def tapped_pass(
    vit: LoadedViT,
    tensor: Tensor,
    *,
    keep: Route,
    check: bool,
    progress: Progress | None = None,
) -> tuple[Tap, Tensor]:
    """One forward pass under the tap; with `check`, values and mixed values are caught as well."""
    tap = Tap(vit.sites, check)
    with vit.lock, _as_found(vit), ExitStack() as hooks, torch.no_grad():
        for number, site in enumerate(vit.sites, start=1):
            caught = tap.caught[site.name]
            if site.fused_switch is not None:
                setattr(site.module, site.fused_switch, keep == "factors")
            leave = partial(tap.leave, progress, number)
            for handle in (
                site.module.register_forward_pre_hook(partial(tap.enter, caught)),
                # First of all hooks: what another one computes is not the module's.
                site.module.register_forward_hook(leave, prepend=True),
                site.after_mix.register_forward_pre_hook(partial(tap.arrive, caught)),
            ):
                hooks.callback(handle.remove)
        with tap, _named_failures(vit, tap, tensor):
            output = vit.module(tensor)
    return tap, output


@contextmanager
def _named_failures(vit: LoadedViT, tap: Tap, tensor: Tensor) -> Iterator[None]:
    """A pass that fails says whose it was; what `progress` raised, to stop it, stays itself."""
    try:
        yield
    except AttnVizError:
        raise
    except Exception as error:
        if error is tap.stopped:
            raise
        if isinstance(error, MemoryError) or "memory" in str(error):
            size = " × ".join(str(side) for side in tensor.shape[-2:])
            raise BadOption(
                f"There is too little memory to run {vit.name} on {size} pixels: choose a smaller"
                ' size, or keep="factors".'
            ) from error
        raise CaptureFailed(
            f"{vit.name} failed in its own forward pass: {type(error).__name__}: {error}"
        ) from error


@contextmanager
def _as_found(vit: LoadedViT) -> Iterator[None]:
    """Evaluation mode within; afterwards every flag is as it was."""
    modes = [(module, module.training) for module in vit.module.modules()]
    switches = [
        (site.module, site.fused_switch, getattr(site.module, site.fused_switch))
        for site in vit.sites
        if site.fused_switch is not None
    ]
    try:
        vit.module.eval()
        yield
    finally:
        for module, training in modes:
            module.training = training
        for module, switch, value in switches:
            setattr(module, switch, value)


def _layer(name: str, caught: Caught, keep: str) -> LayerAttention:
    source = only_source(name, caught)
    if keep == "maps" and isinstance(source, Factors):
        source = Maps(source.block(0, source.shape[1]))
    held = [source.map] if isinstance(source, Maps) else [source.queries, source.keys]
    if not all(_finite(tensor) for tensor in held):
        raise CaptureFailed(
            f"Layer {name} computed values that are not finite; check the weights and the input."
        )
    return LayerAttention(name=name, source=source)


def _finite(tensor: Tensor) -> bool:
    """Whether all values are finite. If their sum is, they are: that reads them only once."""
    return bool(torch.isfinite(tensor.sum()) or torch.isfinite(tensor).all())


def only_source(name: str, caught: Caught) -> Maps | Factors:
    """The attention of a layer that ran exactly once; CaptureFailed for any other."""
    if caught.runs != 1 or caught.source is None:
        found = "no softmax over tokens was seen in it" if caught.runs else "it was not reached"
        raise CaptureFailed(
            f"Layer {name} ran {caught.runs} times in one pass"
            + (f", and {found}." if caught.source is None else "; one map cannot stand for all.")
        )
    return caught.source


def _as_bias(mask: Tensor) -> Tensor:
    """A mask as (head, query, key) numbers added to the scores; False means minus infinity."""
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, float("-inf"))
    mask = mask[(None,) * (4 - mask.ndim)]
    return mask[0].detach()
