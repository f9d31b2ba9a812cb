"""What `explain` gives: a heatmap that can draw, show and save itself."""

from __future__ import annotations

import base64
import os
from html import escape
from pathlib import Path
from typing import Any

from PIL import Image

from attnviz import colour, export, figures
from attnviz.heatmap import Heatmap
from attnviz.mass import MASS, mass_mask
from attnviz.venue import NOTEBOOK


class Explanation(Heatmap):
    """A heatmap that can draw itself."""

    def overlay(self, **options: Any) -> Image.Image:
        """The map over the original picture, at its size; options as in `colour.overlay`."""
        return colour.overlay(self, **options)

    def mask(self, mass: float = MASS) -> Image.Image:
        """The fewest patches that hold that share of the map, white on black, the same size."""
        return colour.mask_image(self, mass_mask(self.values, mass).kept)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write one of the suffixes in `export.KINDS`; options as in `export.save`."""
        return export.save(self, path, **options)

    def chart(self, **options: Any) -> figures.Figure:
        """The map as a Plotly figure, with each patch's value; options as in `overlay`."""
        return figures.heat_figure(self, **options)

    def _repr_png_(self) -> bytes:
        """What a notebook shows: the printed figure."""
        return export.render_png(self, **NOTEBOOK)

    def _repr_html_(self) -> str:
        """The same with its words, for those who cannot see it."""
        return html_of(self._repr_png_(), self.summary)


def html_of(png: bytes, words: str) -> str:
    """A picture in a page, with words that stand for it."""
    data = base64.b64encode(png).decode()
    return f'<img alt="{escape(words, quote=True)}" src="data:image/png;base64,{data}">'
