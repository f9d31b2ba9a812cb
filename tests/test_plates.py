"""Several maps on one figure: names, scales, bars, the grid of heads, plots beside each other."""

from __future__ import annotations

import csv
import json
import re
import warnings
from dataclasses import fields, replace
from io import BytesIO, StringIO

import numpy as np
import pytest
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

import attnviz
from attnviz import curve_paper, depth, head_paper, paper, sheet, strip
from attnviz import row as row_module
from attnviz.__main__ import main
from attnviz.colour import overlay
from attnviz.errors import BadOption, UnknownName
from attnviz.export import render
from attnviz.figure import escaped, keys, latex, notes_of, options_of, paper_of, references
from attnviz.figure import render as printed
from attnviz.film_export import render_film
from attnviz.head_maps import head_maps
from attnviz.methods import METHODS
from attnviz.metrics import head_metrics
from attnviz.mosaic import mosaic
from attnviz.paper import Paper
from attnviz.plate_export import PLATE_KINDS, plate_stem, render_cells, render_plate
from attnviz.plot_export import MetricPlot, render_curves, render_depth, save_curves
from attnviz.references import CITED, ENTRIES, bibtex
from attnviz.row import Row, board_of_row
from attnviz.scale import Scale
from attnviz.venue import PlotPaper
from tests.test_board import images_of
from tests.test_curve_files import CURVES
from tests.test_export import heat, svg_text
from tests.test_film import frames
from tests.test_methods import random_maps, record_of

CELLS = ((0, 1, 2), (3, 4, 50))


def row(**changes) -> Row:
    """Attention and rollout of one picture, in two units."""
    other = {
        "title": "Attention rollout",
        "unit": "share of rollout",
        "facts": (("model", "dinov2-small"),),
    }
    return Row(**{"heats": (heat(), heat(np.array(CELLS) * 2, **other)), **changes})  # fmt: skip


def test_maps_are_named_by_what_tells_them_apart():
    assert row().names == ("Attention", "Attention rollout")
    named = heat(facts=(("model", "a"), ("layer", "1")))
    assert Row((named, replace(named, facts=(("model", "b"), ("layer", "1"))))).names == ("a", "b")
    assert Row((named, replace(named, facts=(("model", "b"), ("layer", "2"))))).names == ("a, layer 1", "b, layer 2")  # fmt: skip
    assert Row((named, named)).names == ("map 1", "map 2")
    turned = replace(named, image=named.image.rotate(180))
    assert Row((named, turned)).names == ("picture 1", "picture 2")
    assert Row((named, named), ("one", "two")).names == ("one", "two")


def test_one_map_alone_is_called_by_its_title(monkeypatch):
    one = Row((heat(),))
    assert (one.names, one.title, one.beside) == (("Attention",), "Attention", "")
    assert one.summary == heat().summary
    text = svg_text(render_plate(one, ".svg", letters=True))
    assert "Attention" in text and "map 1" not in text
    monkeypatch.setattr("attnviz.row.printable_facts", lambda facts: (facts[1:], []))
    assert row_module.printable_row(Row((heat(),), ("cat",)))[0].names == ("Attention",)


def test_what_they_share_is_said_once_and_warnings_name_their_maps():
    first, second = row().heats
    made = Row((replace(first, notes=("odd", "both")), replace(second, notes=("both",))))
    assert made.facts == (("model", "dinov2-small"),)
    assert made.notes == ("Attention: odd", "both")
    text = svg_text(render_plate(made, ".svg"))
    assert text.count("model: dinov2-small") == 1 and "Note: Attention: odd" in text
    assert "Note" not in svg_text(render_plate(made, ".svg", caption=False))


def test_the_row_holds_every_overlay_pixel_for_pixel():
    made = row()
    drawn = Image.open(BytesIO(render_plate(made, ".png", width_mm=76.2, dpi=100)))
    # 300 pixels: margins and the gap of 6, so two maps of 141 × 94 below a line of 11.
    for number, one in enumerate(made.heats):
        left = 6 + 147 * number
        printed = drawn.convert("RGB").crop((left, 17, left + 141, 111))
        np.testing.assert_array_equal(printed, overlay(one, size=(141, 94)))


def test_each_map_has_its_own_bar_or_all_have_one():
    own = board_of_row(row(), Paper())
    assert own.bar is None
    assert [(each.bar.scale.low, each.bar.scale.high) for each in own.panels] == [(0, 50), (0, 100)]
    alike = Row((heat(), heat(np.array(CELLS) * 2)), ("a", "b"))
    shared = board_of_row(alike, Paper(scale="shared"))
    assert (shared.bar.scale.low, shared.bar.scale.high) == (0, 100)
    assert all(each.bar is None and each.scale == shared.bar.scale for each in shared.panels)
    with pytest.raises(BadOption, match="share a scale need one unit"):
        render_plate(row(), ".png", scale="shared")


@pytest.mark.parametrize(
    ("options", "signs"),
    [
        ({"scale": "shared"}, ("", "")),
        ({"scale": "shared", "clip": 75.0}, ("≤", "≥")),
        ({"scale": Scale(0.0, 40.0, "mine")}, ("", "≥")),
        ({"scale": Scale(1.0, 100.0, "mine")}, ("≤", "")),
        ({"scale": Scale(0.0, 60.0, "mine")}, ("", "≥")),  # by the second map alone
        ({"scale": Scale(0.5, 100.0, "mine")}, ("≤", "")),  # by it, too
    ],
)
def test_the_bar_of_all_marks_the_ends_that_values_of_any_map_lie_beyond(options, signs):
    """The first from 1 to 50, the second from 0 to 100."""
    alike = Row((heat(np.maximum(CELLS, 1)), heat(np.array(CELLS) * 2)), ("a", "b"))
    (_, low), *_, (_, high) = board_of_row(alike, Paper(**options)).bar.marks(500.0)
    assert tuple(end.strip("0123456789. ") for end in (low, high)) == signs


def test_a_ready_scale_of_a_row_takes_no_clip():
    alike = Row((heat(), heat(np.array(CELLS) * 2)), ("a", "b"))
    with pytest.raises(BadOption, match="'mine' has its ends already; leave clip out"):
        render_plate(alike, ".png", scale=Scale(0.0, 40.0, "mine"), clip=99.0)


def test_a_row_says_what_its_outlines_hold():
    # By hand: of the mass 60, the patches of 50 and 4 hold 54, which is 0.9.
    alike = Row((heat(), heat(np.ones((2, 3)))), ("a", "b"))
    (told,) = board_of_row(alike, Paper(mass=0.9, original=True)).caption
    assert told.endswith(
        "; a: outlined: the 2 of 6 patches (33.3%) that hold 0.9 of the map's mass"
        "; b: outlined: the 6 of 6 patches (100.0%) that hold 0.9 of the map's mass"
    )
    (alone,) = board_of_row(Row((heat(),)), Paper(mass=0.9)).caption
    assert alone == heat().caption(0.5, Paper(mass=0.9).mask(heat()))[0]
    assert "outlined" not in board_of_row(alike, Paper()).caption[0]


def test_the_picture_alone_comes_first_and_once():
    first, second = row().heats
    others = Row((first, replace(second, image=Image.new("RGB", (30, 20)))))
    panels = board_of_row(others, Paper(original=True)).panels
    assert [each.heat is None for each in panels] == [True, False, True, False]
    same = Row((first, replace(second, image=first.image)))
    panels = board_of_row(same, Paper(original=True)).panels
    assert [each.above for each in panels] == [("picture",), ("Attention",), ("Attention rollout",)]


def test_three_components_stand_beside_one():
    three = heat(np.arange(18).reshape(2, 3, 3), title="Feature PCA", unit="score")
    text = svg_text(render_plate(Row((heat(), three)), ".svg", colormap="viridis", clip=90.0))
    assert "red is component 0" in text and "clipped at percentiles" in text


@pytest.mark.parametrize("names", [("one",), ("one", "two", "three")])
def test_rows_that_are_none(names):
    with pytest.raises(BadOption, match="Each map has one name"):
        row(names=names)
    with pytest.raises(BadOption, match="at least one map"):
        Row(())
    with pytest.raises(BadOption, match="str came"):
        attnviz.beside(["heat"])


# --- every head ---------------------------------------------------------------------------------


def small_record():
    return record_of([*random_maps(2, 3, 7), random_maps(1, 2, 7)[0]], ("cls",), (2, 3))


def test_maps_may_come_one_by_one():
    heats = row().heats
    made = attnviz.beside(each for each in heats)
    assert [*map(id, made.heats)] == [*map(id, heats)]
    with pytest.raises(BadOption, match="as a list; int came"):
        attnviz.beside(5)


def test_every_head_is_where_its_number_says():
    made = head_maps(small_record())
    assert made.values.shape == (3, 3, 2, 3)
    assert np.isnan(made.values[2, 2]).all() and not np.isnan(made.values[2, 1]).any()
    record = small_record()
    for layer, head in ((0, 2), (1, 0), (2, 1)):
        alone = attnviz.explain(record, "attention", layer=layer, head=head)
        np.testing.assert_array_equal(made.values[layer, head], alone.values)


@pytest.mark.parametrize("scale", ["own", "shared"])
def test_the_grid_is_the_mosaic_of_all_heads(scale):
    made = head_maps(small_record())
    drawn, *bar = images_of(render_plate(made, ".svg", scale=scale, width_mm=76.2, dpi=100))
    assert drawn.width > 240 and len(bar) == (scale == "shared")
    expected = mosaic(made.values, scale=scale, max_side=max(drawn.size), gap=1).image
    np.testing.assert_array_equal(drawn.convert("RGB"), expected)


def test_heads_say_what_they_show_and_have_no_photograph():
    made = attnviz.heads(small_record()).named("a cat.jpg")
    text = svg_text(render_plate(made, ".svg"))
    for words in ("head 0", "layer 0", "2", "attention weight, each head from its lowest", "query: class token"):  # fmt: skip
        assert words in text
    assert "one scale for all heads" in svg_text(render_plate(made, ".svg", scale="shared"))
    assert plate_stem(made) == "a-cat_by-hand_attention-of-every-head_query-class-token"
    for option in ({"original": True}, {"mass": 0.5}, {"interpolation": "bilinear"}):
        with pytest.raises(BadOption, match="The grid of heads has no"):
            render_plate(made, ".png", **option)


def test_a_grid_that_is_higher_than_a_page_is_refused_and_a_notebook_shows_it_finer():
    """24 layers of 37 patches, a dot each and one between: 912 dots, and 220 mm have 866."""
    values = np.random.default_rng(0).random((24, 3, 37, 37), dtype=np.float32)
    made = replace(attnviz.heads(small_record()), values=values)
    says = "24 layers of 37 patches do not fit into 220 mm, .* at 100 dpi. Give a larger dpi"
    with pytest.raises(BadOption, match=says):
        render_plate(made, ".png", dpi=100)
    assert Image.open(BytesIO(made._repr_png_())).width == round(183 / 25.4 * 200)


@pytest.mark.parametrize("clip", [None, 90.0])
def test_heads_on_their_own_scales_say_where_these_are_cut(clip):
    made = head_maps(small_record())
    content = render_plate(made, ".svg", clip=clip, width_mm=183.0)
    drawn, *_ = images_of(content)
    expected = mosaic(made.values, clip=clip, max_side=max(drawn.size), gap=6).image
    np.testing.assert_array_equal(drawn.convert("RGB"), expected)
    ends = "lowest value (dark) to its highest" if clip is None else "percentile 10 (dark) to its percentile 90"  # fmt: skip
    assert f"each head from its {ends} (bright)" in " ".join(svg_text(content).split())


@pytest.mark.parametrize(
    ("options", "bright", "says"),
    [
        ({"scale": "shared"}, 2, True),  # with the largest 3 of 300 patches: a hundredth
        ({"scale": "shared"}, 3, False),
        ({"scale": "shared", "clip": 99.0}, 2, False),
        ({"scale": "shared", "clip": 100.0}, 2, True),
        ({"scale": Scale(0.0, 0.5, "mine")}, 2, False),
        ({}, 2, False),
    ],
)
def test_the_head_that_leaves_a_shared_scale_s_grid_dark_is_named(options, bright, says):
    """0.5 in one of 5 · 60 patches, 0.11, over a fifth of it, in few others, 0.005 elsewhere."""
    values = np.full((2, 3, 6, 10), 0.005, np.float32)
    values[1, 2] = np.nan  # which has no such head
    values[0, 1, 4, :bright] = 0.11
    values[1, 0, 2, 3] = 0.5  # far more than 20 times the mean
    made = replace(head_maps(small_record()), values=values)
    text = svg_text(render_plate(made, ".svg", **options))
    assert ("Note: layer 1, head 0 sets the scale's upper end" in text) == says
    assert ("layer 1, head 0 sets the scale's upper end" in latex(made, "a.pdf", **options)) == says
    assert ("dark: a lower clip or" in " ".join(text.split())) == ("clip" in options and says)
    assert ("Note" in text) == says
    assert "Note" not in svg_text(render_plate(made, ".svg", caption=False, **options))


LONE = "1 patch (row 4, column 7) holds so much that nothing else is seen"


@pytest.mark.parametrize(
    ("options", "second", "says"),
    [
        ({}, 3.0, f"{LONE}; clip=99 shows the others"),
        ({"scale": "zero", "colormap": "viridis"}, 3.0, f"{LONE}; clip=99 shows the others"),
        ({}, 41.0, ""),  # of 200 patches, 3 have more than a fifth of the largest, 200
        ({"clip": 98.0}, 3.0, ""),  # the end is 2 there, and all that is above is drawn as this
        ({"clip": 99.99}, 3.0, f"{LONE}; clip=99 shows the others"),  # it is 196.1
        ({"scale": Scale(0.0, 200.0, "mine")}, 3.0, LONE),
        ({"scale": Scale(0.0, 9.0, "mine")}, 3.0, ""),  # others are above a fifth of that
    ],
)  # fmt: skip
def test_a_map_that_one_patch_swallows_says_so_on_paper(options, second, says):
    """200 in one of 10 · 20 patches, 1 to 2 elsewhere, and a value of choice in two."""
    values = np.linspace(1, 2, 200).reshape(10, 20)
    values[4, 7], values[0, :2] = 200.0, second
    one = heat(values, facts=())
    for made, name in ((one, ""), (Row((one, heat()), ("one", "two")), "one: ")):
        text = " ".join(svg_text(printed(made, ".svg", width_mm=183.0, **options)).split())
        note = f"{name}{says}"
        assert ("holds so much" in text) == ("holds so much" in latex(made, "a.pdf", **options)) == bool(says)  # fmt: skip
        assert (f"Note: {note}." in text) == bool(says)
        assert notes_of(made, ".pdf", **options) == ([note] if says else [])
        assert notes_of(made, ".npz") == []


@pytest.mark.parametrize(
    "options",
    [{}, {"clip": 99.99}],  # it is 196 of both
)
def test_of_a_shared_scale_too_the_clip_that_helps_is_said(options):
    values = np.linspace(1, 2, 200).reshape(10, 20)
    values[4, 7] = 200.0
    made = Row((heat(values), heat(values / 2)), ("one", "two"))
    words = [f"{name}: {LONE}; clip=99 shows the others" for name in ("one", "two")]
    assert notes_of(made, ".png", scale="shared", **options) == words


@pytest.mark.parametrize(
    ("itself", "own", "sink", "who"),
    [
        (((4, 7),), 200.0, 1.0, "the query itself (row 4, column 7) keeps"),
        (((4, 7), (4, 8)), 200.0, 1.0, "the query itself (row 4, column 7 and the 1 pooled with it) keeps"),
        (((4, 7),), 2e4, 200.0, "the query itself (row 4, column 7) keeps, and 1 patch (row 0, column 3) holds"),
        (((4, 7),), 1.0, 200.0, "1 patch (row 0, column 3) holds"),
        (((4, 7),), 1.0, 1.0, ""),
    ],
)  # fmt: skip
def test_what_the_query_keeps_is_told_from_sinks_on_paper(itself, own, sink, who):
    values = np.linspace(1, 2, 200).reshape(10, 20)
    values[4, 7], values[0, 3] = own, sink
    words = f"{who} so much that nothing else is seen; clip=99 shows the others"
    assert notes_of(heat(values, itself=itself), ".pdf") == ([words] if who else [])


@pytest.mark.parametrize(
    ("grid", "others", "clip", "way_out"),
    [
        ((8, 8), 1.0, None, "; clip=95 shows the others"),  # 99 lies between the peak and the next
        ((8, 8), 1.0, 97.0, ""),  # at 97 the end is 2, or so: nothing is hidden
        ((8, 8), 0.0, None, ""),  # there is nothing else to show
        ((10, 20), 1.0, None, "; clip=99 shows the others"),
    ],
)
def test_only_a_clip_that_helps_is_advised(grid, others, clip, way_out):
    """200 in one patch. Of 64 values percentile 99 is 0.63 of the way from the second to it."""
    values = others * np.linspace(1, 2, grid[0] * grid[1]).reshape(grid)
    values[4, 7] = 200.0
    words = [f"{LONE}{way_out}"] if clip is None else []
    assert notes_of(heat(values), ".pdf", clip=clip) == words


@pytest.mark.parametrize("option", [{"alpha": 0.7}, {"letters": True}, {"mass": 0.5}])
def test_a_grid_of_heads_refuses_what_it_has_not(tmp_path, option):
    (name,) = option
    with pytest.raises(BadOption, match=f"The grid of heads has no {name}: leave it out"):
        attnviz.heads(small_record()).save(tmp_path / "a.svg", **option)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", [(1, 2), ("one", None), "ab"])
def test_names_of_maps_are_texts(names):
    with pytest.raises(BadOption, match="Names of maps are texts, one for each map"):
        Row((heat(), heat()), names)


@pytest.mark.parametrize("names", [{"left", "right"}, 5, "ab"])
def test_names_come_in_an_order(names):
    with pytest.raises(BadOption, match="Names of maps are texts, one for each map"):
        attnviz.beside([heat(), heat()], names)


def test_cells_are_a_table():
    made = head_maps(small_record())
    lines = [*csv.reader(StringIO(render_cells(made).decode()))]
    assert lines[0] == ["layer", "head", "row", "col", "value"]
    assert len(lines) == 1 + 8 * 6
    assert lines[1][:4] == ["0", "0", "0", "0"]
    assert np.float32(lines[-1][4]) == made.values[2, 1, 1, 2] and lines[-1][:4] == ["2", "1", "1", "2"]  # fmt: skip


@pytest.mark.parametrize("kind", PLATE_KINDS)
def test_the_same_plate_is_the_same_bytes(kind, tmp_path):
    for made in (attnviz.beside(row().heats), attnviz.heads(small_record())):
        options = {"width_mm": 60.0, "dpi": 80}
        content = render_plate(made, kind, **options)
        assert content == render_plate(made, kind, **options)
        assert made.save(tmp_path / f"a{kind}", **options).read_bytes() == content
        if kind == ".npz":
            with np.load(BytesIO(content)) as saved:
                assert json.loads(str(saved["manifest"]))["made_by"] == "attnviz"
                assert ("values" in saved) == (made.title == "Attention of every head")


def test_numbers_of_heads_say_which_there_are_and_where_they_lie():
    record = small_record()
    saved = np.load(BytesIO(render_plate(attnviz.heads(record), ".npz")))
    assert saved["filled"].dtype == bool and saved["filled"].shape == saved["values"].shape
    # Three layers, of 3, 3 and 2 heads.
    assert saved["filled"].all((2, 3)).tolist() == [[True] * 3, [True] * 3, [True, True, False]]
    assert not saved["filled"][2, 2].any()
    said = json.loads(str(saved["manifest"]))
    (alone,) = json.loads(
        str(np.load(BytesIO(render_plate(Row((attnviz.explain(record),)), ".npz")))["manifest"])
    )["maps"]
    assert saved["box"].tolist() == said["box"] == alone["box"] == list(record.view.box)
    assert (said["grid"], said["picture"]) == (alone["grid"], alone["picture"])


# --- plots beside each other --------------------------------------------------------------------


@pytest.mark.parametrize("width", [89.0, 183.0])
def test_plots_beside_each_other_have_room_and_letters(width):
    metrics = head_metrics(record_of(random_maps(12, 3, 7), ("cls",), (2, 3)))
    names = ["entropy", "distance_renormalised", "to_cls"]
    with style.context(["default", sheet.SETTINGS]):
        figure = depth._figure(metrics, names, PlotPaper(width_mm=width, dpi=100, letters=True))
        FigureCanvasAgg(figure).draw()
        renderer = FigureCanvasAgg(figure).get_renderer()
        whole = [axes.get_tightbbox(renderer) for axes in figure.axes]
        letters = [axes.texts[0] for axes in figure.axes]
        legends = [axes.get_legend().get_window_extent(renderer) for axes in figure.axes]
        boxes = [each.get_window_extent(renderer) for each in letters]
    assert [each.get_text() for each in letters] == ["a", "b", "c"]
    assert len({round(box.y1) for box in whole}) == (3 if width < 100 else 1)
    for letter, legend in zip(boxes, legends, strict=True):
        assert letter.x1 <= legend.x0
    for number, box in enumerate(whole):
        assert box.x0 >= -0.5 and box.x1 <= figure.bbox.x1 + 0.5
        assert not any(box.overlaps(other) for other in whole[number + 1 :])


def test_what_no_plot_is_of_is_refused():
    with pytest.raises(BadOption, match="of what head_metrics gave; dict came"):
        attnviz.plot({}, "entropy")
    with pytest.raises(BadOption, match="by its name; list came"):
        attnviz.plot(head_metrics(small_record()), ["entropy"])
    with pytest.raises(BadOption, match="dpi is from 72 to 1200"):
        PlotPaper(dpi=10**400)


def test_a_plot_of_several_metrics_says_them_all():
    metrics = head_metrics(small_record())
    content = render_depth(metrics, ["entropy", "agreement"], ".svg")
    assert "Attention entropy; Head agreement" in svg_text(content)
    with pytest.raises(UnknownName, match="entropi"):
        MetricPlot(metrics, ("entropi",))
    with pytest.raises(BadOption, match="at least one metric"):
        MetricPlot(metrics, ())


# --- options ------------------------------------------------------------------------------------

OTHERWISE = {"alpha": 0.1, "colormap": "gray", "scale": "shared", "clip": 80.0, "interpolation": "bilinear", "mass": 0.5,
             "width_mm": 60.0, "venue": "page", "dpi": 80, "caption": False, "original": True, "letters": True}  # fmt: skip


@pytest.mark.parametrize(
    "figure",
    [
        head_maps(small_record()),
        MetricPlot(head_metrics(small_record()), ("entropy", "distance")),
    ],
    ids=["heads", "metrics"],
)
def test_a_figure_s_options_are_those_that_change_something(figure):
    def drawn(**options):
        return re.sub(
            b"<metadata>.*</metadata>", b"", printed(figure, ".svg", **options), flags=re.DOTALL
        )

    def changes(name):
        try:
            return drawn(**{name: OTHERWISE[name]}) != usual
        except BadOption:
            return False

    usual, names = drawn(), [each.name for each in fields(paper_of(figure, {}))]
    assert {name for name in names if changes(name)} == options_of(type(figure))


# --- LaTeX --------------------------------------------------------------------------------------


def test_every_method_cites_the_papers_that_it_names():
    assert set(CITED) == set(METHODS)
    for name, cited in CITED.items():
        for key in cited:
            author, year = key.rstrip("abcdefghijklmnopqrstuvwxyz0123456789"), ENTRIES[key]
            assert author == ""
            first = year.split("{", 2)[2].split(",")[0]
            assert first in METHODS[name].source, name
    assert ENTRIES.keys() >= {key for cited in CITED.values() for key in cited}


def test_entries_are_whole():
    for key, entry in ENTRIES.items():
        assert entry.startswith("@") and f"{{{key}," in entry
        assert entry.count("{") == entry.count("}")
    assert bibtex(["amir2021deep", "oquab2023dinov2"]).count("@misc") == 2


def test_latex_is_a_figure_with_a_caption():
    made = replace(heat(), method="rollout", facts=(("picture", "50%_a&b.jpg"), ("input", "3 × 4")))
    said = latex(made, "fig_1.pdf", width_mm=89.0)
    assert said.splitlines()[0] == r"\begin{figure}" and said.splitlines()[-1] == r"\end{figure}"
    assert r"\includegraphics[width=89mm]{fig_1.pdf}" in said
    cited = r"opacity 0.5~\cite{abnar2020quantifying}. Colours: "
    assert r"picture: 50\%\_a\&b.jpg; input: 3 \(\times\) 4; " + cited in said
    assert said.count(r"\cite") == 1
    noted = latex(replace(made, notes=("a note",)), "a.pdf")
    assert noted.index(r"\cite") < noted.index("a note")
    assert latex(made, "a.pdf", venue="page").startswith(r"\begin{figure*}")
    assert keys(row()) == [] and "\\cite" not in latex(row(), "a.pdf")
    assert "Dosovitskiy" in references(MetricPlot(head_metrics(small_record()), ("entropy",)))
    assert escaped("a\\b{c}$~^#\x00") == (
        r"a\textbackslash{}b\{c\}\$\textasciitilde{}\textasciicircum{}\# "
    )
    assert escaped("<a|b>`?`") == (
        r"\textless{}a\textbar{}b\textgreater{}\textasciigrave{}?\textasciigrave{}"
    )
    assert escaped("\"a--b\"---c-d, e''") == (
        r"\texttt{\char34}a-\kern0pt-b\texttt{\char34}-\kern0pt-\kern0pt-c-d, e'\kern0pt'"
    )


HELD = "the 2 of 6 patches (33.3\\%) that hold 0.9 of the map's mass"


@pytest.mark.parametrize(
    ("figure", "name", "options", "caption"),
    [
        (heat(facts=(), notes=("a warning",)), "a.pdf", {"mass": 0.9, "caption": False, "alpha": 0.3},
         f"Attention; opacity 0.3; outlined: {HELD}. Colours: attention weight, lowest to highest value. Note: a warning."),
        (heat(facts=()), "a.png", {"scale": "zero", "clip": 75.0, "interpolation": "bilinear"},
         "Attention; opacity 0.5. Colours: attention weight, from zero, clipped at percentile 75; smoothed (bilinear)."),
        (heat(facts=()), "b/a.mask.png", {"mass": 0.9}, f"Attention; white: {HELD}."),
        (heat(facts=()), "a.16-bit.png", {}, "Attention; levels of grey: attention weight, 0 to 50."),
        (Row((heat(facts=()),) * 2, ("dinov2-small", "digits")), "a.pdf", {"mass": 0.9},
         "Attention: dinov2-small beside digits; opacity 0.5;"
         f" dinov2-small: outlined: {HELD}; digits: outlined: {HELD}."
         " Colours: each map on a scale of its own: attention weight, lowest to highest value."),
        (Row((heat(facts=()),) * 2, ("one", "two")), "a.pdf", {"scale": "shared"},
         "Attention: one beside two; opacity 0.5. Colours: attention weight, lowest to highest value, shared by 2 maps."),
        (row(), "a.pdf", {}, "Attention, Attention rollout; model: dinov2-small; Attention: layer 3 (of 12, counted from 0), head 5,"
         " query: patch (row 1, column 0); opacity 0.5. Colours: Attention: attention weight, lowest to"
         " highest value; Attention rollout: share of rollout, lowest to highest value."),
    ],
)  # fmt: skip
def test_latex_says_what_the_printed_figure_says(figure, name, options, caption):
    said = re.sub(r"~\\cite\{.*?\}", "", latex(figure, name, **options))
    assert f"  \\caption{{{caption}}}" in said.splitlines()


def test_latex_says_what_the_colours_of_films_and_heads_are():
    film, record = latex(frames(), "a.pdf"), small_record()
    assert "; opacity 0.5. Colours: attention weight, each layer on a scale of its own" in film
    heads = head_maps(record)
    shared = latex(heads, "a.pdf", scale="shared", clip=99.0)
    assert "clipped at percentiles 1 and 99, one scale for all heads." in shared
    assert "each head from its lowest value (dark)" in latex(heads, "a.pdf")
    plot = latex(MetricPlot(head_metrics(record), ("entropy",)), "a.pdf")
    assert "{Attention entropy; each dot a head" in plot and "Colours" not in plot


@pytest.mark.parametrize("name", ["a.mask.png", "a.16-bit.png"])
def test_only_one_map_is_a_mask_or_levels(tmp_path, name):
    plot = MetricPlot(head_metrics(small_record()), ("entropy",))
    film = attnviz.film(small_record())
    for figure in (attnviz.beside([heat()]), attnviz.heads(small_record()), film, plot):
        with pytest.raises(BadOption, match=f"'{name}' ends in {name[1:]}, as only one map can"):
            figure.save(tmp_path / name)
    with pytest.raises(BadOption, match="as only one map can"):
        save_curves(CURVES, tmp_path / name)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("flag", ["methods", "models", "metrics"])
@pytest.mark.parametrize(
    ("names", "says"),
    [
        ("", "names nothing; '' came"),
        (" , ", "names nothing; ' , ' came"),
        ("attention, x,attention", "names attention more than once"),
    ],
)
def test_names_that_are_none_or_come_twice_are_refused(tmp_path, capsys, flag, names, says):
    words = ["plate", "cat.jpg", "-o", str(tmp_path / "a.pdf"), "--show", flag, f"--{flag}", names]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"--{flag} {says}" in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("show", "flags", "of"),
    [
        ("heads", ["--direction", "to"], "methods or models"),
        ("heads", ["--layer", "1"], "methods or models"),
        ("heads", ["--head", "2"], "methods or models"),
        ("heads", ["--head-fusion", "max"], "methods or models"),
        ("heads", ["--method", "attention"], "models"),
        ("heads", ["--target", "predicted"], "methods or models"),
        ("heads", ["--alpha", "0.3"], "methods or models"),
        ("heads", ["--letters"], "methods, models or metrics"),
        ("heads", ["--mass", "0.5"], "methods or models"),
        ("metrics", ["--query", "1,2"], "methods, models or heads"),
        ("metrics", ["--similar-to", "cls"], "methods or models"),
        ("metrics", ["--layer", "0"], "methods or models"),
        ("metrics", ["--alpha", "0.3"], "methods or models"),
        ("methods", ["--methods", "rollout", "--method", "flow"], "models"),
        ("models", ["--models", "digits", "--model", "digits"], "methods, heads or metrics"),
    ],
)
def test_a_flag_of_another_plate_is_refused(tmp_path, capsys, show, flags, of):
    words = ["plate", "cat.jpg", "-o", str(tmp_path / "a.pdf"), "--show", show, *flags]
    assert main(words) == 2
    flag = flags[-1] if flags[-1].startswith("--") else flags[-2]
    said = capsys.readouterr().err
    assert said == f"attnviz: {flag} is of --show {of}: leave it out of --show {show}.\n"


def test_a_scale_that_no_grid_of_heads_has_is_refused_before_the_picture_is_read(tmp_path, capsys):
    words = ["plate", "none.jpg", "--show", "heads", "--scale", "zero"]
    for kind in ("pdf", "zip"):
        assert main([*words, "-o", str(tmp_path / f"a.{kind}")]) == 2
        said = capsys.readouterr().err
        assert (
            said == "attnviz: There is no scale of a grid of heads 'zero'. There is: own, shared.\n"
        )
    assert main(["plate", "none.jpg", "--show", "methods", "--methods", "attention", "--scale", "zero",
                 "-o", str(tmp_path / "a.pdf")]) == 2  # fmt: skip
    assert "none.jpg" in capsys.readouterr().err


# --- names in any letters ------------------------------------------------------------------------


def test_a_name_that_no_font_prints_is_said_and_its_map_has_a_number(monkeypatch):
    monkeypatch.setattr("attnviz.fonts._font_with", lambda letters: "")
    shown = [heat().named("原图.jpg"), heat(np.array(CELLS) * 2).named("b.jpg")]
    made = Row(tuple(shown), ("原图", "model two"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as Matplotlib warns of boxes
        text = svg_text(render_plate(made, ".svg", original=True, width_mm=183.0))
    assert "map 1" in text and "model two" in text and "原" not in text
    assert "Note: map 1: its name is in letters that no font here prints" in " ".join(text.split())
    assert made.names == ("原图", "model two")


def odd_figures():
    """Of every type, each of a picture whose name takes another font; and their modules."""
    picture, record = "原图.jpg", small_record()
    curves = replace(CURVES, score="how alike it is to 原图.jpg", facts=(("picture", picture), *CURVES.facts))  # fmt: skip
    yield paper, lambda: render(heat().named(picture), ".svg")
    yield strip, lambda: render_film(frames().named(picture), ".svg")
    yield row_module, lambda: render_plate(row(names=(picture, "b")), ".svg")
    yield head_paper, lambda: render_plate(attnviz.heads(record).named(picture), ".svg")
    yield depth, lambda: render_depth(head_metrics(record).named(picture), "entropy", ".svg")
    yield curve_paper, lambda: render_curves(curves, ".svg")


@pytest.mark.parametrize("number", range(6))
def test_no_figure_prints_a_name_as_boxes(monkeypatch, number):
    monkeypatch.setattr("attnviz.fonts._font_with", lambda letters: "")
    _, made = [*odd_figures()][number]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as Matplotlib warns of boxes
        content = made()
    assert "原" not in svg_text(content) and "原" in content.decode()  # the metadata keep it


def test_a_score_that_no_font_prints_is_said_to_be(monkeypatch):
    monkeypatch.setattr("attnviz.fonts._font_with", lambda letters: "")
    text = svg_text(render_curves(replace(CURVES, score="原图.jpg"), ".svg"))
    assert "Score: in letters that no font here prints" in " ".join(text.split())


@pytest.mark.parametrize("number", range(6))
def test_a_name_takes_the_font_that_has_its_letters(monkeypatch, number):
    taken = []
    module, made = [*odd_figures()][number]
    monkeypatch.setattr(module, "printed", lambda *_, fonts=(), **__: taken.extend(fonts))
    monkeypatch.setattr(
        sheet, "families", lambda text: ["DejaVu Sans"] if text.isascii() else ["DejaVu Sans", "Other"]
    )  # fmt: skip
    made()
    assert taken == ["DejaVu Sans", "Other"]


def test_equal_names_are_refused():
    with pytest.raises(BadOption, match=r"^Names tell maps apart; 'cat' came twice\.$"):
        attnviz.beside([heat(), heat(), heat()], ["cat", "dog", "cat"])


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("a" * 254 + "bc", "a" * 254 + "de", "a" * 254 + "…"),
        (b"\xff".decode(errors="surrogateescape"), r"\udcff", r"\udcff"),
    ],
)
def test_names_that_become_equal_in_a_file_are_refused(one, other, both):
    with pytest.raises(BadOption) as caught:
        attnviz.beside([heat(), heat()], [one, other])
    assert str(caught.value) == f"Names tell maps apart; {both!r} came twice."
    unnamed = [heat(title=name) for name in (one, other)]
    assert Row(tuple(unnamed)).names == ("map 1", "map 2")


def test_maps_of_two_of_three_pictures_are_numbered_as_maps_and_said_to_be_of_several():
    one, turned = heat(), heat().image.rotate(180)
    mixed = Row((one, one, replace(one, image=turned)))
    assert mixed.names == ("map 1", "map 2", "map 3")
    assert mixed.apart == ("of different pictures",)
    called_so = Row(mixed.heats, ("picture 1", "picture 2", "picture 3"))
    assert called_so.apart == ("of different pictures",)
    assert Row((one, replace(one, image=turned))).apart == ()


def test_a_map_called_by_its_place_takes_no_other_map_s_name(monkeypatch):
    monkeypatch.setattr("attnviz.fonts._font_with", lambda letters: "")
    made = Row((heat(), heat()), ("map 2", "原图"))
    assert row_module.printable_row(made)[0].names == ("map 1", "map 2")


def test_maps_of_different_pictures_without_names_say_that_they_are():
    one, layer = heat(facts=(("layer", "1"),)), (("layer", "2"),)
    other = replace(one, image=Image.new("RGB", (30, 20)), facts=layer)
    assert Row((one, other)).apart == ("of different pictures",)
    assert "; of different pictures; opacity" in latex(Row((one, other)), "a.pdf")
    same = replace(one, image=one.image.copy(), facts=layer)
    assert Row((one, same)).apart == ()
    assert Row((one.named("a.jpg"), other.named("b.jpg"))).names == (
        "a.jpg, layer 1",
        "b.jpg, layer 2",
    )
    assert Row((one.named("a.jpg"), other.named("b.jpg"))).apart == ()


def test_long_names_end_in_dots_and_odd_bytes_are_escaped():
    made = row(names=("x" * 256, "\udcff"))
    assert made.names == ("x" * 254 + "…", "\\udcff")
    two = [heat(facts=(("model", letter * 200), ("layer", letter * 200))) for letter in "ab"]
    assert [len(name) for name in Row(tuple(two)).names] == [255, 255]
