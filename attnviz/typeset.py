"""How wide text is when printed, and how it breaks into lines."""

from __future__ import annotations

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from attnviz.fonts import FONT, families

TYPE = 6.0
"""Size of all text, in points; journals ask for 5 to 7."""

TIED = "\u00a0"
"""A blank at which no line breaks."""


def text_width(text: str) -> float:
    """How wide a line of text is printed, in points."""
    font = FontProperties(family=families(text) or [FONT], size=TYPE)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def wrap(text: str, room: float) -> list[str]:
    """Break a text into lines of at most `room` points: between words, else inside one.

    A `TIED` blank is printed as a blank, and is no place between words.
    """
    lines: list[str] = []
    line = ""
    for word in TIED.join(map(clean, text.split(TIED))).split(" "):
        if not word:
            continue
        joined = f"{line} {word}" if line else word
        if text_width(joined) <= room:
            line = joined
            continue
        if line:
            lines.append(line)
        while (fits := _fitting(word, room)) < len(word):
            lines.append(word[:fits])
            word = word[fits:]
        line = word
    return [each.replace(TIED, " ") for each in (*lines, line) if each]


def _fitting(word: str, room: float) -> int:
    """How many of a word's letters stand on one line, 1 at least; it measures few more."""
    fits, beyond = 1, 2
    while beyond <= len(word) and text_width(word[:beyond]) <= room:
        fits, beyond = beyond, 2 * beyond
    beyond = min(beyond, len(word) + 1)  # too many, or more than there are
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        if text_width(word[:middle]) <= room:
            fits = middle
        else:
            beyond = middle
    return fits


def clean(text: str) -> str:
    """Without characters that can't be printed, which neither a font nor XML could take."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
