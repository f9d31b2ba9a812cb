"""Files of several maps together: a row of them, or the grid of every head."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.again import again, chosen_options
from attnviz.errors import BadOption, unknown
from attnviz.facts import chosen_words
from attnviz.head_maps import HeadMaps
from attnviz.head_paper import draw_heads
from attnviz.levels import render_cells as render_grid
from attnviz.naming import stem_of
from attnviz.paper import Paper
from attnviz.row import Row, draw_row
from attnviz.trace import text_of
from attnviz.writing import checked_target, kind_of, write_whole

Plate = Row | HeadMaps
"""What is drawn on one figure."""


def save_plate(
    plate: Plate, path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> Path:
    """Write `path` as its suffix says, whole or not at all; `options` are those of `Paper`.

    `scale` may be `"shared"` as well: one for all maps, which then have one bar. Raises `BadOption`
    for a suffix, an option's value or a place that doesn't work.
    """
    target, paper = plan_plate(path, overwrite=overwrite, **options)
    content = PLATE_KINDS[kind_of(target, PLATE_KINDS)](plate, paper)
    return write_whole(target, content, overwrite=overwrite)


def plan_plate(
    path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> tuple[Path, Paper]:
    """Where and how `save_plate` would write; what is wrong with that is known before."""
    paper = chosen_options(Paper, options)
    return checked_target(path, PLATE_KINDS, overwrite), paper


def render_plate(plate: Plate, kind: str, **options: Any) -> bytes:
    """The bytes of the file that `save_plate` writes; `kind` is one of `PLATE_KINDS`."""
    if kind not in PLATE_KINDS:
        raise unknown("kind of file", kind, PLATE_KINDS)
    return PLATE_KINDS[kind](plate, chosen_options(Paper, options))


def plate_stem(plate: Plate) -> str:
    """A file name without suffix: what is beside each other, of what, and what was chosen."""
    facts = dict(plate.facts)
    beside = plate.beside if isinstance(plate, Row) else None
    picture = Path(facts.get("picture", "")).stem
    words = [beside, picture, facts.get("model"), plate.title]
    return stem_of([*words, *chosen_words(facts.get)])


def manifest_of(plate: Plate, paper: Paper) -> dict[str, Any]:
    """All that it takes to know what a figure shows, as plain values."""
    said: dict[str, Any] = {"made_by": "attnviz"}
    if isinstance(plate, HeadMaps):
        shown = [(plate.request, plate.picture, plate.fact("picture"))]
        said |= again("heads", shown, paper)
        said["grid"] = list(plate.values.shape[2:])
        if plate.box is not None and plate.picture is not None:
            said["box"] = list(plate.box)
            said["picture"] = [plate.picture.height, plate.picture.width]
    else:
        every = [(heat.request, heat.image, heat.fact("picture")) for heat in plate.heats]
        said |= again("row", every, paper, names=list(plate.names))
        said["maps"] = [
            {
                "name": name,
                "title": heat.title,
                "unit": heat.unit,
                "facts": dict(heat.facts),
                "grid": list(heat.grid),
                "box": list(heat.box),
                "picture": [heat.image.height, heat.image.width],
            }
            for name, heat in zip(plate.names, plate.heats, strict=True)
        ]
    return said | {
        "title": plate.title,
        "facts": dict(plate.facts),
        "notes": list(plate.notes),
    }


def _drawn(kind: str, plate: Plate, paper: Paper) -> bytes:
    text = text_of(manifest_of(plate, paper))
    if isinstance(plate, HeadMaps):
        return draw_heads(plate, paper, kind=kind, manifest=text)
    return draw_row(plate, paper, kind=kind, manifest=text)


def _arrays(plate: Plate, paper: Paper) -> bytes:
    """The numbers, readable with `allow_pickle=False`.

    Of a row `values_N`, `filled_N` and `box_N` of map N; of all heads `values`, `filled` and `box`,
    the first two by layer and head.
    """
    file = BytesIO()
    parts: dict[str, Any] = {}
    if isinstance(plate, HeadMaps):
        parts |= {"values": plate.values, "filled": ~np.isnan(plate.values)}
        if plate.box is not None:
            parts["box"] = np.array(plate.box)
    else:
        for number, heat in enumerate(plate.heats):
            parts[f"values_{number}"] = heat.values
            parts[f"filled_{number}"] = heat.filled
            parts[f"box_{number}"] = np.array(heat.box)
        parts["names"] = np.array(plate.names)
    np.savez_compressed(file, **parts, manifest=np.array(text_of(manifest_of(plate, paper))))
    return file.getvalue()


def render_cells(maps: HeadMaps) -> bytes:
    """Every value of every head as CSV: layer, head, row, col, value; none where there is none."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("layer", "head", "row", "col", "value"))
    for place in np.argwhere(~np.isnan(maps.values)):
        writer.writerow((*place.tolist(), repr(float(maps.values[tuple(place)]))))
    return file.getvalue().encode()


def _table(plate: Plate, paper: Paper) -> bytes:
    if isinstance(plate, HeadMaps):
        return render_cells(plate)
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("map", "row", "col", "value", "name"))
    for number, (name, heat) in enumerate(zip(plate.names, plate.heats, strict=True)):
        if heat.in_colour:
            raise BadOption(
                f"A table holds one value a patch, and {name} has three: save a .npz, or draw one"
                " component."
            )
        _, *cells = csv.reader(StringIO(render_grid(heat).decode()))
        writer.writerows((number, *cell, name) for cell in cells)
    return file.getvalue().encode()


PLATE_KINDS: Mapping[str, Callable[[Plate, Paper], bytes]] = {
    ".png": partial(_drawn, "png"),
    ".svg": partial(_drawn, "svg"),
    ".pdf": partial(_drawn, "pdf"),
    ".npz": _arrays,
    ".csv": _table,
}
"""Suffix → what makes the bytes of such a file."""


def kinds_for(plate: Plate) -> tuple[str, ...]:
    """The suffixes in `PLATE_KINDS` of files that it can be: a table holds one value a patch."""
    three = isinstance(plate, Row) and any(heat.in_colour for heat in plate.heats)
    return tuple(kind for kind in PLATE_KINDS if not (three and kind == ".csv"))
