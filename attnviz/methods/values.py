"""What a method gives back, and how long it takes where that is long."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Values:
    """A value a token, from a method that has something to say on the figure as well."""

    tokens: Float[Tensor, " token"]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """How long a method will take, in seconds of one core."""

    usual: float
    most: float

    def __str__(self) -> str:
        """In words."""
        usual, most = in_words(self.usual), in_words(self.most)
        return f"about {usual}" if usual == most else f"about {usual}, at most {most}"


def in_words(seconds: float) -> str:
    """Seconds, minutes or hours, as exact as an estimate is."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{round(minutes / 60)} h"
