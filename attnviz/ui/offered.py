"""Which models this page offers: all that can be drawn, or those that its host names."""

from __future__ import annotations

from collections.abc import Sequence

import models
from attnviz.errors import unknown
from attnviz.ui.settings import settings
from models.search import search
from models.timm_names import may_be_drawn


def offered() -> tuple[str, ...]:
    """The names in the list of models, the first one's being shown first."""
    return settings().models or tuple(models.MODELS)


def is_offered(name: str) -> bool:
    """Whether a visitor may ask for that model; where the host names none, any of timm's too."""
    return name in offered() or (not settings().models and is_known(name))


def is_known(name: str) -> bool:
    """Whether there is such a model, and it can be drawn."""
    return name in models.MODELS or (name in search(name) and may_be_drawn(name))


def require_known(names: Sequence[str]) -> None:
    """Refuse names of models that there are not; raises UnknownName."""
    for name in names:
        if not is_known(name):
            raise unknown("model", name, models.MODELS)


def require_offered(name: str) -> None:
    """Refuse what the host does not offer; raises UnknownName."""
    if settings().models and name not in offered():
        raise unknown("model on this page", name, offered())
