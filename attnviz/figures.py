"""Figures for the screen: a picture with its map, and a metric against depth.

With `curve_figure`, the only file that imports Plotly. The picture, colours and all, is a layout
image; on top lies one invisible point a patch, which says its value. A point's index in the first
trace is row · cols + col, or that of the head in the metrics' table.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from io import BytesIO
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from PIL import Image

from attnviz.colour import (
    DOT,
    bounded,
    fit_within,
    overlay,
    palette,
    stretched,
    ticks,
)
from attnviz.heatmap import Heatmap, meets
from attnviz.legend import legend, value_texts
from attnviz.mass import mass_mask
from attnviz.metrics import DEPTH, HeadMetrics
from attnviz.scale import Scale, numbers

Figure = go.Figure
"""What each function here gives, by name for others that know nothing of Plotly."""

LINE = 50
"""Characters of caption in a line: what a phone is wide."""
BAR = 60
"""Pixels that the colour bar and its words take above the picture."""
HEIGHT = 560
"""Pixels on screen; the width is the page's."""
STILL: dict[str, Any] = {
    "hovermode": "closest",
    "hoverdistance": -1,  # the nearest point always wins
    "dragmode": False,
    "height": HEIGHT,
    "plot_bgcolor": "rgba(0,0,0,0)",
    "paper_bgcolor": "rgba(0,0,0,0)",
}


def heat_figure(
    heat: Heatmap,
    *,
    alpha: float = 0.5,
    colormap: str = "inferno",
    scale: str | Scale = "own",
    clip: float | None = None,
    interpolation: str = "nearest",
    mass: float | None = None,
    caption: bool = True,
    max_side: int = 900,
) -> go.Figure:
    """The overlay with a colour bar and a point on each patch; axes in pixels of the picture.

    With `mass` the fewest patches that hold that share of the map are outlined. `caption` prints
    method and facts above it, so that a saved chart says what it shows; the ranges of three
    components, which have no colour bar, are always there. A patch wholly outside the picture keeps
    its index but has no point. Raises what `colour.overlay` and `mass_mask` raise.
    """
    mask = None if mass is None else mass_mask(heat.values, mass)
    colours: dict[str, Any] = {"colormap": colormap, "scale": scale, "clip": clip}
    colours["interpolation"] = interpolation
    chosen, label = legend(heat, **colours)
    size = bounded(fit_within(heat.image.size, max_side))
    picture = overlay(heat, alpha=alpha, size=size, **colours)
    width, height = heat.image.size
    figure = _canvas(picture, (width, height))
    rows, cols = heat.grid
    # A blank cell keeps its index as well, but says nothing.
    points = [
        _centre(heat, row, col) if heat.filled[row, col] else (None, None)
        for row in range(rows)
        for col in range(cols)
    ]
    words = heat.caption(alpha, mask) if caption else []
    marker: dict[str, Any] = {"opacity": 0, "size": 6}
    if chosen is None:
        words.insert(0, label)
    else:
        marker["color"] = heat.values.ravel().tolist()
        marker |= _colour_bar(chosen, colormap, label, heat.drawn)
    figure.add_scatter(
        x=[x for x, _ in points],
        y=[y for _, y in points],
        text=[
            f"row {index // cols}, column {index % cols}: {text} {heat.unit}"
            for index, text in enumerate(value_texts(heat))
        ],
        hoverinfo="text",
        mode="markers",
        marker=marker,
        showlegend=False,
    )
    if mask is not None:
        lines = [f"M{x0},{y0}L{x1},{y1}" for (x0, y0), (x1, y1) in heat.outline(mask)]
        _framed(figure, 1.5, type="path", path="".join(lines))
    if heat.query_cell is not None:
        corners = zip(("x0", "y0", "x1", "y1"), heat.cell_box(*heat.query_cell), strict=True)
        _framed(figure, 2, type="rect", **dict(corners))
    return captioned(figure, words) if words else figure


def depth_figure(metrics: HeadMetrics, name: str, *, caption: bool = True) -> go.Figure:
    """A metric against depth: one dot a head, the mean over each layer's heads as a line.

    Raises `UnknownName` for a metric that doesn't exist.
    """
    metric, table = metrics.describe(name), metrics.table()
    values = np.array([row[name] for row in table])
    figure = go.Figure(layout=STILL | {"template": "simple_white", "margin": {"t": 20}})
    figure.add_scatter(
        x=[row["layer"] for row in table],
        y=values,
        text=[
            f"layer {row['layer']}, head {row['head']}: {text} {metric.unit}"
            for row, text in zip(table, numbers(values), strict=True)
        ],
        hoverinfo="text",
        mode="markers",
        marker={"size": 7, "color": DOT, "opacity": 0.75},
        name="one head",
    )
    figure.add_scatter(
        y=metrics.layer_means(name),
        mode="lines",
        line={"color": "black"},
        name="mean over heads",
        hoverinfo="skip",
    )
    depth = len(metrics.heads)
    figure.update_xaxes(title=DEPTH, range=[-0.5, depth - 0.5], dtick=1 + depth // 16)
    figure.update_yaxes(title=metric.axis, rangemode="tozero")
    figure.update_layout(legend={"orientation": "h", "y": -0.2})
    return captioned(figure, metrics.caption(name)) if caption else figure


def camera(stem: str) -> dict[str, Any]:
    """Plotly's settings for the chart: its camera button saves `stem`.svg, and nothing zooms."""
    return {
        "displaylogo": False,
        "displayModeBar": True,
        "modeBarButtons": [["toImage"]],
        "scrollZoom": False,
        "doubleClick": False,
        "toImageButtonOptions": {"format": "svg", "filename": stem, "scale": 1},
    }


def _canvas(picture: Image.Image, size: tuple[int, int]) -> go.Figure:
    """An empty figure over a picture, in pixels of `size`, rows counted downwards."""
    width, height = size
    still: dict[str, Any] = {
        "visible": False,
        "fixedrange": True,
        "showgrid": False,
        "zeroline": False,
        "constrain": "domain",
    }
    return go.Figure(
        layout={
            "images": [
                {
                    "source": _data_uri(picture),
                    "xref": "x",
                    "yref": "y",
                    "x": 0,
                    "y": 0,
                    "sizex": width,
                    "sizey": height,
                    "sizing": "stretch",
                    "layer": "below",
                }
            ],
            "xaxis": still | {"range": [0, width], "constraintoward": "left"},
            "yaxis": still
            | {"range": [height, 0], "constraintoward": "top"}
            | ({} if stretched(size) else {"scaleanchor": "x", "scaleratio": 1}),
            "margin": {"l": 0, "r": 0, "t": BAR, "b": 0},
        }
        | STILL
    )


def _framed(figure: go.Figure, width: float, **shape: Any) -> None:
    """A shape's outline in white on black, visible on any colour."""
    for colour, line in (("black", 2 * width), ("white", width)):
        figure.add_shape(**shape, line={"color": colour, "width": line})


def captioned(figure: go.Figure, texts: Sequence[str]) -> go.Figure:
    """The figure with texts above it, wrapped."""
    lines = [line for text in texts for line in wrap(text, LINE)]
    # No title: Plotly cuts off the upper lines of a long one.
    figure.add_annotation(
        text="<br>".join(escape(line) for line in lines),
        font={"size": 12},
        align="left",
        showarrow=False,
        xref="paper",
        x=0,
        xanchor="left",
        yref="paper",
        y=1,
        yanchor="bottom",
        yshift=BAR,
    )
    return figure.update_layout(margin={"t": BAR + 20 + 17 * len(lines)})


def _data_uri(picture: Image.Image) -> str:
    """The picture as a JPEG with full colour resolution, so that patch edges stay sharp."""
    file = BytesIO()
    picture.save(file, "JPEG", quality=95, subsampling=0)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


def _centre(heat: Heatmap, row: int, col: int) -> tuple[float | None, float | None]:
    left, top, right, bottom = box = heat.cell_box(row, col)
    return ((left + right) / 2, (top + bottom) / 2) if meets(box, heat.image.size) else (None, None)


def _colour_bar(
    scale: Scale, colormap: str, label: str, values: Float[np.ndarray, "*shape"]
) -> dict[str, Any]:
    """The marker settings for a bar right above the picture, with the scale's true numbers."""
    colours = palette(colormap)[[0, 0]] if scale.flat else palette(colormap)
    marks = ticks(scale, values)
    last = len(colours) - 1
    # Plotly needs a range with a width; a flat scale has one colour and one number anyway.
    room = max(abs(scale.low), 1.0) / 2 if scale.flat else 0.0
    return {
        "cmin": scale.low - room,
        "cmax": scale.high + room,
        "colorscale": [
            [step / last, f"rgb({red},{green},{blue})"]
            for step, (red, green, blue) in enumerate(colours.tolist())
        ],
        "showscale": True,
        "colorbar": {
            "title": {"text": "<br>".join(wrap(label, LINE)), "side": "top"},
            "tickvals": [at for at, _ in marks],
            "ticktext": [text for _, text in marks],
            "thickness": 14,
            "outlinewidth": 0,
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "bottom",
            "xpad": 30,  # room for half a number at each end
            "ypad": 4,
            "ticklabeloverflow": "allow",
        },
    }
