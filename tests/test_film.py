"""A query's map layer by layer: which layers, on which scale, and what stands in the files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
import timm
import torch
from conftest import small_input, small_vit
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

import attnviz
import models
from attnviz import animation, sheet, strip
from attnviz.board import columns_for
from attnviz.colour import overlay, paletted
from attnviz.errors import BadOption, UnknownName
from attnviz.figure import latex, notes_of
from attnviz.film import FILMED, Film
from attnviz.film_export import FILM_KINDS, film_stem, render_film
from attnviz.frames import Frames, runs
from attnviz.places import require_in_some_layer, require_places
from attnviz.scale import Scale
from attnviz.strip import FilmPaper
from tests.test_export import heat, svg_text
from tests.test_methods import random_maps, record_of

CELLS = [[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [[5.0, 5.0, 6.0], [7.0, 9.0, 20.0]], [[1.0] * 3] * 2]
"""Layers 0, 1 and 3; the last one is level."""


SHARED = {"scale": "shared"}


def frames(**changes) -> Frames:
    maps = {
        layer: replace(
            heat(cells, size=(90, 60)), facts=(("method", "Attention"), ("layer", str(layer)), ("head", "5"))
        )
        for layer, cells in zip((0, 1, 3), CELLS, strict=True)
    }  # fmt: skip
    return Frames(**{"maps": maps, "layers": 4, "left_out": {2: "the class token does not ask there"}, **changes})  # fmt: skip


def test_a_range_above_a_narrow_map_breaks_before_its_end():
    first = replace(frames().maps[0], values=np.float32([[2.76e-10, 0.001, 0.00892]]))
    text = render_film(Frames(dict.fromkeys(range(3), first), 3), ".svg", width_mm=50.0, columns=3)
    lines = [node.text for node in ElementTree.fromstring(text).iter() if "}text" in node.tag]
    at = lines.index("layer 0")
    assert lines[at + 1 : at + 3] == ["2.76e-10", "to 0.00892"]


@pytest.mark.parametrize(
    ("options", "way_out"),
    [
        ({}, "; clip=99 shows the others"),
        ({"scale": "shared", "clip": 99.99}, "; clip=99 shows the others"),
        ({"clip": 98.0}, None),  # all that is above 2 is drawn as that
        ({"scale": Scale(0.0, 200.0, "mine")}, ""),
        ({"scale": Scale(0.0, 2.0, "mine")}, None),
    ],
)
def test_a_film_says_in_which_layers_few_patches_leave_nothing_else_to_see(options, way_out):
    """200 in one of 10 · 20 patches and 1 to 2 elsewhere, in layers 0 and 3."""
    level = np.linspace(1, 2, 200).reshape(10, 20)
    peak = level.copy()
    peak[4, 7] = 200.0
    made = Frames({0: heat(peak), 1: heat(level), 2: heat(level), 3: heat(peak)}, 4)
    note = f"layers 0, 3: a few patches hold so much that nothing else is seen{way_out}"
    says = way_out is not None
    assert notes_of(made, ".pdf", **options) == ([note] if says else [])
    assert notes_of(made, ".npz") == []
    text = " ".join(svg_text(render_film(made, ".svg", **options)).split())
    assert ("nothing else is seen" in text) == ("nothing else is seen" in latex(made, "a.pdf", **options)) == says  # fmt: skip


def swin():
    """4 layers: two of 1 head on 16 × 16 cells, two of 4 heads on 8 × 8."""
    module = timm.models.swin_transformer.SwinTransformer(
        img_size=64, window_size=4, embed_dim=16, depths=(2, 2), num_heads=(1, 4), num_classes=3
    )
    return models.wrap(module.eval())


def cait():
    """Two layers of patches alone, then two in which the class token alone asks."""
    module = timm.models.cait.Cait(
        img_size=32, patch_size=8, embed_dim=16, depth=2, num_heads=2, depth_token_only=2
    )
    return models.wrap(module.eval())


# --- which maps ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("attention", {}),
        ("attention", {"head": 1}),
        ("attention", {"head_fusion": "max", "query": (1, 2)}),
        ("attention", {"direction": "to", "query": (1, 2)}),
        ("value_weighted", {"head": 0, "query": "mean"}),
        ("attention_gradcam", {}),
    ],
)
def test_each_layer_has_the_map_that_explain_gives(method, options):
    record = attnviz.observe(small_vit(), small_input(), target=2)
    film = attnviz.film(record, method, **options)
    assert [*film.maps] == [0, 1, 2] and film.layers == 3 and not film.left_out
    for layer, made in film.maps.items():
        alone = attnviz.explain(record, method, layer=layer, **options)
        np.testing.assert_array_equal(made.values, alone.values)
        assert made.facts == alone.facts


def test_a_head_counted_from_the_end_is_the_same_in_every_layer():
    record = record_of(random_maps(2, 3, 6), grid=(2, 3))
    film = attnviz.film(record, head=-1, query="mean")
    assert film.fact("head") == "2" and film.fact("layers") == "0 to 1 (of 2, counted from 0)"


def test_layers_in_which_a_token_does_not_ask_are_left_out_and_named():
    record = attnviz.observe(cait(), torch.randn(1, 3, 32, 32))
    film = attnviz.film(record)
    assert [*film.maps] == [2, 3]
    assert film.notes[0] == "layers 0 to 1 left out: the class token does not ask there"
    assert [*attnviz.film(record, query=(0, 1)).maps] == [0, 1]
    np.testing.assert_array_equal(
        film.maps[3].values, attnviz.explain(record, layer=3, query="cls").values
    )


def test_that_a_token_asks_in_no_such_layer_is_known_before_a_pass():
    vit = cait()
    layout, first, last = vit.layout(32, 32), {"layer": 1}, {"layer": 2}
    record = attnviz.observe(vit, torch.zeros(1, 3, 32, 32))
    for options, query in ((last, (0, 1)), (first, "cls"), (last, "mean")):
        with pytest.raises(BadOption, match="that token does not ask") as before:
            require_places(vit, layout, "attention", options, query)
        with pytest.raises(BadOption) as after:
            attnviz.explain(record, query=query, **options)
        assert str(before.value) == str(after.value)
    for options, query in ((last, "cls"), (first, (0, 1)), ({**first, "direction": "to"}, (0, 1))):
        require_places(vit, layout, "attention", options, query)
        attnviz.explain(record, query=query, **options)
    require_places(vit, layout, "rollout", {}, (0, 1))
    require_in_some_layer(vit, layout, "attention", {}, (0, 1))
    with pytest.raises(BadOption, match=r"no layer to show: the patch \(row 0, column 1\) does not ask there\. Choose another query\."):  # fmt: skip
        require_in_some_layer(SimpleNamespace(sites=vit.sites[2:]), layout, "attention", {}, (0, 1))


def test_who_looks_at_a_token_that_no_layer_offers_is_left_out_too():
    record = attnviz.observe(cait(), torch.randn(1, 3, 32, 32))
    film = attnviz.film(record, query=(0, 1), direction="to")
    assert [*film.maps] == [0, 1]
    assert film.notes[0] == "layers 2 to 3 left out: no patch looks at anything there"
    with pytest.raises(BadOption, match="nothing looks at the class token there"):
        attnviz.film(record, query="cls", direction="to")


def test_stages_keep_their_own_grids_and_layers_of_fewer_heads_are_left_out():
    record = attnviz.observe(swin(), torch.randn(1, 3, 64, 64))
    film = attnviz.film(record, query=(3, 5))
    assert [heat.grid for heat in film.maps.values()] == [(16, 16)] * 2 + [(8, 8)] * 2
    assert {heat.box for heat in film.maps.values()} == {(0.0, 0.0, 64.0, 64.0)}
    assert film.fact("grids") == "16 × 16, 8 × 8 (rows × columns of patches)"
    assert film.fact("grid") is None and film.fact("query") == "patch (row 3, column 5)"
    assert [*attnviz.film(record, query=(3, 5), head=1).maps] == [2, 3]
    one = attnviz.film(record, query=(3, 5), head=2)
    assert [*one.maps] == [2, 3]
    assert one.notes[0] == "layers 0 to 1 left out: there are 1 heads, and no head 2"


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"method": "rollout"}, BadOption, "goes through several: choose attention or"),
        ({"method": "attentoin"}, UnknownName, "Did you mean attention"),
        ({"layer": 2}, BadOption, "leave layer out"),
        ({"head": 3}, UnknownName, "numbered 0 to 2"),
        ({"query": "reg1"}, UnknownName, "no query 'reg1'"),
        ({"query": (2, 0)}, UnknownName, "no patch at row 2"),
        ({"head_fusion": "sum"}, UnknownName, "no head fusion"),
    ],
)
def test_what_cannot_be_filmed_is_refused(options, error, says):
    record = record_of(random_maps(2, 3, 7), ("cls",), (2, 3))
    with pytest.raises(error, match=says):
        attnviz.film(record, **options)


def test_a_method_of_one_layer_can_be_filmed_and_no_other():
    assert FILMED == ("attention", "attention_gradcam", "value_weighted")


@pytest.mark.parametrize(
    ("layers", "words"),
    [([0], "0"), ([3, 0, 1], "0 to 1, 3"), ([0, 2, 4, 5, 6], "0, 2, 4 to 6"), (range(12), "0 to 11")],
)  # fmt: skip
def test_layers_in_words(layers, words):
    assert runs(layers) == words


def test_a_warning_of_some_layers_names_them():
    maps = dict(frames().maps)
    maps[1] = replace(maps[1], notes=("odd",))
    assert frames(maps=maps).notes[1:] == ("layer 1: odd",)
    every = {layer: replace(one, notes=("odd",)) for layer, one in maps.items()}
    assert frames(maps=every).notes[1:] == ("odd",)


@pytest.mark.parametrize(
    "changes",
    [
        {"maps": {}, "left_out": dict.fromkeys(range(4), "why")},
        {"left_out": {}},
        {"layers": 5},
        {"maps": {0: heat(), 1: replace(heat(), unit="other")}, "layers": 2, "left_out": {}},
        {"maps": {0: heat(), 1: heat(size=(31, 20))}, "layers": 2, "left_out": {}},
        {"maps": {0: heat(np.zeros((2, 3, 3)))}, "layers": 1, "left_out": {}},
    ],
)
def test_frames_that_do_not_belong_together_are_refused(changes):
    with pytest.raises(BadOption):
        frames(**changes)


# --- scales -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "clip", "ends"),
    [
        ("shared", None, [(0, 20)] * 3),
        ("own", None, [(0, 5), (5, 20), (1, 1)]),
        ("zero", None, [(0, 5), (0, 20), (0, 1)]),
        (Scale(-1, 4, "by hand"), None, [(-1, 4)] * 3),
        ("own", 75, [(1.25, 3.75), (5.25, 8.5), (1, 1)]),  # quarters of 6 numbers, by hand
    ],
)
def test_scales_are_shared_or_each_layer_s_own(scale, clip, ends):
    found = frames().scales(scale, clip=clip)
    assert [(each.low, each.high) for each in found] == ends


def test_there_is_no_scale_of_that_name():
    with pytest.raises(UnknownName, match="no film scale"):
        frames().scales("all")


# --- animations ---------------------------------------------------------------------------------


def read(content):
    """Every frame in true colours, and how long each stands, in ms."""
    with Image.open(BytesIO(content)) as file:
        shown = []
        for number in range(file.n_frames):
            file.seek(number)
            file.load()
            shown.append((file.convert("RGB"), file.info["duration"]))
        return *map(list, zip(*shown, strict=True)), file.info


SPOT = (8, 24, 312, 227)
"""Of a map that is 320 pixels wide in all: margins of 4 points, a line of 8, at 144 dpi; 304 × 203."""


@pytest.mark.parametrize("scale", ["shared", "own", Scale(0, 30, "by hand")])
def test_webp_holds_every_overlay_pixel_for_pixel(scale):
    film = frames()
    content = render_film(film, ".webp", width_px=320, scale=scale, seconds=0.25)
    pictures, durations, info = read(content)
    assert durations == [250] * 3 and info["loop"] == 0
    assert {picture.width for picture in pictures} == {320}
    for picture, made, each in zip(pictures, film.maps.values(), film.scales(scale), strict=True):
        expected = overlay(made, scale=each, size=(304, 203))
        np.testing.assert_array_equal(picture.crop(SPOT), expected)


def test_gif_holds_the_nearest_of_256_colours_a_frame():
    film = frames()
    pictures, durations, info = read(
        render_film(film, ".gif", width_px=320, seconds=0.25, **SHARED)
    )
    assert durations == [250] * 3 and info["loop"] == 0
    for picture, made, scale in zip(
        pictures, film.maps.values(), film.scales("shared"), strict=True
    ):
        expected = np.asarray(overlay(made, scale=scale, size=(304, 203))).astype(int)
        off = np.abs(np.asarray(picture.crop(SPOT)).astype(int) - expected)
        assert off.max() <= 24 and off.mean() < 8
        assert len(picture.getcolors(1 << 20)) <= 256


@pytest.mark.parametrize("colours", [2, 256])
def test_few_colours_stay_exact(colours):
    noise = np.random.default_rng(3).integers(0, 256, (colours, 3), dtype=np.uint8)
    picture = Image.fromarray(np.stack([noise, noise[::-1]]))
    np.testing.assert_array_equal(paletted(picture).convert("RGB"), picture)


def test_frames_are_of_one_size_and_differ_by_their_number_alone_where_maps_are_alike():
    alike = {layer: heat(size=(90, 60)) for layer in range(2)}
    first, second = read(render_film(Frames(maps=alike, layers=2), ".webp", width_px=320))[0]
    assert first.size == second.size
    _, ys = np.where((np.asarray(first) != np.asarray(second)).any(-1))[::-1]
    assert len(ys) > 0 and ys.max() < 24  # the line above the map


@pytest.mark.parametrize("kind", [".gif", ".webp", ".png", ".svg", ".pdf", ".npz"])
def test_the_same_request_gives_the_same_bytes_and_they_say_what_was_drawn(kind):
    options = {"width_px": 200, "width_mm": 60, "dpi": 80, **SHARED}
    content = render_film(frames(), kind, **options)
    assert content == render_film(frames(), kind, **options)
    assert re.search(rb"20[2-9]\d-\d\d-\d\d", content) is None  # no date
    if kind == ".pdf":
        assert b"/Subject" in content
        return
    if kind == ".svg":
        names = {"dc": "http://purl.org/dc/elements/1.1/"}
        text = ElementTree.fromstring(content).findtext(".//dc:description", namespaces=names)
    elif kind == ".npz":
        text = str(np.load(BytesIO(content))["manifest"])
    else:
        info = Image.open(BytesIO(content)).info
        text = info[{".gif": "comment", ".png": "Description"}.get(kind, "xmp")]
        if kind == ".webp":
            text = [*ElementTree.fromstring(text).iter()][-1].text
    said = json.loads(text)
    assert said["facts"]["layers"] == "0 to 1, 3 (of 4, counted from 0)"
    assert said["left_out"] == {"2": "the class token does not ask there"}
    assert [(each["layer"], each["scale"]["high"]) for each in said["layers"]] == [
        (0, 20.0), (1, 20.0), (3, 20.0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("scale", "ends"),
    [
        (Scale(0.0, 30.0, "by hand"), [("0", "30")] * 3),
        (Scale(2.0, 10.0, "by hand"), [("≤ 2", "10"), ("2", "≥ 10"), ("≤ 2", "10")]),
    ],
)
def test_a_frame_s_bar_marks_the_ends_that_its_own_values_lie_beyond(scale, ends):
    """Layers run from 0 to 5, from 5 to 20, and are level at 1."""
    plan = animation._Plan.of(frames(), FilmPaper(width_px=320, scale=scale))
    for layer, (low, high) in zip((0, 1, 3), ends, strict=True):
        said = [text.get_text() for text in plan.figure(layer).texts]
        assert (said[1], said[3]) == (low, high)  # after the layer's number, around the middle


# --- the printed strip --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "width", "wanted", "columns"),
    [(12, 183, None, 6), (12, 89, None, 4), (5, 89, None, 3), (24, 183, None, 8), (1, 89, None, 1),
     (12, 183, 12, 12), (3, 183, 9, 3)],
)  # fmt: skip
def test_maps_stand_in_even_lines(count, width, wanted, columns):
    assert columns_for(count, width, wanted) == columns


def test_the_strip_holds_every_overlay_pixel_for_pixel():
    film = frames()
    drawn = Image.open(
        BytesIO(render_film(film, ".png", width_mm=76.2, dpi=100, columns=2, **SHARED))
    )
    drawn = drawn.convert("RGB")
    # 300 pixels: margins and gaps of 6, so two maps of 141 × 94; lines of text of 11.
    for number, (made, scale) in enumerate(
        zip(film.maps.values(), film.scales("shared"), strict=True)
    ):
        left, top = 6 + 147 * (number % 2), 6 + 11 + (11 + 94 + 6) * (number // 2)
        expected = overlay(made, scale=scale, size=(141, 94))
        np.testing.assert_array_equal(drawn.crop((left, top, left + 141, top + 94)), expected)


def words_of(content) -> str:
    nodes = ElementTree.fromstring(content).iter()
    return " ".join(node.text or "" for node in nodes if "}text" in node.tag)


def test_the_strip_says_what_it_shows():
    text = words_of(render_film(frames(), ".svg", width_mm=120, **SHARED))
    for words in ("layer 0", "layer 1", "layer 3", "0 10 20", "attention weight, lowest to highest",
                  "shared by 3 maps", "layers: 0 to 1, 3 (of 4, counted from 0)",
                  "Note: layer 2 left out: the class token does not ask there"):  # fmt: skip
        assert words in text
    bare = words_of(render_film(frames(), ".svg", width_mm=120, caption=False))
    assert "layer 3" in bare and "Note" not in bare


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (SHARED, "0 10 20"),
        ({"scale": Scale(0.0, 10.0, "by hand")}, "0 5 ≥ 10"),  # by layer 1 alone
        ({"scale": Scale(0.5, 20.0, "by hand")}, "≤ 0.5 10.2 20"),  # by layer 0
    ],
)
def test_the_strip_s_bar_marks_the_ends_that_values_of_any_layer_lie_beyond(options, numbers):
    text = words_of(render_film(frames(), ".svg", width_mm=120, caption=False, **options))
    assert f"{numbers} attention weight" in text


def test_scales_of_their_own_stand_above_each_map():
    text = words_of(render_film(frames(), ".svg", width_mm=120))
    for words in ("layer 0 0 to 5", "layer 1 5 to 20", "layer 3 1 throughout", "scale of its own"):
        assert words in text


def test_a_map_that_a_clip_makes_flat_is_not_called_level():
    hot = np.zeros((20, 20), np.float32)
    hot[3, 4] = 1.0
    made = frames(maps={0: heat(hot), 1: heat(np.zeros((20, 20))), 3: heat(np.full((20, 20), 0.1))})
    scales = [(each.low, each.high) for each in made.scales("own", clip=99.0)]
    assert scales[0] == (0.0, 0.0)
    text = words_of(render_film(made, ".svg", width_mm=120, clip=99.0))
    for words in ("layer 0 ≥ 0 layer", "layer 1 0 throughout", "layer 3 0.1 throughout"):
        assert words in text


@pytest.mark.parametrize(
    ("width", "size", "scale"),
    [(50.0, (90, 60), "own"), (89.0, (20, 300), "shared"), (183.0, (600, 20), "own")],
)
def test_nothing_collides_and_nothing_is_cut_off(width, size, scale):
    maps = {layer: heat(np.array(((0, 1e-7, 2), (3, 4, layer + 5.123))), size=size) for layer in range(12)}  # fmt: skip
    film = Frames(maps=maps, layers=12)
    with matplotlib.style.context(["default", sheet.SETTINGS]):
        figure = strip._board(film, FilmPaper(width_mm=width, dpi=100, scale=scale)).drawn("pdf")
        FigureCanvasAgg(figure).draw()
        renderer = figure.canvas.get_renderer()
        texts = [text.get_window_extent(renderer) for text in figure.texts]
        pictures = [axes.get_window_extent(renderer) for axes in figure.axes]
    for box in [*texts, *pictures]:
        assert box.x0 >= -1 and box.y0 >= -1
        assert box.x1 <= figure.bbox.x1 + 1 and box.y1 <= figure.bbox.y1 + 1
    for number, box in enumerate(texts):
        for other in [*texts[number + 1 :], *pictures]:
            # Text boxes reach from the highest ascender to the lowest descender.
            apart = box.x0 >= other.x1 - 1 or box.x1 <= other.x0 + 1
            assert apart or box.y0 >= other.y1 - 2 or box.y1 <= other.y0 + 2


def test_fonts_are_embedded_as_truetype():
    assert b"/FontFile2" in render_film(frames(), ".pdf", width_mm=60, dpi=80)


# --- numbers, names, mistakes -------------------------------------------------------------------


def test_the_numbers_are_layer_by_row_by_column():
    with np.load(BytesIO(render_film(frames(), ".npz"))) as saved:
        np.testing.assert_array_equal(saved["values"], CELLS)
        assert saved["layers"].tolist() == [0, 1, 3] and saved["boxes"].shape == (3, 4)
        assert saved["filled"].all() and str(saved["unit"]) == "attention weight"


def test_the_numbers_of_other_grids_stand_alone():
    maps = {0: heat(np.ones((2, 3))), 1: heat(np.arange(6.0).reshape(1, 6))}
    with np.load(BytesIO(render_film(Frames(maps=maps, layers=2), ".npz"))) as saved:
        assert saved["values_0"].shape == (2, 3) and "values" not in saved
        np.testing.assert_array_equal(saved["values_1"], [[0, 1, 2, 3, 4, 5]])


def test_a_file_s_name_says_what_is_in_it():
    record = record_of(random_maps(2, 3, 7), ("cls",), (2, 3))
    film = attnviz.film(record, head=1).named("a cat.jpg")
    assert isinstance(film, Film)
    assert film_stem(film) == "a-cat_by-hand_attention_layers_head-1_query-class-token"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"seconds": 0.05}, "seconds is from 0.1 to 10"),
        ({"seconds": float("nan")}, "seconds is"),
        ({"width_px": 100}, "width_px is a whole number from 160"),
        ({"width_px": "wide"}, "width_px is a whole number"),
        ({"columns": 0}, "columns is a whole number from 1"),
        ({"columns": True}, "columns is a whole number from 1 to 100; True came"),
        ({"original": 1}, "original is True or False; 1 came"),
        ({"letters": "yes"}, "letters is True or False; 'yes' came"),
        ({"width_mm": 10}, "width_mm is from 50"),
        ({"alpha": 2}, "alpha is from 0"),
    ],
)
def test_options_that_do_not_work_are_refused(tmp_path, options, says):
    with pytest.raises(BadOption, match=says):
        attnviz.film(record_of(random_maps(2, 1, 6), grid=(2, 3))).save(tmp_path / "a.gif", **options)  # fmt: skip
    assert not [*tmp_path.iterdir()]


def test_kinds_that_do_not_exist_are_refused_and_too_large_films_too(monkeypatch):
    with pytest.raises(UnknownName, match=r"no kind of file '\.mp4'"):
        render_film(frames(), ".mp4")
    monkeypatch.setattr("attnviz.animation.MOST_PIXELS", 1000)
    with pytest.raises(BadOption, match="give a smaller width_px"):
        render_film(frames(), ".gif")


@pytest.mark.parametrize("kind", FILM_KINDS)
def test_a_film_of_one_layer_is_a_film(kind):
    record = record_of(random_maps(1, 2, 6), grid=(2, 3))
    assert render_film(attnviz.film(record), kind, width_px=160, width_mm=50, dpi=72)
