"""Figures as one zip: each as all kinds of file, with its manifest, LaTeX and BibTeX."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from attnviz.errors import BadOption
from attnviz.figure import Figure, keys, kinds_of, latex, manifest_json, render, stem
from attnviz.head_maps import HeadMaps
from attnviz.heatmap import Heatmap
from attnviz.levels import render_levels
from attnviz.plate_export import render_cells
from attnviz.plot_export import MetricPlot, render_table
from attnviz.references import bibtex

MOVING = (".gif", ".webp")
"""Left out: large, and for no paper."""

TEX = ".pdf"
"""The kind of file that LaTeX includes."""


def bundle(figures: Sequence[tuple[Figure, Mapping[str, Any]]]) -> bytes:
    """A zip of figures, each with the options that it is drawn with; the same bytes each time.

    There is `NAME.pdf`, `.png`, `.svg` and `.npz` as far as a figure can be these, with
    `NAME.manifest.json` of the PDF, `NAME.tex`, of a map `NAME.16-bit.png`, numbers of heads as
    `NAME.csv`, and one `references.bib` of all methods. Raises BadOption for no figure.
    """
    if not figures:
        raise BadOption("A set of figures needs at least one; none came.")
    parts: dict[str, bytes] = {}
    for figure, options in figures:
        name = _free(stem(figure), parts)
        for kind in kinds_of(figure):
            if kind not in MOVING:
                parts[name + kind] = render(figure, kind, **options)
        said = manifest_json(figure, TEX, parts[name + TEX], **options)
        parts[f"{name}.manifest.json"] = said.encode()
        parts[f"{name}.tex"] = latex(figure, name + TEX, **options).encode()
        if isinstance(figure, Heatmap) and not figure.in_colour:
            parts[f"{name}.16-bit.png"] = render_levels(figure)
        if isinstance(figure, MetricPlot):
            parts[f"{name}.csv"] = render_table(figure.metrics)
        elif isinstance(figure, HeadMaps):
            parts[f"{name}.csv"] = render_cells(figure)
    cited = dict.fromkeys(key for figure, _ in figures for key in keys(figure))
    if cited:
        parts["references.bib"] = bibtex(cited).encode()
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, content in parts.items():
            info = zipfile.ZipInfo(place)  # of 1980, whatever the day
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return file.getvalue()


def _free(name: str, taken: Mapping[str, bytes]) -> str:
    """A name that no figure before has."""
    found, number = name, 1
    while found + TEX in taken:
        number += 1
        found = f"{name}-{number}"
    return found
