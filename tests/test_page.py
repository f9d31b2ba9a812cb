"""The page without a browser: what each widget of it draws, and that it is what was asked for."""

import re

import numpy as np
import pytest
from page_visit import (
    calm,
    mosaic,
    open_view,
    picker,
    png,
    record_on,
    send_again,
    stand_ins,
    states_of,
    texts,
    upload,
    visit,
    widget,
)

import attnviz
from attnviz.colour import COLORMAPS
from attnviz.methods import METHODS
from attnviz.samples import SAMPLES
from attnviz.ui import cache
from attnviz.ui.look_panel import SCALE_WORDS
from attnviz.ui.method_panel import _WIDGETS
from attnviz.ui.model_panel import FIT_WORDS
from attnviz.ui.trust_panel import STEPS


@pytest.fixture
def page(monkeypatch):
    """A visitor's page, drawn once."""
    with stand_ins(monkeypatch):
        yield visit()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_offered_with_all_its_options(method, monkeypatch):
    asked = []
    explain = attnviz.explain

    def watched(record, name="attention", **options):
        asked.append((name, {key for key in options if key != "query"}))
        return explain(record, name, **options)

    with stand_ins(monkeypatch):
        monkeypatch.setattr("attnviz.ui.observation.explain", watched)
        page = visit()
        page.session_state.method = method
        calm(page.run())
    name, options = asked[-1]
    missing = METHODS[method].options.keys() - options - {"head_fusion", "limit"}
    assert name == method
    assert not missing, f"attnviz/ui/method_panel.py: give {sorted(missing)} of {method} widgets"
    assert _WIDGETS.keys() <= METHODS.keys()


def test_opens_with_a_sample_already_explained(page):
    assert not page.error and not page.warning
    first = next(iter(SAMPLES.values()))
    assert first.credit in texts(page)
    patches, shown = picker(page, "patches"), picker(page, "map")
    assert (patches["rows"], patches["cols"]) == ([0, 1], [0, 2])  # 6 patches
    assert patches["size"] == [902, 600]  # 451 × 300 pixels, enlarged twice
    assert "2 rows × 3 columns" in texts(page)
    # The last layer, mean over heads, class token's row, without the class token itself.
    expected = record_on(page).layers[2].probs().mean(0)[0, 1:].numpy()
    seen = np.array(shown["values"], dtype=float).ravel()
    assert seen == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (0, 2), (1, 1)])
def test_shows_the_head_that_was_asked_for(page, layer, head):
    page.slider(key="layer").set_value(layer)
    calm(page.selectbox(key="head").set_value(head).run())
    expected = record_on(page).layers[layer].probs()[head, 0, 1:].numpy()
    assert np.array(picker(page, "map")["values"], dtype=float).ravel() == pytest.approx(
        expected, rel=5e-3
    )
    bar = next(element.value for element in page.html if "Colour bar" in element.value)
    low, middle, high = (float(text) for text in re.findall(r"<span>(.*?)</span>", bar))
    ends = float(expected.min()), float(expected.max())
    assert (low, high) == pytest.approx(ends, rel=5e-3)
    assert middle == pytest.approx(sum(ends) / 2, rel=5e-3)
    assert "attention weight" in bar
    assert mosaic(page)["chosen"] == [layer, head]
    share = re.search(r"hold ([\d.]+)% of the whole", texts(page))
    assert float(share[1]) == pytest.approx(100 * expected.sum(), abs=0.06)


def test_says_no_share_of_a_whole_where_there_is_none(page):
    calm(page.selectbox(key="head").set_value("max").run())
    assert "of the whole" not in texts(page)


def test_the_mosaic_holds_every_head(page):
    tiles = mosaic(page)
    assert (tiles["rows"], tiles["cols"]) == ([0, 2], [0, 2])
    layers = record_on(page).layers
    for layer in range(3):
        for head in range(3):
            most, *unit = tiles["values"][layer][head].split()
            assert unit == ["at", "its", "highest", "patch"]
            expected = float(layers[layer].probs()[head, 0, 1:].max())
            assert float(most) == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        *[("selectbox", "sample", name) for name in SAMPLES],
        *[("selectbox", "fit", fit) for fit in FIT_WORDS],
        *[("selectbox", "colormap", name) for name in COLORMAPS],
        *[("radio", "scale", scale) for scale in SCALE_WORDS],
        ("slider", "alpha", 0.0),
        ("slider", "alpha", 1.0),
        ("toggle", "smooth", True),
        ("toggle", "clip", True),
        ("toggle", "chart", True),
        ("toggle", "random", True),
        ("select_slider", "side", 128),
    ],
)
def test_every_choice_draws(page, kind, key, value):
    chosen = widget(page, "Sample") if key == "sample" else getattr(page, kind)(key=key)
    calm(chosen.set_value(value).run())
    alike = picker(page, "patches")["picture"] == picker(page, "map")["picture"]
    assert alike == ((key, value) == ("alpha", 0.0))
    assert len(page.get("plotly_chart")) == (key == "chart")
    if key == "sample":
        assert SAMPLES[value].credit in texts(page)
    calm(page.segmented_control(key="method").set_value("rollout").run())
    assert not page.error


def test_rollout_takes_its_options(page):
    page.segmented_control(key="method").set_value("rollout").run()
    page.slider(key="span").set_value((0, 0))
    calm(page.slider(key="residual").set_value(0.0).run())
    # Over one layer and without a residual, rollout is that layer's attention.
    expected = record_on(page).layers[0].probs().mean(0)[0, 1:].numpy()
    seen = np.array(picker(page, "map")["values"], dtype=float).ravel()
    assert seen == pytest.approx(expected, rel=5e-3)


def test_flow_takes_its_options(page):
    page.segmented_control(key="method").set_value("flow").run()
    assert "Takes about 1 s" in texts(page)
    calm(page.slider(key="span").set_value((1, 1)).run())
    # Through one layer, an input gets what the edge to it holds.
    edges = record_on(page).layers[1].probs().double().mean(0)[0].numpy() / 2
    edges[0] += 0.5
    seen = np.array(picker(page, "map")["values"], dtype=float).ravel()
    assert seen == pytest.approx(edges[1:], rel=5e-3)


def test_flow_pools_fine_grids_unless_told_not_to(page):
    page.segmented_control(key="method").set_value("flow").run()
    assert widget(page, "Patches pooled to").options == ["2 × 3, as they are"]
    calm(page.select_slider(key="side").set_value(256).run())
    pools = widget(page, "Patches pooled to")
    assert pools.options == ["5 × 8", "10 × 14", "13 × 19, as they are"]
    assert pools.value == 14 and "pooled to 10 × 14" in texts(page)
    calm(pools.set_value(8).run())
    assert "pooled to 5 × 8" in texts(page)
    calm(widget(page, "Patches pooled to").set_value(0).run())
    assert "were pooled" not in texts(page)


def test_a_methods_options_outlive_a_look_at_another(page):
    page.slider(key="layer").set_value(1).run()
    page.segmented_control(key="method").set_value("rollout").run()
    page.slider(key="span").set_value((1, 2)).run()
    page.segmented_control(key="method").set_value("attention").run()
    assert page.slider(key="layer").value == 1
    calm(page.segmented_control(key="method").set_value("rollout").run())
    assert page.slider(key="span").value == (1, 2)


def test_row_and_column_ask_and_one_is_enough(page):
    calm(widget(page, "Row").set_value(1).run())
    assert picker(page, "patches")["chosen"] == picker(page, "map")["chosen"] == [1, 0]
    assert widget(page, "Who asks").value is None
    assert widget(page, "Column").value == 0  # what is asked is what is seen
    assert (widget(page, "Row").label, widget(page, "Column").label) == (
        "Row (0 to 1)",
        "Column (0 to 2)",
    )
    calm(widget(page, "Column").set_value(2).run())
    assert picker(page, "patches")["chosen"] == [1, 2]
    assert "What the patch (row 1, column 2) attends to" in texts(page)
    token = 1 + 1 * 3 + 2
    expected = record_on(page).layers[2].probs().mean(0)[token, 1:].numpy()
    assert np.array(picker(page, "map")["values"], dtype=float).ravel() == pytest.approx(
        expected, rel=5e-3
    )
    calm(widget(page, "Row").set_value(None).run())  # emptied: stays as it was
    assert picker(page, "patches")["chosen"] == [1, 2]
    calm(widget(page, "Row").set_value(0).run())
    assert picker(page, "patches")["chosen"] == [0, 2]
    calm(widget(page, "Who asks").set_value("cls").run())
    assert picker(page, "patches")["chosen"] is None
    assert widget(page, "Row").value is None


def test_a_mean_query_asks_all_patches(page):
    calm(widget(page, "Who asks").set_value("mean").run())
    expected = record_on(page).layers[2].probs().mean(0)[1:, 1:].mean(0).numpy()
    assert np.array(picker(page, "map")["values"], dtype=float).ravel() == pytest.approx(
        expected, rel=5e-3
    )


def test_a_click_that_still_brings_the_old_query_along_does_not_undo_a_pick(page):
    calm(widget(page, "Row").set_value(1).run())
    stale = states_of(page, "Row", "Column", "Who asks")
    page.session_state["asked"] = "mean"  # as picking on the picture does, in one step
    calm(page.run())
    assert widget(page, "Who asks").value == "mean"
    send_again(page, stale)
    assert widget(page, "Who asks").value == "mean"
    assert picker(page, "patches")["chosen"] is None


@pytest.mark.parametrize("clip", [False, True])
def test_one_scale_for_all_heads_is_the_mosaics_too(page, clip):
    page.toggle(key="clip").set_value(clip)
    calm(page.radio(key="scale").set_value("shared").run())
    every = np.stack([layer.probs()[:, 0, 1:].numpy() for layer in record_on(page).layers])
    low, high = np.percentile(every, [1, 99]) if clip else (every.min(), every.max())
    bar = next(element.value for element in page.html if "Colour bar" in element.value)
    numbers = [float(text.strip("≤≥ ")) for text in re.findall(r"<span>(.*?)</span>", bar)]
    assert (numbers[0], numbers[-1]) == pytest.approx((low, high), rel=5e-3)
    assert "of all heads" in bar
    open_view(page, "heads")
    told = re.search(r"One scale for all: (\S+) to (\S+)\. ", texts(page))
    assert (float(told[1]), float(told[2])) == pytest.approx((low, high), rel=5e-3)
    open_view(page, "map")
    # What adds up over layers has another unit, and keeps a scale of its own.
    calm(page.segmented_control(key="method").set_value("rollout").run())
    bar = next(element.value for element in page.html if "Colour bar" in element.value)
    assert "share of rollout" in bar and "of all heads" not in bar


def test_colours_that_are_mixed_are_said_to_be_and_shown_alone_on_request(page):
    assert "Opacity 0.5: the map's colours are mixed with the picture's" in texts(page)
    calm(page.button(key="alone").click().run())
    assert page.slider(key="alpha").value == 1.0
    assert "mixed" not in texts(page)

    calm(page.slider(key="alpha").set_value(0.0).run())
    assert "mixed" not in texts(page)


def test_a_method_stays_chosen_while_another_view_is_shown(page):
    calm(page.segmented_control(key="method").set_value("rollout").run())
    open_view(page, "heads")
    open_view(page, "map")
    assert page.segmented_control(key="method").value == "rollout"


def test_a_shared_scale_that_one_head_sets_says_so_and_offers_the_cut(page, monkeypatch):
    calm(page.radio(key="scale").set_value("shared").run())
    open_view(page, "heads")
    assert "look black" not in texts(page)
    tiles = np.full((3, 3, 2, 3), 0.01, np.float32)
    tiles[1, 1, 0, 0] = 0.9
    monkeypatch.setattr("attnviz.ui.observation.tiles_of", lambda *_: tiles)
    cache.observations.clear()
    calm(page.run())
    assert "8 of the 9 tiles look black, because the values of a few heads reach 0.9" in texts(page)
    calm(page.button(key="cut_tiles").click().run())
    assert "look black" not in texts(page) and page.toggle(key="clip").value


def test_tiles_of_their_own_scales_that_look_black_say_so_as_sheets_do(page, monkeypatch):
    tiles = np.full((3, 3, 14, 14), 0.01, np.float32)
    tiles[:, :, 0, 0] = 0.9
    tiles[0] = np.linspace(0, 1, 14)  # a third of them is bright
    monkeypatch.setattr("attnviz.ui.observation.tiles_of", lambda *_: tiles)
    cache.observations.clear()
    for view, word in (("heads", "tiles"), ("stack", "sheets")):
        open_view(page, view)
        said = f"6 of the 9 {word} look black, because a few patches hold so much"
        assert said in texts(page)
        assert page.button(key=f"cut_{word}")


def test_a_scale_that_is_cut_ends_at_the_map_s_own_percentiles(page):
    calm(page.toggle(key="clip").set_value(True).run())
    values = attnviz.explain(record_on(page)).values
    bar = next(element.value for element in page.html if "Colour bar" in element.value)
    ends = [float(each.lstrip("≤≥ ")) for each in re.findall(r"<span>(.*?)</span>", bar)]
    assert [ends[0], ends[-1]] == pytest.approx([*np.percentile(values, [1, 99])], rel=5e-3)


def test_from_zero_starts_at_zero(page):
    calm(page.radio(key="scale").set_value("zero").run())
    bar = next(element.value for element in page.html if "Colour bar" in element.value)
    assert re.findall(r"<span>(.*?)</span>", bar)[0] == "0"


def test_the_heads_in_numbers_are_those_of_the_record(page):
    open_view(page, "numbers")
    expected = attnviz.head_metrics(record_on(page))
    (table,) = (each.value for each in page.dataframe if "entropy" in each.value)
    assert len(table) == 9  # 3 layers of 3 heads
    for row in table.to_dict("records"):
        at = row["layer"], row["head"]
        assert row["entropy"] == pytest.approx(float(expected["entropy"][at]))
    # 7 tokens: none can have 20 times its even share.
    assert "there is no sink" in texts(page)


def test_the_masks_hold_the_share_that_was_asked_for(page):
    open_view(page, "mask")
    page.slider(key="mass").set_value(0.5)
    calm(page.run())
    row = record_on(page).layers[2].probs().mean(0)[0, 1:].double().numpy()
    held = np.sort(row / row.sum())[::-1].cumsum()
    count = int((held < 0.5).sum()) + 1
    said = (
        f"**Attention**: {count} patches, {count / 6:.1%} of the area, hold {held[count - 1]:.1%}."
    )
    assert said in texts(page)
    assert texts(page).count("of the area") == 4  # the map, and three heads


def test_sinks_are_named_and_can_be_left_out_of_the_colours(page, monkeypatch):
    monkeypatch.setattr(
        "attnviz.ui.sinks_panel.swallowed_by", lambda values, filled, itself=(): ((1, 2), (0, 0))
    )
    calm(page.run())
    assert "2 patches (row 1, column 2; row 0, column 0) hold so much" in texts(page)
    row = record_on(page).layers[2].probs().mean(0)[0, 1:].numpy()
    page.toggle(key="without_sinks").set_value(True)
    calm(page.run())
    others = row[[1, 2, 3, 4]]  # all but the first and the last patch
    bar = "".join(each.proto.body for each in page.get("html"))
    assert "2 of the patches left out" in bar
    low, high = (f"{end:.3g}" for end in (others.min(), others.max()))
    assert low in bar and high in bar


def test_three_components_are_colours_with_three_numbers_a_patch(page):
    page.selectbox(key="colormap").set_value("viridis")
    page.radio(key="scale").set_value("zero")
    page.toggle(key="clip").set_value(True)
    page.toggle(key="chart").set_value(True)
    calm(page.segmented_control(key="method").set_value("pca").run())
    assert not page.error
    heat = attnviz.explain(record_on(page), "pca")
    cells = [[cell.split(", ") for cell in row] for row in picker(page, "map")["values"]]
    assert np.array(cells, dtype=float) == pytest.approx(heat.values, rel=5e-3, abs=1e-6)
    assert not [element for element in page.html if "Colour bar" in element.value]
    assert len(page.get("plotly_chart")) == 1
    assert "Feature PCA of the whole picture" in texts(page)
    assert not picker(page, "map")["picks"] and not picker(page, "patches")["picks"]
    said = re.search(r"red is component 0, (\S+) to (\S+);", texts(page))
    red = heat.values[..., 0]
    assert [float(end) for end in said.groups()] == pytest.approx([red.min(), red.max()], rel=5e-3)
    assert heat.fact("variance explained") in texts(page)
    # One alone is a map as any other.
    calm(page.selectbox(key="component").set_value(1).run())
    seen = np.array(picker(page, "map")["values"], dtype=float)
    assert seen == pytest.approx(heat.values[..., 1], rel=5e-3, abs=1e-6)
    bar = next(element.value for element in page.html if "Colour bar" in element.value)
    assert "component score" in bar and "clipped at percentiles 1 and 99" in bar


def test_the_map_that_is_tested_has_its_query_s_outline_and_is_not_picked_on(page):
    widget(page, "Row").set_value(1).run()
    open_view(page, "trust")
    tested = picker(page, "tested")
    assert tested["chosen"] == [1, 0] and not tested["picks"]
    heat = attnviz.explain(record_on(page), query=(1, 0))
    assert tested["values"] == [[f"{value:.3g}" for value in row] for row in heat.values]


@pytest.mark.parametrize("mode", ["deletion", "insertion"])
def test_the_trust_in_a_map_is_what_the_library_measures(page, mode):
    open_view(page, "trust")
    page.radio(key="trust_mode").set_value(mode)
    calm(page.run())
    calm(next(b for b in page.button if b.label.startswith("Run the model on")).click().run())
    (found,) = page.session_state.trust.values()
    assert found.mode == mode and len(found.scores) == min(STEPS, 6) + 1
    assert len(page.get("plotly_chart")) == 1
    said = next(m.value for m in page.markdown if "random orders" in m.value)
    assert found.verdict in said and found.score in said
    # Another query is another map: it has not been tested.
    calm(widget(page, "Who asks").set_value("mean").run())
    assert not page.get("plotly_chart")


def test_trust_in_one_picture_is_not_shown_for_another_of_the_same_name_and_size(page):
    open_view(page, "trust")
    upload(page, "image.png", png((96, 64), "red"))
    calm(next(b for b in page.button if b.label.startswith("Run the model on")).click().run())
    assert len(page.get("plotly_chart")) == 1
    upload(page, "image.png", png((96, 64), "blue"))
    assert "image.png" in texts(page)
    assert not page.get("plotly_chart")
    assert not next(b for b in page.button if b.label.startswith("Run the model on")).disabled


def test_the_heading_says_what_the_map_is(page):
    for method, heading in [
        ("attention", "What the class token attends to"),
        ("rollout", "Attention rollout of the class token"),
        ("flow", "Attention flow of the class token"),
        ("similarity", "What is like the class token"),
        ("pca", "Feature PCA of the whole picture"),
    ]:
        page.session_state.method = method
        calm(page.run())
        assert heading in [each.value for each in page.subheader]
