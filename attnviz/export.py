"""Files to keep: the printed figure by suffix, or the bare numbers, with all that was chosen.

A file is written whole or not at all.
"""

from __future__ import annotations

import csv
import json
import os
import re
import secrets
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL.PngImagePlugin import PngInfo

from attnviz.colour import mask_image
from attnviz.curve_paper import draw_curves
from attnviz.curves import Curves
from attnviz.depth import draw_depth
from attnviz.errors import BadOption, unknown
from attnviz.heatmap import Heatmap
from attnviz.mass import mass_mask
from attnviz.metrics import HeadMetrics
from attnviz.paper import Paper, PlotPaper, draw
from attnviz.scale import choose_scale

_Options = TypeVar("_Options", Paper, PlotPaper)


def save(
    heat: Heatmap, path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> Path:
    """Write `path` as its suffix says, whole or not at all; `options` are those of `Paper`.

    Raises `BadOption` for a suffix, an option's value or a place that doesn't work.
    """
    target, paper = plan(path, overwrite=overwrite, **options)
    return _write(target, RENDERERS[target.suffix.lower()](heat, paper))


def plan(
    path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> tuple[Path, Paper]:
    """Where and how `save` would write; what is wrong with that is known before a model runs."""
    return _target(path, RENDERERS, overwrite), _given(Paper, options)


def _target(path: str | os.PathLike[str], kinds: Iterable[str], overwrite: bool) -> Path:
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in kinds:
        raise BadOption(
            f"A figure can be saved as {', '.join(kinds)};"
            f" {target.name!r} ends in {kind or 'none of them'}. Choose one of these suffixes."
        )
    if not overwrite and target.exists():
        raise BadOption(f"{target} exists. Choose another name, or overwrite=True.")
    if "\0" in str(target) or not target.parent.is_dir():
        raise BadOption(
            f"{str(target)!r} can't be written: there is no such folder. Make it first."
        )
    return target


def render(heat: Heatmap, kind: str, **options: Any) -> bytes:
    """The bytes of the file that `save` writes; `kind` is one of the suffixes in `RENDERERS`."""
    if kind not in RENDERERS:
        raise unknown("kind of file", kind, RENDERERS)
    return RENDERERS[kind](heat, _given(Paper, options))


def _given(kind: type[_Options], options: Mapping[str, Any]) -> _Options:
    known = [field.name for field in fields(kind)]
    for name in options:
        if name not in known:
            raise unknown("option of a saved figure", name, known)
    return kind(**options)


def render_png(heat: Heatmap, **options: Any) -> bytes:
    """The figure as PNG bytes."""
    return render(heat, ".png", **options)


def render_mask(heat: Heatmap, mass: float = 0.6) -> bytes:
    """The mass mask as PNG bytes: 255 where the picture shows a kept patch, else 0; mode L."""
    mask = mass_mask(heat.values, mass)
    words = PngInfo()
    for name, text in {
        "Title": f"{heat.summary}; {mask.summary}",
        "Description": _manifest_text(heat, Paper(mass=mass)),
        "Software": "attnviz",
    }.items():
        words.add_itxt(name, text)
    file = BytesIO()
    mask_image(heat, mask.kept).save(file, "PNG", pnginfo=words)
    return file.getvalue()


def save_depth(
    metrics: HeadMetrics,
    name: str,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    **options: Any,
) -> Path:
    """Write the plot of a metric against depth; `options` are those of `PlotPaper`.

    Raises `BadOption` as `save` does, and `UnknownName` for a metric that doesn't exist.
    """
    target = _target(path, DEPTH_KINDS, overwrite)
    return _write(target, render_depth(metrics, name, target.suffix.lower(), **options))


def render_depth(metrics: HeadMetrics, name: str, kind: str, **options: Any) -> bytes:
    """The bytes of the file that `save_depth` writes; `kind` is one of `DEPTH_KINDS`."""
    if kind not in DEPTH_KINDS:
        raise unknown("kind of file", kind, DEPTH_KINDS)
    metric = metrics.describe(name)
    said = {
        "made_by": "attnviz",
        "title": metric.label,
        "unit": metric.unit,
        "description": metric.description,
        "facts": dict(metrics.facts),
        "notes": list(metrics.notes),
    }
    text = json.dumps(said, ensure_ascii=False)
    paper = _given(PlotPaper, options)
    return draw_depth(metrics, name, paper, kind=kind.removeprefix("."), manifest=text)


def render_table(metrics: HeadMetrics) -> bytes:
    """Every metric of every head as CSV, one line a head."""
    file = StringIO()
    rows = metrics.table()
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def depth_stem(metrics: HeadMetrics, name: str) -> str:
    """A file name without suffix for a plot: picture, model and metric."""
    facts = dict(metrics.facts)
    words = [Path(facts.get("picture", "")).stem, facts.get("model"), metrics.describe(name).label]
    return _stem(words)


def save_curves(
    curves: Curves, path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any
) -> Path:
    """Write the plot of the curves, or their numbers; `options` are those of `PlotPaper`.

    Raises `BadOption` as `save` does.
    """
    target = _target(path, RENDERERS, overwrite)
    return _write(target, render_curves(curves, target.suffix.lower(), **options))


def render_curves(curves: Curves, kind: str, **options: Any) -> bytes:
    """The bytes of the file that `save_curves` writes; `kind` is one of those in `RENDERERS`."""
    if kind not in RENDERERS:
        raise unknown("kind of file", kind, RENDERERS)
    paper = _given(PlotPaper, options)
    said = {
        "made_by": "attnviz",
        "title": curves.title,
        "mode": curves.mode,
        "score": curves.score,
        "facts": dict(curves.facts),
        "notes": list(curves.notes),
        "area": curves.area,
        "random_areas": curves.random_areas.tolist(),
    }
    text = json.dumps(said, ensure_ascii=False)
    if kind != ".npz":
        return draw_curves(curves, paper, kind=kind.removeprefix("."), manifest=text)
    file = BytesIO()
    parts = {name: getattr(curves, name) for name in ("fractions", "scores", "random")}
    np.savez_compressed(file, manifest=np.array(text), **parts)
    return file.getvalue()


def file_stem(heat: Heatmap) -> str:
    """A file name without suffix: picture, model, method, layer, head, query and target."""
    words = [Path(heat.fact("picture") or "").stem, heat.fact("model"), heat.title]
    for name in ("layer", "head", "query", "target"):
        value = heat.fact(name)
        words.append(value if value is None or value.startswith(name) else f"{name} {value}")
    return _stem(words)


def _stem(words: Iterable[str | None]) -> str:
    parts = [_slug(word) for word in words if word]
    return "_".join(part for part in parts if part)[:150].strip("-_.") or "attnviz"


def _slug(words: str) -> str:
    letters = unicodedata.normalize("NFKD", words.lower())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[^a-z0-9.]+", "-", plain).strip("-.")


def manifest(heat: Heatmap, paper: Paper) -> dict[str, Any]:
    """All that it takes to know what a figure shows, as plain values."""
    scale = choose_scale(heat.drawn, paper.scale, clip=paper.clip)
    mask = paper.mask(heat)
    return {
        "made_by": "attnviz",
        "title": heat.title,
        "unit": heat.unit,
        "facts": dict(heat.facts),
        "notes": list(heat.notes),
        "grid": list(heat.grid),
        "box": list(heat.box),
        "picture": [heat.image.height, heat.image.width],
        "drawn": {
            "colormap": paper.colormap,
            "alpha": float(paper.alpha),
            "interpolation": paper.interpolation,
            "scale": {"name": scale.name, "low": scale.low, "high": scale.high},
            "outline": mask and {"mass": mask.threshold, "held": mask.mass, "area": mask.area},
        },
    }


def _drawn(kind: str, heat: Heatmap, paper: Paper) -> bytes:
    return draw(heat, paper, kind=kind, manifest=_manifest_text(heat, paper))


def _manifest_text(heat: Heatmap, paper: Paper) -> str:
    return json.dumps(manifest(heat, paper), ensure_ascii=False)


def _arrays(heat: Heatmap, paper: Paper) -> bytes:
    """The numbers as plain arrays, readable with `allow_pickle=False`; for nothing is drawn."""
    file = BytesIO()
    np.savez_compressed(
        file,
        values=heat.values,
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
"""Suffix -> what makes the bytes of such a file."""

DEPTH_KINDS = (".png", ".svg", ".pdf")
"""Suffixes of a plot of a metric against depth."""


def _write(target: Path, content: bytes) -> Path:
    place = Path(os.path.realpath(target))  # a symbolic link stays one, and leads to the new file
    # Beside the target, so that taking its name is one step: no reader sees half a file.
    part = place.with_name(f".attnviz-{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
        part.replace(place)
    except OSError as error:
        raise BadOption(
            f"{target} can't be written: {error.strerror or error}. Choose another place."
        ) from error
    finally:
        with suppress(OSError, ValueError):
            part.unlink(missing_ok=True)  # it is still there only if something failed
    return target
