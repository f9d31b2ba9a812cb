"""A live map: that of the patch under the pointer, drawn in the browser over the pinned one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz import sinks
from attnviz.colour import palette
from attnviz.explain import Explanation
from attnviz.methods import METHODS
from attnviz.scale import CONSTANT, Scale
from attnviz.tokens import Query
from attnviz.ui.asked import Ground
from attnviz.ui.live_map import KNEE, STEPS, Ends, LiveMap, cells_of, ends_of
from attnviz.ui.look_panel import Look
from attnviz.ui.observation import Observation
from attnviz.ui.picker import CellGrid

_component = st.components.v2.component(
    "attnviz_live",
    html="<p></p>\n",
    css=Path(__file__).with_name("live.css").read_text("utf-8"),
    js="\n".join(
        Path(__file__).with_name(name).read_text("utf-8") for name in ("live.js", "live_paint.js")
    ),
)

UNDER, OVER = "patches", "map"
"""The pickers' keys: of the picture alone, and of the one with the map on it."""


@dataclass(frozen=True)
class Live:
    """What the map of any patch can be drawn from while the pointer moves."""

    seen: Observation
    options: dict[str, Any]
    """Of the method `attention`."""
    ends: Ends

    @property
    def under(self) -> str:
        """Names the picture: what a picker with another picture points at has no map here."""
        return self.seen.mark

    @property
    def over(self) -> str:
        """Names the picture with its layer, heads and direction."""
        chosen = (self.options.get(name) for name in ("layer", "head", "head_fusion", "direction"))
        return "/".join(map(str, (self.seen.mark, *chosen)))

    def pinned(self, query: Query) -> str:
        """The same with the patch whose map Python drew, if it is one's."""
        return f"{self.over}#{','.join(map(str, query)) if isinstance(query, tuple) else ''}"


def live_of(seen: Observation, method: str, options: dict[str, Any]) -> Live | None:
    """What there is to draw from; None for other methods, and for windows that are too fine."""
    ends = ends_of(seen.record, options) if method == "attention" else None
    return None if ends is None else Live(seen, options, ends)


def show_live(
    live: Live, heat: Explanation, look: Look, scale: Scale, ground: Ground, place: Place
) -> None:
    """Say what is pointed at, and send the map, which is made now if it was not before.

    Comes last in a run: whatever else is to be seen is there by then.

    Args:
        live: what is drawn from.
        heat: the pinned map.
        look: how maps are drawn.
        scale: the pinned map's.
        ground: where a cell that is pointed at becomes a query.
        place: where what is said stands.
    """
    with place:
        slot = st.empty()
        with live.seen.turn(slot.empty):
            made = live.seen.live(going_on=slot.empty, **live.options)
        # Apart from how it is drawn: a message that stays the same is not sent again.
        _component(key="live_map", data=made.packed)
        _component(key="live", data=_drawing(live, made, heat, look, scale, ground))


def _drawing(
    live: Live, made: LiveMap, heat: Explanation, look: Look, scale: Scale, ground: Ground
) -> dict[str, Any]:
    """Everything but the values; it changes with the drawing, not with the query."""
    shown = live.seen.on_screen(heat)
    cells = CellGrid.on(shown.image.size, shown.grid, shown.box)
    shared = look.scale == "shared" and heat.unit == METHODS["attention"].unit
    return {
        "map": made.name,
        "steps": {"all": STEPS, "knee": KNEE},
        "under": UNDER,
        "over": OVER,
        "scenes": {"under": live.under, "over": live.over},
        "places": _places(made, ground, heat),
        "grid": shown.grid,
        "pool": live.ends.pool,
        "rows": (cells.rows[0], cells.rows[-1]),
        "cols": (cells.cols[0], cells.cols[-1]),
        "size": shown.image.size,
        "box": shown.box,
        "alpha": look.alpha,
        "smooth": look.interpolation == "bilinear",
        "palette": [_pixel(*map(int, colour)) for colour in palette(look.colormap)],
        "scale": {
            "fixed": (scale.low, scale.high) if shared else None,
            "fromZero": look.scale == "zero",
            "clip": look.clip,
            "constant": CONSTANT,
            "sinks": _sinks() if st.session_state.get("without_sinks") else None,
        },
        "words": _words(live, look, heat.unit, shared=shared),
    }


def _pixel(red: int, green: int, blue: int) -> int:
    """The four bytes of an opaque pixel, the first of them lowest."""
    return red | green << 8 | blue << 16 | 255 << 24


def _sinks() -> dict[str, float]:
    """The rule of `sinks.swallowed_by`."""
    return {"far": sinks.FAR, "few": sinks.FEW, "faint": sinks.FAINT}


def _words(live: Live, look: Look, unit: str, *, shared: bool) -> dict[str, str]:
    """What is said; `{place}` stands for the patch, `{range}` for its lowest and highest value."""
    pool = live.ends.pool
    towards = live.options["direction"] == "to"
    now = "Who looks at the patch in {place}" if towards else "What the patch in {place} looks at"
    colours = "from zero" if look.scale == "zero" else "lowest to highest"
    if look.clip is not None:
        colours += f", cut at percentiles {100 - look.clip:g} and {look.clip:g}"
    colours = "as in the bar below" if shared else f"{colours}; the bar below is the pinned map's"
    blocks = "" if pool == 1 else f" Pooled: the means of {pool} × {pool} patches."
    return {
        "idle": "Point at a patch, or drag a finger sideways over it: its map is shown here at"
        f" once. A click or a tap pins it.{blocks}",
        "coming": "The maps of all patches are on their way …",
        "failed": "This browser cannot unpack the maps of all patches: pick a patch instead.",
        "pinned": "This is the pinned map.",
        "silent": "In this layer, the patch in {place} has no map.",
        "now": f"{now}: {{range}} {unit}. Colours: {colours}.{blocks}",
    }


def _places(made: LiveMap, ground: Ground, heat: Explanation) -> dict[str, Any]:
    """For each picker's cells, row by row: whose map they point at, and as which patch.

    A cell of the map is the patch that a click on it would pin.
    """
    cols = ground.layout.grid[1]
    askers: Sequence[int] = made.askers
    named = None
    if (heat.grid, heat.box) != (ground.layout.grid, ground.box):
        on_map = ground.on(heat.grid, heat.box)
        named = [ground.cell_at(on_map.centre(cell)) for cell in cells_of(heat.grid)]
        askers = [-1 if patch is None else askers[patch[0] * cols + patch[1]] for patch in named]
    return {
        UNDER: {"cols": cols, "askers": made.askers, "named": None},
        OVER: {"cols": heat.grid[1], "askers": askers, "named": named},
    }
