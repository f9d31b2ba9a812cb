"""The page's views without a browser: that each draws, and that what it draws is what it says."""

import json
import re
import zipfile
from base64 import b64decode
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
from page_visit import (
    SMALLER,
    calm,
    choose_model,
    open_view,
    picker,
    record_on,
    stand_ins,
    texts,
    visit,
    widget,
)
from PIL import Image
from scipy.stats import spearmanr

import attnviz
import models
from attnviz import plot_export
from attnviz.errors import BadOption
from attnviz.mass import MASS
from attnviz.methods import METHODS
from attnviz.metrics import METRICS
from attnviz.ui import cache, go_to, heads_panel, mask_panel, methods_panel, trust_panel
from attnviz.ui.methods_panel import FIRST
from attnviz.ui.ranking import OFFERED, Ranking
from attnviz.ui.turns import Turns
from attnviz.ui.views import VIEWS
from tests.test_film import cait


@pytest.fixture
def page(monkeypatch):
    """A visitor's page, drawn once."""
    with stand_ins(monkeypatch):
        yield visit()


def values_of(page, key):
    return np.array(picker(page, key)["values"], dtype=float)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("query", ["cls", "mean", None])
def test_every_view_opens_with_every_kind_of_query(page, view, query):
    open_view(page, view)
    if any(each.label == "Who asks" for each in page.pills):
        if query is None and view != "compare":  # it has no fields for rows and columns
            calm(widget(page, "Row").set_value(1).run())
        elif query is not None:
            calm(widget(page, "Who asks").set_value(query).run())
    assert not page.error


def test_methods_beside_each_other_are_those_of_the_library(page):
    open_view(page, "methods")
    record = record_on(page)
    heats = {name: attnviz.explain(record, name) for name in FIRST}
    for name, heat in heats.items():
        assert values_of(page, f"map-{name}") == pytest.approx(heat.values, rel=5e-3, abs=1e-6)
    (shown,) = page.dataframe
    table, columns = shown.value, json.loads(shown.proto.columns)
    for number, one in enumerate(FIRST, 1):
        assert columns[METHODS[one].label]["label"] == f"{number}."
        for other in FIRST:
            row = table[table[""] == f"{number}. {METHODS[one].label}"]
            expected = spearmanr(heats[one].values.ravel(), heats[other].values.ravel()).statistic
            assert float(row[METHODS[other].label].iloc[0]) == pytest.approx(expected)


def test_methods_by_rank_share_one_scale(page):
    open_view(page, "methods")
    calm(page.radio(key="methods_scale").set_value("rank").run())
    for name in FIRST:
        ranks = values_of(page, f"map-{name}").ravel()
        assert sorted(ranks) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1], abs=1e-6)  # 6 patches
    bars = [element.value for element in page.html if "Colour bar" in element.value]
    assert len(bars) == len(FIRST)
    assert all("rank among patches from 0 to 1" in bar for bar in bars)


def test_a_method_that_needs_a_target_asks_for_one_and_one_of_colours_is_not_ranked(page):
    open_view(page, "methods")
    page.session_state.methods = ["relevance", "pca", "rollout"]
    calm(page.run())
    assert not page.error and page.selectbox(key="target").value
    assert values_of(page, "map-relevance").shape == (2, 3)
    assert len(picker(page, "map-pca")["values"][0][0].split(",")) == 3
    (table,) = (each.value for each in page.dataframe)
    assert sorted(table[""]) == ["1. Attention rollout", "2. Relevance"]


def test_a_target_that_cannot_be_explained_leaves_the_other_methods(page, monkeypatch):
    def fails(stage):
        raise BadOption("this model names no classes.")

    monkeypatch.setattr(methods_panel, "aim", fails)
    open_view(page, "methods")
    page.session_state.methods = ["relevance", "rollout"]
    calm(page.run())
    assert "this model names no classes." in [info.value for info in page.info]
    assert values_of(page, "map-rollout").shape == (2, 3)


def test_a_method_is_opened_by_itself_and_none_is_no_error(page):
    open_view(page, "methods")
    calm(page.button(key="open-rollout").click().run())
    assert (page.session_state.view, page.session_state.method) == ("map", "rollout")
    open_view(page, "methods")
    page.session_state.methods = []
    calm(page.run())
    assert "Choose one method or more." in [info.value for info in page.info]


@pytest.mark.parametrize("metric", OFFERED)
@pytest.mark.parametrize("high", [False, True])
def test_heads_are_sorted_by_what_they_do(page, metric, high):
    open_view(page, "heads")
    page.selectbox(key="sort").set_value(metric).run()
    calm(page.toggle(key="sort_high").set_value(high).run())
    record = record_on(page)
    numbers = attnviz.head_metrics(record)[metric]
    cells = [(layer, head) for layer in range(3) for head in range(3)]
    expected = sorted(cells, key=lambda cell: numbers[cell], reverse=high)
    given = picker(page, "mosaic")
    names = [name for row in given["cellNames"] for name in row]
    assert [name.partition(":")[0] for name in names] == [f"L{i}, H{j}" for i, j in expected]
    most = [float(text.split()[0]) for row in given["values"] for text in row]
    for (layer, head), value in zip(expected, most, strict=True):
        held = float(record.layers[layer].probs()[head, 0, 1:].max())
        assert value == pytest.approx(held, rel=5e-3)


def test_a_sorted_tile_opens_its_own_head(page, monkeypatch):
    open_view(page, "heads")
    calm(page.selectbox(key="sort").set_value("entropy").run())
    numbers = attnviz.head_metrics(record_on(page))["entropy"]
    from attnviz.ui import mosaic_panel

    laid = mosaic_panel._in_order(
        np.zeros((3, 3, 2, 3), np.float32), Ranking("entropy", numbers, "nats", False)
    )
    monkeypatch.setattr(mosaic_panel, "picked_cell", lambda key: (0, 0))
    opened = []
    monkeypatch.setattr(mosaic_panel, "go_to_head", lambda *cell: opened.append(cell))
    monkeypatch.setattr(mosaic_panel, "reveal_map", lambda: None)
    mosaic_panel._open_picked(laid.heads, laid.columns)
    assert opened == [np.unravel_index(numbers.argmin(), (3, 3))]
    assert laid.place_of(opened[0]) == (0, 0)


@pytest.mark.parametrize("direction", ["from", "to"])
def test_a_tile_opens_what_it_shows_which_is_what_the_query_looks_at(page, direction, monkeypatch):
    page.session_state["head"], page.session_state["direction"] = 1, direction
    open_view(page, "heads")
    outlined = picker(page, "mosaic")["chosen"]
    assert outlined == ([2, 1] if direction == "from" else None)
    with monkeypatch.context() as patch:
        patch.setattr(go_to, "st", SimpleNamespace(session_state=page.session_state))
        go_to.go_to_head(0, 2)
    calm(page.run())
    heat = attnviz.explain(record_on(page), layer=0, head=2)
    assert picker(page, "map")["alt"].startswith("Attention of the class token")
    assert picker(page, "map")["values"][1][2] == f"{heat.values[1, 2]:.3g}"


@pytest.mark.parametrize(
    ("view", "kind", "key", "value"),
    [
        ("map", "selectbox", "format", "SVG"),
        ("map", "toggle", "words", False),
        ("numbers", "selectbox", "depth_format", "SVG"),
        ("layers", "selectbox", "film_format", "WebP"),
        ("layers", "number_input", "film_seconds", 0.3),
    ],
)
def test_what_was_chosen_of_a_file_outlives_a_look_at_another_view(page, view, kind, key, value):
    open_view(page, view)
    calm(getattr(page, kind)(key=key).set_value(value).run())
    open_view(page, "patches")
    open_view(page, view)
    assert getattr(page, kind)(key=key).value == value


def test_patches_are_what_the_model_saw(page):
    open_view(page, "patches")
    calm(widget(page, "Row").set_value(1).run())
    record = record_on(page)
    seen = picker(page, "seen-patches")
    height, width = record.view.pixels.shape[:2]
    assert seen["size"] == [width, height] and seen["chosen"] == [1, 0]
    tokens, layers = (each.value for each in page.dataframe)
    assert "*Who looks at it*, in *One map*," in texts(page)
    # 1 class token, then 2 × 3 patches: row 1, column 0 is token 1 + 3.
    assert list(tokens["token"]) == ["0", "1 to 6", "4"]
    assert list(layers["heads"]) == [3, 3, 3]
    assert set(layers["grid that asks"]) == {"2 × 3"}
    assert "16 × 16 pixels of 3 colours each, 768 numbers" in texts(page)


@pytest.mark.parametrize("view", ["map", "export"])
def test_the_code_beside_a_scale_that_all_heads_share_has_its_ends(page, view):
    calm(page.radio(key="scale").set_value("shared").run())
    open_view(page, view)
    code = next(each.value for each in page.code if each.language == "python")
    ends = re.search(r"Scale\(low=([^,]+), high=([^,)]+)", code).groups()
    heads = [layer.probs()[:, 0, 1:].numpy() for layer in record_on(page).layers]
    assert [*map(float, ends)] == pytest.approx([np.min(heads), np.max(heads)], rel=1e-5)


def test_the_enlarged_patch_is_the_one_that_was_picked(page):
    open_view(page, "patches")
    calm(widget(page, "Row").set_value(1).run())
    calm(widget(page, "Column").set_value(2).run())
    (drawn,) = (each.value for each in page.html if 'class="picture"' in each.value)
    assert 'alt="The patch in row 1, column 2, enlarged"' in drawn
    data = re.search('base64,([^"]+)', drawn)[1]
    large = np.asarray(Image.open(BytesIO(b64decode(data))))
    patch = record_on(page).view.pixels[16:32, 32:48]
    times = len(large) // 16
    np.testing.assert_array_equal(large, patch.repeat(times, 0).repeat(times, 1))


@pytest.mark.parametrize("name", ["entropy", "distance"])
def test_the_plot_of_a_metric_and_its_file_are_of_that_metric(page, monkeypatch, name):
    files = {}
    monkeypatch.setattr(
        heads_panel, "offer_file", lambda label, make, name, mime: files.update({name: make})
    )
    open_view(page, "numbers")
    calm(page.selectbox(key="metric").set_value(name).run())
    metrics = attnviz.head_metrics(record_on(page)).named("Cat")
    (chart,) = page.get("plotly_chart")
    # The dots are its first trace; a metric may have a line that says what a value means.
    shown = json.loads(chart.proto.spec)["data"][0]["y"]
    if isinstance(shown, dict):
        shown = np.frombuffer(b64decode(shown["bdata"]), shown["dtype"])
    assert sorted(shown) == pytest.approx(sorted(metrics[name].ravel()))
    file = [each for each in files if each.endswith(".png")][-1]  # one at first, of another metric
    assert name in file and files[file]() == plot_export.render_depth(metrics, name, ".png")


def test_the_preview_is_the_file(page, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "attnviz.ui.export_panel.show_picture",
        lambda uri, **_: shown.append(b64decode(uri.partition(",")[2])),
    )
    open_view(page, "export")
    calm(page.number_input(key="export_width").set_value(60).run())
    heat = attnviz.explain(record_on(page), "attention").named("Cat")
    from attnviz import export

    expected = export.render(heat, ".png", alpha=0.5, colormap="inferno", width_mm=60, dpi=450)
    assert shown[-1] == expected


@pytest.mark.parametrize("kind", ["methods", "layers", "heads", "numbers"])
def test_every_kind_of_figure_is_previewed_as_its_file(page, monkeypatch, kind):
    shown, offered = [], []
    monkeypatch.setattr(
        "attnviz.ui.export_panel.show_picture",
        lambda uri, **_: shown.append(b64decode(uri.partition(",")[2])),
    )
    monkeypatch.setattr(
        "attnviz.ui.export_panel.offer_file", lambda label, make, name, mime: offered.append(make)
    )
    open_view(page, "export")
    page.session_state["export_what"] = kind
    page.session_state["export_venue"] = "cvpr"
    calm(page.run())
    drawn = Image.open(BytesIO(shown[-1]))
    assert drawn.width == round(3.25 * 450) and drawn.info["Software"] == "attnviz"
    said = json.loads(drawn.info["Description"])
    assert said["kind"] == {"methods": "row", "layers": "film", "numbers": "metrics"}.get(
        kind, kind
    )
    assert said["facts"]["picture"] == "Cat"
    one, whole = (make() for make in offered[-2:])
    with zipfile.ZipFile(BytesIO(whole)) as files:
        names = files.namelist()
        (png,) = [name for name in names if name.endswith(".png")]
        assert files.read(png) == shown[-1] == one
    assert {name.rpartition(".")[2] for name in names} >= {"pdf", "svg", "json", "tex"}
    assert "\\includegraphics[width=82.55mm]" in texts(page) or any(
        "includegraphics[width=82.55mm]" in each.value for each in page.code
    )


def test_only_figures_that_have_a_query_ask_for_one(page):
    open_view(page, "export")
    for kind, asks in (("heads", True), ("numbers", False), ("layers", True)):
        page.session_state["export_what"] = kind
        calm(page.run())
        labels = {each.label for each in page.get("button_group")}
        assert ("Who asks" in labels) == asks


def test_every_metric_is_told_in_plain_words_and_its_formula_in_the_help(page):
    assert heads_panel.PLAIN.keys() == METRICS.keys()
    open_view(page, "numbers")
    for name, words, formula in (
        ("entropy", "0 is all on one token", "log A[q, k]"),
        ("to_cls", "gives to this token", "each row sums to 1"),
    ):
        calm(page.selectbox(key="metric").set_value(name).run())
        (caption,) = [each for each in page.caption if "Each dot is one head." in each.value]
        assert words in caption.value and formula in caption.proto.help


def test_a_figure_of_nothing_is_asked_for_again(page):
    open_view(page, "export")
    page.session_state["export_what"] = "methods"
    page.session_state["export_methods"] = []
    calm(page.run())
    assert "Choose one method or more." in [each.value for each in page.info]


def heads_outlined(page):
    """The heads that have an outline."""
    found = (re.match(r"\*\*Head (\d+)\*\*", each.value) for each in page.caption)
    return [int(match[1]) for match in found if match]


def test_the_mask_has_the_heads_of_the_last_layer_that_the_map_goes_through(page):
    page.session_state["method"] = "rollout"
    open_view(page, "mask")
    assert "Each head of layer 2 (of 3" in texts(page)
    calm(page.slider(key="span").set_value((0, 1)).run())
    assert "Each head of layer 1 (of 3" in texts(page)
    assert heads_outlined(page) == [0, 1, 2]


def test_a_head_s_outline_is_of_the_layer_that_is_named(page):
    open_view(page, "mask")
    mask = attnviz.mass_mask(attnviz.explain(record_on(page), layer=2, head=1).values, MASS)
    (said,) = (each.value for each in page.caption if each.value.startswith("**Head 1**"))
    assert f"{int(mask.kept.sum())} patch" in said and f"hold {mask.mass:.1%}" in said


def test_a_map_in_colours_has_no_outline_and_no_code_that_would_be_refused(page):
    page.session_state["method"] = "pca"
    open_view(page, "mask")
    assert any("one value" in info.value for info in page.info)
    assert not page.code
    calm(page.segmented_control(key="method").set_value("rollout").run())
    assert page.code


def test_a_head_without_an_outline_costs_the_others_nothing(page, monkeypatch):
    real, bare = mask_panel.mass_mask, attnviz.explain(record_on(page), head=1).values

    def mass_mask(values, mass):
        return real(np.zeros_like(values) if np.array_equal(values, bare) else values, mass)

    monkeypatch.setattr(mask_panel, "mass_mask", mass_mask)
    open_view(page, "mask")
    assert heads_outlined(page) == [0, 2]
    (info,) = page.info
    assert info.value.startswith("Head 1: ")


def test_a_mask_stands_where_the_query_asks_in_no_head_of_its_layer(monkeypatch):
    with stand_ins(monkeypatch):
        others = models.load
        monkeypatch.setattr(
            models,
            "load",
            lambda name, **how: (
                replace(cait(), name=name) if name == SMALLER else others(name, **how)
            ),
        )
        page = visit()
        choose_model(page, SMALLER)
        page.session_state["method"], page.session_state["asked"] = "gradcam", (225.0, 150.0)
        open_view(page, "mask")
        assert not page.error and not heads_outlined(page)
        (info,) = page.info
        assert info.value.startswith("Every head: ") and "does not ask" in info.value
        assert "**Grad-CAM on tokens**: " in texts(page)  # the map itself is outlined


def test_each_test_of_a_map_is_a_file_of_its_own(page, monkeypatch):
    files = []
    monkeypatch.setattr(
        trust_panel, "offer_file", lambda label, make, name, mime: files.append(name)
    )
    open_view(page, "trust")
    for _ in range(2):
        calm(next(b for b in page.button if b.label.startswith("Run the model")).click().run())
        calm(page.radio(key="trust_mode").set_value("insertion").run())
    deletion, insertion = dict.fromkeys(files)
    assert re.fullmatch(r"cat_.*_deletion_.*layer-2.*\.pdf", deletion)
    assert insertion == deletion.replace("deletion", "insertion")


def test_a_test_that_found_no_place_costs_no_earlier_one(page):
    page.session_state["trust"] = dict.fromkeys(map(str, range(trust_panel.KEPT)))
    open_view(page, "trust")
    (test,) = (b for b in page.button if b.label.startswith("Run the model"))
    cache.observations().line = full = Turns(longest=0)
    with full.turn("somebody else"):
        calm(test.click().run())
    assert page.error and len(page.session_state["trust"]) == trust_panel.KEPT
    (test,) = (b for b in page.button if b.label.startswith("Run the model"))
    calm(test.click().run())
    assert "0" not in page.session_state["trust"] and "1" in page.session_state["trust"]
    assert len(page.session_state["trust"]) == trust_panel.KEPT


def test_a_method_that_found_no_place_is_asked_again(page):
    page.session_state["methods"] = ["attention", "flow"]
    cache.observations().line = full = Turns(longest=0)
    with full.turn("somebody else"):
        open_view(page, "methods")
        (again,) = (b for b in page.button if b.label == "Try again")
    calm(again.click().run())
    assert not page.error and picker(page, "map-flow")["values"]
