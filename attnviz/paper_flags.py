"""Flags that all printed figures have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attnviz.venue import VENUES


def add_paper(add: Callable[..., object], of: Mapping[str, Any], what: str = "the figure") -> None:
    """Size, panels and words of a printed figure; `of` are the defaults, by name."""
    venues = ", ".join(f"{name} {width:g} mm" for name, width in VENUES.items())
    add("--venue", choices=VENUES, help=f"width of {what} by where it is printed: {venues}")
    add("--width-mm", type=float, help=f"width of {what} instead ({of['width_mm']:g})")
    add("--dpi", type=int, help=f"dots per inch of a .png ({of['dpi']})")
    if "original" in of:
        alone = "the picture alone, beside its map"
        add("--original", action="store_const", const=True, help=alone)
    add("--letters", action="store_const", const=True, help="a, b, c … before the panels")
    bare = "leave out the words below the colour bar; the file's metadata keeps them"
    add("--no-caption", dest="caption", action="store_const", const=False, help=bare)
