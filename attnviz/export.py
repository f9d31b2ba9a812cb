"""Files to keep: the printed figure by suffix, or the bare numbers, with all that was chosen."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.again import again, chosen_options
from attnviz.colour import mask_image
from attnviz.errors import BadOption, unknown
from attnviz.facts import chosen_words, said, with_notes
from attnviz.heatmap import Heatmap
from attnviz.legend import CHANNELS, channels
from attnviz.levels import ends_of, render_cells, render_levels
from attnviz.mass import MASS, mass_mask
from attnviz.naming import stem_of
from attnviz.paper import Paper, draw
from attnviz.paper import words_of as paper_words
from attnviz.scale import Scale, choose_scale
from attnviz.sheet import png_words, printable_facts
from attnviz.trace import text_of
from attnviz.writing import LEVELS, MASK, checked_target, kind_of, write_whole


def save(
    heat: Heatmap, path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> Path:
    """Write `path` as its suffix says, whole or not at all; `options` are those of `Paper`.

    Raises `BadOption` for a suffix, an option's value or a place that doesn't work.
    """
    target, paper = plan(path, overwrite=overwrite, **options)
    content = KINDS[kind_of(target, KINDS)](heat, paper)
    return write_whole(target, content, overwrite=overwrite)


def plan(
    path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> tuple[Path, Paper]:
    """Where and how `save` would write; what is wrong with that is known before a model runs."""
    paper = chosen_options(Paper, options)  # what is wrong with them is said before what is there
    return checked_target(path, KINDS, overwrite), paper


def render(heat: Heatmap, kind: str, **options: Any) -> bytes:
    """The bytes of the file that `save` writes; `kind` is one of the suffixes in `KINDS`."""
    if kind not in KINDS:
        raise unknown("kind of file", kind, KINDS)
    return KINDS[kind](heat, chosen_options(Paper, options))


def render_png(heat: Heatmap, **options: Any) -> bytes:
    """The figure as PNG bytes."""
    return render(heat, ".png", **options)


def render_mask(heat: Heatmap, mass: float = MASS) -> bytes:
    """The mass mask as PNG bytes: 255 where the picture shows a kept patch, else 0; mode L."""
    mask = mass_mask(heat.values, mass)
    title = f"{heat.summary}; {mask.summary}"
    words = png_words(title, _manifest_text(heat, Paper(mass=mass)))
    file = BytesIO()
    mask_image(heat, mask.kept).save(file, "PNG", pnginfo=words)
    return file.getvalue()


def file_stem(heat: Heatmap) -> str:
    """A file name without suffix: picture, model, method, what was chosen, query and target."""
    picture = Path(heat.fact("picture") or "").stem
    return stem_of([picture, heat.fact("model"), heat.title, *chosen_words(heat.fact)])


def manifest(heat: Heatmap, paper: Paper) -> dict[str, Any]:
    """All that it takes to know what a figure shows, as plain values."""
    mask = paper.mask(heat)
    printed, _ = printable_facts(heat.facts)
    shown = (heat.request, heat.image, heat.fact("picture"))
    return {
        "made_by": "attnviz",
        **again("map", [shown], paper),
        "title": heat.title,
        "unit": heat.unit,
        "facts": dict(heat.facts),
        "notes": list(heat.notes),
        "grid": list(heat.grid),
        "box": list(heat.box),
        "picture": [heat.image.height, heat.image.width],
        "drawn": {
            "alpha": float(paper.alpha),
            "interpolation": paper.interpolation,
            **_colours(heat, paper),
            "outline": mask and {"mass": mask.threshold, "held": mask.mass, "area": mask.area},
            "left_out_for_want_of_a_font": [fact[0] for fact in heat.facts if fact not in printed],
        },
    }


def _colours(heat: Heatmap, paper: Paper) -> dict[str, Any]:
    """From which value to which the colours run: of one palette, or of red, green and blue."""
    colours: dict[str, Any] = {"scale": paper.scale, "clip": paper.clip}
    if heat.in_colour:
        three = channels(heat, colormap=paper.colormap, **colours)
        return {name: _scale(each) for name, each in zip(CHANNELS, three, strict=True)}
    chosen = choose_scale(heat.drawn, **colours)
    return {"colormap": paper.colormap, "scale": _scale(chosen)}


def _scale(scale: Scale) -> dict[str, Any]:
    return {"name": scale.name, "low": scale.low, "high": scale.high}


def _drawn(kind: str, heat: Heatmap, paper: Paper) -> bytes:
    return draw(heat, paper, kind=kind, manifest=_manifest_text(heat, paper))


def _manifest_text(heat: Heatmap, paper: Paper) -> str:
    return text_of(manifest(heat, paper))


def _arrays(heat: Heatmap, paper: Paper) -> bytes:
    """The numbers as plain arrays, readable with `allow_pickle=False`; for nothing is drawn."""
    file = BytesIO()
    np.savez_compressed(
        file,
        values=heat.values,
        filled=heat.filled,
        box=np.array(heat.box),
        picture=np.array([heat.image.height, heat.image.width]),
        unit=np.array(heat.unit),
        title=np.array(heat.title),
        facts=np.array([*heat.facts] or np.empty((0, 2)), dtype=np.str_),
        notes=np.array(heat.notes, dtype=np.str_),
        manifest=np.array(_manifest_text(heat, paper)),
    )
    return file.getvalue()


RENDERERS: Mapping[str, Callable[[Heatmap, Paper], bytes]] = {
    ".png": partial(_drawn, "png"),
    ".svg": partial(_drawn, "svg"),
    ".pdf": partial(_drawn, "pdf"),
    ".npz": _arrays,
}
"""Suffix → what makes the bytes of such a file: of a figure, and of what it is drawn from."""


def _mask(heat: Heatmap, paper: Paper) -> bytes:
    return render_mask(heat) if paper.mass is None else render_mask(heat, paper.mass)


def _levels(heat: Heatmap, paper: Paper) -> bytes:
    return render_levels(heat, manifest(heat, paper))


def _cells(heat: Heatmap, paper: Paper) -> bytes:
    return render_cells(heat)


KINDS: Mapping[str, Callable[[Heatmap, Paper], bytes]] = {
    **RENDERERS,
    ".csv": _cells,
    LEVELS: _levels,
    MASK: _mask,
}
"""The same with those of bare numbers, for which nothing is drawn."""


def words_of(heat: Heatmap, kind: str, paper: Paper) -> list[str]:
    """All words of a figure of that kind: bare numbers have no colours and no outline."""
    told, notes = said(heat.title, heat.facts), heat.notes
    if kind == MASK:
        kept = mass_mask(heat.values, MASS if paper.mass is None else paper.mass)
        return with_notes([*told, f"white: {kept.words}"], notes)
    if kind == LEVELS:
        return with_notes([*told, f"levels of grey: {heat.unit}, {ends_of(heat).reach}"], notes)
    return paper_words(heat, paper)


def kinds_for(heat: Heatmap) -> tuple[str, ...]:
    """The suffixes in `KINDS` of files that this map can be, by its values."""
    cannot = [LEVELS] if heat.in_colour else []
    try:
        mass_mask(heat.values)
    except BadOption:
        cannot.append(MASK)
    return tuple(kind for kind in KINDS if kind not in cannot)
