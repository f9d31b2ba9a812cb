"""What the page says of a map that a few patches swallow: sinks, and the query's own 1."""

import re
from dataclasses import replace

import numpy as np
import pytest
from page_visit import calm, stand_ins, texts, visit, widget
from test_heatmap import heat

from attnviz.explain import Explanation
from attnviz.ui import cache, observation
from attnviz.ui.look_panel import Look

OWN, SINK = (5, 6), (0, 3)
SAID_OF_SINKS, SAID_OF_ITSELF = "a *sink*, which collects", "this is the query itself"


@pytest.fixture
def page(monkeypatch):
    """A visitor's page of 13 × 19 patches, one of which asks."""
    with stand_ins(monkeypatch):
        page = visit()
        calm(page.select_slider(key="side").set_value(256).run())
        widget(page, "Row").set_value(OWN[0]).run()
        calm(widget(page, "Column").set_value(OWN[1]).run())
        yield page


def plant(monkeypatch, values_of, elsewhere=1.0):
    """Each map holds what `values_of` (first layer) says of cells, and 1 `elsewhere`."""
    real = observation.explain

    def planted(record, method, **options) -> Explanation:
        heat = real(record, method, **options)
        values = np.full_like(heat.values, elsewhere)
        for cell, value in values_of(options.get("first_layer", 0)).items():
            values[cell] = value
        return type(heat)(**{**vars(heat), "values": values})

    monkeypatch.setattr(observation, "explain", planted)
    cache.observations.clear()  # what was made before it was planted


@pytest.mark.parametrize("method", ["rollout", "relevance", "gradient_rollout"])
def test_the_query_s_own_1_is_no_sink_and_can_be_left_out(page, monkeypatch, method):
    plant(monkeypatch, lambda first: {OWN: 1e4})
    calm(page.segmented_control(key="method").set_value(method).run())
    assert SAID_OF_ITSELF in texts(page) and "row 5, column 6" in texts(page)
    assert SAID_OF_SINKS not in texts(page) and "begin at" not in texts(page)
    calm(page.toggle(key="without_itself").set_value(True).run())
    assert "1 of the patches left out" in "".join(each.value for each in page.html)


def test_a_sink_beside_the_query_is_still_one(page, monkeypatch):
    plant(monkeypatch, lambda first: {OWN: 1e6, SINK: 1e4})
    calm(page.segmented_control(key="method").set_value("rollout").run())
    assert SAID_OF_ITSELF in texts(page)
    assert "1 patch (row 0, column 3) holds so much" in texts(page)
    # By one layer's attention, and without a residual, all that is bright was collected.
    calm(page.slider(key="residual").set_value(0.0).run())
    assert SAID_OF_ITSELF not in texts(page)
    assert "1 patch (row 5, column 6) holds so much" in texts(page)
    calm(page.segmented_control(key="method").set_value("attention").run())
    assert SAID_OF_ITSELF not in texts(page) and SAID_OF_SINKS in texts(page)


def test_of_several_sinks_every_one_is_left_out(page, monkeypatch):
    plant(monkeypatch, lambda first: {SINK: 1e4, (3, 3): 2e4, (0, 0): 3.0})
    calm(page.segmented_control(key="method").set_value("attention").run())
    assert "2 patches (row 3, column 3; row 0, column 3) hold so much" in texts(page)
    calm(page.toggle(key="without_sinks").set_value(True).run())
    (bar,) = (each.value for each in page.html if "Colour bar" in each.value)
    assert "2 of the patches left out" in bar
    assert re.findall("<span>(.*?)</span>", bar)[-1].lstrip("≥ ") == "3"


@pytest.mark.parametrize(
    ("still", "span", "said"),
    [
        (0, (0, 2), "let it begin at layer 1:"),  # swallowed up to layer 0 alone
        (1, (1, 2), "let it begin at layer 2:"),
        (1, (0, 2), None),  # the next layer would not help
        (2, (2, 2), None),  # it ends there
    ],
)
def test_a_later_begin_is_advised_only_where_it_helps(page, monkeypatch, still, span, said):
    plant(monkeypatch, lambda first: {SINK: 1e4} if first <= still else {})
    page.segmented_control(key="method").set_value("rollout").run()
    calm(page.slider(key="span").set_value(span).run())
    assert SAID_OF_SINKS in texts(page)
    assert said in texts(page) if said else "begin at" not in texts(page)


def test_the_query_s_own_is_no_sink_of_a_later_begin_either(page, monkeypatch):
    plant(monkeypatch, lambda first: {OWN: 1e4} | ({SINK: 1e4} if first == 0 else {}))
    page.segmented_control(key="method").set_value("rollout").run()
    calm(page.slider(key="span").set_value((0, 2)).run())
    assert "let it begin at layer 1:" in texts(page)


def test_nothing_is_hidden_where_the_scale_is_cut(page, monkeypatch):
    """Of 247 patches one has more than 1, where percentile 99 lies."""
    plant(monkeypatch, lambda first: {SINK: 1e4})
    calm(page.segmented_control(key="method").set_value("attention").run())
    assert SAID_OF_SINKS in texts(page)
    calm(page.toggle(key="clip").set_value(True).run())
    assert SAID_OF_SINKS not in texts(page)


def test_from_a_scale_that_all_heads_share_no_patch_is_left_out(page, monkeypatch):
    plant(monkeypatch, lambda first: {SINK: 1e-2}, elsewhere=1e-6)  # heads have more
    calm(page.segmented_control(key="method").set_value("attention").run())
    assert page.toggle(key="without_sinks").label.startswith("Leave these")
    calm(page.radio(key="scale").set_value("shared").run())
    assert (
        SAID_OF_SINKS in texts(page) and "give each map its own colour scale" in texts(page).lower()
    )
    assert "without_sinks" not in {toggle.key for toggle in page.toggle}


def test_what_is_left_of_a_scale_is_cut_too():
    """0 to 99 in 100 patches without the last: percentiles 1 and 99 of 0 to 98."""
    look = Look(alpha=0.5, colormap="inferno", interpolation="nearest", scale="own", clip=99.0)
    scale = look.scale_of(heat(np.arange(100, dtype=np.float32).reshape(10, 10)), [(9, 9)])
    assert (scale.low, scale.high) == pytest.approx((0.98, 97.02))


@pytest.mark.parametrize("view", ["methods", "compare"])
def test_maps_beside_each_other_say_so_too(page, monkeypatch, view):
    words = "1 patch (row 0, column 3) holds so much that nothing else is seen; *One map*"
    page.session_state.methods = ["attention", "rollout"]
    page.session_state.view = view
    assert words not in texts(calm(page.run()))
    plant(monkeypatch, lambda first: {SINK: 1e4})
    assert texts(calm(page.run())).count(words) == 2


def test_layers_say_which_of_them_hide_all_else(page, monkeypatch):
    real = observation.film

    def planted(record, **options):
        film = real(record, **options)
        heat = film.maps[1]
        values = np.ones_like(heat.values)
        values[SINK] = 1e4
        return replace(film, maps={**film.maps, 1: replace(heat, values=values)})

    monkeypatch.setattr(observation, "film", planted)
    cache.observations.clear()
    page.session_state.view = "layers"
    words = "Layer 1: a few patches hold so much that nothing else is seen; *One map*"
    assert words in texts(calm(page.run()))


def test_patches_pooled_with_the_query_are_the_query_s_too(page, monkeypatch):
    """13 × 19 pooled to 5 × 8, parts of 2.6 × 2.375 patches: the query, row 5 to 6, column 6 to 7,
    lies in parts from row 2.6 to 7.8, column 4.75 to 7.125. Of 6 rows, 4 columns some is there."""
    plant(monkeypatch, lambda first: {OWN: 1e5, (7, 5): 1e5, SINK: 1e3})
    page.segmented_control(key="method").set_value("flow").run()
    calm(widget(page, "Patches pooled to").set_value(8).run())
    assert "(and the 23 pooled with it)" in texts(page)
    assert "1 patch (row 0, column 3) holds so much" in texts(page)
