"""Any figure: its bytes as a file of some kind, its manifest, its name, and LaTeX around it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import Any

from attnviz import export, film_export, head_paper, plate_export, plot_export, row, strip
from attnviz.again import chosen_options
from attnviz.errors import unknown
from attnviz.frames import Frames
from attnviz.head_maps import HeadMaps
from attnviz.heatmap import Heatmap
from attnviz.paper import Paper, remarks_on
from attnviz.plot_export import MetricPlot
from attnviz.references import METRICS_CITED, bibtex, keys_of
from attnviz.row import Row
from attnviz.strip import FilmPaper
from attnviz.trace import seal_of
from attnviz.used import EVERY, USED
from attnviz.venue import COLUMN, PlotPaper
from attnviz.writing import kind_of

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


@dataclass(frozen=True)
class _Printing:
    """How figures of one type become files; each function takes the figure first."""

    paper: type[Paper] | type[FilmPaper] | type[PlotPaper]
    """Their options."""
    kinds: Callable[[Any], Iterable[str]]
    render: Callable[..., bytes]
    """Of the figure, a suffix and the options by name."""
    stem: Callable[[Any], str]
    manifest: Callable[[Any, Any], dict[str, Any]]
    """Of the figure and its `paper`."""
    keys: Callable[[Any], Iterable[str]]
    """Of BibTeX entries."""
    words: Callable[[Any, str, Any], list[str]]
    """Of the figure, a suffix and its `paper`: what it says, line by line, as LaTeX is to."""
    vain: frozenset[str] = frozenset()
    """Options of its `paper` that change nothing in such a figure."""
    remarks: Callable[[Any, Any], list[str]] = lambda figure, paper: []
    """Of the figure and its `paper`: what has to be said of how it is drawn."""


def _keys(heats: Iterable[Heatmap]) -> list[str]:
    return keys_of(dict.fromkeys(heat.method for heat in heats if heat.method))


_PLATE = (plate_export.kinds_for, plate_export.render_plate, plate_export.plate_stem)

_PRINTING: Mapping[type[Any], _Printing] = {
    Heatmap: _Printing(
        Paper,
        export.kinds_for,
        export.render,
        export.file_stem,
        export.manifest,
        lambda heat: _keys([heat]),
        export.words_of,
        remarks=remarks_on,
    ),
    Frames: _Printing(
        FilmPaper,
        lambda film: film_export.FILM_KINDS,
        film_export.render_film,
        film_export.film_stem,
        film_export.manifest,
        lambda film: _keys(film.maps.values()),
        lambda film, kind, paper: strip.words_of(film, paper),
        remarks=strip.remarks_on,
    ),
    Row: _Printing(
        Paper,
        *_PLATE,
        plate_export.manifest_of,
        lambda row: _keys(row.heats),
        lambda made, kind, paper: row.words_of(made, paper),
        remarks=row.remarks_on,
    ),
    HeadMaps: _Printing(
        Paper,
        *_PLATE,
        plate_export.manifest_of,
        lambda heads: keys_of(["attention"]),
        lambda heads, kind, paper: head_paper.words_of(heads, paper),
        head_paper.VAIN,
        head_paper.remarks_on,
    ),
    MetricPlot: _Printing(
        PlotPaper,
        lambda plot: plot_export.DEPTH_KINDS,
        lambda plot, kind, **options: plot_export.render_depth(
            plot.metrics, plot.names, kind, **options
        ),
        lambda plot: plot_export.depth_stem(plot.metrics, *plot.names),
        plot_export.depth_manifest,
        lambda plot: METRICS_CITED,
        lambda plot, kind, paper: plot.metrics.caption(*plot.names),
    ),
}


def _printing(figure: Figure) -> _Printing:
    return _printing_of(type(figure))


def _printing_of(kind: type[Any]) -> _Printing:
    for known, printing in _PRINTING.items():
        if issubclass(kind, known):
            return printing
    raise unknown("figure", kind.__name__, ("map", "film", "row", "heads", "metrics"))


def options_of(kind: type[Any]) -> frozenset[str]:
    """The names of the options that change something in figures of that type."""
    printing = _printing_of(kind)
    return frozenset(each.name for each in fields(printing.paper)) - printing.vain


def kinds_of(figure: Figure) -> tuple[str, ...]:
    """The suffixes of files that it can be."""
    return tuple(_printing(figure).kinds(figure))


def paper_of(figure: Figure, options: Mapping[str, Any]) -> Paper | FilmPaper | PlotPaper:
    """The options as one record, of the kind that such a figure has."""
    paper: Callable[..., Paper | FilmPaper | PlotPaper] = _printing(figure).paper
    return chosen_options(paper, options)


def render(figure: Figure, kind: str, **options: Any) -> bytes:
    """The bytes of its file; `kind` is a suffix of `kinds_of`."""
    return _printing(figure).render(figure, kind, **options)


def stem(figure: Figure) -> str:
    """A file name without suffix that says what is in it."""
    return _printing(figure).stem(figure)


def summary_of(figure: Figure, kind: str) -> str:
    """What a file of that kind shows, in one line: a table of metrics holds more than the plot."""
    if isinstance(figure, MetricPlot) and kind == plot_export.TABLE:
        return plot_export.table_summary(figure.metrics)
    return figure.summary


def notes_of(figure: Figure, kind: str, **options: Any) -> list[str]:
    """Its warnings; with those on how it is drawn, where a file of that kind has colours."""
    printing, paper = _printing(figure), paper_of(figure, options)
    remarks = printing.remarks(figure, paper) if "colormap" in USED.get(kind, EVERY) else []
    return [*figure.notes, *remarks]


def manifest(figure: Figure, **options: Any) -> dict[str, Any]:
    """What its files say of themselves, as plain values without their seal."""
    return _printing(figure).manifest(figure, paper_of(figure, options))


def manifest_json(figure: Figure, kind: str, content: bytes, **options: Any) -> str:
    """The text of manifest.json beside a file: what that says, and the file's own checksum."""
    file = {"kind": kind, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    told = {**manifest(figure, **options), "file": file}
    return json.dumps({**told, "seal": seal_of(told)}, ensure_ascii=False, indent=1) + "\n"


def keys(figure: Figure) -> list[str]:
    """BibTeX keys of the papers that its methods are from."""
    return list(_printing(figure).keys(figure))


@dataclass(frozen=True)
class Inclusion:
    """What LaTeX says around a figure, but for the name of its file."""

    width_mm: float
    said: tuple[str, ...]
    """The caption's sentences as LaTeX prints them; the first names the methods."""
    cited: tuple[str, ...]
    """BibTeX keys."""

    def of_file(self, name: str, label: str = "") -> str:
        """The figure environment around the file `name`; its label is of that name unless given."""
        star = "*" if self.width_mm > 1.2 * COLUMN else ""
        first, *others = self.said
        cited = f"~\\cite{{{','.join(self.cited)}}}" if self.cited else ""
        return "\n".join(
            [
                f"\\begin{{figure{star}}}",
                "  \\centering",
                f"  \\includegraphics[width={self.width_mm:g}mm]{{{name}}}",
                f"  \\caption{{{'. '.join([first + cited, *others])}.}}",
                f"  \\label{{fig:{label or label_of(name)}}}",
                f"\\end{{figure{star}}}",
                "",
            ]
        )


def label_of(name: str) -> str:
    """What LaTeX calls the figure in that file: the Latin letters and digits of its name."""
    label = re.sub("[^a-z0-9]+", "-", PurePosixPath(name).stem.lower()).strip("-")
    return label or "attnviz"


def inclusion_of(figure: Figure, kind: str, **options: Any) -> Inclusion:
    """Its width, all words of such a file as the caption, and the papers its methods are from."""
    paper = paper_of(figure, options)
    lines = [line.removesuffix(".") for line in _printing(figure).words(figure, kind, paper)]
    return Inclusion(paper.width_mm, tuple(map(escaped, lines)), tuple(keys(figure)))


def latex(figure: Figure, name: str, **options: Any) -> str:
    """A figure environment around the file `name`, its caption the figure's own words.

    These are the printed caption's, also where none is printed, and those of the colour bar. The
    papers that its methods are from are cited; `references` has their entries.
    """
    return inclusion_of(figure, kind_of(name, kinds_of(figure)), **options).of_file(name)


def references(figure: Figure) -> str:
    """BibTeX of the papers that its methods are from."""
    return bibtex(keys(figure))


SPECIAL = {
    '"': r"\texttt{\char34}",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "×": r"\(\times\)",
    "→": r"\(\to\)",
    "≤": r"\(\leq\)",
    "≥": r"\(\geq\)",
    "−": r"\(-\)",
    "∂": r"\(\partial\)",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
"""What LaTeX reads otherwise, or its usual font (OT1) prints as another sign."""


JOINED = re.compile(r"([-',])(?=\1)")
"""What LaTeX makes one sign of, with its like after it: a dash of two hyphens."""


def escaped(text: str) -> str:
    """A text as LaTeX prints it; what cannot be printed is a blank."""
    signs = (SPECIAL.get(sign, sign if sign.isprintable() else " ") for sign in text)
    return JOINED.sub(r"\1\\kern0pt", "".join(signs))
