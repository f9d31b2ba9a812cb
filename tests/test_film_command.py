"""`python -m attnviz film`, as a person types it."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from PIL import Image

import attnviz
import models
from attnviz.__main__ import main
from attnviz.samples import sample_path

PICTURE = str(sample_path("digit-3"))
DIGITS = ["--model", "digits"]


@pytest.fixture(scope="module")
def record():
    return attnviz.observe(models.load("digits"), attnviz.open_image(PICTURE))


@pytest.mark.parametrize(
    ("flags", "asked"),
    [
        ([], {}),
        (["--head", "-1", "--query", "2,5"], {"head": -1, "query": (2, 5)}),
        (["--head-fusion", "min", "--query", "mean"], {"head_fusion": "min", "query": "mean"}),
        (["--method", "value_weighted"], {"method": "value_weighted"}),
    ],
)
def test_the_numbers_are_those_of_the_library(tmp_path, record, flags, asked):
    out = tmp_path / "film.npz"
    assert main(["film", PICTURE, "-o", str(out), *DIGITS, "--fit", "crop", *flags]) == 0
    film = attnviz.film(record, **asked)
    with np.load(out) as saved:
        np.testing.assert_array_equal(
            saved["values"], np.stack([heat.values for heat in film.maps.values()])
        )
        assert saved["layers"].tolist() == [*range(len(record.layers))]


def test_the_drawing_follows_its_flags(tmp_path, capsys):
    out = tmp_path / "film.gif"
    flags = ["--seconds", "0.2", "--width-px", "200", "--scale", "shared", "--no-caption"]
    assert main(["film", PICTURE, "-o", str(out), *DIGITS, *flags]) == 0
    with Image.open(out) as drawn:
        assert drawn.width == 200 and drawn.info["duration"] == 200 and drawn.n_frames == 4
        assert b'"picture": "digit-3.png"' in drawn.info["comment"]
    assert "layers: 0 to 3 (of 4, counted from 0)" in capsys.readouterr().out


def test_the_numbers_are_a_table(tmp_path, record):
    out = tmp_path / "film.csv"
    assert main(["film", PICTURE, "-o", str(out), *DIGITS, "--head", "1", "--query", "1,2"]) == 0
    lines = [*csv.DictReader(out.read_text().splitlines())]
    assert [*lines[0]] == ["layer", "row", "col", "value"] and len(lines) == 4 * 8 * 8
    for layer in (0, 3):
        maps = record.layers[layer].probs()[1]  # (query, key); the class token is first
        asked = maps[1 + 1 * 8 + 2, 1:].reshape(8, 8)
        for line in (each for each in lines if each["layer"] == str(layer)):
            value = float(asked[int(line["row"]), int(line["col"])])
            assert float(line["value"]) == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["-o", "x.mp4"], "can be saved as .gif, .webp"),
        (["-o", "x.gif", "--layer", "3"], "--layer"),
        (["-o", "x.gif", "--method", "rollout"], "invalid choice: 'rollout'"),
        (["-o", "x.gif", "--seconds", "99"], "seconds is from 0.1 to 10"),
        (["-o", "x.gif", "--head", "9", *DIGITS], "no head 9"),
        (["-o", "x.gif", "--query", "reg1", *DIGITS], "no query 'reg1'"),
        (["-o", "x.gif", "--method", "attention_gradcam", *DIGITS], "explains a target"),
    ],
)
def test_mistakes_are_said_before_a_model_runs(tmp_path, monkeypatch, capsys, flags, says):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("attnviz.__main__.observe", lambda *_, **__: pytest.fail("it ran"))
    try:
        code = main(["film", PICTURE, *flags])
    except SystemExit as end:
        code = end.code
    assert code == 2 and says in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
