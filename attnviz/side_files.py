"""What the command line writes beside a figure: its manifest, LaTeX and BibTeX."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnviz.figure import Figure, kinds_of, latex, manifest_json, references
from attnviz.writing import checked_target, kind_of, write_whole


def side_places(given: argparse.Namespace) -> list[Path]:
    """Where files beside the figure go; BadOption where one can't be written."""
    places = []
    if getattr(given, "manifest", None) is not None:
        places.append(checked_target(given.manifest, (".json",), True, "A manifest"))
    if getattr(given, "latex", None) is not None:
        tex = checked_target(given.latex, (".tex",), True, "LaTeX")
        places += [tex, tex.with_suffix(".bib")]
    return places


def write_sides(
    figure: Figure, output: Path, given: argparse.Namespace, drawing: Mapping[str, Any]
) -> None:
    """Write what was asked for; raises BadOption as `write_whole` does."""
    for place in side_places(given):
        match place.suffix.lower():
            case ".json":
                kind = kind_of(output, kinds_of(figure))
                text = manifest_json(figure, kind, output.read_bytes(), **drawing)
            case ".tex":
                text = latex(figure, output.name, **drawing)
            case _:
                text = references(figure)
        write_whole(place, text.encode(), overwrite=given.overwrite)
