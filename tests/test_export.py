"""Files for a paper: reopened, measured, and the same bytes for the same request."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import jaxtyping
import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

import attnviz
from attnviz import depth, paper, sheet, typeset
from attnviz.colour import overlay
from attnviz.errors import BadOption, UnknownName
from attnviz.export import (
    RENDERERS,
    file_stem,
    render,
    render_mask,
    render_png,
    save,
)
from attnviz.facts import NAME
from attnviz.fonts import FONT, families
from attnviz.heatmap import Heatmap
from attnviz.metrics import HeadMetrics, head_metrics
from attnviz.paper import Paper
from attnviz.plot_export import DEPTH_KINDS, depth_stem, render_depth, render_table, save_depth
from attnviz.scale import Scale
from attnviz.shapes import NAME_LETTERS
from attnviz.sheet import LINE
from attnviz.typeset import TYPE, text_width, wrap
from attnviz.venue import PlotPaper
from tests.test_methods import random_maps, record_of

FACTS = (
    ("method", "Attention"),
    ("layer", "3 (of 12, counted from 0)"),
    ("head", "5"),
    ("query", "patch (row 1, column 0)"),
    ("model", "dinov2-small"),
)
SMALL = {"width_mm": 50.0, "dpi": 100}


def photo(width: int, height: int) -> Image.Image:
    noise = np.random.default_rng(1).integers(0, 200, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(noise)


def heat(values=((0, 1, 2), (3, 4, 50)), *, size=(30, 20), box=None, **changes) -> Heatmap:
    return Heatmap(
        **{
            "values": np.array(values, dtype=np.float32),
            "unit": "attention weight",
            "title": "Attention",
            "facts": FACTS,
            "image": photo(*size),
            "box": box or (0.0, 0.0, float(size[0]), float(size[1])),
            **changes,
        }
    )


def svg_text(content: bytes) -> str:
    words = [
        node.text or "" for node in ElementTree.fromstring(content).iter() if "}text" in node.tag
    ]
    return " ".join(words)


# --- what is in the files -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "box", "options"),
    [
        ((30, 20), None, {"width_mm": 89.0, "dpi": 450}),  # enlarged
        ((500, 300), None, {"width_mm": 50.0, "dpi": 100}),  # shrunk
        ((40, 20), (10.0, 0.0, 30.0, 20.0), SMALL),
        ((20, 90), (-5.0, 0.0, 25.0, 90.0), SMALL),  # high and narrow
    ],
)
def test_the_png_holds_the_overlay_pixel_for_pixel(tmp_path, size, box, options) -> None:
    made = heat(size=size, box=box)
    path = save(made, tmp_path / "figure.png", **options)
    file = Image.open(path)
    width = round(options["width_mm"] / 25.4 * options["dpi"])
    assert file.width == width
    assert file.info["dpi"] == pytest.approx((options["dpi"],) * 2, rel=1e-3)
    margin = round(4 / 72 * options["dpi"])
    share = min((width - 2 * margin) / size[0], round(150 / 25.4 * options["dpi"]) / size[1])
    wide, high = round(size[0] * share), round(size[1] * share)
    left = (width - wide) // 2
    printed = file.convert("RGB").crop((left, margin, left + wide, margin + high))
    np.testing.assert_array_equal(printed, overlay(made, size=(wide, high)))


def test_the_patch_asked_about_is_framed() -> None:
    size = {"width_mm": 50.0, "dpi": 254}  # 500 pixels wide, of which 14 are margin on each side
    with_frame, without = (
        np.asarray(Image.open(BytesIO(render_png(made, **size)))).astype(int)
        for made in (heat(query_cell=(0, 1)), heat())
    )
    ys, xs = (with_frame != without).any(-1).nonzero()
    # the middle third of the upper half of the picture; half of the line lies outside the patch
    assert xs.min() == pytest.approx(14 + 472 / 3, abs=4)
    assert xs.max() == pytest.approx(14 + 472 * 2 / 3, abs=4)
    assert ys.max() == pytest.approx(14 + 472 * 20 / 30 / 2, abs=4)
    assert ys.min() == pytest.approx(14, abs=4)


def test_the_colour_bar_is_opaque_and_as_wide_as_the_page() -> None:
    file = Image.open(BytesIO(render_png(heat(), alpha=0.1, colormap="viridis", dpi=300)))
    drawn = np.asarray(file.convert("RGB"))
    margin = round(4 / 72 * 300)
    first = (drawn == (68, 1, 84)).all(-1)
    last = (drawn == (253, 231, 37)).all(-1)
    assert first.nonzero()[1].min() == margin
    assert last.nonzero()[1].max() == file.width - margin - 1


@pytest.mark.parametrize("kind", [".png", ".svg", ".pdf", ".npz"])
def test_the_facts_travel_inside_the_file(kind) -> None:
    content = render(heat(notes=("random weights",)), kind, scale="zero", **SMALL)
    if kind == ".png":
        info = Image.open(BytesIO(content)).info
        assert info["Title"].startswith(
            "Attention; layer 3 (of 12, counted from 0); head 5; query: patch"
        )
        text = info["Description"]
    elif kind == ".svg":
        names = {"dc": "http://purl.org/dc/elements/1.1/"}
        text = ElementTree.fromstring(content).findtext(".//dc:description", namespaces=names)
    elif kind == ".npz":
        text = str(np.load(BytesIO(content))["manifest"])
    else:
        assert b"/Subject" in content
        return
    manifest = json.loads(text)
    assert manifest["facts"] == dict(FACTS)
    assert manifest["notes"] == ["random weights"]
    assert manifest["picture"] == [20, 30]
    assert manifest["drawn"]["scale"] == {"name": "from zero", "low": 0.0, "high": 50.0}


def test_the_pdf_embeds_truetype_fonts_at_the_asked_width() -> None:
    content = render(heat(), ".pdf", width_mm=89.0, dpi=100)
    assert content.startswith(b"%PDF-")
    assert content.rstrip().endswith(b"%%EOF")
    assert b"/CIDFontType2" in content
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", content)
    assert float(box[1]) == pytest.approx(89 / 25.4 * 72, abs=0.5)


def test_the_svg_keeps_its_text_and_says_what_was_drawn() -> None:
    content = render(
        heat(notes=("a warning",)), ".svg", interpolation="bilinear", clip=80.0, **SMALL
    )
    root = ElementTree.fromstring(content)
    assert root.get("width").endswith("pt")
    assert float(root.get("width")[:-2]) == pytest.approx(50 / 25.4 * 72, abs=0.5)
    text = svg_text(content)
    for words in (
        "attention weight",
        "clipped at percentiles 20 and 80",
        "smoothed (bilinear)",
        "layer 3 (of 12, counted from 0)",
        "head 5",
        "query: patch (row 1, column 0)",
        "model: dinov2-small",
        "opacity 0.5",
        "Note: a warning",
        "≤ 1",
        "≥ 4",
    ):
        assert words in text


def test_without_a_caption_scale_and_smoothing_are_still_named() -> None:
    text = svg_text(render(heat(), ".svg", caption=False, interpolation="bilinear", **SMALL))
    assert "lowest to highest value; smoothed (bilinear)" in text
    assert "50" in text
    assert "dinov2" not in text


def test_three_components_have_words_with_their_numbers_and_no_bar() -> None:
    with_caption, without = (
        svg_text(render(heat(THREE), ".svg", caption=caption, **SMALL)) for caption in (True, False)
    )
    for text in (with_caption, without):
        assert "red is component 0, 0 to 15; green is component 1, 100 to 1.6e+03;" in text
    assert "dinov2" in with_caption and "dinov2" not in without
    bar, none = (render(made, ".svg", **SMALL).count(b"<image") for made in (heat(), heat(THREE)))
    assert (bar, none) == (3, 2)  # photograph, cells, bar


@pytest.mark.parametrize("kind", RENDERERS)
@pytest.mark.parametrize("options", [{"colormap": "viridis"}, {"scale": "zero"}, {"clip": 90.0}])
def test_no_file_of_components_has_a_scale_that_is_not_theirs(kind, options) -> None:
    with pytest.raises(BadOption, match="as red, green and blue"):
        render(heat(THREE), kind, **options)


def test_nearest_is_not_called_smoothed() -> None:
    assert "smoothed" not in svg_text(render(heat(), ".svg", **SMALL))


def test_the_npz_round_trips_without_pickle(tmp_path) -> None:
    made = heat(np.random.default_rng(0).random((3, 5)), box=(1.5, -2.0, 28.0, 21.0))
    with np.load(save(made, tmp_path / "map.npz"), allow_pickle=False) as file:
        np.testing.assert_array_equal(file["values"], made.values)
        assert file["values"].dtype == np.float32
        assert file["box"].tolist() == [1.5, -2.0, 28.0, 21.0]
        assert file["picture"].tolist() == [20, 30]
        assert [tuple(pair) for pair in file["facts"].tolist()] == list(FACTS)
        assert file["notes"].tolist() == []
        assert str(file["unit"]) == "attention weight"


def test_odd_words_are_printed_as_they_are() -> None:
    facts = (("file", "a $x^2$ \\alpha <b> & ]]> \x00\x1b\n tail"),)
    for kind in RENDERERS:
        content = render(heat(facts=facts, title=""), kind, **SMALL)
        if kind == ".svg":
            assert "a $x^2$ \\alpha <b> & ]]> tail" in svg_text(content)


def test_maps_without_facts_are_saved_too() -> None:
    for kind in RENDERERS:
        assert render(heat(np.zeros((1, 1)), facts=()), kind, **SMALL)


# --- the look -----------------------------------------------------------------------------------

THREE = np.arange(18).reshape(2, 3, 3) * [1, 100, 1e-7]
LONG = (*FACTS, ("weights", "/a/path/without/a/blank" * 9), ("note", "many words of text " * 20))


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({}, {}),
        ({"size": (400, 30)}, {}),
        ({"size": (20, 400)}, {}),
        ({"facts": LONG, "notes": ("one", "two " * 50)}, {"width_mm": 89.0}),
        ({"facts": LONG}, {"clip": 90.0}),
        ({"unit": "a very long unit of measurement " * 4}, {}),
        ({"values": [[0.1, 0.2]]}, {"scale": Scale(-0.123456789, -0.123456781, "mine")}),
        ({"values": [[1.0, 1.0]]}, {}),
        ({"query_cell": (1, 2)}, {"width_mm": 183.0}),
        ({"values": THREE}, {}),
        ({"values": THREE, "facts": LONG, "notes": ("one",)}, {"caption": False}),
    ],
)
def test_nothing_collides_or_is_cut_off(changes, options) -> None:
    with matplotlib.style.context(["default", sheet.SETTINGS]):
        asked = Paper(**{"width_mm": 50.0, "dpi": 100, **options})
        figure = paper._board(heat(**changes), asked).drawn("pdf")
        renderer = FigureCanvasAgg(figure).get_renderer()
        texts = [text.get_window_extent(renderer) for text in figure.texts]
        pictures = [axes.get_window_extent(renderer) for axes in figure.axes]
    whole = figure.bbox
    for box in (*texts, *pictures):
        assert box.x0 >= -0.5
        assert box.y0 >= -0.5
        assert box.x1 <= whole.x1 + 0.5
        assert box.y1 <= whole.y1 + 0.5
    for one, other in combinations((*texts, *pictures), 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        down = min(one.y1, other.y1) - max(one.y0, other.y0)
        # Text boxes reach from the highest ascender to the lowest descender, hence the pixel.
        assert across <= 0.5 or down <= 1


def test_long_texts_are_wrapped_without_losing_a_letter() -> None:
    text = "two words and/one/that/is/much/longer/than/any/line/could/ever/be then more"
    lines = wrap(text, 60.0)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert max(map(text_width, lines)) <= 60
    assert lines[0] == "two words"
    assert wrap("   ", 60.0) == []
    assert wrap("abc", 0.1) == ["a", "b", "c"]


def test_a_long_word_is_measured_line_by_line(monkeypatch) -> None:
    """One letter, one point: as many are measured for each line of 40, however long the word."""
    measured = []
    monkeypatch.setattr(typeset, "text_width", lambda text: measured.append(len(text)) or len(text))
    counts = []
    for letters in (4_000, 8_000):
        measured.clear()
        assert [len(line) for line in wrap("a" * letters, 40.0)] == [40] * (letters // 40)
        counts.append(sum(measured) - measured[0])  # the first look is at the whole word
    assert counts[1] / counts[0] == pytest.approx(2, rel=0.02)
    assert counts[0] / 4_000 < 20


def test_a_very_long_name_is_cut_and_says_so() -> None:
    assert NAME == NAME_LETTERS  # what replay reads
    for name, shown in [("a" * 255, "a" * 255), ("a" * 100_000, "a" * 254 + "…")]:
        assert heat().named(name).fact("picture") == shown


def test_text_is_as_large_as_journals_ask() -> None:
    assert 5 <= TYPE <= 7
    assert LINE > TYPE
    assert FONT in {font.name for font in matplotlib.font_manager.fontManager.ttflist}


# --- the outline and the mask -------------------------------------------------------------------


def test_the_mass_is_outlined_on_paper_too() -> None:
    size = {"width_mm": 50.0, "dpi": 254}  # 500 pixels wide, of which 14 are margin on each side
    made = heat([[6, 1, 0], [3, 0, 0]])
    outlined, plain = (
        np.asarray(Image.open(BytesIO(render_png(made, caption=False, **size, **more)))).astype(int)
        for more in ({"mass": 0.9}, {})
    )
    ys, xs = (outlined != plain).any(-1).nonzero()
    # the first column of the picture, which is 472 pixels wide and 315 high
    assert (xs.min(), ys.min()) == (14, 14)
    assert xs.max() == pytest.approx(14 + 472 / 3, abs=4)
    assert ys.max() == 14 + 315 - 1
    inner = (xs > 14 + 6) & (xs < 14 + 472 / 3 - 6) & (ys > 14 + 6) & (ys < 14 + 315 - 7)
    assert not inner.any()


def test_the_outline_is_said_in_the_caption_and_in_the_manifest() -> None:
    made = heat([[6, 1, 0], [3, 0, 0]], notes=("a warning",))
    text = svg_text(render(made, ".svg", mass=0.9, **SMALL))
    assert (
        "opacity 0.5; outlined: the 2 of 6 patches (33.3%) that hold 0.9 of the map's mass" in text
    )
    assert text.index("outlined") < text.index("Note: a warning")
    for mass, expected in ((0.8, {"mass": 0.8, "held": 0.9, "area": 1 / 3}), (None, None)):
        info = Image.open(BytesIO(render_png(made, mass=mass, **SMALL))).info
        said = json.loads(info["Description"])["drawn"]["outline"]
        assert said == (expected and pytest.approx(expected))


def test_the_mask_is_a_picture_with_its_facts_inside() -> None:
    made = heat([[6, 1, 0], [3, 0, 0]], box=(10.0, 0.0, 40.0, 20.0), size=(40, 20))
    content = render_mask(made, 0.9)
    assert content == render_mask(made, 0.9)
    file = Image.open(BytesIO(content))
    assert (file.format, file.mode, file.size) == ("PNG", "L", (40, 20))
    expected = np.zeros((20, 40))
    expected[:, 10:20] = 255
    np.testing.assert_array_equal(np.asarray(file), expected)
    assert file.info["Title"].startswith("Attention; layer 3 (of 12, counted from 0)")
    assert json.loads(file.info["Description"])["drawn"]["outline"]["mass"] == 0.9
    with pytest.raises(BadOption, match="at least 0"):
        render_mask(heat([[1, -1]]))


# --- metrics against depth ----------------------------------------------------------------------


def measured(*heads: int, **changes) -> HeadMetrics:
    maps = [random_maps(1, count, 7, seed=count)[0] for count in heads]
    return head_metrics(replace(record_of(maps, ("cls",), (2, 3)), **changes)).named("a cat.jpg")


@pytest.mark.parametrize("kind", DEPTH_KINDS)
def test_a_plot_is_a_file_that_says_what_it_shows(tmp_path, kind) -> None:
    made = measured(3, 1)
    path = save_depth(made, "distance", tmp_path / f"plot{kind.upper()}", **SMALL)
    content = path.read_bytes()
    assert content == render_depth(made, "distance", kind, **SMALL)
    if kind == ".png":
        file = Image.open(BytesIO(content))
        assert file.width == round(50 / 25.4 * 100)
        text = file.info["Description"]
    elif kind == ".svg":
        names = {"dc": "http://purl.org/dc/elements/1.1/"}
        text = ElementTree.fromstring(content).findtext(".//dc:description", namespaces=names)
    elif kind == ".csv":
        assert content == render_table(made)
        return
    else:
        assert b"/Subject" in content and b"/Type3" not in content and b"Date" not in content
        return
    manifest = json.loads(text)
    assert manifest["unit"] == "input pixels"
    assert "not renormalised" in manifest["description"]
    assert manifest["facts"]["picture"] == "a cat.jpg"


def test_a_plot_has_units_a_caption_and_a_legend() -> None:
    made = measured(3, 1, random=True)
    text = svg_text(render_depth(made, "distance", ".svg"))
    for words in (
        "Network depth (layer)",
        "Mean attention distance, patches only",
        "(input pixels)",
        "one head",
        "mean over heads",
        "each dot a head",
        "model: by hand",
        "Note: random weights: these numbers mean nothing",
    ):
        assert words in text
    bare = svg_text(render_depth(made, "distance", ".svg", caption=False))
    assert "input pixels" in bare and "by hand" not in bare


def test_the_dots_and_the_line_lie_at_their_values() -> None:
    made = measured(3, 1)
    with matplotlib.style.context(["default", sheet.SETTINGS]):
        (axes,) = depth._figure(made, ["entropy"], PlotPaper(dpi=100)).axes
    line, dots = axes.lines
    values = made["entropy"]
    np.testing.assert_array_equal(dots.get_xdata(), [0, 0, 0, 1])
    np.testing.assert_array_equal(dots.get_ydata(), [*values[0], values[1, 0]])
    np.testing.assert_allclose(line.get_ydata(), [values[0].mean(), values[1, 0]])
    assert (axes.get_xlim(), axes.get_ylim()[0]) == ((-0.5, 1.5), 0)
    assert axes.get_ylim()[1] > values[0].max()


@pytest.mark.parametrize("options", [{}, {"width_mm": 50.0}, {"width_mm": 183.0}])
@pytest.mark.parametrize("name", ["distance_renormalised", "relative_entropy", "to_cls"])
def test_a_plots_text_is_neither_cut_off_nor_covered(name, options) -> None:
    with matplotlib.style.context(["default", sheet.SETTINGS]):
        figure = depth._figure(measured(*[6] * 24), [name], PlotPaper(dpi=100, **options))
        FigureCanvasAgg(figure).draw()
        renderer = FigureCanvasAgg(figure).get_renderer()
        (axes,) = figure.axes
        plot = axes.get_tightbbox(renderer)
        texts = [text.get_window_extent(renderer) for text in figure.texts]
        marks = [label.get_window_extent(renderer) for label in axes.get_xticklabels()]
        labels = [axis.label.get_window_extent(renderer) for axis in (axes.xaxis, axes.yaxis)]
        drawn = [axes.get_legend().get_window_extent(renderer), *labels]
    for box in (plot, *drawn):
        assert box.x0 >= -0.5 and box.x1 <= figure.bbox.x1 + 0.5 and box.y1 <= figure.bbox.y1 + 0.5
    assert all(box.y1 <= plot.y0 + 1 and box.x1 <= figure.bbox.x1 + 0.5 for box in texts)
    assert all(one.x1 < other.x0 for one, other in pairwise(marks))


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"path": "plot.npz"}, BadOption, r"\.png, \.svg, \.pdf, \.csv; 'plot.npz' ends in \.npz"),
        ({"path": "nowhere/plot.png"}, BadOption, "no such folder"),
        ({"name": "entropi"}, UnknownName, "entropy"),
        ({"width_mm": 10.0}, BadOption, "width_mm is from 50 to 400"),
        ({"alpha": 0.5}, UnknownName, "'alpha'"),
        ({"letters": 1}, BadOption, "letters is True or False; 1 came"),
        ({"width_mm": 400.0, "dpi": 1200}, BadOption, "too large"),
    ],
)
def test_plots_that_cannot_be_saved(tmp_path, change, error, says) -> None:
    asked = {"name": "entropy", "path": "plot.png", **change}
    path = tmp_path / asked.pop("path")
    with pytest.raises(error, match=says):
        save_depth(measured(1), asked.pop("name"), path, **asked)
    assert not list(tmp_path.iterdir())


def test_the_table_is_csv_with_a_line_a_head() -> None:
    made = measured(3, 1)
    first, *lines = render_table(made).decode().splitlines()
    assert first == (
        "layer,head,distance,distance_renormalised,entropy,relative_entropy,to_prefix,agreement,to_cls"
    )
    assert [line.split(",")[:2] for line in lines] == [
        ["0", "0"],
        ["0", "1"],
        ["0", "2"],
        ["1", "0"],
    ]
    for line in lines:
        layer, head, *values = line.split(",")
        for name, value in zip(first.split(",")[2:], values, strict=True):
            assert float(value) == made[name][int(layer), int(head)], (name, line)


def test_a_plots_name_says_what_is_in_it() -> None:
    assert depth_stem(measured(1), "agreement") == "a-cat_by-hand_head-agreement"


# --- the same request, the same bytes -----------------------------------------------------------


@pytest.mark.parametrize("kind", RENDERERS)
def test_the_same_request_gives_the_same_bytes(kind) -> None:
    first = render(heat(query_cell=(0, 1)), kind, **SMALL)
    assert b"CreationDate" not in first
    with matplotlib.rc_context({"text.color": "red", "savefig.bbox": "tight", "pdf.fonttype": 3}):
        assert render(heat(query_cell=(0, 1)), kind, **SMALL) == first
        assert matplotlib.rcParams["pdf.fonttype"] == 3


@pytest.mark.parametrize("kind", RENDERERS)
def test_numbers_of_numpy_draw_what_python_s_do(kind) -> None:
    made = heat()
    scale = Scale(made.values.min(), made.values.max(), "of its values")
    assert (type(scale.low), type(scale.high)) == (float, float)
    options = {"alpha": np.float32(0.3), "mass": np.float32(0.6), "width_mm": np.float32(60.1), "dpi": np.int64(80), "letters": np.bool_(True)}  # fmt: skip
    plain = {name: value.item() for name, value in options.items()}
    assert render(made, kind, **options, scale=scale) == render(made, kind, **plain, scale=scale)


@pytest.mark.parametrize("end", ["3", None, np.array([1.0]), np.nan, 1j])
def test_a_scale_s_end_is_a_number(end) -> None:
    with pytest.raises(BadOption, match="from a low to a high finite number"):
        Scale(end, 5.0, "mine")


def test_one_figure_at_a_time(monkeypatch) -> None:
    held = []
    real = paper._board
    monkeypatch.setattr(
        paper, "_board", lambda *args: held.append(sheet._one_at_a_time.locked()) or real(*args)
    )
    render_png(heat(), **SMALL)
    assert held == [True]
    assert not sheet._one_at_a_time.locked()


def test_threads_do_not_disturb_each_other() -> None:
    jobs = [(".svg", "own"), (".svg", "zero"), (".png", "own"), (".png", "zero")]
    alone = [render(heat(), kind, scale=scale, **SMALL) for kind, scale in jobs]
    before = dict(matplotlib.rcParams)
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda job: render(heat(), job[0], scale=job[1], **SMALL), jobs)
        assert list(together) == alone
    assert dict(matplotlib.rcParams) == before


def test_pyplot_is_not_needed(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it now fails
    assert render_png(heat(), **SMALL)


# --- names and places ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["figure.PNG", "map.Npz"])
def test_the_suffix_may_be_in_capitals(tmp_path, name) -> None:
    path = save(heat(), os.fspath(tmp_path / name), **SMALL)
    assert path == tmp_path / name
    assert path.stat().st_size
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("figure.jpg", r"\.npz, \.csv, \.16-bit\.png, \.mask\.png; 'figure.jpg' ends in \.jpg"),
        ("figure", "ends in none of them"),
        (".png", "ends in none of them"),
        ("nowhere/figure.png", "no such folder"),
        ("file/figure.png", "no such folder"),
        ("folder.png", "directory"),
        ("x" * 300 + ".npz", "too long"),
    ],
)
def test_places_that_do_not_work(tmp_path, name, says) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.png").mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(BadOption, match=says):
        save(heat(), tmp_path / name, **SMALL)
    assert sorted(tmp_path.iterdir()) == before


def test_a_full_disk_leaves_the_old_file_and_nothing_half_written(tmp_path, monkeypatch) -> None:
    target = save(heat(), tmp_path / "figure.npz")
    before = target.read_bytes()
    real = Path.open

    class Full:
        def __init__(self, file) -> None:
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_) -> None:
            self.file.close()

        def write(self, content: bytes) -> None:
            self.file.write(content[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", lambda path, *mode: Full(real(path, *mode)))
    with pytest.raises(BadOption, match="No space left on device"):
        save(heat(np.ones((4, 4))), target)
    monkeypatch.undo()
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def test_a_wrong_option_is_said_before_what_is_there(tmp_path) -> None:
    there = tmp_path / "a.png"
    there.write_text("mine")
    asked = {"overwrite": False, "colourmap": "inferno"}
    for write in (
        partial(save, heat()),
        partial(save_depth, measured(1), "entropy"),
        attnviz.beside([heat()]).save,
    ):
        with pytest.raises(UnknownName, match="'colourmap'"):
            write(there, **asked)


def test_an_existing_file_is_kept_on_request(tmp_path) -> None:
    target = save(heat(), tmp_path / "figure.npz", overwrite=False)
    before = target.read_bytes()
    with pytest.raises(BadOption, match="exists"):
        save(heat(np.ones((4, 4))), target, overwrite=False)
    assert target.read_bytes() == before
    save(heat(np.ones((4, 4))), target)
    assert target.read_bytes() != before


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_the_file_gets_ordinary_permissions(tmp_path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    assert save(heat(), tmp_path / "a.npz").stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"alpha": 1.5}, BadOption, "alpha"),
        ({"colormap": "jet"}, UnknownName, "no colormap 'jet'"),
        ({"scale": "log"}, UnknownName, "no scale 'log'"),
        ({"clip": 20.0}, BadOption, "clip"),
        ({"scale": Scale(0.0, 1.0, "mine"), "clip": 99.0}, BadOption, "leave clip out"),
        ({"interpolation": "cubic"}, UnknownName, "no interpolation 'cubic'"),
        ({"width_mm": 10.0}, BadOption, "width_mm is from 50 to 400; 10.0 came"),
        ({"width_mm": "89"}, BadOption, "width_mm"),
        ({"letters": 1}, BadOption, "letters is True or False; 1 came"),
        ({"original": 0}, BadOption, "original is True or False; 0 came"),
        ({"caption": None}, BadOption, "caption is True or False; None came"),
        ({"alpha": True}, BadOption, "alpha is from 0"),
        ({"mass": True}, BadOption, "The mass to hold"),
        ({"dpi": 5000}, BadOption, "dpi is from 72 to 1200; 5000 came"),
        ({"width_mm": 400.0, "dpi": 1200}, BadOption, "too large; give a smaller"),
        ({"colourmap": "inferno"}, UnknownName, "'colourmap'. Did you mean colormap"),
    ],
)
def test_options_that_do_not_exist(tmp_path, monkeypatch, options, error, says) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=says):
        save(heat(size=(20, 20)), tmp_path / "figure.png", **options)
    assert not list(tmp_path.iterdir())


def test_an_unknown_kind() -> None:
    with pytest.raises(UnknownName, match=r"\.png"):
        render(heat(), ".pgn")


@pytest.mark.parametrize(
    ("changes", "stem"),
    [
        ({}, "dinov2-small_attention_layer-3_head-5_query-patch-row-1-column-0"),
        ({"facts": (("head", "all"),)}, "attention_head-all"),
        ({"facts": (("model", "../../etc/passwd"),)}, "etc-passwd_attention"),
        ({"facts": (("model", "naïve CAFÉ"),)}, "naive-cafe_attention"),
        ({"facts": (("model", "?"),), "title": "…"}, "attnviz"),
        # Letters of any script stay, with the marks that belong to them.
        ({"facts": (("picture", "猫の写真 1.jpg"),)}, "猫の写真-1_attention"),
        ({"facts": (("picture", "Кошка_ё.png"),)}, "кошка-ё_attention"),
        ({"facts": (("picture", "ガラス.png"),)}, "ガラス_attention"),
        ({"facts": (("picture", "बिल्ली.png"),)}, "बिल्ली_attention"),
        ({"facts": (("picture", "..\\/:*?<>|\u202e.png"),)}, "attention"),
        ({"facts": (("target", "goldfish, Carassius"),)}, "attention_target-goldfish-carassius"),
    ],
)
def test_file_names_say_what_is_in_the_file(changes, stem) -> None:
    assert file_stem(heat(**changes)) == stem


def test_file_names_stay_short() -> None:
    assert len(file_stem(heat(facts=(("model", "m" * 1000),)))) <= 150
    assert file_stem(heat(facts=(("model", "猫" * 1000),))) == "猫" * 50  # 3 bytes each


def test_a_name_without_a_font_is_left_out_and_that_is_said(monkeypatch) -> None:
    monkeypatch.setattr("attnviz.fonts._font_with", lambda letters: "")
    named = heat().named("猫.jpg")
    plain = svg_text(render(named, ".svg", **SMALL))
    assert "Attention" in plain and "picture" not in plain
    facts = json.loads(Image.open(BytesIO(render(named, ".png", **SMALL))).info["Description"])
    assert facts["facts"]["picture"] == "猫.jpg"
    assert facts["drawn"]["left_out_for_want_of_a_font"] == ["picture"]
    assert families("Кошка é ∂") == [FONT]  # those it has


def test_a_font_that_has_boxes_for_letters_is_none() -> None:
    # Which every machine has, as it comes with Matplotlib; a font of cuneiform, hardly one.
    assert not any("Last Resort" in name for name in families("a𒀀"))


def test_another_font_is_taken_for_what_the_first_has_not(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr("attnviz.fonts._font_with", lambda letters: asked.append(letters) or "Mine")
    assert families("a猫") == [FONT, "Mine"]
    assert asked == [frozenset("猫")]
