"""Deletion or insertion curves on screen, by Plotly."""

from __future__ import annotations

from html import escape
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float64

from attnviz.curve_paper import MAP, RANDOM
from attnviz.curves import Curves
from attnviz.figures import STILL, captioned
from attnviz.scale import numbers

HEIGHT = 380
"""Pixels on screen, without the caption; the width is the page's."""
LINE = 36
"""Characters in a line of the upright axis's title."""
BAND = "rgba(119,119,119,0.3)"


def curve_figure(curves: Curves, *, caption: bool = True) -> go.Figure:
    """The map's curve, and the mean of random orders with a band of their range; areas in words.

    `caption` prints map, facts, areas and notes above it. The first trace is the map's.
    """
    own, random = curves.labels
    low, high = curves.random_range
    figure = go.Figure(
        layout=STILL
        | {
            "template": "simple_white",
            "height": HEIGHT,
            "margin": {"l": 10, "r": 30, "t": 20, "b": 10},
            "legend": {"orientation": "h", "y": -0.25},
        }
    )
    at = curves.fractions
    figure.add_scatter(
        **_line(curves, curves.scores, own, MAP), mode="lines+markers", cliponaxis=False
    )
    line = _line(curves, curves.random_mean, random, RANDOM, dash="dash")
    figure.add_scatter(**line, mode="lines")
    figure.add_scatter(
        x=np.concatenate([at, at[::-1]]),
        y=np.concatenate([low, high[::-1]]),
        mode="lines",  # no dots on its edges
        fill="toself",
        fillcolor=BAND,
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
    )
    # A page that scrolls under a finger must not zoom the plot.
    figure.update_xaxes(title=curves.axis, range=[0, 1], fixedrange=True, tickformat=".0%")
    figure.update_yaxes(title="<br>".join(map(escape, wrap(curves.score, LINE))), fixedrange=True)
    if caption:
        captioned(figure, curves.caption())
        figure.update_layout(height=HEIGHT + figure.layout.margin.t)
    return figure


def _line(
    curves: Curves, scores: Float64[np.ndarray, " step"], name: str, colour: str, **line: Any
) -> dict[str, Any]:
    texts = numbers(scores, float(np.ptp(scores)))
    return {
        "x": curves.fractions,
        "y": scores,
        "name": name,
        "line": {"color": colour, **line},
        "text": [
            f"{at:.0%} {curves.axis.removeprefix('share ')}: {text}"
            for at, text in zip(curves.fractions, texts, strict=True)
        ],
        "hoverinfo": "text",
    }
