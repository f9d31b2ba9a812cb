"""Plain values out of an address: each reads a text, or raises ValueError for what it cannot be."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

SHOWN = 40
"""Letters of a name that is none."""


def one_of(values: Collection[str]) -> Callable[[str], str]:
    """Reads one of these words; ValueError for any other."""

    def read(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    return read


def number(low: float, high: float) -> Callable[[str], float]:
    """Reads a number of these."""

    def read(text: str) -> float:
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) or not low <= float(text) <= high:
            raise ValueError(text)
        return float(text)

    return read


def count(most: int = 9999, least: int = 0) -> Callable[[str], int]:
    """Reads a whole number of these."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,5}", text) or not least <= int(text) <= most:
            raise ValueError(text)
        return int(text)

    return read


def word_or_count(words: Collection[str]) -> Callable[[str], str | int]:
    """Reads one of these words, or a whole number."""
    return lambda text: text if text in words else count()(text)


def switch(text: str) -> bool:
    """Reads 1 or 0."""
    return {"1": True, "0": False}[one_of(("0", "1"))(text)]


def two_counts(text: str) -> tuple[int, int]:
    """Reads two whole numbers."""
    first, second = map(count(), text.split("-"))
    return first, second


def span(text: str) -> tuple[int, int]:
    """Reads two whole numbers, the second no less."""
    first, last = two_counts(text)
    if first > last:
        raise ValueError(text)
    return first, last


def several(read: Callable[[str], str]) -> Callable[[str], list[str]]:
    """Reads what stands between commas; nothing where none is chosen."""

    def read_all(text: str) -> list[str]:
        for name in (names := list(dict.fromkeys(text.split(",")))):
            try:
                read(name)
            except ValueError:
                if text:
                    short = name if len(name) <= SHOWN else f"{name[:SHOWN]}…"
                    raise ValueError(text, f"names {short!r}, which is none of them") from None
        return names if text else []

    return read_all


def two(pair: tuple[int, int]) -> str:
    """Two numbers, as a patch or a span of layers is written."""
    return f"{pair[0]}-{pair[1]}"


def bit(on: bool) -> str:
    """What `switch` reads."""
    return str(int(on))
