"""Sees the torch calls that attention modules make, and keeps what their maps are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attnviz.bias import as_bias, is_crossed
from attnviz.calls import ADD, FUSED, MATMUL, MULTI_HEAD, SOFTMAX, Mixing, MultiHead, mixing
from attnviz.contract import AttentionSite, Progress
from attnviz.errors import CaptureFailed
from attnviz.sources import Factors, Maps, Replayed


@dataclass
class Caught:
    """What one attention module did during one pass."""

    number: int
    site: AttentionSite
    runs: int = 0
    done: bool = False
    source: Maps | Factors | Replayed | None = None  # heads within windows, if there are several
    shape: torch.Size | None = None  # of the map as the module has it
    values: Tensor | None = None  # (window · head, key, channel)
    added: Tensor | None = None  # (window · head, query, channel): queries that are added
    mixed: list[Tensor] = field(default_factory=list)  # map × values, as the module has it
    joined: Tensor | None = None  # as the module has it: what reached the projection
    beside: Tensor | None = None  # as the module has it: what went there as well
    given: Tensor | None = None  # (1, token, channel): what the module was fed with
    fed: torch.Size | None = None  # the shape of that
    stream: Tensor | None = None  # (1, token, channel): the tokens after the layer

    sums: list[tuple[Tensor, ...]] = field(default_factory=list)  # (by row, by column) of keys
    turns: list[list[Tensor]] = field(default_factory=lambda: [[], []])  # maps, values, by head

    def flat(self, tensor: Tensor) -> Tensor:
        """(window · head, …, …): the axes before a map's last two, as one."""
        if self.site.axes == "window head" and tensor.shape[0] == 1:
            heads = tensor[0]  # one for all of them, where they share keys and values
            return heads.expand(self.site.heads, -1, -1) if len(heads) == 1 else heads
        if self.site.axes == "window_head":
            # A fused kernel has both axes, where the softmax has them as one.
            one = tensor.ndim == 3
            return tensor if one else rearrange(tensor, "window head ... -> (window head) ...")
        return rearrange(tensor, f"{self.site.axes} last but_one -> (window head) last but_one")

    def in_turn(self, part: int, tensor: Tensor) -> Tensor:
        """The same of all heads so far, where they come one after the other; else of this one."""
        if not self.site.in_turn:
            return self.flat(tensor)
        self.turns[part].append(tensor)
        return _heads(self.turns[part])

    def whole(self, mixed: list[Tensor]) -> Tensor:
        """(window · head, query, channel) of what is alike `mixed`, as its gradients are."""
        return _heads(mixed) if self.site.in_turn else self.flat(mixed[0])


class Tap(TorchFunctionMode):
    """Sees every torch call; keeps those that the running attention module makes.

    With `values`, what the maps multiply is kept as well; with `graph`, all that a gradient is
    asked for; with `check`, what reached the projection.
    """

    def __init__(
        self,
        sites: tuple[AttentionSite, ...],
        *,
        values: bool = False,
        graph: bool = False,
        check: bool = False,
    ) -> None:
        super().__init__()
        self.caught = {site.name: Caught(number, site) for number, site in enumerate(sites)}
        alike = [site.name for site in sites if site.geometry is None]
        self.rooms = {name: room for room, name in enumerate(alike)}  # layers of all tokens
        self.store: Tensor | None = None  # (layer, 2 or 3, head, token, channel): q, k, v
        self.running: Caught | None = None
        self.stopped: Exception | None = None  # what `progress` raised
        self.dense = False  # whether multi-head attention is to compute its map
        self.values, self.graph, self.check = values, graph, check

    def enter(
        self, caught: Caught, _: nn.Module, given: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        """Before an attention module runs: calls are now its own."""
        caught.runs += 1
        self.running = caught
        tensors = [each for each in (*given, *named.values()) if isinstance(each, Tensor)]
        if tensors:
            caught.fed = tensors[0].shape
            caught.given = tensors[0] if self.graph else None

    def leave(self, progress: Progress | None, number: int, *_: object) -> None:
        """After it ran."""
        if self.running is not None:
            self.running.sums.clear()
            self.running.done = True
        self.running = None
        self.report(progress, number)

    def report(self, progress: Progress | None, number: int) -> None:
        """Say that a step is done; `progress` may raise, to stop the pass."""
        if progress is not None:
            try:
                progress(number, len(self.caught) * (2 if self.graph else 1))
            except Exception as error:
                self.stopped = error
                raise

    def arrive(self, caught: Caught, _: nn.Module, given: tuple[Tensor, ...]) -> None:
        """Before the projection runs: what reached it."""
        if self.check:
            caught.joined = given[0].detach()

    def add(self, caught: Caught, _: nn.Module, __: object, beside: Tensor) -> None:
        """After the submodule whose output joins map × values."""
        if self.check:
            caught.beside = beside.detach()

    def pass_on(self, caught: Caught, _: nn.Module, __: object, stream: object) -> None:
        """After the layer: the tokens it hands on; without gradients only the last are kept."""
        last = caught.number == len(self.caught) - 1
        if isinstance(stream, Tensor) and (self.graph or last):
            caught.stream = stream

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs, running = kwargs or {}, self.running
        if running is not None and func is MULTI_HEAD:
            with self:
                return MultiHead.of(args, kwargs).run(self.dense)
        result = func(*args, **kwargs)
        if running is not None:
            if func is FUSED:
                self._fused(running, result, *args, **kwargs)
            elif func in ADD and not kwargs and is_crossed(result, *args):
                running.sums.append(args)
            elif func in SOFTMAX:
                self._softmax(running, result, func, args, kwargs)
            elif func is F.linear and self.check:
                self._linear(running, *args, **kwargs)
            elif isinstance(running.source, Maps):
                product = mixing(func, args, result, values_left=running.site.values_left)
                if product is not None:
                    self._product(running, product)
                    return product.result
            elif func in MATMUL and self.check and running.site.adds_queries:
                self._scores(running, *args)
        return result

    def _linear(self, caught: Caught, given: Tensor, weight: Tensor, *_: object, **__: Any) -> None:
        """A projection that its module applies as a function, with the projection's own weight."""
        if weight is getattr(caught.site.after_mix, "weight", None):
            caught.joined = given.detach()

    def _fused(
        self,
        caught: Caught,
        result: Tensor,
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
        parts = [query, key, value] if self.values else [query, key]
        queries, keys, *values = self._copies(caught, [caught.flat(p).detach() for p in parts])
        caught.source = Factors(
            queries=queries,
            keys=keys,
            scale=query.shape[-1] ** -0.5 if scale is None else scale,
            bias=None if attn_mask is None else as_bias(attn_mask, query.shape, caught.sums),
        )
        caught.values = values[0] if values else caught.flat(value).detach() if self.check else None
        if self.graph:
            caught.mixed.append(result)

    def _copies(self, caught: Caught, parts: list[Tensor]) -> list[Tensor]:
        """Copies, so that what is packed beside queries and keys is not kept alive.

        All layers' lie in one tensor: many small ones, allocated between the pass's short-lived
        ones, leave holes in the heap that are half as large again.
        """
        first = parts[0]
        shape = (len(self.rooms), len(parts), *first.shape)
        if caught.site.geometry is not None:
            return [part.clone(memory_format=torch.contiguous_format) for part in parts]
        if self.store is None:
            self.store = first.new_empty(shape)
        alike = all(part.shape == first.shape and part.dtype == self.store.dtype for part in parts)
        if not alike or self.store.shape != shape or self.store.device != first.device:
            return [part.clone(memory_format=torch.contiguous_format) for part in parts]
        room = self.store[self.rooms[caught.site.name]]
        return [room[place].copy_(part) for place, part in enumerate(parts)]

    def _softmax(
        self, caught: Caught, result: Tensor, func: Any, args: tuple[Any, ...], kwargs: Any
    ) -> None:
        if result.ndim != (3 if caught.site.in_turn else len(caught.site.axes.split()) + 2):
            return
        caught.shape = result.shape
        if result.dtype in (torch.float16, torch.bfloat16):
            # The same softmax of the same scores; in half precision rows miss the sum 1.
            result = func(args[0].float(), *args[1:], **kwargs)
        caught.source = Maps(caught.in_turn(0, result.detach()))

    def _scores(self, caught: Caught, queries: Tensor, _: Tensor) -> None:
        """The product before the softmax: its queries are scaled, those that are added are not."""
        module: Any = caught.site.module  # torch's types do not know a module's attributes
        caught.added = caught.flat(queries).detach() / module.scale

    def _product(self, caught: Caught, product: Mixing) -> None:
        maps, values = caught.turns
        waits = len(values) < len(maps) if caught.site.in_turn else caught.values is None
        if waits and product.map.shape == caught.shape:
            if caught.site.is_operand:
                caught.source = Maps(caught.flat(product.map).detach())
            if self.values or self.check:
                held = caught.in_turn(1, product.values.detach())
                caught.values = held.clone(memory_format=torch.contiguous_format)
            if self.graph:
                caught.mixed.append(product.mixed)


def _heads(parts: list[Tensor]) -> Tensor:
    """(window · head, …, …) of one (window, …, …) a head."""
    return rearrange(torch.stack(parts), "head window last but_one -> (window head) last but_one")


def hooks_of(
    site: AttentionSite, tap: Tap, caught: Caught, leave: object
) -> Iterator[torch.utils.hooks.RemovableHandle]:
    """Put a tap's hooks on one attention module; each handle is for the caller to remove."""
    module = site.module
    yield module.register_forward_pre_hook(partial(tap.enter, caught), with_kwargs=True)
    # First of all hooks: what another one computes is not the module's.
    yield module.register_forward_hook(leave, prepend=True)  # type: ignore[arg-type]
    yield site.after_mix.register_forward_pre_hook(partial(tap.arrive, caught))
    if site.beside is not None:
        yield site.beside.register_forward_hook(partial(tap.add, caught))
    if site.block is not None:
        yield site.block.register_forward_hook(partial(tap.pass_on, caught))


def only_source(name: str, caught: Caught) -> Maps | Factors | Replayed:
    """The attention of a layer that ran exactly once; CaptureFailed for any other."""
    if caught.runs != 1 or caught.source is None:
        found = "no softmax over tokens was seen in it" if caught.runs else "it was not reached"
        raise CaptureFailed(
            f"Layer {name} ran {caught.runs} times in one pass"
            + (f", and {found}." if caught.source is None else "; one map cannot stand for all.")
        )
    return caught.source


def require_finite(name: str, *tensors: Tensor) -> None:
    """CaptureFailed, with the layer's name, where a value of these is not finite."""
    if not all(map(finite, tensors)):
        raise CaptureFailed(
            f"Layer {name} computed values that are not finite; check the weights and the input."
        )


def finite(tensor: Tensor) -> bool:
    """Whether all values are finite. If their sum is, they are: that reads them only once."""
    return bool(torch.isfinite(tensor.sum()) or torch.isfinite(tensor).all())
