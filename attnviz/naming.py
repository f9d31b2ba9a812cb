"""What files are called: words as a name that any file system takes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable


def stem_of(words: Iterable[str | None]) -> str:
    """A file name without suffix, of words that there are."""
    parts = [_slug(word) for word in words if word]
    stem = "_".join(part for part in parts if part)
    short = stem.encode()[:MOST_BYTES].decode(errors="ignore")  # never half a letter
    return short.strip("-_.") or "attnviz"


MOST_BYTES = 150
"""Of a file name's stem: file systems take 255, suffix and folder's habits included."""


def _slug(words: str) -> str:
    """Letters of any script, digits and dots; accents of Latin letters are left out."""
    letters = map(_plain, unicodedata.normalize("NFC", words.lower()))
    return re.sub("-+", "-", "".join(letters)).strip("-.")


def _plain(letter: str) -> str:
    base = unicodedata.normalize("NFKD", letter)
    if base[0].isascii():
        return base[0] if base[0].isalnum() or base[0] == "." else "-"
    # Marks are vowels in some scripts.
    return letter if letter.isalnum() or unicodedata.category(letter).startswith("M") else "-"
