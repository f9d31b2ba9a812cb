"""Curves on screen and on paper: their true numbers, areas in the legend, facts in the file."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from io import BytesIO
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.transforms import Bbox
from PIL import Image

from attnviz import curve_paper, sheet
from attnviz.__main__ import main
from attnviz.carried import carried
from attnviz.curve_figure import BAND, curve_figure
from attnviz.curve_paper import MAP, RANDOM
from attnviz.curves import Curves
from attnviz.errors import BadOption, UnknownName
from attnviz.plot_export import curves_stem, render_curves, save_curves
from attnviz.samples import sample_path
from attnviz.trace import seal_of, versions
from attnviz.venue import PlotPaper
from tests.test_faithfulness import MADE

CURVES = Curves(**{**MADE, "notes": ("random weights: this map means nothing",)})
"""Area 0.375; random orders 0.375 ± 0.250, mean scores 1, 0.5, 0, from 1, 0, 0 to 1, 1, 0."""
SMALL = {"width_mm": 50.0, "dpi": 100}


def plain(values) -> list:
    """A trace's numbers, also where Plotly packs them."""
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).tolist()
    return list(values)


def spec(figure) -> dict:
    return json.loads(figure.to_json(), parse_constant=lambda name: pytest.fail(name))


def svg_text(content: bytes) -> str:
    nodes = ElementTree.fromstring(content).iter()
    return " ".join(node.text or "" for node in nodes if "}text" in node.tag)


def test_a_file_s_name_says_the_picture_the_test_and_what_was_chosen():
    facts = (("picture", "My cat.jpg"), ("model", "ViT"), ("layer", "1 (of 3, counted from 0)"))
    named = replace(CURVES, facts=facts)
    assert curves_stem(named) == "my-cat_vit_deletion_by-hand_layer-1"
    assert curves_stem(CURVES).startswith("deletion_by-hand")


# On screen


def test_the_first_trace_is_the_map_s_the_second_the_mean_of_random_orders():
    own, random, band = spec(curve_figure(CURVES))["data"]
    assert plain(own["x"]) == plain(random["x"]) == [0, 0.25, 1]
    assert plain(own["y"]) == [1, 0.5, 0]
    assert plain(random["y"]) == [1, 0.5, 0]
    assert own["name"] == "By hand, area 0.375"
    assert random["name"] == "mean and range of 3 random orders, area 0.375 ± 0.250"
    assert own["line"]["color"] == MAP and random["line"]["color"] == RANDOM
    # Down along the lower edge, and back along the upper one.
    assert plain(band["x"]) == [0, 0.25, 1, 1, 0.25, 0]
    assert plain(band["y"]) == [1, 0, 0, 0, 1, 1]
    assert (
        band["mode"] == "lines"
        and band["fill"] == "toself"
        and band["fillcolor"] == BAND
        and not band["showlegend"]
    )


def test_the_band_reaches_from_the_lowest_to_the_highest():
    uneven = replace(CURVES, random=np.array([[1, 0.9, 0], [1, 0.6, 0], [1, 0.0, 0]]))
    *_, band = spec(curve_figure(uneven))["data"]
    assert plain(band["y"]) == [1, 0, 0, 0, 0.9, 1]
    with matplotlib.style.context(["default", sheet.SETTINGS]):
        (axes,) = curve_paper._figure(uneven, PlotPaper(**SMALL)).axes
        (drawn,) = axes.collections
    corners = {tuple(corner) for corner in drawn.get_paths()[0].vertices.round(6).tolist()}
    assert {(0.25, 0.0), (0.25, 0.9), (0.0, 1.0), (1.0, 0.0)} == corners


def test_a_point_says_where_it_is():
    own, *_ = spec(curve_figure(CURVES))["data"]
    assert own["text"] == [
        "0% of patches removed: 1",
        "25% of patches removed: 0.5",
        "100% of patches removed: 0",
    ]


def test_axes_say_what_they_are_and_nothing_zooms():
    layout = spec(curve_figure(replace(CURVES, mode="insertion")))["layout"]
    assert layout["xaxis"]["title"]["text"] == "share of patches put back"
    assert layout["yaxis"]["title"]["text"] == "probability"
    assert layout["xaxis"]["fixedrange"] and layout["yaxis"]["fixedrange"]


def test_the_caption_can_be_left_out():
    (note,) = spec(curve_figure(CURVES))["layout"]["annotations"]
    text = note["text"].replace("<br>", " ")
    assert "By hand; query: class token; deletion area 0.375 (small is good)" in text
    assert "Note: random weights" in text
    assert "annotations" not in spec(curve_figure(CURVES, caption=False))["layout"]


# On paper


def test_the_plot_draws_what_was_measured():
    with matplotlib.style.context(["default", sheet.SETTINGS]):
        (axes,) = curve_paper._figure(CURVES, PlotPaper(**SMALL)).axes
        lines = {" ".join(line.get_label().split()): line for line in axes.get_lines()}
        (band,) = axes.collections
    own = lines["By hand, area 0.375"]
    np.testing.assert_allclose(own.get_xydata(), [[0, 1], [0.25, 0.5], [1, 0]])
    random = lines["mean and range of 3 random orders, area 0.375 ± 0.250"]
    np.testing.assert_allclose(random.get_xydata(), [[0, 1], [0.25, 0.5], [1, 0]])
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.round(6).tolist()}
    assert {(0.25, 0.0), (0.25, 1.0), (0.0, 1.0), (1.0, 0.0)} == corners
    assert axes.get_xlim() == (0, 1)


@pytest.mark.parametrize("mode", ["deletion", "insertion"])
@pytest.mark.parametrize("width", [50.0, 183.0])
def test_nothing_is_cut_off(mode, width):
    long = {"score": "probability of class 7 (a very long name of a class, and another) " * 2}
    curves = replace(CURVES, mode=mode, title="A method of a long name", **long)
    with matplotlib.style.context(["default", sheet.SETTINGS]):
        figure = curve_paper._figure(curves, PlotPaper(width_mm=width, dpi=100))
        FigureCanvasAgg(figure).draw()
        renderer = figure.canvas.get_renderer()
        (axes,) = figure.axes
        boxes = [text.get_window_extent(renderer) for text in figure.texts]
        boxes += [axes.get_tightbbox(renderer), axes.get_legend().get_window_extent(renderer)]
        plot = Bbox.union(boxes[-2:])
    # Text boxes reach from the highest ascender to the lowest descender, hence the pixel.
    assert all(box.y1 <= plot.y0 + 1 or box.y0 >= plot.y1 - 1 for box in boxes[:-2])
    assert axes.bbox.width > 0.5 * figure.bbox.width
    assert axes.bbox.height > 0.3 * figure.bbox.width
    for box in boxes:
        assert box.x0 >= -0.5 and box.y0 >= -0.5
        assert box.x1 <= figure.bbox.x1 + 0.5 and box.y1 <= figure.bbox.y1 + 0.5


def test_words_areas_and_notes_are_printed():
    text = svg_text(render_curves(CURVES, ".svg", width_mm=120.0))
    for words in (
        "By hand, area 0.375",
        "mean and range of 3 random orders, area 0.375 ± 0.250",
        "share of patches removed",
        "probability",
        "query: class token",
        "Note: random weights",
    ):
        assert words in text
    bare = svg_text(render_curves(CURVES, ".svg", caption=False))
    assert "area 0.375" in bare and "query" not in bare


@pytest.mark.parametrize("kind", [".png", ".svg", ".pdf", ".npz"])
def test_each_kind_of_file_holds_the_facts(tmp_path, kind):
    path = save_curves(CURVES, tmp_path / f"curve{kind}")
    content = path.read_bytes()
    assert content == render_curves(CURVES, kind)
    if kind == ".png":
        with Image.open(path) as file:
            assert file.width == round(89 / 25.4 * 450)
            text = file.info["Description"]
    elif kind == ".svg":
        names = {"dc": "http://purl.org/dc/elements/1.1/"}
        text = ElementTree.fromstring(content).findtext(".//dc:description", namespaces=names)
    elif kind == ".pdf":
        assert content.startswith(b"%PDF") and b"/Subject" in content
        return
    else:
        with np.load(BytesIO(content), allow_pickle=False) as file:
            np.testing.assert_array_equal(file["fractions"], MADE["fractions"])
            np.testing.assert_array_equal(file["scores"], MADE["scores"])
            np.testing.assert_array_equal(file["random"], MADE["random"])
            text = str(file["manifest"])
    manifest = json.loads(text)
    assert manifest["facts"] == dict(MADE["facts"]) and manifest["mode"] == "deletion"
    assert manifest["area"] == pytest.approx(0.375)
    assert manifest["random_areas"] == pytest.approx([0.625, 0.125, 0.375])


@pytest.mark.parametrize(
    ("name", "options", "error", "said"),
    [
        ("c.jpg", {}, BadOption, r"\.png, \.svg, \.pdf, \.npz"),
        ("nowhere/c.png", {}, BadOption, "no such folder"),
        ("c.png", {"dpi": 9}, BadOption, "dpi is from 72 to 1200; 9 came"),
        ("c.png", {"alpha": 0.5}, UnknownName, "no option of a saved figure 'alpha'"),
    ],
)
def test_what_does_not_work_is_said_and_nothing_is_written(tmp_path, name, options, error, said):
    with pytest.raises(error, match=said):
        save_curves(CURVES, tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [".png", ".svg", ".pdf", ".npz"])
def test_curves_are_sealed_and_replay_says_that_they_are_none_of_its_own(tmp_path, capsys, kind):
    odd = replace(
        CURVES, score="of a\u2028b.png", facts=(*CURVES.facts, ("picture", "a\u2028b.png"))
    )
    content = render_curves(odd, kind)
    said = json.loads(carried(content))
    assert said["facts"]["picture"] == "a\u2028b.png" and said["versions"] == dict(versions())
    assert said["kind"] == "curves" and said["seal"] == seal_of(said)
    path = tmp_path / f"curve{kind}"
    path.write_bytes(content)
    assert main(["replay", str(path), str(sample_path("cat")), "-o", str(tmp_path / "b.png")]) == 2
    error = capsys.readouterr().err
    assert "takes more than names to compute, as curves" in error and error.count("\n") == 1


def test_an_unknown_kind_of_file():
    with pytest.raises(UnknownName, match=r"no kind of file '.gif'"):
        render_curves(CURVES, ".gif")
