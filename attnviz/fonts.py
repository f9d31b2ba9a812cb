"""Which fonts print a text: Matplotlib's own, and for other scripts what the machine has."""

from __future__ import annotations

from functools import lru_cache

from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

FONT = "DejaVu Sans"  # comes with Matplotlib, so it is the same everywhere

BOXES = "Last Resort"  # comes with Matplotlib too: says that it has every letter, and has boxes


def families(text: str) -> list[str]:
    """The fonts that print it together, Matplotlib's own first; none if a letter is in no font."""
    missing = frozenset(text) - _letters(findfont(FontProperties(family=FONT)))
    missing = frozenset(letter for letter in missing if letter.isprintable())
    other = _font_with(missing) if missing else ""
    return [FONT] if not missing else [FONT, other] if other else []


@lru_cache(64)
def _font_with(letters: frozenset[str]) -> str:
    """The first font of the machine, by name, that has all of these; else an empty name."""
    for entry in sorted(fontManager.ttflist, key=lambda entry: (entry.name, entry.fname)):
        # TrueType only: others can't be put into a PDF as text.
        usable = entry.fname.endswith(".ttf") and not entry.name.startswith(BOXES)
        if usable and letters <= _letters(entry.fname):
            return str(entry.name)
    return ""


@lru_cache(256)
def _letters(path: str) -> frozenset[str]:
    try:
        return frozenset(map(chr, get_font(path).get_charmap()))
    except (OSError, RuntimeError):  # a font that Matplotlib can't read prints nothing
        return frozenset()
