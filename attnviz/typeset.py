"""How wide text is when printed, and how it breaks into lines."""

from __future__ import annotations

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from attnviz.fonts import FONT, families

TYPE = 6.0
"""Size of all text, in points; journals ask for 5 to 7."""

LONG = 1000
"""Letters of a word that are measured: more than any line holds, and not a whole book."""


def text_width(text: str) -> float:
    """How wide a line of text is printed, in points."""
    font = FontProperties(family=families(text) or [FONT], size=TYPE)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def wrap(text: str, room: float) -> list[str]:
    """Break a text into lines of at most `room` points: between words, else inside one."""
    lines: list[str] = []
    line = ""
    for word in clean(text).split():
        joined = f"{line} {word}" if line else word
        if text_width(joined) <= room:
            line = joined
            continue
        if line:
            lines.append(line)
        while text_width(word[:LONG]) > room and len(word) > 1:
            fits = 1
            while text_width(word[: fits + 1]) <= room:
                fits += 1
            lines.append(word[:fits])
            word = word[fits:]
        line = word
    return [*lines, line] if line else lines


def clean(text: str) -> str:
    """Without characters that can't be printed, which neither a font nor XML could take."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
