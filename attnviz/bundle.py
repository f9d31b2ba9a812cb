"""Figures as one zip: each as all kinds of file, with its manifest, LaTeX and BibTeX."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from attnviz.errors import BadOption
from attnviz.figure import Figure, keys, kinds_of, latex, manifest_json, render, stem
from attnviz.references import bibtex

MOVING = (".gif", ".webp")
"""Left out: large, and for no paper."""

ZIP = ".zip"

TEX = ".pdf"
"""The kind of file that LaTeX includes."""


def bundle(figures: Sequence[tuple[Figure, Mapping[str, Any]]]) -> bytes:
    """A zip of figures, each with the options that it is drawn with; the same bytes each time.

    There is `NAME.pdf`, `.png`, `.svg`, `.npz` and `.csv` as far as a figure can be these, of a map
    `NAME.16-bit.png` and `NAME.mask.png`, with `NAME.manifest.json` of the PDF, `NAME.tex`, and one
    `references.bib` of all methods. Raises BadOption for no figure.
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
