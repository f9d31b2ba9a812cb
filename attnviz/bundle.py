"""Figures as one zip: each as all kinds of file, with its manifest, LaTeX and BibTeX."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from attnviz.carried import MOST
from attnviz.errors import BadOption
from attnviz.figure import (
    Figure,
    Inclusion,
    inclusion_of,
    kinds_of,
    label_of,
    manifest_json,
    render,
    stem,
)
from attnviz.references import bibtex

MOVING = (".gif", ".webp")
"""Left out: large, and for no paper."""

ZIP = ".zip"

PDF = ".pdf"
"""The kind of file that LaTeX includes."""

MANIFEST = ".manifest.json"
"""What a figure's own is called, after its name; no two figures' are alike."""


@dataclass(frozen=True)
class Packed:
    """One figure's files, which can wait for others: it needs neither model nor map any more."""

    stem: str
    """What its files are called, unless one before it is called so."""
    summary: str
    """What it shows in one line."""
    files: Mapping[str, bytes] = field(repr=False)
    """Suffix → content, manifest included."""
    inclusion: Inclusion = field(repr=False)
    """LaTeX around it, but for its file's name."""

    @property
    def nbytes(self) -> int:
        """Of all its files."""
        return sum(map(len, self.files.values()))


def pack(figure: Figure, options: Mapping[str, Any]) -> Packed:
    """All files of a figure that is drawn with these options; the same bytes each time.

    There is `.pdf`, `.png`, `.svg`, `.npz` and `.csv` as far as a figure can be these, of a map
    `.16-bit.png` and `.mask.png`, with `.manifest.json` of the PDF.
    """
    kinds = [kind for kind in kinds_of(figure) if kind not in MOVING]
    files = {kind: render(figure, kind, **options) for kind in kinds}
    files[MANIFEST] = manifest_json(figure, PDF, files[PDF], **options).encode()
    return Packed(stem(figure), figure.summary, files, inclusion_of(figure, PDF, **options))


def names_of(figures: Sequence[Packed]) -> tuple[str, ...]:
    """What each is called in a zip of them all: `NAME`, and `NAME-2` after another of that name."""
    return _numbered([figure.stem for figure in figures])


def _numbered(words: Iterable[str]) -> tuple[str, ...]:
    """The same, with numbers after those that were there before."""
    found: dict[str, None] = {}
    for word in words:
        name, number = word, 1
        while name in found:
            number += 1
            name = f"{word}-{number}"
        found[name] = None
    return tuple(found)


def zip_of(figures: Sequence[Packed]) -> bytes:
    """A zip of figures; the same bytes each time.

    There are each one's files, `NAME.tex`, no two with one label, and one `references.bib` of all
    methods. Raises BadOption for no figure.
    """
    if not figures:
        raise BadOption("A set of figures needs at least one; none came.")
    names = names_of(figures)
    labels = _numbered(label_of(name + PDF) for name in names)
    parts: dict[str, bytes] = {}
    for name, label, figure in zip(names, labels, figures, strict=True):
        parts |= {name + suffix: content for suffix, content in figure.files.items()}
        parts[f"{name}.tex"] = figure.inclusion.of_file(name + PDF, label).encode()
    if cited := dict.fromkeys(key for figure in figures for key in figure.inclusion.cited):
        parts["references.bib"] = bibtex(cited).encode()
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, content in parts.items():
            info = zipfile.ZipInfo(place)  # of 1980, whatever the day
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return file.getvalue()


def bundle(figures: Sequence[tuple[Figure, Mapping[str, Any]]]) -> bytes:
    """`zip_of` figures, each with the options that it is drawn with, as `pack` makes their files.

    Raises BadOption for no figure.
    """
    return zip_of([pack(figure, options) for figure, options in figures])


def manifests_in(content: bytes) -> dict[str, bytes]:
    """The manifests in a zip of figures, by their files' names; of any other file none.

    They may be anything: whoever reads them has to be suspicious.
    """
    found: dict[str, bytes] = {}
    if not content.startswith(b"PK"):
        return found
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            left = MOST
            for name in archive.namelist():
                if name.endswith(MANIFEST):
                    found[name] = archive.open(name).read(left + 1)
                    left -= len(found[name])
                    if left < 0:
                        return {}
    except Exception:  # of any type: the decoder is fed what nobody vouches for
        return {}
    return found
