"""Show me the code: lines and command are run, and make the array that the library makes."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import attnviz
import models
from attnviz.__main__ import main
from attnviz.explain import Explanation
from attnviz.figure import render
from attnviz.methods import METHODS
from attnviz.recipe import Recipe, Source, picture_path, recipe_of, row_of
from attnviz.recipe_command import command_of
from attnviz.recipe_text import python_of
from attnviz.scale import Scale
from attnviz.tokens import TokenLayout
from tests.test_film import cait

ROOT = Path(__file__).parents[1]
PICTURE = "samples/digit-3.png"
CLASS = ("class", 5)


@cache
def loaded(name, **options):
    return models_load(name, **options)


models_load = models.load


@cache
def record(aim=None, fit="crop"):
    target = None
    if aim is not None:
        kind, what = aim
        other = attnviz.open_image(ROOT / what) if kind == "picture" else None
        target = {
            "class": lambda: what,
            "token": lambda: attnviz.similarity_to(what),
            "picture": lambda: attnviz.similarity_to(attnviz.observe(loaded("digits"), other, fit=fit)),
        }[kind]()  # fmt: skip
    image = attnviz.open_image(ROOT / PICTURE)
    return attnviz.observe(loaded("digits"), image, target=target, fit=fit)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the samples in it; models are loaded once for all tests."""
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        models, "load",
        lambda name, *, device=None, **options: loaded(name, **{key: value for key, value in options.items() if value != DEFAULTS.get(key)}),
    )  # fmt: skip
    return tmp_path


DEFAULTS = {"pretrained": True, "seed": 0, "checkpoint": None, "image_size": None}


def run_python(recipe, *, drawn=True):
    """In a fresh namespace; a figure takes longer than all else, and need not be `drawn`."""
    names: dict = {}
    with pytest.MonkeyPatch.context() as patch:
        if not drawn:
            patch.setattr(Explanation, "save", lambda heat, path, **options: path)
        exec(python_of(recipe), names)
    return names


def draw_by_command(recipe, output):
    """In this process; gives the words."""
    python, dash, module, *words = shlex.split(command_of(recipe, output), comments=True)
    assert (python, dash, module) == ("python", "-m", "attnviz")
    assert main(words) == 0
    return words


def run_command(recipe, output):
    """In this process; gives the numbers that were written."""
    draw_by_command(recipe, output)
    with np.load(output) as saved:
        return {name: saved[name] for name in saved.files}


# Every method as it is, then with one thing changed at a time.
ASKED = [
    *((method, {}, None) for method in METHODS),
    ("attention", {"layer": 1}, None),
    ("attention", {"head": 1}, None),
    ("attention", {"layer": 0, "head_fusion": "max"}, None),
    ("attention", {"direction": "to"}, (2, 5)),
    ("attention", {}, "mean"),
    ("attention", {}, (2, 5)),
    ("rollout", {"head_fusion": "min"}, None),
    ("rollout", {"residual": 0.25}, None),
    ("rollout", {"discard_ratio": 0.35}, (0, 0)),
    ("rollout", {"discard_ratio": 0.35, "discard": "global"}, None),
    ("rollout", {"first_layer": 1}, None),
    ("rollout", {"last_layer": 2}, None),
    ("flow", {"pool": 4, "first_layer": 2}, None),
    ("flow", {"limit": 600.0, "first_layer": 3}, None),
    ("relevance", {"first_layer": 2}, (3, 3)),
    ("gradient_rollout", {"last_layer": 1}, None),
    ("attention_gradcam", {"layer": 2}, None),
    ("legrad", {"first_layer": 3}, None),
    ("value_weighted", {"layer": 2, "head": 0}, None),
    ("similarity", {}, (4, 4)),
    ("pca", {"component": 1}, None),
]


@pytest.mark.parametrize(("method", "options", "query"), ASKED)
def test_one_map(project, method, options, query):
    aim = CLASS if METHODS[method].needs_gradient else None
    expected = attnviz.explain(record(aim), method, query=query, **options).values
    source = Source(model="digits", picture=PICTURE, aim=aim)
    recipe = recipe_of(record(aim), source, method=method, query=query, options=options)
    np.testing.assert_array_equal(run_python(recipe, drawn=False)["heat"].values, expected)
    np.testing.assert_array_equal(run_command(recipe, "map.npz")["values"], expected)


@pytest.mark.parametrize("aim", [("token", "cls"), ("token", (1, 2)), ("picture", "samples/digit-8.png")])  # fmt: skip
@pytest.mark.parametrize("fit", ["crop", "pad"])
def test_every_kind_of_target(project, aim, fit):
    expected = attnviz.explain(record(aim, fit), "relevance").values
    source = Source(model="digits", picture=PICTURE, aim=aim, fit=fit)
    recipe = recipe_of(record(aim, fit), source, method="relevance")
    np.testing.assert_array_equal(run_python(recipe, drawn=False)["heat"].values, expected)
    np.testing.assert_array_equal(run_command(recipe, "map.npz")["values"], expected)


@pytest.mark.parametrize(
    ("source", "load", "fit"),
    [
        ({"model": "vit_tiny_patch16_224", "random": True, "image_size": (48, 64), "any_size": True, "fit": "squash"},
         {"pretrained": False, "image_size": (48, 64)}, "squash"),
        ({"model": "vit_tiny_patch16_224", "random": True, "image_size": (64, 64), "any_size": True, "fit": "aspect"},
         {"pretrained": False, "image_size": 64}, "aspect"),
        ({"model": "digits", "checkpoint": "models/trained/digits.safetensors"},
         {"checkpoint": str(ROOT / "models/trained/digits.safetensors")}, "crop"),
    ],
)  # fmt: skip
def test_every_way_to_load_a_model(project, source, load, fit):
    (project / "models").symlink_to(ROOT / "models")
    vit = loaded(source["model"], **load)
    seen = attnviz.observe(vit, attnviz.open_image(ROOT / PICTURE), fit=fit)
    recipe = recipe_of(seen, Source(picture=PICTURE, **source))
    expected = attnviz.explain(seen).values
    np.testing.assert_array_equal(run_python(recipe, drawn=False)["heat"].values, expected)
    np.testing.assert_array_equal(run_command(recipe, "map.npz")["values"], expected)


SOURCE = Source(model="digits", picture=PICTURE)


def test_every_head(project):
    recipe = recipe_of(record(), SOURCE, "heads", query=(1, 1))
    expected = np.stack([
        np.stack([attnviz.explain(record(), layer=layer, head=head, query=(1, 1)).values for head in range(each.heads)])
        for layer, each in enumerate(record().layers)
    ])  # fmt: skip
    np.testing.assert_array_equal(np.array(run_python(recipe)["maps"]), expected)
    heads, body = re.fullmatch(r"for head in ([\d ]+); do (.*); done", command_of(recipe)).groups()
    for head in heads.split():
        _, _, _, *words = shlex.split(body.replace("$head", head))
        assert main(words) == 0
        with np.load(f"head-{head}.npz") as saved:
            np.testing.assert_array_equal(saved["values"], expected[:, int(head)])


def test_heads_of_layers_in_which_the_token_does_not_ask_are_left_out():
    import torch

    seen = attnviz.observe(cait(), torch.randn(1, 3, 32, 32))
    recipe = recipe_of(seen, SOURCE, "heads", query="cls")
    assert recipe.layers == (2, 3) and recipe.query == "cls"
    assert "for layer in (2, 3)" in python_of(recipe) and "query='cls'" in python_of(recipe)


@pytest.mark.parametrize(
    ("options", "query"), [({}, None), ({"head": 2}, (1, 1)), ({"head": None, "head_fusion": "min"}, "mean")]
)  # fmt: skip
def test_a_film(project, options, query):
    drawing = {"scale": "shared", "seconds": 0.3, "alpha": 0.5}
    recipe = recipe_of(record(), SOURCE, "film", query=query, options=options, drawing=drawing)
    film = attnviz.film(record(), query=query, **options)
    expected = np.stack([heat.values for heat in film.maps.values()])
    np.testing.assert_array_equal(np.stack(run_python(recipe)["maps"]), expected)
    made = film.named("digit-3.png")
    assert (project / "film.gif").stat().st_size > 1000
    command = run_command(recipe, "film.npz")
    np.testing.assert_array_equal(command["values"], expected)
    assert len(json.loads(str(command["manifest"]))["layers"]) == len(made.maps)
    assert "--alpha" not in command_of(recipe) and "--seconds 0.3" in command_of(recipe)


LOOK = {"alpha": 0.25, "colormap": "viridis", "scale": "zero", "clip": 90.0, "width_mm": 60.0, "dpi": 80}  # fmt: skip
SWITCHED = {"caption": False, "original": True, "letters": True}


@pytest.mark.parametrize(
    ("kind", "switched"), [("map", SWITCHED), ("map", {}), ("film", {"original": True})]
)
def test_a_figure_is_the_same_file_with_every_switch(project, kind, switched):
    drawing = {**LOOK, "caption": True, "original": False, "letters": False, **switched}
    recipe = recipe_of(record(), SOURCE, kind, drawing=drawing)
    draw_by_command(recipe, "a.png")
    made = {"map": attnviz.explain, "film": attnviz.film}[kind](record())
    expected = render(made.named("digit-3.png"), ".png", **drawing)
    assert (project / "a.png").read_bytes() == expected


@pytest.mark.parametrize("kind", ["map", "film"])
def test_a_switch_is_a_flag_where_it_is_not_as_usual_and_no_word_where_it_is(kind):
    for switched, flags in (
        (SWITCHED, ["--no-caption", "--original", "--letters"]),
        ({name: not value for name, value in SWITCHED.items()}, []),
    ):
        recipe = Recipe(source=SOURCE, kind=kind, drawing=switched)
        words = shlex.split(command_of(recipe, "a.png"))
        assert words[words.index("a.png") + 1 :] == flags


FIGURE = {"width_mm": 120.0, "dpi": 80, "caption": False}


def drawn_twice(project, recipe):
    """By the lines of Python, and by the command."""
    run_python(recipe)
    by_lines = (project / recipe.file).read_bytes()
    draw_by_command(recipe, "by-command.png")
    return by_lines, (project / "by-command.png").read_bytes()


ROWS = [
    (("attention", "rollout"), (1, 1), {"scale": "zero", "letters": True, "original": True}),
    (("similarity", "pca"), "cls", {}),
    (("pca",), None, {}),
    (("value_weighted",), "mean", {"colormap": "viridis"}),
]


@pytest.mark.parametrize(("methods", "query", "drawing"), ROWS)
def test_a_row_of_methods_is_that_very_figure(project, methods, query, drawing):
    parts = [
        recipe_of(record(), SOURCE, method=method, query=query, name="digit-3.png")
        for method in methods
    ]
    heats = [
        attnviz.explain(record(), method, **({} if query is None else {"query": query})).named("digit-3.png")
        for method in methods
    ]  # fmt: skip
    names = [heat.title for heat in heats]
    recipe = row_of(parts, names, drawing={**FIGURE, **drawing})
    expected = render(attnviz.beside(heats, names), ".png", **FIGURE, **drawing)
    assert drawn_twice(project, recipe) == (expected, expected)


@pytest.mark.parametrize("query", [None, (1, 1), "mean"])
def test_a_grid_of_heads_is_that_very_figure(project, query):
    drawing = {**FIGURE, "scale": "shared", "clip": 99.0}
    recipe = recipe_of(record(), SOURCE, "grid", query=query, drawing=drawing, name="digit-3.png")
    grid = attnviz.heads(record(), query=query)
    expected = render(grid.named("digit-3.png"), ".png", **drawing)
    assert drawn_twice(project, recipe) == (expected, expected)
    np.testing.assert_array_equal(run_python(recipe)["grid"].values, grid.values)


@pytest.mark.parametrize("names", [("entropy",), ("distance", "entropy")])
def test_a_plot_of_metrics_is_that_very_figure(project, names):
    drawing = {**FIGURE, "letters": True}
    recipe = recipe_of(record(), SOURCE, "plot", drawing=drawing, name="digit-3.png", names=names)
    plot = attnviz.plot(attnviz.head_metrics(record()).named("digit-3.png"), *names)
    expected = render(plot, ".png", **drawing)
    assert drawn_twice(project, recipe) == (expected, expected)


def test_a_strip_of_layers_is_that_very_figure(project):
    asked = {"head": 1, "direction": "to"}
    recipe = recipe_of(
        record(), SOURCE, "film",
        query=(1, 1), options=asked, drawing=FIGURE, name="digit-3.png", output="film.png",
    )  # fmt: skip
    film = attnviz.film(record(), query=(1, 1), **asked).named("digit-3.png")
    expected = render(film, ".png", **FIGURE)
    assert drawn_twice(project, recipe) == (expected, expected)


def test_two_that_differ_share_what_they_have_in_common(project):
    other = replace(SOURCE, picture="samples/digit-8.png")
    second = attnviz.observe(loaded("digits"), attnviz.open_image(ROOT / other.picture))
    parts = [
        recipe_of(record(), SOURCE, options={"layer": 1}, name="Three"),
        recipe_of(second, other, options={"layer": 1}, name="Eight"),
    ]
    scale = Scale(0.0, 0.25, "by hand")
    recipe = row_of(parts, ["3", "8"], drawing={**FIGURE, "scale": scale})
    lines = python_of(recipe)
    assert [lines.count(f"{call}(") for call in ("models.load", "open_image", "observe", "explain")] == [1, 2, 2, 2]  # fmt: skip
    heats = [
        attnviz.explain(record(), layer=1).named("Three"),
        attnviz.explain(second, layer=1).named("Eight"),
    ]
    expected = render(attnviz.beside(heats, ["3", "8"]), ".png", **FIGURE, scale=scale)
    run_python(recipe)
    assert (project / "row.png").read_bytes() == expected
    assert command_of(recipe) is None


def test_a_row_that_the_command_would_not_draw_has_none():
    usual = {
        method: recipe_of(record(), SOURCE, method=method) for method in ("attention", "rollout")
    }
    titles = [METHODS[method].label for method in usual]
    parts = [*usual.values()]
    assert command_of(row_of(parts, titles, drawing={})) == (
        f"python -m attnviz plate {PICTURE} --model digits -o row.png"
        " --show methods --methods attention,rollout"
    )
    changed = recipe_of(record(), SOURCE, method="rollout", options={"residual": 0.25})
    for parts_, names in (
        (parts, ["a", "b"]),
        ([parts[0], changed], titles),
        ([parts[0], replace(parts[1], source=replace(SOURCE, random=True))], titles),
    ):
        assert command_of(row_of(parts_, names, drawing={})) is None


def test_head_metrics(project):
    recipe = recipe_of(record(), SOURCE, "metrics")
    found = run_python(recipe)["metrics"]
    for name, values in attnviz.head_metrics(record()).values.items():
        np.testing.assert_array_equal(found[name], values)
    assert command_of(recipe) is None


def test_what_the_model_saw(project):
    recipe = recipe_of(record(), SOURCE, "patches")
    np.testing.assert_array_equal(run_python(recipe)["pixels"], record().view.pixels)
    assert command_of(recipe) is None


def test_a_mask(project):
    recipe = recipe_of(record(), SOURCE, "mask", "rollout", query=(1, 1), extra={"mass": 0.45})
    expected = attnviz.explain(record(), "rollout", query=(1, 1)).values
    made = run_python(recipe, drawn=False)
    np.testing.assert_array_equal(made["mask"].kept, attnviz.mass_mask(expected, 0.45).kept)
    np.testing.assert_array_equal(run_command(recipe, "mask.npz")["values"], expected)
    assert "--mass 0.45" in command_of(recipe)


def test_the_test_of_a_map(project):
    asked = {"mode": "insertion", "steps": 4, "orders": 2, "seed": 3, "baseline": "zero"}
    recipe = recipe_of(record(), SOURCE, "faithfulness", "rollout", extra=asked, options={"residual": 0.5})  # fmt: skip
    heat = attnviz.explain(record(), "rollout")
    expected = attnviz.faithfulness(loaded("digits"), record(), heat, **asked).scores
    np.testing.assert_allclose(run_python(recipe)["curves"].scores, expected, atol=1e-7)
    np.testing.assert_allclose(run_command(recipe, "curve.npz")["scores"], expected, atol=1e-7)
    usual = recipe_of(record(), SOURCE, "faithfulness", extra={"mode": "deletion", "steps": 16})
    assert "deletion" not in python_of(usual) and "--steps" not in command_of(usual)


def test_a_shell_does_the_same(tmp_path):
    options = {"layer": 2, "head": 1}
    recipe = recipe_of(record(), SOURCE, options=options, query=(2, 5), drawing={"alpha": 0.25})
    out = tmp_path / "it's a map.npz"
    command = command_of(recipe, str(out)).replace("python", shlex.quote(sys.executable), 1)
    subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, check=True, timeout=120)
    expected = attnviz.explain(record(), query=(2, 5), **options).values
    with np.load(out) as saved:
        np.testing.assert_array_equal(saved["values"], expected)


# --- what is written, and what is not -----------------------------------------------------------


def test_only_what_differs_is_written():
    last = len(record().layers) - 1
    same = {"layer": last, "head": None, "head_fusion": "mean", "direction": "from"}
    recipe = recipe_of(
        record(), Source(model="dinov2-small", picture="samples/cat.jpg", fit="aspect", any_size=True),
        query="cls", options=same,
        drawing={"alpha": 0.5, "colormap": "inferno", "scale": "own", "clip": None, "interpolation": "nearest"},
    )  # fmt: skip
    assert command_of(recipe) == "python -m attnviz samples/cat.jpg -o map.png"
    assert python_of(recipe).splitlines() == [
        "import attnviz",
        "import models",
        "",
        "vit = models.load('dinov2-small')",
        "image = attnviz.open_image('samples/cat.jpg')",
        "obs = attnviz.observe(vit, image, fit='aspect')",
        "heat = attnviz.explain(obs)",
        "heat.values  # rows × columns of patches",
        "heat.save('map.png')",
    ]


def test_options_that_have_no_effect_are_not_written():
    for options in ({"head": 1, "head_fusion": "max"}, {"head": 1}):
        assert dict(recipe_of(record(), SOURCE, options=options).options) == {"head": 1}
    idle = recipe_of(record(), SOURCE, method="rollout", options={"discard": "global", "discard_ratio": 0.0})  # fmt: skip
    assert dict(idle.options) == {}


def test_a_scale_of_numbers_is_python_s_alone(project):
    scale = Scale(0.0, 0.125, "by 'hand'")
    recipe = recipe_of(record(), SOURCE, drawing={"scale": scale, "alpha": 1.0})
    made = run_python(recipe)
    assert (project / "map.png").stat().st_size > 1000
    assert "scale=Scale(low=0.0, high=0.125" in python_of(recipe) and made["Scale"] is Scale
    assert "--scale" not in command_of(recipe) and "--alpha 1.0" in command_of(recipe)
    assert command_of(recipe).splitlines()[1].startswith("#")


HOSTILE = [
    "a cat.jpg",
    'it\'s "a" cat.jpg',
    "$(touch owned).jpg",
    "`touch owned`.jpg",
    "a;touch owned;.jpg",
    "'; import os; os.mkdir('owned'); '.jpg",
    "-o.jpg",
    "--help",
    "~root.jpg",
    "film",
    "katze\\n.jpg",
    "катя 🐈.jpg",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_stranger_s_file_name_is_a_literal(project, name):
    path = picture_path(name)
    (project / path).write_bytes((ROOT / PICTURE).read_bytes())
    recipe = recipe_of(record(), Source(model="digits", picture=path))
    lines = python_of(recipe)
    calls = [node for node in ast.walk(ast.parse(lines)) if isinstance(node, ast.Call)]
    (opened,) = [each for each in calls if each.func.attr == "open_image"]
    assert [arg.value for arg in opened.args] == [path]
    assert len(calls) == 5  # load, open, observe, explain, save
    words = command_of(recipe).replace("python -m attnviz", "printf '%s\\n'", 1)
    said = subprocess.run(["/bin/sh", "-c", words], capture_output=True, check=True, cwd=project)
    assert said.stdout.decode().splitlines()[0] == path
    assert not (project / "owned").exists()
    expected = attnviz.explain(record()).values
    np.testing.assert_array_equal(run_command(recipe, "map.npz")["values"], expected)


@pytest.mark.parametrize("name", ["a\nb.jpg", "a\x00b.jpg", "\u202egpj.exe", "\udc80.jpg", "..", " ", ""])  # fmt: skip
def test_a_name_that_cannot_be_printed_is_not_repeated(name):
    assert picture_path(name) == "picture.jpg"


def test_a_name_is_no_way_out_of_the_folder():
    assert picture_path("../../etc/x.jpg") == ".._.._etc_x.jpg"
    assert picture_path("cat.jpg", sample=True) == "samples/cat.jpg"


def test_long_calls_have_an_argument_a_line():
    name = "a" * 100 + ".jpg"
    lines = python_of(Recipe(source=Source(model="digits", picture=name))).splitlines()
    at = lines.index("image = attnviz.open_image(")
    assert lines[at + 1 : at + 3] == [f"    '{name}',", ")"]


def test_a_prefix_token_of_an_odd_name_is_quoted():
    layout = TokenLayout(("a b'c",), (2, 2))
    recipe = Recipe(source=SOURCE, query=layout.prefix[0])
    assert shlex.split(command_of(recipe))[-3] == "a b'c"
