"""What the command line writes beside a figure: its manifest, LaTeX and BibTeX."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnviz.errors import BadOption
from attnviz.figure import Figure, kinds_of, latex, manifest_json, references
from attnviz.writing import checked_target, kind_of, write_whole

INCLUDED = (".pdf", ".png")
"""The kinds of figure that LaTeX includes."""

READ_OTHERWISE = frozenset('%#&~^{}\\$ "')
"""What LaTeX does not take in the name of a file."""


def side_places(given: argparse.Namespace) -> list[Path]:
    """Where files beside the figure go; BadOption where one can't be written."""
    places = []
    if getattr(given, "manifest", None) is not None:
        places.append(checked_target(given.manifest, (".json",), True, "A manifest"))
    if getattr(given, "latex", None) is not None:
        tex = checked_target(given.latex, (".tex",), True, "LaTeX")
        _included(Path(given.output), tex)
        places += [tex, checked_target(tex.with_suffix(".bib"), (".bib",), True, "BibTeX")]
    return places


def _included(output: Path, tex: Path) -> str:
    """How the LaTeX file calls the figure, from its own folder; BadOption where it cannot."""
    if output.suffix.lower() not in INCLUDED:
        raise BadOption(
            f"LaTeX includes {' and '.join(INCLUDED)}, and {output.name!r} is none of them: choose"
            " one of these, or leave --latex out."
        )
    try:
        named = Path(os.path.relpath(output.resolve(), tex.parent.resolve())).as_posix()
    except (OSError, ValueError) as error:  # as on another drive
        raise BadOption(f"{tex} can't include {output}: {error}. Put both in one folder.") from None
    odd = sorted(sign for sign in set(named) if sign in READ_OTHERWISE or not sign.isprintable())
    if odd:
        raise BadOption(
            f"LaTeX can't include a file called {named!r}: it reads"
            f" {', '.join(map(repr, odd))} otherwise. Choose another name with -o."
        )
    return named


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
                text = latex(figure, _included(output, place), **drawing)
            case _:
                text = references(figure)
        write_whole(place, text.encode(), overwrite=given.overwrite)
