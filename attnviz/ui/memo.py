"""A function that keeps its last answers, as far as a budget in bytes goes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from torch import Tensor

Answer = TypeVar("Answer")


class Memo(Generic[Answer]):
    """The least recently used answer goes first; the newest stays even where it alone is too large.

    Safe among threads: two that ask for the same at once may both compute it.
    """

    def __init__(
        self, make: Callable[..., Answer], budget: int, *, most: int = 32, aside: str = ""
    ) -> None:
        """Of `make`; `aside` is an argument by name that makes no difference to the answer."""
        self._make, self._budget, self._most, self._aside = make, budget, most, aside
        self._kept: OrderedDict[object, tuple[Answer, int]] = OrderedDict()
        self._touching = Lock()

    def __call__(self, *given: Any, **asked: Any) -> Answer:
        """The function's answer."""
        key = self._key(given, asked)
        with self._touching:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        made = self._make(*given, **asked)
        with self._touching:
            self._kept[key] = made, bytes_of(made)
            self._kept.move_to_end(key)
            while len(self._kept) > self._most or (len(self._kept) > 1 and self._over()):
                self._kept.popitem(last=False)
        return made

    def has(self, *given: Any, **asked: Any) -> bool:
        """Whether the answer is there at once."""
        with self._touching:
            return self._key(given, asked) in self._kept

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        with self._touching:
            return sum(size for _, size in self._kept.values())

    def _over(self) -> bool:
        return sum(size for _, size in self._kept.values()) > self._budget

    def _key(self, given: tuple[Any, ...], asked: Mapping[str, Any]) -> object:
        named = (item for item in asked.items() if item[0] != self._aside)
        return given, tuple(sorted(named, key=str))


def bytes_of(answer: object) -> int:
    """Bytes of the arrays, tensors and texts that an answer is made of.

    Its pictures do not count: they are the record's, which counts them once.
    """
    match answer:
        case np.ndarray() | Tensor():
            return int(answer.nbytes)
        case bytes() | str():
            return len(answer)
        case Mapping():
            return sum(map(bytes_of, answer.values()))
        case list() | tuple():
            return sum(map(bytes_of, answer))
    if is_dataclass(answer):
        return sum(bytes_of(getattr(answer, field.name)) for field in fields(answer))
    return 0
