"""Files of a film: a printed strip, an animation, or the bare numbers, by suffix."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.again import again, chosen_options
from attnviz.animation import draw_animation
from attnviz.errors import unknown
from attnviz.facts import chosen_words
from attnviz.frames import Frames
from attnviz.levels import render_cells
from attnviz.naming import stem_of
from attnviz.strip import FilmPaper, draw_strip
from attnviz.trace import text_of
from attnviz.writing import checked_target, kind_of, write_whole


def save_film(
    frames: Frames, path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> Path:
    """Write `path` as its suffix says, whole or not at all; `options` are those of `FilmPaper`.

    Raises `BadOption` for a suffix, an option's value or a place that doesn't work.
    """
    target, paper = plan_film(path, overwrite=overwrite, **options)
    content = FILM_KINDS[kind_of(target, FILM_KINDS)](frames, paper)
    return write_whole(target, content, overwrite=overwrite)


def plan_film(
    path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> tuple[Path, FilmPaper]:
    """Where and how `save_film` would write; what is wrong with that is known before."""
    paper = chosen_options(FilmPaper, options)
    return checked_target(path, FILM_KINDS, overwrite), paper


def render_film(frames: Frames, kind: str, **options: Any) -> bytes:
    """The bytes of the file that `save_film` writes; `kind` is one of `FILM_KINDS`."""
    if kind not in FILM_KINDS:
        raise unknown("kind of file", kind, FILM_KINDS)
    return FILM_KINDS[kind](frames, chosen_options(FilmPaper, options))


def film_stem(frames: Frames) -> str:
    """A file name without suffix: picture, model, method and what was chosen."""
    words = [Path(frames.fact("picture") or "").stem, frames.fact("model"), frames.title, "layers"]
    return stem_of([*words, *chosen_words(frames.fact)])


def manifest(frames: Frames, paper: FilmPaper) -> dict[str, Any]:
    """All that it takes to know what a film shows, as plain values."""
    scales = frames.scales(paper.scale, clip=paper.clip)
    first, *_ = frames.maps.values()
    shown = (_of_all_layers(first.request), frames.image, frames.fact("picture"))
    return {
        "made_by": "attnviz",
        **again("film", [shown], paper),
        "title": frames.title,
        "unit": frames.unit,
        "facts": dict(frames.facts),
        "notes": list(frames.notes),
        "layers": [
            {
                "layer": layer,
                "grid": list(heat.grid),
                "box": list(heat.box),
                "scale": {"name": scale.name, "low": scale.low, "high": scale.high},
            }
            for (layer, heat), scale in zip(frames.maps.items(), scales, strict=True)
        ],
        "left_out": {str(layer): why for layer, why in frames.left_out.items()},
        "picture": [frames.image.height, frames.image.width],
        "drawn": {
            "alpha": float(paper.alpha),
            "interpolation": paper.interpolation,
            "colormap": paper.colormap,
            "seconds": float(paper.seconds),
        },
    }


def _manifest(frames: Frames, paper: FilmPaper) -> str:
    return text_of(manifest(frames, paper))


def _of_all_layers(request: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A film's request: one of its maps', without its layer."""
    if request is None:
        return None
    options = {name: value for name, value in request["options"].items() if name != "layer"}
    return {**request, "options": options}


def _strip(kind: str, frames: Frames, paper: FilmPaper) -> bytes:
    return draw_strip(frames, paper, kind=kind, manifest=_manifest(frames, paper))


def _animation(kind: str, frames: Frames, paper: FilmPaper) -> bytes:
    return draw_animation(frames, paper, kind=kind, manifest=_manifest(frames, paper))


def _arrays(frames: Frames, paper: FilmPaper) -> bytes:
    """The numbers, readable with `allow_pickle=False`: (layer, row, col) where grids agree.

    Where they don't, there is `values_N` and `filled_N` for each layer N.
    """
    heats = [*frames.maps.values()]
    parts: dict[str, Any] = {}
    for name in ("values", "filled"):
        every = [getattr(heat, name) for heat in heats]
        if len({heat.grid for heat in heats}) == 1:
            parts[name] = np.stack(every)
        else:
            parts |= {
                f"{name}_{layer}": each for layer, each in zip(frames.maps, every, strict=True)
            }
    file = BytesIO()
    np.savez_compressed(
        file,
        **parts,
        layers=np.array([*frames.maps]),
        boxes=np.array([heat.box for heat in heats]),
        picture=np.array([frames.image.height, frames.image.width]),
        unit=np.array(frames.unit),
        title=np.array(frames.title),
        manifest=np.array(_manifest(frames, paper)),
    )
    return file.getvalue()


def _table(frames: Frames, paper: FilmPaper) -> bytes:
    """Each patch's value in each layer as CSV: layer, row, col, value; none where there is none."""
    lines = ["layer,row,col,value\n"]
    for layer, heat in frames.maps.items():
        cells = render_cells(heat).decode().splitlines(keepends=True)[1:]
        lines += [f"{layer},{cell}" for cell in cells]
    return "".join(lines).encode()


FILM_KINDS: Mapping[str, Callable[[Frames, FilmPaper], bytes]] = {
    ".gif": partial(_animation, "gif"),
    ".webp": partial(_animation, "webp"),
    ".png": partial(_strip, "png"),
    ".svg": partial(_strip, "svg"),
    ".pdf": partial(_strip, "pdf"),
    ".npz": _arrays,
    ".csv": _table,
}
"""Suffix → what makes the bytes of such a file."""
