"""Facts as captions and names say them: what was chosen to get a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Facts = tuple[tuple[str, str], ...]
"""(name, value), in words and in order."""

NAME = 255
"""Letters of a name, as a file system allows; of a longer one the rest is "…"."""

UNSAID = (("fit", "aspect"), ("fit", "ready tensor"))
"""Left out of captions: the whole picture in its own shape, or no picture at all."""

CHOSEN = ("layer", "head", "head fusion", "direction", "component", "query", "target")
"""Facts that tell what was chosen for a map, in the order in which names say them."""

USUAL = {"head fusion": "mean", "direction": "from"}
"""Of these, what is so unless it is chosen otherwise: a file's name leaves it out."""


def with_picture(facts: Facts, name: str) -> Facts:
    """The facts, with the picture's name first."""
    return (("picture", called(name)), *facts)


def called(name: str) -> str:
    """A name as any file takes it, and a manifest's reader: of `NAME` letters at most.

    Bytes of a file's name that are no text are escaped.
    """
    text = as_text(name)
    return text if len(text) <= NAME else text[: NAME - 1] + "…"


def as_text(name: str) -> str:
    """A name as text: bytes that are none are escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


def said(title: str, facts: Facts) -> list[str]:
    """The title, then each fact; the weights' provenance is left to the metadata."""
    return [
        title,
        *(
            _in_words(name, value)
            for name, value in facts
            if value != title and name != "weights" and (name, value) not in UNSAID
        ),
    ]


def with_notes(parts: Sequence[str], notes: Sequence[str]) -> list[str]:
    """A caption's lines: the parts in one, then each warning."""
    return ["; ".join(parts), *(f"Note: {note}" for note in notes)]


def with_colours(lines: Sequence[str], words: str) -> list[str]:
    """A caption's lines, and after the first what the colours are, which a bar says on paper."""
    return [*lines[:1], f"Colours: {words}", *lines[1:]]


def chosen_words(fact: Callable[[str], str | None]) -> list[str]:
    """What was chosen, as a file's name says it, of the facts that there are."""
    found = ((name, fact(name)) for name in CHOSEN)
    return [in_name(name, value) for name, value in found if value and value != USUAL.get(name)]


def in_name(name: str, value: str) -> str:
    """A fact as a name says it: a layer without how many there are."""
    value = value.partition(" (")[0] if name.endswith("layer") else value
    return value if value.startswith(name) else f"{name} {value}"


def _in_words(name: str, value: str) -> str:
    if value.startswith(name):
        return value
    return f"{name} {value}" if name.endswith(("layer", "head")) else f"{name}: {value}"
