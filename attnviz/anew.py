"""Half the memory of queries and keys: what a layer was fed with, from which it makes them anew."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.calls import FUSED
from attnviz.contract import AttentionSite, LoadedViT
from attnviz.errors import CaptureFailed
from attnviz.found import as_found
from attnviz.sources import Factors, Replayed
from attnviz.tap import Caught, Tap, require_finite


class LeanTap(Tap):
    """A tap that keeps the layers' inputs in place of their queries and keys.

    A layer that is fed with anything else than one picture's tokens is kept as by any tap.
    """

    def __init__(self, vit: LoadedViT) -> None:
        super().__init__(vit.sites)
        self.inputs: Tensor | None = None  # (layer, token, channel)
        self.fed: tuple[tuple[Any, ...], dict[str, Any]] = (), {}
        self.recent = Recent(vit)

    def enter(
        self, caught: Caught, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        """Before an attention module runs: what it is fed with."""
        super().enter(caught, module, given, named)
        self.fed = given, named

    def _fused(
        self,
        caught: Caught,
        result: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *rest: Any,
        **named: Any,
    ) -> None:
        site, (given, named_parts) = caught.site, self.fed
        plain = (
            site.replays
            and site.geometry is None
            and len(given) > 0
            and isinstance(given[0], Tensor)
        )
        others = sum(
            part.numel() for part in (*given[1:], *named_parts.values()) if isinstance(part, Tensor)
        )
        # What comes beside the tokens, such as rotary embeddings, is kept as it is.
        plain = plain and others < given[0].numel()
        if not (plain and given[0].ndim == 3 and len(given[0]) == 1 and len(query) == 1):
            super()._fused(caught, result, query, key, value, *rest, **named)
            return
        require_finite(site.name, query, key)
        room = self._room(self.rooms[site.name], given[0])
        shape = query.shape[1], query.shape[2], key.shape[2]
        caught.source = Replayed(room, shape, self.recent.asker(site, room, self.fed))

    def _room(self, number: int, fed: Tensor) -> Tensor:
        """A copy of it, all layers' in one tensor: many small ones would leave holes between."""
        if self.inputs is None:
            self.inputs = fed.new_empty(len(self.rooms), *fed.shape[1:])
        if self.inputs.shape[1:] != fed.shape[1:] or self.inputs.dtype != fed.dtype:
            return fed.detach()[0].clone()
        return self.inputs[number].copy_(fed.detach()[0])


@dataclass
class Recent:
    """The factors that were last computed anew, of one layer of a record."""

    vit: LoadedViT
    kept: tuple[str, Factors] | None = field(default=None, repr=False)

    def asker(
        self, site: AttentionSite, fed: Tensor, given: tuple[tuple[Any, ...], dict[str, Any]]
    ) -> Callable[[], Factors]:
        """What has the layer of that site compute its factors from (token, channel)."""
        made_of, (rest, named) = _stamp(site.module), (given[0][1:], given[1])

        def ask() -> Factors:
            kept = self.kept
            if kept is None or kept[0] != site.name:
                if _stamp(site.module) != made_of:
                    raise CaptureFailed(
                        f"The weights of layer {site.name} of {self.vit.name} have changed since"
                        " the picture was observed: observe it again."
                    )
                self.kept = None  # before the next are made: two layers' are too many
                with self.vit.lock:
                    kept = site.name, _factors(site, (fed[None], *rest), named)
                self.kept = kept
            return kept[1]

        return ask


class _Came(Exception):
    """The factors are there: the rest of the module need not run."""


class _Ask(Tap):
    """Ends a module's run where it calls its fused kernel."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is FUSED:
            (caught,) = self.caught.values()
            self._fused(caught, args[0], *args, **(kwargs or {}))
            raise _Came
        return func(*args, **(kwargs or {}))


def _factors(site: AttentionSite, given: tuple[Any, ...], named: dict[str, Any]) -> Factors:
    tap = _Ask((site,))
    with as_found(site.module, (site,)), torch.no_grad(), tap, suppress(_Came):
        site.fuse(True)
        site.module(*given, **named)
    source = tap.caught[site.name].source
    if not isinstance(source, Factors):
        raise CaptureFailed(f"Layer {site.name} does not call its fused kernel any more.")
    return source


def _stamp(module: nn.Module) -> list[tuple[torch.Size, torch.dtype, torch.device, bytes]]:
    """Changes when a weight or a buffer does: its shape, its kind and place, or any of its bits."""
    held = (*module.parameters(), *module.buffers())
    return [(part.shape, part.dtype, part.device, _digest(part.detach())) for part in held]


def _digest(weight: Tensor) -> bytes:
    bits = weight.cpu().contiguous().flatten().view(torch.int8)
    return hashlib.sha256(bits.numpy().data).digest()
