"""Finds the attention of a module that nobody described: by watching one pass of it.

A softmax over keys whose result is multiplied with values, or a fused call of both, is an
attention; it belongs to the innermost module in which both happen. What its product with values is
next fed to, heads side by side, is where its effect can be checked. `verify` proves what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attnviz.calls import FUSED, MULTI_HEAD, SOFTMAX, Mixing, MultiHead, alone, mixing, softmax_axis
from attnviz.contract import AttentionSite
from attnviz.found import as_found

JOINS = ("(head ch)", "(ch head)")


@dataclass(frozen=True)
class Fed:
    """A module that was fed with map × values, heads side by side in one of two orders."""

    module: nn.Module
    join: str = JOINS[0]
    channels_first: bool = False


@dataclass
class Sighting:
    """One attention, as it was seen in a pass."""

    name: str
    """Dotted path of the module that it belongs to; empty for the whole model."""
    module: nn.Module
    axes: str
    heads: int
    windows: int
    queries: int
    keys: int
    values: Tensor
    """(head, key, channel), or what they are projected from, (1, key, channel)."""
    mixed: Float[Tensor, "head query ch"] | None = None
    """Map × values; None where torch's own multi-head attention hides it."""
    is_operand: bool = False
    """Whether the map is changed between the softmax and the product."""
    mixed_heads: str = ""
    """Why its rows do not sum to 1, where they do not."""
    fed: list[Fed] = field(default_factory=list)
    """What map × values were fed to, in the order of the pass."""
    projection: nn.Linear | None = None
    runs: int = 1
    """How often its module ran."""

    @property
    def label(self) -> str:
        """Its name in words."""
        return self.name or type(self.module).__name__

    def site(self) -> AttentionSite:
        """What the capture asks for; only of one whose effect was seen."""
        to = self.fed[0]
        return AttentionSite(
            name=self.label,
            module=self.module,
            heads=self.heads,
            after_mix=to.module,
            projection=self.projection if to.join == JOINS[0] else None,
            axes=self.axes,
            join=to.join,
            is_operand=self.is_operand,
            mixed=self.mixed_heads,
            channels_first=to.channels_first,
            replays=False,  # what else it reads than its input is not known
        )


@dataclass
class Found:
    """What one pass showed."""

    sightings: list[Sighting]
    output: Any
    head: nn.Linear | None
    """The linear layer that made the output (1, number) of one feature (1, channel)."""


def scout(
    module: nn.Module, run: Callable[[Tensor], Any], tensor: Tensor, *, alone: bool = False
) -> Found:
    """Run a model once and say which attention was seen in it, in the order of the pass.

    With `alone` each token is made to attend to itself alone, so that none comes to hold what is
    another's. Hooks live for the pass, and the model comes back as it was. What the model raises
    passes on.
    """
    scouting = _Scouting(module, alone=alone)
    with ExitStack() as stack, as_found(module), torch.no_grad():
        for name, part in module.named_modules():
            enter = part.register_forward_pre_hook(partial(scouting.enter, name), with_kwargs=True)
            leave = part.register_forward_hook(scouting.leave)
            stack.callback(enter.remove)
            stack.callback(leave.remove)
        with scouting:
            output = run(tensor)
    for sighting in scouting.sightings:
        sighting.runs = scouting.runs[id(sighting.module)]
        # One that runs again elsewhere would be fed with something else at the end.
        sighting.fed = [to for to in sighting.fed if scouting.runs.get(id(to.module), 0) < 2]
    return Found(scouting.sightings, output, scouting.head_of(output))


Running = list[tuple[str, nn.Module]]
"""The modules that are running, the outermost first, and their names."""


class _Scouting(TorchFunctionMode):
    """Sees every torch call of one pass, and knows which modules are running."""

    def __init__(self, module: nn.Module, *, alone: bool) -> None:
        super().__init__()
        self.alone = alone
        self.sightings: list[Sighting] = []
        self.running: Running = []
        self.runs: dict[int, int] = {}
        self.softmax: tuple[Tensor, Running] | None = None  # the last one, and where it ran
        self.made: list[tuple[nn.Linear, Tensor]] = []  # out of a feature (1, channel)
        linears = (part for part in module.modules() if isinstance(part, nn.Linear))
        self.linears = {id(part.weight): part for part in linears}

    def enter(
        self, name: str, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        first = next((each for each in (*given, *named.values()) if isinstance(each, Tensor)), None)
        if first is not None:
            self.arrive(module, first)
        self.runs[id(module)] = self.runs.get(id(module), 0) + 1
        self.running.append((name, module))

    def leave(self, module: nn.Module, given: tuple[Any, ...], output: object) -> None:
        self.running.pop()
        alone = isinstance(output, Tensor) and output.ndim == 2 and len(output) == 1
        if alone and isinstance(output, Tensor) and isinstance(module, nn.Linear) and given:
            self.made.append((module, output))

    def head_of(self, output: object) -> nn.Linear | None:
        if not isinstance(output, Tensor):
            return None
        same = [layer for layer, made in self.made if made is output]
        return same[-1] if same and self.runs[id(same[-1])] == 1 else None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = alone(func, args, kwargs) if self.alone else func(*args, **kwargs)
        if func is MULTI_HEAD:
            self._multi_head(MultiHead.of(args, kwargs).arguments)
        elif func is FUSED:
            self._fused(result, *args, **kwargs)
        elif func in SOFTMAX and result.ndim > 2 and softmax_axis(args, kwargs) == -1:
            self.softmax = result, list(self.running)
        elif func is F.linear and len(args) > 1 and id(args[1]) in self.linears:
            self.arrive(self.linears[id(args[1])], args[0])
        elif self.softmax is not None:
            product = mixing(func, args, result)
            if product is not None and product.map.shape == self.softmax[0].shape:
                self._product(*self.softmax, product)
                return product.result
        return result

    def _multi_head(self, said: Any) -> None:
        weight, heads = said["out_proj_weight"], said["num_heads"]
        layer = self.linears.get(id(weight))
        value = said["value"] if said["value"].ndim == 3 else said["value"][:, None]
        self._see(
            self.running,
            axes="window_head",
            heads=heads,
            windows=value.shape[1],
            queries=len(said["query"]),
            keys=len(said["key"]) + said["add_zero_attn"] + (said["bias_k"] is not None),
            values=rearrange(value, "key row ch -> row key ch"),
            fed=[] if layer is None else [Fed(layer)],
            projection=layer,
        )

    def _fused(
        self,
        result: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *_: object,
        **__: object,
    ) -> None:
        axes, heads, windows = _axes(query.shape)
        self._see(
            self.running,
            axes=axes,
            heads=heads,
            windows=windows,
            queries=query.shape[-2],
            keys=key.shape[-2],
            values=_flat(value),
            mixed=_flat(result),
        )

    def _product(self, softmax: Tensor, running: Running, product: Mixing) -> None:
        self.softmax = None
        pairs = zip(running, self.running, strict=False)
        shared = takewhile(lambda pair: pair[0] == pair[1], pairs)
        used = product.map.float()
        axes, heads, windows = _axes(used.shape)
        changed = not torch.equal(used, softmax.float())
        sums = bool(((used.sum(-1) - 1).abs() < 1e-3).all())
        self._see(
            [each for each, _ in shared],
            axes=axes,
            heads=heads,
            windows=windows,
            queries=used.shape[-2],
            keys=used.shape[-1],
            values=_flat(product.values),
            mixed=_flat(product.mixed),
            is_operand=changed,
            mixed_heads="" if sums else "the map is changed after the softmax",
        )

    def _see(self, running: Sequence[tuple[str, nn.Module]], **said: Any) -> None:
        if running:
            name, module = running[-1]
            self.sightings.append(Sighting(name, module, **said))

    def arrive(self, module: nn.Module, given: Tensor) -> None:
        """See whether what a module is fed with is what the last attention mixed."""
        last = self.sightings[-1] if self.sightings else None
        if last is None or last.mixed is None or last.projection is not None:
            return
        if given.numel() != last.mixed.numel():
            return
        for join in JOINS:
            ours = rearrange(last.mixed, f"head query ch -> query {join}").float()
            for first in (False, True):
                axes = "window ch ..." if first else "window ... ch"
                theirs = rearrange(given, f"{axes} -> (window ...) ch").float()
                if theirs.shape == ours.shape and torch.equal(ours, theirs):
                    last.fed.append(Fed(module, join, first))
                    if isinstance(module, nn.Linear):
                        last.projection = module
                    return


def _axes(shape: torch.Size) -> tuple[str, int, int]:
    """The axes before a map's last two, as einops names them; heads and windows.

    With more axes than windows and heads there are no windows that could be told.
    """
    if len(shape) == 3:
        return "window_head", shape[0], 1
    if len(shape) == 4 and shape[0] != 1 and shape[1] == 1:
        return "head window", shape[0], 1
    return "window head", shape[-3], shape[0] if len(shape) == 4 else 0


def _flat(tensor: Tensor) -> Float[Tensor, "head token ch"]:
    return rearrange(tensor, "... token ch -> (...) token ch")
