"""The screen's figures: true numbers, and the right patch under every point."""

from __future__ import annotations

import base64
import json
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from attnviz.errors import BadOption, UnknownName
from attnviz.figures import camera, depth_figure, heat_figure
from attnviz.heatmap import Heatmap
from attnviz.metrics import head_metrics
from attnviz.scale import Scale
from tests.test_methods import random_maps, record_of


def heat(values=((0, 1, 2), (3, 4, 50)), *, size=(30, 20), box=None, **changes) -> Heatmap:
    return Heatmap(
        **{
            "values": np.array(values, dtype=np.float32),
            "unit": "attention weight",
            "title": "Attention",
            "facts": (("method", "Attention"), ("head", "3"), ("query", "cls token")),
            "image": Image.new("RGB", size, (90, 120, 30)),
            "box": box or (0.0, 0.0, float(size[0]), float(size[1])),
            **changes,
        }
    )


def spec(figure) -> dict:
    """The figure as the browser gets it; a NaN would not be JSON."""
    return json.loads(figure.to_json(), parse_constant=lambda name: pytest.fail(name))


def picture_of(drawn: dict) -> Image.Image:
    (image,) = drawn["layout"]["images"]
    head, data = image["source"].split(",")
    assert head == "data:image/jpeg;base64"
    return Image.open(BytesIO(base64.b64decode(data)))


def plain(values) -> list:
    """A trace's numbers, also where Plotly packs them."""
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).tolist()
    return list(values)


def test_each_patch_has_its_point_row_by_row() -> None:
    drawn = spec(heat_figure(heat()))
    (trace,) = drawn["data"]
    assert plain(trace["x"]) == [5, 15, 25, 5, 15, 25]
    assert plain(trace["y"]) == [5, 5, 5, 15, 15, 15]
    assert plain(trace["marker"]["color"]) == [0, 1, 2, 3, 4, 50]
    assert trace["text"][5] == "row 1, column 2: 50 attention weight"
    assert trace["text"][1] == "row 0, column 1: 1 attention weight"
    assert trace["marker"]["opacity"] == 0
    assert trace["hoverinfo"] == "text"


def test_a_point_lies_on_the_patch_in_the_box() -> None:
    made = heat([[1, 2], [3, 4]], size=(40, 20), box=(10.0, 0.0, 30.0, 20.0))
    (trace,) = spec(heat_figure(made))["data"]
    assert list(zip(plain(trace["x"]), plain(trace["y"]), strict=True)) == [
        (15, 5),
        (25, 5),
        (15, 15),
        (25, 15),
    ]


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        (-15, [None, 0, 10, 20]),  # the second and the last are half outside
        (-10, [None, 5, 15, None]),  # the first and the last only touch the picture
    ],
)
def test_patches_outside_the_picture_keep_their_index_but_have_no_point(top, expected) -> None:
    made = heat(np.arange(4).reshape(4, 1), size=(10, 20), box=(0.0, top, 10.0, top + 40))
    (trace,) = spec(heat_figure(made))["data"]
    assert plain(trace["y"]) == expected
    assert plain(trace["x"]) == [None if y is None else 5 for y in expected]


def test_rows_run_down_and_nothing_moves() -> None:
    layout = spec(heat_figure(heat()))["layout"]
    assert layout["xaxis"]["range"] == [0, 30]
    assert layout["yaxis"]["range"] == [20, 0]
    assert layout["yaxis"]["scaleanchor"] == "x"
    for axis in (layout["xaxis"], layout["yaxis"]):
        assert axis["fixedrange"]
        assert not axis["visible"]
    assert layout["hovermode"] == "closest"
    assert layout["hoverdistance"] == -1
    (image,) = layout["images"]
    assert (image["x"], image["y"], image["sizex"], image["sizey"]) == (0, 0, 30, 20)
    assert (image["sizing"], image["layer"]) == ("stretch", "below")


def test_the_picture_is_the_overlay_shrunk() -> None:
    made = heat(size=(1200, 800))
    drawn = spec(heat_figure(made, alpha=1.0, max_side=300))
    picture = picture_of(drawn)
    assert picture.size == (300, 200)
    np.testing.assert_allclose(picture.getpixel((250, 150)), (252, 255, 164), atol=6)
    np.testing.assert_allclose(picture.getpixel((50, 50)), (0, 0, 4), atol=6)


@pytest.mark.parametrize(
    ("options", "ends", "texts"),
    [
        ({}, (0, 50), ["0", "25", "50"]),
        ({"scale": Scale(1.0, 5.0, "mine")}, (1, 5), ["≤ 1", "3", "≥ 5"]),
        ({"clip": 80.0}, (1, 4), ["≤ 1", "2.5", "≥ 4"]),
    ],
)
def test_the_colour_bar_has_the_true_numbers(options, ends, texts) -> None:
    marker = spec(heat_figure(heat(), colormap="viridis", **options))["data"][0]["marker"]
    assert (marker["cmin"], marker["cmax"]) == pytest.approx(ends)
    assert marker["colorbar"]["ticktext"] == texts
    assert marker["colorbar"]["title"]["text"].startswith("attention weight, ")
    assert marker["colorbar"]["orientation"] == "h"  # right above the picture, however wide that is
    assert marker["showscale"]
    assert marker["colorscale"][0] == [0, "rgb(68,1,84)"]
    assert marker["colorscale"][-1] == [1, "rgb(253,231,37)"]


def test_a_constant_map_has_one_colour_and_one_number() -> None:
    marker = spec(heat_figure(heat(np.full((2, 3), 0.25))))["data"][0]["marker"]
    assert marker["cmin"] < 0.25 < marker["cmax"]
    assert plain(marker["colorbar"]["tickvals"]) == [0.25]
    assert len({colour for _, colour in marker["colorscale"]}) == 1
    assert "constant map" in marker["colorbar"]["title"]["text"]


def test_the_query_is_outlined() -> None:
    shapes = spec(heat_figure(heat(query_cell=(1, 0))))["layout"]["shapes"]
    assert {(shape["x0"], shape["y0"], shape["x1"], shape["y1"]) for shape in shapes} == {
        (0, 10, 10, 20)
    }
    assert "shapes" not in spec(heat_figure(heat()))["layout"]


def test_the_facts_are_on_the_figure_as_text() -> None:
    made = heat(facts=(("model", "<b>mine</b> & co"), ("head", "3")))
    title = spec(heat_figure(made))["layout"]["annotations"][0]["text"]
    assert title.replace("<br>", " ") == (
        "Attention; model: &lt;b&gt;mine&lt;/b&gt; &amp; co; head 3; opacity 0.5"
    )
    assert "annotations" not in spec(heat_figure(made, caption=False))["layout"]


def test_wrong_options_are_refused() -> None:
    with pytest.raises(BadOption, match="alpha"):
        heat_figure(heat(), alpha=2.0)
    with pytest.raises(UnknownName, match="viridis"):
        heat_figure(heat(), colormap="viridiss")


def test_three_components_are_said_in_numbers_without_a_colour_bar() -> None:
    values = [[[0, -5, 2], [1, 5, 2]], [[4, 0, 2], [2, 1, 2]]]
    for caption in (True, False):
        drawn = spec(heat_figure(heat(values, unit="score"), alpha=1.0, caption=caption))
        (trace,) = drawn["data"]
        assert trace["text"][1] == "row 0, column 1: 1, 5, 2 score"
        assert trace["text"][2] == "row 1, column 0: 4, 0, 2 score"
        assert not {"color", "colorbar", "showscale"} & trace["marker"].keys()
        title = drawn["layout"]["annotations"][0]["text"].replace("<br>", " ")
        assert "red is component 0, 0 to 4; green is component 1, -5 to 5" in title
        assert ("opacity 1" in title) == caption
        np.testing.assert_allclose(picture_of(drawn).getpixel((4, 16)), (255, 128, 0), atol=6)


def test_the_camera_saves_an_svg_by_that_name() -> None:
    assert camera("dinov2_head-3")["toImageButtonOptions"]["filename"] == "dinov2_head-3"
    assert camera("x")["toImageButtonOptions"]["format"] == "svg"


def test_warnings_opacity_and_smoothing_are_on_the_chart():
    made = heat(notes=("random weights: this map means nothing",))
    drawn = spec(heat_figure(made, alpha=0.25, interpolation="bilinear"))
    title = drawn["layout"]["annotations"][0]["text"]
    assert "random weights: this map means nothing" in title
    assert "opacity 0.25" in title
    bar = next(t["marker"]["colorbar"] for t in drawn["data"] if "colorbar" in t["marker"])
    assert "smoothed (bilinear)" in bar["title"]["text"]


def test_the_mass_of_a_map_is_outlined_and_said():
    made = heat([[6, 1, 0], [3, 0, 0]], query_cell=(1, 1))
    drawn = spec(heat_figure(made, mass=0.9))
    black, white, *query = drawn["layout"]["shapes"]
    assert [shape["line"]["color"] for shape in (black, white)] == ["black", "white"]
    assert {shape["type"] for shape in query} == {"rect"}
    assert black["path"] == white["path"]
    strokes = set(black["path"].removeprefix("M").split("M"))
    # the two patches of the first column, 10 pixels wide each
    assert strokes == {"0.0,0.0L10.0,0.0", "0.0,20.0L10.0,20.0", "0.0,0.0L0.0,20.0",
                       "10.0,0.0L10.0,20.0"}  # fmt: skip
    title = drawn["layout"]["annotations"][0]["text"].replace("<br>", " ")
    assert "opacity 0.5; outlined: the 2 of 6 patches (33.3%) that hold 0.9 of the map" in title
    assert "outlined" not in spec(heat_figure(made))["layout"]["annotations"][0]["text"]


def test_the_outline_lies_in_the_box():
    made = heat([[1, 0]], size=(40, 20), box=(10.0, -5.0, 30.0, 25.0))
    (black, _) = spec(heat_figure(made, mass=1.0))["layout"]["shapes"]
    assert set(black["path"].removeprefix("M").split("M")) == {
        "10.0,-5.0L20.0,-5.0", "10.0,25.0L20.0,25.0", "10.0,-5.0L10.0,25.0", "20.0,-5.0L20.0,25.0",
    }  # fmt: skip


def test_a_map_without_mass_has_no_outline():
    with pytest.raises(BadOption, match="at least 0"):
        heat_figure(heat([[1, -1]]), mass=0.6)


def metrics_of(*heads: int):
    maps = [random_maps(1, count, 7, seed=count)[0] for count in heads]
    return head_metrics(record_of(maps, ("cls",), (2, 3)))


def test_a_metric_has_a_dot_a_head_and_a_line_of_means():
    made = metrics_of(3, 1)
    drawn = spec(depth_figure(made, "entropy"))
    dots, line = drawn["data"]
    values = made["entropy"]
    assert plain(dots["x"]) == [0, 0, 0, 1]
    assert plain(dots["y"]) == [*values[0], values[1, 0]]
    assert dots["text"][3] == f"layer 1, head 0: {values[1, 0]:.3g} nats"
    assert dots["mode"] == "markers" and line["mode"] == "lines"
    assert plain(line["y"]) == pytest.approx([values[0].mean(), values[1, 0]])
    layout = drawn["layout"]
    assert layout["xaxis"]["title"]["text"] == "Network depth (layer)"
    assert layout["yaxis"]["title"]["text"] == "Attention entropy (nats)"
    assert layout["xaxis"]["range"] == [-0.5, 1.5]
    assert layout["yaxis"]["rangemode"] == "tozero"
    said = layout["annotations"][0]["text"].replace("<br>", " ")
    assert said.startswith("Attention entropy; each dot a head") and "model: by hand" in said
    assert "annotations" not in spec(depth_figure(made, "entropy", caption=False))["layout"]


def test_a_head_without_a_value_keeps_its_index():
    rows = np.zeros((2, 7, 7))
    rows[0, :, 0] = 1  # all on the class token
    rows[1] = np.eye(7)
    made = head_metrics(record_of([rows], ("cls",), (2, 3)))
    dots, _ = spec(depth_figure(made, "distance_renormalised"))["data"]
    assert np.isnan(plain(dots["y"])).tolist() == [True, False]
    assert dots["text"][0].startswith("layer 0, head 0: nan")


def test_a_metric_that_does_not_exist():
    with pytest.raises(UnknownName, match="entropy"):
        depth_figure(metrics_of(1), "entropi")
