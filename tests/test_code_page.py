"""Show me the code, on the page: what each view prints is run, and makes what the page shows."""

from pathlib import Path

import numpy as np
import pytest
from page_visit import (
    DISTILLED,
    calm,
    choose_model,
    open_view,
    picker,
    png,
    record_on,
    stand_ins,
    upload,
    visit,
)

import attnviz
from attnviz.explain import Explanation
from attnviz.film import Film
from attnviz.recipe import Source
from attnviz.ui.code_panel import source_of
from attnviz.ui.methods_panel import FIRST
from attnviz.ui.model_choice import Choice

ROOT = Path(__file__).parents[1]


@pytest.fixture
def page(monkeypatch):
    """A visitor's page; where its code is run, the samples lie, and figures are not drawn."""
    monkeypatch.chdir(ROOT)
    for kind in (Explanation, Film):
        monkeypatch.setattr(kind, "save", lambda made, path, **options: path)
    with stand_ins(monkeypatch):
        yield visit()


def code(page):
    """The lines and the command, beside which a figure has its LaTeX."""
    said = [element.value for element in page.code if element.language != "latex"]
    return said[0], said[1] if len(said) > 1 else None


def run(page):
    names = {}
    exec(code(page)[0], names)
    return names


def test_every_view_prints_what_makes_its_array(page):
    choose_model(page, DISTILLED)
    calm(page.slider(key="layer").set_value(1).run())
    record = record_on(page)
    heat = attnviz.explain(record, layer=1, query="cls")
    np.testing.assert_array_equal(run(page)["heat"].values, heat.values)
    assert code(page)[1] == (
        f"python -m attnviz samples/cat.jpg --model {DISTILLED} -o map.png --layer 1"
    )
    open_view(page, "heads")
    made = np.array(run(page)["maps"])
    assert made.shape[:2] == (3, 3)
    alone = attnviz.explain(record, layer=2, head=1, query="cls")
    np.testing.assert_array_equal(made[2, 1], alone.values)
    open_view(page, "layers")
    film = attnviz.film(record, query="cls")
    np.testing.assert_array_equal(run(page)["maps"], [each.values for each in film.maps.values()])
    assert code(page)[1].startswith("python -m attnviz film samples/cat.jpg")
    assert code(page)[1].endswith("-o film.gif")
    calm(page.number_input(key="film_seconds").set_value(0.3).run())
    assert code(page)[1].endswith("-o film.gif --seconds 0.3")
    calm(page.selectbox(key="film_format").set_value("PDF").run())
    assert "film.save('film.pdf')" in code(page)[0]
    assert code(page)[1].endswith("-o film.pdf")
    open_view(page, "numbers")
    expected = attnviz.head_metrics(record)["entropy"]
    np.testing.assert_array_equal(run(page)["metrics"]["entropy"], expected)
    assert code(page)[1] is None
    open_view(page, "mask")
    calm(page.slider(key="mass").set_value(0.3).run())
    kept = attnviz.mass_mask(heat.values, 0.3).kept
    np.testing.assert_array_equal(run(page)["mask"].kept, kept)
    open_view(page, "methods")
    lines = [element.value for element in page.code]
    assert lines[-1].count("python -m attnviz samples/cat.jpg") == len(lines) - 1 == len(FIRST)
    for method, each in zip(FIRST, lines, strict=False):
        names = {}
        exec(each, names)
        expected = attnviz.explain(record, method, query="cls").values
        np.testing.assert_array_equal(names["heat"].values, expected)
    open_view(page, "patches")
    np.testing.assert_array_equal(run(page)["pixels"], record.view.pixels)
    open_view(page, "export")
    np.testing.assert_array_equal(run(page)["heat"].values, heat.values)
    open_view(page, "trust")
    assert "--steps 8 --orders 3" in code(page)[1] and "steps=8, orders=3" in code(page)[0]


def test_query_target_and_look_are_in_the_code(page):
    choose_model(page, DISTILLED)
    calm(page.segmented_control(key="method").set_value("relevance").run())
    calm(page.slider(key="alpha").set_value(0.7).run())
    calm(page.radio(key="scale").set_value("zero").run())
    calm(page.toggle(key="clip").set_value(True).run())
    python, command = code(page)
    assert "target=" in python and "alpha=0.7, scale='zero', clip=99.0" in python
    assert command.endswith("-o map.png --method relevance --alpha 0.7 --scale zero --clip 99.0")
    target = run(page)["obs"].target_class
    expected = attnviz.observe(
        run(page)["vit"], attnviz.open_image("samples/cat.jpg"), fit="aspect", target=target
    )
    np.testing.assert_array_equal(
        run(page)["heat"].values, attnviz.explain(expected, "relevance").values
    )


def test_the_visitor_s_own_picture_is_named_and_cannot_break_out(page):
    upload(page, "it's; rm -rf $HOME.png", png((48, 32)))
    python, command = code(page)
    assert repr("it's; rm -rf $HOME.png") in python
    assert "'it'\"'\"'s; rm -rf $HOME.png'" in command
    assert picker(page, "patches")["size"]


def test_where_the_model_failed_since_size_and_fit_are_written():
    request = ("no sample", Choice("digits"), (32, 32), "aspect", ("token", (1, 2)))
    assert source_of(None, request, "a.jpg") == Source(
        model="digits",
        picture="a.jpg",
        fit="aspect",
        any_size=False,
        image_size=(32, 32),
        aim=("token", (1, 2)),
    )
