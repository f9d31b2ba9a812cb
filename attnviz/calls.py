"""Which torch calls make attention: a softmax, its product with values, or both in one call."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

SOFTMAX = {torch.softmax, torch.Tensor.softmax, F.softmax, torch.special.softmax}
MATMUL = {
    torch.matmul,
    torch.Tensor.matmul,
    torch.Tensor.__matmul__,
    torch.bmm,
    torch.Tensor.bmm,
}
ADD = {torch.add, torch.Tensor.add, torch.Tensor.__add__}
FUSED = F.scaled_dot_product_attention
MULTI_HEAD = F.multi_head_attention_forward

_WHOLE = MULTI_HEAD.__code__
# torch hands this function to a mode as one call. Its own body, which asks no mode about itself, is
# run instead, so that the mode sees the calls that it makes.
_OPENED = FunctionType(
    _WHOLE,
    {**MULTI_HEAD.__globals__, "has_torch_function": lambda _: False},
    MULTI_HEAD.__name__,
    MULTI_HEAD.__defaults__,
)
_NAMES = signature(MULTI_HEAD)


@dataclass(frozen=True)
class Mixing:
    """A product of a map with values, axes in the order of a matrix product."""

    map: Tensor  # (…, query, key)
    values: Tensor  # (…, key, channel)
    mixed: Tensor  # (…, query, channel)
    result: Tensor
    """What the module goes on with: made of `mixed`, so that a gradient passes through it."""


def softmax_axis(args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    """The axis that a softmax sums over, counted from the last, -1; None if it isn't said."""
    axis = args[1] if len(args) > 1 else kwargs.get("dim")
    return axis if axis is None or axis < 0 else axis - args[0].ndim


def mixing(
    func: object, args: Sequence[Any], result: Tensor, *, values_left: bool = False
) -> Mixing | None:
    """The product that a call computes; None for a call that is none.

    With `values_left` it is values × mapᵀ, channels before tokens.
    """
    if func in MATMUL and len(args) == 2:
        left, right = args
        if not values_left:
            return Mixing(left, right, result, result)
        mixed = result.mT
        return Mixing(right.mT, left.mT, mixed, mixed.mT)
    if func is torch.einsum and isinstance(args[0], str):
        operands = args[1] if isinstance(args[1], list | tuple) else args[1:]
        return _einsum(args[0], operands, result)
    return None


def _einsum(equation: str, operands: Sequence[Tensor], result: Tensor) -> Mixing | None:
    """`b h i j, b h j d -> b h i d`, the axes of values and result in any order."""
    left, right, out, *rest = [
        re.findall(r"\.\.\.|[A-Za-z]", side) for side in re.split("->|,", equation)
    ] + [[], []]
    if len(operands) != 2 or any(rest) or not out:
        return None
    shared = [axis for axis in left if axis in right and axis in out]
    key = [axis for axis in left if axis in right and axis not in out]
    query = [axis for axis in left if axis not in right and axis in out]
    channel = [axis for axis in right if axis not in left and axis in out]
    if [len(each) for each in (key, query, channel)] != [1, 1, 1]:
        return None
    if left != [*shared, *query, *key] or sorted(right) != sorted([*shared, *key, *channel]):
        return None
    values = torch.einsum(_order(right, [*shared, *key, *channel]), operands[1])
    straight = [*shared, *query, *channel]
    mixed = torch.einsum(_order(out, straight), result)
    return Mixing(operands[0], values, mixed, torch.einsum(_order(straight, out), mixed))


def _order(was: Sequence[str], now: Sequence[str]) -> str:
    return f"{''.join(was)}->{''.join(now)}"


@dataclass(frozen=True)
class MultiHead:
    """A call of torch's own multi-head attention, as `nn.MultiheadAttention` makes it."""

    arguments: Mapping[str, Any]
    run: Callable[[bool], tuple[Tensor, Tensor | None]]
    """Run its body; with true, so that it computes its map as a softmax."""

    @classmethod
    def of(cls, args: Sequence[Any], kwargs: Mapping[str, Any]) -> MultiHead:
        """The call with these arguments."""
        bound = _NAMES.bind(*args, **kwargs)
        bound.apply_defaults()
        wanted = bound.arguments["need_weights"]

        def run(dense: bool) -> tuple[Tensor, Tensor | None]:
            bound.arguments["need_weights"] = dense or wanted
            output, weights = _OPENED(*bound.args, **bound.kwargs)
            return output, weights if wanted else None

        return cls(bound.arguments, run)


def alone(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What a call gives if as many queries as there are keys attend to their own key alone."""
    if func is MULTI_HEAD:
        said = dict(MultiHead.of(args, kwargs).arguments)
        asking, answering = len(said["query"]), len(said["key"])
        if asking == answering and said["bias_k"] is None and not said["add_zero_attn"]:
            others = torch.ones(asking, asking, dtype=torch.bool, device=said["query"].device)
            said |= {"attn_mask": others.fill_diagonal_(False), "is_causal": False}
        return func(**said)
    result = func(*args, **kwargs)
    if func in SOFTMAX and result.ndim > 2 and softmax_axis(args, kwargs) == -1:
        queries, keys = result.shape[-2:]
        return torch.eye(keys).to(result).expand_as(result).clone() if queries == keys else result
    if func is FUSED:
        query, key, value = _operands(*args, **kwargs)
        square = query.shape[-2] == key.shape[-2] and value.shape == result.shape
        return value.clone() if square else result
    return result


def _operands(
    query: Tensor, key: Tensor, value: Tensor, *_: object, **__: object
) -> tuple[Tensor, Tensor, Tensor]:
    return query, key, value
