"""`python -m attnviz film`: the command line's way to one query's maps in every layer."""

from __future__ import annotations

import argparse
from dataclasses import fields

from attnviz.frames import FILM_SCALES
from attnviz.paper_flags import add_colours, add_paper
from attnviz.strip import FilmPaper

NAME = "film"

EXAMPLES = """\
examples:
  python -m attnviz film cat.jpg -o cat.gif
      what the class token attends to, layer by layer, as an animation
  python -m attnviz film cat.jpg -o head.webp --head 2 --query 4,20 --scale shared --seconds 0.3
      one head and one patch, equal colours for equal values, quicker, every colour kept
  python -m attnviz film cat.jpg -o strip.pdf --head 2 --width-mm 89
      the layers beside each other, one column wide
  python -m attnviz film cat.jpg -o film.npz
      the numbers, as (layer, row, column)
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What this command has instead of the options for drawing one map."""
    parser.prog += f" {NAME}"
    parser.description = "Draw how a query's attention moves with depth: its map in every layer."
    parser.epilog = EXAMPLES
    of = {field.name: field.default for field in fields(FilmPaper)}
    add = parser.add_argument_group("the drawing").add_argument
    add_colours(add, of, FILM_SCALES, "each layer's")
    add_paper(add, of, "a printed strip")
    add("--columns", type=int, help="maps in a line of a printed strip (as many as fit)")
    add("--width-px", type=int, help=f"width of an animation in pixels ({of['width_px']})")
    stands = f"how long an animation shows each layer ({of['seconds']:g})"
    add("--seconds", type=float, help=stands)
