"""Flags that all drawn figures have, and those of printed ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from attnviz.colour import COLORMAPS
from attnviz.errors import BadOption
from attnviz.heatmap import INTERPOLATIONS
from attnviz.used import USED, flag_of
from attnviz.venue import VENUES


def require_used(kind: str, drawing: Collection[str]) -> None:
    """BadOption for options, by name, that a file of that kind has no use for."""
    unused = [name for name in drawing if name not in USED.get(kind, drawing)]
    if unused:
        flags = ", ".join(map(flag_of, unused))
        out = "it" if len(unused) == 1 else "them"
        raise BadOption(f"A {kind} file has no use for {flags}: leave {out} out.")


def add_colours(
    add: Callable[..., object], of: Mapping[str, Any], scales: Collection[str], whose: str
) -> None:
    """How maps are coloured; `of` are the defaults, by name, and a scale is of `whose` colours."""
    add("--alpha", type=float, help=f"opacity of the colours, 0 to 1 ({of['alpha']})")
    add("--colormap", choices=COLORMAPS, help=f"({of['colormap']})")
    shared = ", or one shared by all" if "shared" in scales else ""
    scale = f"range of {whose} colours{shared} ({of['scale']})"
    add("--scale", choices=tuple(scales), help=scale)
    clip = "cut the scale at this percentile and its opposite: 99 cuts at 1 and 99 (off)"
    add("--clip", type=float, help=clip)
    smooth = f"between patches ({of['interpolation']}: one value a patch)"
    add("--interpolation", choices=INTERPOLATIONS, help=smooth)


def add_paper(add: Callable[..., object], of: Mapping[str, Any], what: str = "the figure") -> None:
    """Size, panels and words of a printed figure; `of` are the defaults of what it has."""
    venues = ", ".join(f"{name} {width:g} mm" for name, width in VENUES.items())
    add("--venue", choices=VENUES, help=f"width of {what} by where it is printed: {venues}")
    add("--width-mm", type=float, help=f"width of {what} instead ({of['width_mm']:g})")
    add(
        "--dpi",
        type=int,
        help=f"dots per inch of a .png; in a .pdf or .svg lengths are whole dots ({of['dpi']})",
    )
    if "original" in of:
        alone = "the picture alone, beside its map"
        add("--original", action="store_const", const=True, help=alone)
    if "letters" in of:
        add("--letters", action="store_const", const=True, help="a, b, c … before the panels")
    bare = "leave out the words below the colour bar; the file's metadata keeps them"
    add("--no-caption", dest="caption", action="store_const", const=False, help=bare)
