"""The command line, as a person types it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import attnviz
import models
from attnviz.__main__ import main
from attnviz.samples import sample_path
from attnviz.usage import printable

ROOT = Path(__file__).parents[1]
PICTURE = str(sample_path("cat"))
TINY = ["--model", "vit_tiny_patch16_224", "--random", "--size", "64x96", "--fit", "squash"]


@pytest.fixture
def picture(tmp_path):
    """A 90 × 60 picture in its own folder."""
    path = tmp_path / "picture.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8)).save(path)
    return path


@pytest.mark.parametrize(
    ("options", "method", "asked"),
    [
        ([], "attention", {}),
        (["--method", "rollout"], "rollout", {}),
        (["--query", "1,3", "--method", "attention", "--layer", "2", "--head", "-1"],
         "attention", {"query": (1, 3), "layer": 2, "head": 2}),
        (["--query", "mean", "--head-fusion", "max", "--discard-ratio", "0.3", "--residual", "0.2",
          "--discard", "global", "--first-layer", "1", "--last-layer", "-2", "--method", "rollout"],
         "rollout", {"query": "mean", "head_fusion": "max", "discard_ratio": 0.3, "residual": 0.2,
                     "discard": "global", "first_layer": 1, "last_layer": 10}),
        (["--method", "pca", "--component", "1"], "pca", {"component": 1}),
        (["--method", "flow", "--query", "2,5", "--last-layer", "1", "--pool", "3", "--limit", "9"],
         "flow", {"query": (2, 5), "last_layer": 1, "pool": 3}),
    ],
)  # fmt: skip
def test_the_numbers_are_those_of_the_library(picture, tmp_path, options, method, asked):
    out = tmp_path / "map.npz"
    assert main([str(picture), "-o", str(out), *TINY, "--keep", "maps", *options]) == 0
    vit = models.load("vit_tiny_patch16_224", pretrained=False, image_size=(64, 96))
    obs = attnviz.observe(vit, attnviz.open_image(picture), fit="squash", keep="maps")
    with np.load(out) as saved:
        assert saved["values"].shape == (4, 6)
        assert np.array_equal(saved["values"], attnviz.explain(obs, method, **asked).values)


@pytest.mark.parametrize(("name", "says"), [("a.png", True), ("a.zip", True), ("a.npz", False)])
def test_a_swallowed_map_is_said_where_it_is_drawn(
    picture, tmp_path, capsys, monkeypatch, name, says
):
    monkeypatch.setattr(
        "attnviz.paper.swallowed", lambda heats, by, clip, ready: (["one"], f"of {clip}, {ready}")
    )
    assert main([str(picture), "-o", str(tmp_path / name), *TINY]) == 0
    assert ("note: one of None, False\n" in capsys.readouterr().out) == says


def test_a_figure_without_words_says_them_in_its_metadata(picture, tmp_path):
    bare, worded = tmp_path / "bare.png", tmp_path / "worded.png"
    assert main([str(picture), "-o", str(worded), *TINY]) == 0
    assert main([str(picture), "-o", str(bare), *TINY, "--no-caption"]) == 0
    with Image.open(bare) as first, Image.open(worded) as second:
        assert first.height < second.height
        assert "vit_tiny_patch16_224" in str(first.info)


def test_the_mass_is_outlined_on_request(picture, tmp_path):
    out = tmp_path / "figure.svg"
    assert main([str(picture), "-o", str(out), *TINY, "--mass", "0.6"]) == 0
    assert "that hold 0.6" in out.read_text("utf-8")


def test_a_file_is_replaced_only_if_that_is_said(picture, tmp_path, capsys):
    out = tmp_path / "map.npz"
    out.write_bytes(b"mine")
    words = [str(picture), "-o", str(out), *TINY]
    for command in ([], ["film"]):
        assert main([*command, *words]) == 2
        assert "exists" in capsys.readouterr().err and out.read_bytes() == b"mine"
    assert main([*words, "--overwrite"]) == 0
    assert out.read_bytes() != b"mine"


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_each_kind_of_figure(picture, tmp_path, capsys, suffix):
    out = tmp_path / f"figure.{suffix}"
    assert main([str(picture), "-o", str(out), *TINY]) == 0
    head = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert out.read_bytes().startswith(head)
    said = capsys.readouterr().out
    assert str(out) in said and "random weights" in said


def test_a_long_method_says_so_and_counts(picture, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    out = tmp_path / "flow.npz"
    assert main([str(picture), "-o", str(out), *TINY, "--method", "flow"]) == 0
    said = capsys.readouterr().err
    assert "Attention flow takes about 1 s" in said
    assert "layer 12 of 12" in said and "token 0 of 25" in said and "token 25 of 25\n" in said


def test_the_default_model_on_a_sample(tmp_path):
    out = tmp_path / "cat.npz"
    assert main([str(sample_path("cat")), "-o", str(out), "--size", "224"]) == 0
    with np.load(out) as saved:
        rows, cols = saved["values"].shape
        assert rows < cols and rows * cols <= 16 * 16  # a grid of the picture's own shape
        assert 0.5 < saved["values"].sum() < 1


@pytest.mark.parametrize("model", ["digits", "digits-fused-qkv"])
def test_a_model_of_one_size_needs_no_fit(tmp_path, model):
    for sample, options in (("digit-3", []), ("coffee", ["--fit", "pad", "--method", "rollout"])):
        out = tmp_path / f"{sample}.npz"
        assert main([str(sample_path(sample)), "-o", str(out), "--model", model, *options]) == 0
        with np.load(out) as saved:
            assert saved["values"].shape == (8, 8)


FAITHFUL = ["faithfulness", "--steps", "3", "--orders", "2"]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_faithfulness_draws_curves_instead_of_the_map(picture, tmp_path, capsys, suffix):
    out = tmp_path / f"curve.{suffix}"
    size = ["--dpi", "100", "--width-mm", "60"]
    assert main([*FAITHFUL, str(picture), "-o", str(out), *TINY, *size]) == 0
    said = capsys.readouterr().out
    head = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert out.read_bytes().startswith(head)
    assert "deletion area" in said and "probability of the predicted class" in said
    assert "note: random weights" in said


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ([], {}),
        (["--mode", "insertion", "--baseline", "blur", "--order-seed", "7"],
         {"mode": "insertion", "baseline": "blur", "seed": 7}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["legrad", "rollout"])
def test_the_curves_are_those_of_the_library(picture, tmp_path, method, options, asked):
    out = tmp_path / "curve.npz"
    wish = ["--method", method, "--target", "3", *TINY, *options]
    assert main([*FAITHFUL, str(picture), "-o", str(out), *wish]) == 0
    vit = models.load("vit_tiny_patch16_224", pretrained=False, image_size=(64, 96))
    obs = attnviz.observe(vit, attnviz.open_image(picture), fit="squash", target=3)
    heat = attnviz.explain(obs, method)
    expected = attnviz.faithfulness(vit, obs, heat, steps=3, orders=2, **asked)
    with np.load(out) as saved:
        np.testing.assert_allclose(saved["scores"], expected.scores, atol=1e-6)
        np.testing.assert_allclose(saved["random"], expected.random, atol=1e-6)
        facts = json.loads(str(saved["manifest"]))["facts"]
    assert facts["picture"] == "picture.png"
    assert facts["score"] == "probability of class 3 (tiger shark, Galeocerdo cuvieri)"


def test_faithfulness_has_its_own_help(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["faithfulness", "--help"])
    said = capsys.readouterr().out
    assert stop.value.code == 0
    for words in ("--mode", "--baseline", "--method", "python -m attnviz faithfulness cat.jpg"):
        assert words in said
    assert "--alpha" not in said


@pytest.mark.parametrize("command", [["--help"], ["check", "--help"]])
def test_help_names_each_model_that_comes_along(capsys, command):
    with pytest.raises(SystemExit):
        main(command)
    said = re.sub(r"(?<=\w-)\s+", "", capsys.readouterr().out)  # lines break after a hyphen
    for name, card in models.MODELS.items():
        assert card.is_fetched or re.search(rf"\s{name}(?![-\w])", said)


MISTAKES = [
    (["faithfulness", "picture.png"], "--output"),
    (["faithfulness", "picture.png", "-o", "c.png", "--steps", "1"], "a whole number from 2"),
    (["faithfulness", "picture.png", "-o", "c.png", "--orders", "few"], "'few' came"),
    (["faithfulness", "picture.png", "-o", "c.png", "--mode", "erase"], "deletion"),
    (["faithfulness", "picture.png", "-o", "c.png", "--alpha", "1"], "--alpha"),
    (["faithfulness", "missing.png", "-o", "c.csv"], "'c.csv' ends in .csv"),  # before all else
    (["faithfulness", "picture.png", "-o", "c.bmp"], "as .png, .svg, .pdf, .npz; 'c.bmp'"),
    (["faithfulness", "picture.png", "-o", "c.png", "--letters"], "--letters"),
    (["faithfulness", "picture.png", "-o", "c.png", "--target", "1", "--similar-to", "cls"],
     "give one of them"),
    (["faithfulness", "picture.png", "-o", "c.png", "--method", "legrad"], "--target predicted"),
    (["missing.png", "-o", "o.png"], "missing.png"),
    (["missing.png", "-o", "picture.png"], "missing.png"),
    (["picture.png", "-o", "o.bmp"], ".npz"),
    (["picture.png", "-o", "picture.png"], "The output picture.png would replace picture.png, which is read"),
    (["picture.png", "-o", "./picture.png", "--overwrite"], "would replace picture.png, which is read"),
    (["picture.png", "-o", "nowhere/o.png"], "nowhere"),
    (["picture.png", "-o", "o.png", "--model", "vit_tinny_patch16_224"], "vit_tiny_patch16_224"),
    (["picture.png", "-o", "o.png", "--model", "edgenext_xx_small"], "edgenext"),
    (["picture.png", "-o", "o.png", "--method", "grad"], "rollout"),
    (["picture.png", "-o", "o.png", "--layer", "99", "--method", "attention"], "0 to 11"),
    (["picture.png", "-o", "o.png", "--layer", "1", "--method", "rollout"], "no --layer"),
    (["picture.png", "-o", "o.png", "--query", "9,9"], "rows 0 to 3"),
    (["picture.png", "-o", "o.png", "--query", "1,b"], "ROW,COL"),
    (["picture.png", "-o", "o.png", "--query", "reg1"], "cls"),
    (["picture.png", "-o", "o.png", "--size", "64xx96"], "ROWSxCOLS"),
    (["picture.png", "-o", "o.png", "--size", "65"], "16"),
    (["picture.png", "-o", "o.png", "--alpha", "7"], "alpha"),
    (["picture.png", "-o", "o.png", "--alpha", "much"], "--help"),
    (["picture.png", "-o", "o.png", "--dpi", "0"], "dpi"),
    (["picture.png", "-o", "o.png", "--mass", "60"], "at most 1; 60.0 came"),
    (["picture.png", "-o", "o.png", "--device", "abacus"], "abacus"),
    (
        [
            "picture.png",
            "-o",
            "o.png",
            "--model",
            "vit_tiny_patch16_224",
            "--checkpoint",
            "picture.png",
        ],
        "safetensors",
    ),
    (["picture.png", "-o", "o.png", "--model", "digits", "--fit", "aspect"], "use 'pad'"),
    (["picture.png", "-o", "o.png", "--model", "digits", "--size", "64"], "only 32 × 32"),
    (["picture.png", "-o", "o.png", "--checkpoint", "w.safetensors"], "give one of them"),
    (["picture.png", "-o", "o.png", "--model", "dinov2-small", "--seed", "7"], "--random"),
    (["picture.png", "-o", "o.png", "--seed", "99999999999999999999"], "2^63"),
    (["picture.png", "-o", "o.png", "--head", "3", "--method", "rollout"], "no --head"),
    (["picture.png", "-o", "o.png", "--method", "pca", "--component", "3"], "numbered 0 to 2"),
    (["picture.png", "-o", "o.png", "--method", "pca", "--query", "1,b"], "ROW,COL"),
    (["picture.png", "-o", "o.png", "--method", "flow", "--pool", "0"], "from 1"),
    (["picture.png", "-o", "o.png", "--method", "flow", "--limit", "1e-6"], "limit=1."),
    (["picture.png", "-o", "x" * 300 + ".png"], "too long"),
    (["picture.png"], "--output"),
]  # fmt: skip


@pytest.mark.parametrize(
    "command", ["", "batch", "film", "plate", "faithfulness", "check", "models", "replay"]
)
def test_a_wrong_flag_points_to_the_help_of_its_command(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "--nonsense"])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("attnviz: ") and said.count("\n") == 1
    assert said.endswith(f" See {' '.join(['python -m attnviz', *command.split()])} --help\n")


@pytest.mark.parametrize(("arguments", "says"), MISTAKES)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    picture, tmp_path, monkeypatch, capsys, arguments, says
):
    monkeypatch.chdir(tmp_path)
    before = picture.read_bytes()
    if "--model" not in arguments:
        arguments = [*arguments, *TINY[:3], *([] if "--size" in arguments else TINY[3:])]
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr().err
    assert code == 2
    assert said.startswith("attnviz: ") and said.count("\n") == 1
    assert says in said
    assert "Traceback" not in said
    assert [p.name for p in tmp_path.iterdir()] == ["picture.png"]
    assert picture.read_bytes() == before


ALPHA = "alpha is from 0 (picture alone) to 1 (colours alone); nan came."
CLIP = "clip is a percentile above 50, at most 100, such as 99; inf came."
MASS = "The mass to hold is above 0 and at most 1; nan came."


@pytest.mark.parametrize(
    ("command", "flag", "value", "says"),
    [
        ([], "--alpha", "nan", ALPHA),
        ([], "--clip", "inf", CLIP),
        ([], "--mass", "nan", MASS),
        (["film"], "--alpha", "nan", ALPHA),
        (["film"], "--clip", "inf", CLIP),
        (["plate", "--show", "heads"], "--clip", "inf", CLIP),
        (["plate", "--show", "methods", "--methods", "pca"], "--mass", "nan", MASS),
        (["batch"], "--mass", "nan", MASS),
        (["--method", "rollout"], "--discard-ratio", "1", "discard ratio is a number from 0 to 1 (not included); 1.0 came."),
        (["--method", "rollout"], "--discard", "global", "--discard changes nothing without a --discard-ratio above 0: leave it out, or change that."),
        (["--head", "1"], "--head-fusion", "max", "--head-fusion changes nothing beside --head, which is one alone: leave it out, or change that."),
        (["film", "--head", "1"], "--head-fusion", "max", "--head-fusion changes nothing beside --head, which is one alone: leave it out, or change that."),
        (["--method", "rollout"], "--residual", "2", "residual is a number from 0 to 1; 2.0 came."),
        (["faithfulness", "--method", "flow"], "--pool", "0", "pool is a whole number from 1; 0 came."),
        (["plate", "--show", "methods", "--methods", "pca"], "--component", "3", "There is no component 3: there are 3, numbered 0 to 2 (or from the end, -1 to -3)."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_options_is_said_before_what_is_there(
    picture, tmp_path, capsys, command, flag, value, says
):
    out = tmp_path / ("there" if command == ["batch"] else "there.pdf")
    out.mkdir() if command == ["batch"] else out.touch()
    place = out / "mine.txt" if out.is_dir() else out
    place.write_text("mine")
    assert main([*command, str(picture), "-o", str(out), *TINY, flag, value]) == 2
    assert capsys.readouterr().err == f"attnviz: {says}\n"
    assert place.read_text() == "mine"


def test_help_tells_what_each_method_makes_of_an_option(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "fused, if left out [attention]" in said
    assert "added, if left out [value_weighted]" in said


def test_help_names_every_method_option_and_an_example():
    run = subprocess.run(
        [sys.executable, "-m", "attnviz", "--help"],
        capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip
    for method in attnviz.METHODS.values():
        for option in method.options:
            assert f"--{option.replace('_', '-')}" in run.stdout
    assert "python -m attnviz cat.jpg -o cat.png" in run.stdout
    assert json.dumps(run.stderr) == '""'


def test_what_a_method_has_no_use_for_is_said_before_all_else(tmp_path, capsys, monkeypatch):
    for name in ("attnviz.__main__.open_image", "attnviz.batch_command.pictures_in"):
        monkeypatch.setattr(name, lambda *_, **__: pytest.fail("known before a picture is opened"))
    out, signed = str(tmp_path / "map.png"), "of values of at least 0"
    pca = ["--method", "pca", "--component", "0"]
    cases = [
        (["--method", "relevance"], "give one, as --target predicted"),
        (["--method", "legrad", "--target", "1", "--similar-to", "cls"], "give one of them"),
        (["--method", "rollout", "--target", "1"], "has no use for a target"),
        (["--method", "pca", "--query", "1,2"], "--method pca is of the whole picture, the same for every query: leave --query out"),
        (["--method", "legrad", "--target", "1", "--query", "cls"], "leave --query out"),
        ([*pca, "--mass", "0.5"], f"--mass is {signed}"),
        ([*pca, "-o", str(tmp_path / "a.mask.png")], f".mask.png is {signed}"),
    ]  # fmt: skip
    batch = [(["--as", "mask.png", *pca], f".mask.png is {signed}"), cases[3]]
    for command, every in (([], cases), (["batch"], batch)):
        for arguments, said in every:
            assert main([*command, PICTURE, "-o", out, *arguments]) == 2
            error = capsys.readouterr().err
            assert said in error and error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["--layer", "99"], "0 to 11"),
        (["--query", "9,9", "--direction", "to"], "rows 0 to 3"),
        (["film", "--query", "9,9"], "rows 0 to 3"),
        (["film", "--head", "99"], "0 to 2"),
        (["plate", "--show", "methods", "--methods", "rollout,attention", "--layer", "99"], "0 to 11"),
        (["plate", "--show", "methods", "--methods", "pca,attention", "--head", "99"], "0 to 2"),
        (["plate", "--show", "models", "--models", TINY[1], "--query", "reg1"], "cls"),
        (["plate", "--show", "heads", "--query", "9,9"], "rows 0 to 3"),
    ],
)  # fmt: skip
def test_what_the_model_does_not_have_is_said_before_it_runs(
    picture, tmp_path, capsys, monkeypatch, command, says
):
    monkeypatch.setattr(
        "attnviz.__main__.observe", lambda *_, **__: pytest.fail("known before a pass")
    )
    model = TINY[2:] if "--models" in command else TINY
    assert main([*command, str(picture), "-o", str(tmp_path / "out.png"), *model]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


def test_components_as_colours_take_no_scale(tmp_path, capsys, picture, monkeypatch):
    out = tmp_path / "map.png"
    pca = [str(picture), "-o", str(out), "--method", "pca", *TINY]
    with monkeypatch.context() as patch:
        patch.setattr(
            models, "load", lambda *_, **__: pytest.fail("known before a model is loaded")
        )
        for name, value in [("colormap", "inferno"), ("scale", "own"), ("clip", "99")]:
            assert main([*pca, f"--{name}", value]) == 2
            error = capsys.readouterr().err
            assert f"leave --{name} out" in error and error.count("\n") == 1
    assert main([*pca, "--component", "0", "--colormap", "viridis", "--clip", "99"]) == 0
    assert "component: 0; variance explained: " in capsys.readouterr().out
    assert main([*pca, "--overwrite", "--alpha", "1", "--interpolation", "bilinear"]) == 0
    assert "variance explained: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (["--target", "predicted"], "the predicted class"),
        (["--target", "7"], "class 7 (cock)"),
        (["--target", "HEN"], "class 8 (hen)"),
        (["--similar-to", "cls"], "similarity of the patches' mean to the class token"),
        (["--similar-to", "0,1"], "similarity to the patch (row 0, column 1)"),
        (["--similar-to", PICTURE], "similarity to cat.jpg"),
    ],
)
def test_each_kind_of_target_reaches_the_map(tmp_path, capsys, arguments, target):
    out = tmp_path / "map.npz"
    model = ["--model", "vit_tiny_patch16_224", "--random", "--size", "32x48"]
    assert main([PICTURE, "-o", str(out), "--method", "relevance", *model, *arguments]) == 0
    assert f"target: {target}" in capsys.readouterr().out
    assert out.exists()


def test_what_does_not_exist_is_known_before_the_model_runs(picture, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("attnviz.__main__.observe", lambda *_, **__: pytest.fail("the model ran"))
    out = str(tmp_path / "map.png")
    cases = [
        (["--layer", "12"], "0 to 11"),
        (["--head", "3"], "0 to 2"),
        (["--method", "rollout", "--last-layer", "-13"], "0 to 11"),
        (["--query", "99,99"], "rows 0 to 3 and columns 0 to 5"),
        (["--query", "reg1"], "cls"),
    ]
    for arguments, said in cases:
        assert main([str(picture), "-o", out, *TINY, *arguments]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1


STOP = """
import os, runpy, signal, sys

class Stop:  # in the place of the person at the keyboard
    def find_spec(self, name, *_):
        if name == WHEN:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Stop())
sys.argv = ["-m", "picture.png", "-o", "o.png"]
runpy.run_module("attnviz", run_name="__main__", alter_sys=True)
"""


def hear_stops():
    """What runs in the background of a shell is started deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("when", ["attnviz.errors", "torch", "timm.models", "argparse", "models"])
def test_a_stop_while_modules_are_imported_is_one_sentence(tmp_path, when):
    run = subprocess.run(
        [sys.executable, "-c", STOP.replace("WHEN", repr(when))],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MPLCONFIGDIR": str(tmp_path / "mpl")},
        preexec_fn=hear_stops,
    )
    assert run.stderr == "attnviz: stopped; nothing was written.\n"
    assert run.returncode == 130
    assert not (tmp_path / "o.png").exists()


def test_only_the_command_line_answers_a_stop_itself():
    code = "import signal, attnviz; print(signal.getsignal(signal.SIGINT).__name__)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        preexec_fn=hear_stops,
    )
    assert run.stdout == "default_int_handler\n"


def test_an_output_that_is_a_link_is_followed(picture, tmp_path):
    real, link = tmp_path / "there" / "real.png", tmp_path / "link.png"
    real.parent.mkdir()
    for content in (b"old", None):
        real.unlink(missing_ok=True)
        link.unlink(missing_ok=True)
        if content:
            real.write_bytes(content)
        link.symlink_to(real)
        replaced = ["--overwrite"] if content else []
        assert main([str(picture), "-o", str(link), *TINY, *replaced]) == 0
        assert link.is_symlink() and real.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in real.parent.iterdir()] == ["real.png"]


def test_a_map_of_colours_has_no_order_to_test_and_a_component_has(tmp_path, capsys):
    out = str(tmp_path / "curve.npz")
    model = ["--model", "vit_tiny_patch16_224", "--random", "--size", "32x48"]
    words = ["faithfulness", PICTURE, "-o", out, "--steps", "2", "--orders", "2", *model]
    assert main([*words, "--method", "pca"]) == 2
    assert "three values a patch" in capsys.readouterr().err
    assert main([*words, "--method", "pca", "--component", "0"]) == 0


def test_a_reader_that_has_had_enough_is_no_error():
    command = f"{sys.executable} -m attnviz models vit_tiny_patch16_224 | head -0; echo ${{PIPESTATUS[0]}}"
    run = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert (run.stdout, run.stderr) == ("0\n", "")


def test_what_a_terminal_would_obey_is_printed_escaped(capsys):
    assert main(["\x1b[31mno\x9b.png", "-o", "a.png"]) == 2
    err = capsys.readouterr().err
    assert r"\x1b[31mno\x9b.png" in err and not set(err) & {"\x1b", "\x9b"}
    assert printable("Größe ×\u00a02\tand\nmore") == "Größe ×\u00a02\tand\nmore"
