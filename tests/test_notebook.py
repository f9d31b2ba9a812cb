"""Records, maps and figures show themselves in a notebook, and the one in docs/ runs."""

from __future__ import annotations

import base64
import re
from copy import deepcopy
from io import BytesIO

import nbformat
import numpy as np
from conftest import small_vit
from PIL import Image

import attnviz
from attnviz.figures import heat_figure
from scripts.notebook import PATH, executed, lean


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


def test_a_film_a_row_a_grid_and_a_plot_show_their_figures():
    record = seen()
    heat = attnviz.explain(record)
    for made, dpi in (
        (attnviz.film(record), 100),
        (attnviz.beside([heat, heat], ["one", "two"]), 100),
        (attnviz.heads(record), 200),  # the largest models' patches need as many
        (attnviz.plot(attnviz.head_metrics(record)), 100),
    ):
        assert Image.open(BytesIO(made._repr_png_())).width == round(183 / 25.4 * dpi)
    assert attnviz.plot(attnviz.head_metrics(record)).names == ("entropy",)


def outputs_of(notebook):
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def printed(outputs):
    """What was printed: its words, and its numbers."""
    text = "".join(each.text for each in outputs if each.output_type == "stream")
    return re.sub(r"\d[\d.]*", "#", text), [float(each) for each in re.findall(r"\d+\.?\d*", text)]


def test_the_notebook_still_shows_what_it_holds():
    kept = nbformat.read(PATH, as_version=4)
    nbformat.validate(kept)
    made = outputs_of(lean(executed(deepcopy(kept))))
    kinds = []
    for now, then in zip(made, outputs_of(kept), strict=True):
        kinds += [sorted(each.data) for each in then if "data" in each]
        assert [sorted(each.get("data", {})) for each in now] == [
            sorted(each.get("data", {})) for each in then
        ]
        assert printed(now)[0] == printed(then)[0]
        np.testing.assert_allclose(printed(now)[1], printed(then)[1], rtol=5e-3)
    assert kinds == [["image/jpeg"]] * 5 + [["application/vnd.plotly.v1+json"]]
    assert sum(len(printed(each)[1]) for each in outputs_of(kept)) == 6


def test_the_notebooks_file_is_small_and_names_nothing_of_a_machine():
    text = PATH.read_text("utf-8")
    assert len(text.encode()) < 400_000
    assert not re.search(r"/(home|tmp|usr|root|work|var)/|site-packages|0x[0-9a-f]{8}", text)
