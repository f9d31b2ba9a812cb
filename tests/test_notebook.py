"""A record and a map show themselves in a notebook."""

from __future__ import annotations

import base64
import re
from io import BytesIO

import numpy as np
from conftest import small_vit
from PIL import Image

import attnviz
from attnviz.figures import heat_figure


def seen():
    noise = np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8)
    return attnviz.observe(small_vit(), Image.fromarray(noise))


def picture_in(html):
    data = re.search(r'src="data:image/png;base64,([^"]+)"', html)[1]
    return Image.open(BytesIO(base64.b64decode(data)))


def test_a_map_shows_the_printed_figure_with_words():
    heat = attnviz.explain(seen()).named('a "cat" <b>.jpg')
    assert Image.open(BytesIO(heat._repr_png_())).width == round(89 / 25.4 * 150)
    html = heat._repr_html_()
    assert picture_in(html).size == Image.open(BytesIO(heat._repr_png_())).size
    assert "a &quot;cat&quot; &lt;b&gt;.jpg" in html


def test_a_record_shows_what_the_model_saw():
    record = seen()
    html = record._repr_html_()
    np.testing.assert_array_equal(np.asarray(picture_in(html)), record.view.pixels)
    assert f"{len(record.layers)} layers of {record.layers[0].heads} heads" in html
    assert "cls" in html


def test_a_chart_is_plotlys_on_request():
    heat = attnviz.explain(seen())
    assert heat.chart(alpha=0.3) == heat_figure(heat, alpha=0.3)
