"""What a user can do wrong, as one small family of exceptions.

Every message says what came, what was expected and what to do about it; the page and the command
line print it as it stands.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class AttnVizError(Exception):
    """A mistake that the user can mend; the message is meant for them."""


class BadImage(AttnVizError):
    """The bytes are not a picture that can be opened safely."""


class BadOption(AttnVizError):
    """An option exists, but not with that value."""


class UnknownName(AttnVizError):
    """No model, method, layer, head, query or option has that name."""


class UnsupportedModel(AttnVizError):
    """The model has no attention map that can be drawn truthfully."""


class BadWeights(AttnVizError):
    """Weights are missing, damaged, or do not fit the model."""

    def __init__(self, reason: str, way_out: str = "") -> None:
        """What is wrong, and in Python's and the command line's words what to do about it."""
        super().__init__(f"{reason} {way_out}".strip())
        self.reason = reason


class Busy(AttnVizError):
    """Too many ask at once: the same can be asked again in a while."""


class CaptureFailed(AttnVizError):
    """A layer's attention could not be captured, or is not what the layer used."""


def unknown(kind: str, given: object, known: Iterable[str]) -> UnknownName:
    """The error for a name that does not exist: says which do, the nearest first."""
    names = list(known)
    near = get_close_matches(str(given), names, n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"There is: {', '.join(names)}."
    return UnknownName(f"There is no {kind} {given!r}. {hint}")
