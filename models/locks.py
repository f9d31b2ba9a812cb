"""One lock a module, however often it is wrapped: hooks must not see two callers at once."""

from __future__ import annotations

from threading import Lock, RLock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from torch import nn

if TYPE_CHECKING:
    from _thread import RLock as ReentrantLock

_LOCKS: WeakKeyDictionary[nn.Module, ReentrantLock] = WeakKeyDictionary()
_ADDING = Lock()


def lock_of(module: nn.Module) -> ReentrantLock:
    """The module's own lock, re-entrant."""
    with _ADDING:
        return _LOCKS.setdefault(module, RLock())
