"""Any figure: its bytes as a file of some kind, its manifest, its name, and LaTeX around it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from attnviz import export, film_export, plate_export, plot_export
from attnviz.errors import unknown
from attnviz.export import chosen_options
from attnviz.facts import said
from attnviz.frames import Frames
from attnviz.head_maps import HeadMaps
from attnviz.heatmap import Heatmap
from attnviz.paper import Paper
from attnviz.plot_export import MetricPlot
from attnviz.references import METRICS_CITED, bibtex, keys_of
from attnviz.row import Row
from attnviz.strip import FilmPaper
from attnviz.trace import seal_of
from attnviz.venue import COLUMN, PlotPaper

Figure = Heatmap | Frames | Row | HeadMaps | MetricPlot
"""What can be printed."""


KINDS = tuple(
    dict.fromkeys(
        [
            *export.KINDS,
            *film_export.FILM_KINDS,
            *plate_export.PLATE_KINDS,
            *plot_export.DEPTH_KINDS,
        ]
    )
)
"""All suffixes of files that some figure can be."""


def kinds_of(figure: Figure) -> tuple[str, ...]:
    """The suffixes of files that it can be."""
    if isinstance(figure, Heatmap):
        return export.kinds_for(figure)
    if isinstance(figure, Frames):
        return tuple(film_export.FILM_KINDS)
    if isinstance(figure, MetricPlot):
        return plot_export.DEPTH_KINDS
    return plate_export.kinds_for(figure)


def paper_of(figure: Figure, options: Mapping[str, Any]) -> Paper | FilmPaper | PlotPaper:
    """The options as one record, of the kind that such a figure has."""
    if isinstance(figure, Frames):
        return chosen_options(FilmPaper, options)
    if isinstance(figure, MetricPlot):
        return chosen_options(PlotPaper, options)
    return chosen_options(Paper, options)


def render(figure: Figure, kind: str, **options: Any) -> bytes:
    """The bytes of its file; `kind` is a suffix of `kinds_of`."""
    if isinstance(figure, Heatmap):
        return export.render(figure, kind, **options)
    if isinstance(figure, Frames):
        return film_export.render_film(figure, kind, **options)
    if isinstance(figure, MetricPlot):
        return plot_export.render_depth(figure.metrics, figure.names, kind, **options)
    return plate_export.render_plate(figure, kind, **options)


def stem(figure: Figure) -> str:
    """A file name without suffix that says what is in it."""
    if isinstance(figure, Heatmap):
        return export.file_stem(figure)
    if isinstance(figure, Frames):
        return film_export.film_stem(figure)
    if isinstance(figure, MetricPlot):
        return plot_export.depth_stem(figure.metrics, *figure.names)
    return plate_export.plate_stem(figure)


def manifest(figure: Figure, **options: Any) -> dict[str, Any]:
    """What its files say of themselves, as plain values without their seal."""
    paper = paper_of(figure, options)
    if isinstance(figure, Heatmap) and isinstance(paper, Paper):
        return export.manifest(figure, paper)
    if isinstance(figure, Frames) and isinstance(paper, FilmPaper):
        return film_export.manifest(figure, paper)
    if isinstance(figure, MetricPlot) and isinstance(paper, PlotPaper):
        return plot_export.depth_manifest(figure, paper)
    if isinstance(figure, Row | HeadMaps) and isinstance(paper, Paper):
        return plate_export.manifest_of(figure, paper)
    raise unknown("figure", type(figure).__name__, ("map", "film", "row", "heads", "metrics"))


def manifest_json(figure: Figure, kind: str, content: bytes, **options: Any) -> str:
    """The text of manifest.json beside a file: what that says, and the file's own checksum."""
    file = {"kind": kind, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    told = {**manifest(figure, **options), "file": file}
    return json.dumps({**told, "seal": seal_of(told)}, ensure_ascii=False, indent=1) + "\n"


def keys(figure: Figure) -> list[str]:
    """BibTeX keys of the papers that its methods are from."""
    if isinstance(figure, MetricPlot):
        return list(METRICS_CITED)
    if isinstance(figure, HeadMaps):
        return keys_of(["attention"])
    heats = {
        Heatmap: lambda each: [each],
        Frames: lambda each: [*each.maps.values()],
        Row: lambda each: [*each.heats],
    }
    (found,) = [make(figure) for kind, make in heats.items() if isinstance(figure, kind)]
    return keys_of(dict.fromkeys(heat.method for heat in found if heat.method))


@dataclass(frozen=True)
class Inclusion:
    """What LaTeX says around a figure, but for the name of its file."""

    width_mm: float
    caption: str
    """As LaTeX prints it."""
    cited: tuple[str, ...]
    """BibTeX keys."""

    def of_file(self, name: str, label: str = "") -> str:
        """The figure environment around the file `name`; its label is of that name unless given."""
        star = "*" if self.width_mm > 1.2 * COLUMN else ""
        cited = f"~\\cite{{{','.join(self.cited)}}}" if self.cited else ""
        return "\n".join(
            [
                f"\\begin{{figure{star}}}",
                "  \\centering",
                f"  \\includegraphics[width={self.width_mm:g}mm]{{{name}}}",
                f"  \\caption{{{self.caption}{cited}.}}",
                f"  \\label{{fig:{label or label_of(name)}}}",
                f"\\end{{figure{star}}}",
                "",
            ]
        )


def label_of(name: str) -> str:
    """What LaTeX calls the figure in that file: the Latin letters and digits of its name."""
    label = re.sub("[^a-z0-9]+", "-", PurePosixPath(name).stem.lower()).strip("-")
    return label or "attnviz"


def inclusion_of(figure: Figure, **options: Any) -> Inclusion:
    """Its width, the figure's own words as the caption, and the papers its methods are from."""
    width = getattr(paper_of(figure, options), "width_mm")  # noqa: B009
    words = escaped("; ".join(_said(figure)))
    return Inclusion(width, f"{words[:1].upper()}{words[1:]}", tuple(keys(figure)))


def latex(figure: Figure, name: str, **options: Any) -> str:
    """A figure environment around the file `name`, its caption the figure's own words.

    The papers that its methods are from are cited; `references` has their entries.
    """
    return inclusion_of(figure, **options).of_file(name)


def _said(figure: Figure) -> list[str]:
    """Title, facts and notes in words."""
    if isinstance(figure, MetricPlot):
        title, facts, notes = figure.title, figure.metrics.facts, figure.metrics.notes
    else:
        title, facts, notes = figure.title, figure.facts, figure.notes
    beside = [figure.beside] if isinstance(figure, Row) and figure.beside else []
    return [*beside, *said(title, facts), *notes]


def references(figure: Figure) -> str:
    """BibTeX of the papers that its methods are from."""
    return bibtex(keys(figure))


SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "×": r"\(\times\)",
    "→": r"\(\to\)",
    "≤": r"\(\leq\)",
    "≥": r"\(\geq\)",
    "−": r"\(-\)",
    "∂": r"\(\partial\)",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
"""What LaTeX reads otherwise."""


def escaped(text: str) -> str:
    """A text as LaTeX prints it; what cannot be printed is a blank."""
    return "".join(SPECIAL.get(sign, sign if sign.isprintable() else " ") for sign in text)
