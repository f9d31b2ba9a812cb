"""Files of bare numbers, by suffix, from the command line and from Python."""

from __future__ import annotations

import csv
import json
import zipfile
from dataclasses import fields, replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz.__main__ import main
from attnviz.arguments import parser_of
from attnviz.errors import BadOption
from attnviz.export import KINDS, kinds_for, render, save
from attnviz.figure import KINDS as ALL_KINDS
from attnviz.figure import kinds_of
from attnviz.paper import Paper
from attnviz.samples import sample_path
from attnviz.strip import FilmPaper
from attnviz.used import USED
from attnviz.writing import kind_of
from tests.test_export import SMALL, heat

DIGIT = [str(sample_path("digit-3")), "--model", "digits", "--layer", "1", "--head", "0"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One map as each kind of file of numbers, and as a zip."""
    folder = tmp_path_factory.mktemp("numbers")
    for kind in (".npz", ".csv", ".16-bit.png", ".mask.png", ".zip"):
        assert main([*DIGIT, "-o", str(folder / f"three{kind}")]) == 0
    return folder


def values_in(folder):
    with np.load(folder / "three.npz") as saved:
        return saved["values"]


def test_a_table_of_a_map_has_its_values_to_the_last_bit(files):
    lines = [*csv.reader((files / "three.csv").read_text().splitlines())]
    assert lines[0] == ["row", "col", "value"] and len(lines) == 1 + 64
    values = values_in(files)
    for row, col, value in lines[1:]:
        assert np.float32(value) == values[int(row), int(col)]


def test_levels_and_mask_are_those_of_the_map(files):
    values = values_in(files)
    with Image.open(files / "three.16-bit.png") as levels:
        said = json.loads(levels.info["Description"])
        back = said["low"] + (said["high"] - said["low"]) * np.asarray(levels).astype(float) / 65535
    np.testing.assert_allclose(back, values, atol=(said["high"] - said["low"]) / 65535)
    assert said["again"] and said["facts"]["head"] == "0"
    with Image.open(files / "three.mask.png") as mask:
        white = np.asarray(mask.resize((8, 8), Image.Resampling.NEAREST)) == 255
    held = np.sort(values[white])[::-1]
    assert held.sum() >= 0.6 * values.sum() > held[:-1].sum()
    assert held.min() >= values[~white].max()


@pytest.mark.parametrize("away", [-9.0, 99.0], ids=["lowest", "highest"])
def test_levels_run_from_the_lowest_to_the_highest_of_the_cells_that_have_a_value(away):
    values = np.array([[2.0, away, 5.0], [3.0, 6.0, 4.0]])
    blank = values == away
    content = render(heat(values, blank=blank), ".16-bit.png", **SMALL)
    with Image.open(BytesIO(content)) as levels:
        said = json.loads(levels.info["Description"])
        steps = np.asarray(levels).astype(int)
    assert (said["low"], said["high"]) == (2.0, 6.0)
    # (v - 2) / 4 of 65535; a cell without a value is 0
    np.testing.assert_array_equal(steps, [[0, 0, 49151], [16384, 65535, 32768]])


def test_the_zip_holds_the_same_files(files):
    with zipfile.ZipFile(files / "three.zip") as archive:
        names = archive.namelist()
        kinds = {kind_of(name, [*KINDS, ".manifest.json", ".tex", ".bib"]) for name in names}
        assert kinds == {*KINDS, ".manifest.json", ".tex", ".bib"}
        for name in names:
            if name.endswith(("csv", "mask.png", "16-bit.png")):
                own = (files / f"three{kind_of(name, KINDS)}").read_bytes()
                assert archive.read(name) == own


def test_the_head_metrics_are_a_table(tmp_path, capsys):
    out = tmp_path / "heads.csv"
    assert main(["plate", DIGIT[0], "--model", "digits", "--show", "metrics", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "heads.csv: Every metric of every head; " in said and "dot" not in said
    plot, anew = str(tmp_path / "plot.svg"), tmp_path / "anew.csv"
    assert main(["plate", DIGIT[0], "--model", "digits", "--show", "metrics", "-o", plot]) == 0
    assert "each dot a head" in capsys.readouterr().out
    assert main(["replay", plot, DIGIT[0], "-o", str(anew)]) == 0
    said = capsys.readouterr().out
    assert "anew.csv: Every metric of every head; " in said and "dot" not in said
    assert anew.read_bytes() == out.read_bytes()
    lines = [*csv.DictReader(out.read_text().splitlines())]
    assert {"layer", "head", "entropy", "distance"} < lines[0].keys()
    assert main(["plate", DIGIT[0], "--model", "digits", "--show", "heads", "-o", str(tmp_path / "a.csv")]) == 0  # fmt: skip
    cells = (tmp_path / "a.csv").read_text().splitlines()
    assert cells[0] == "layer,head,row,col,value" and len(cells) == 1 + 64 * len(lines)


@pytest.mark.parametrize(
    ("command", "name", "flags", "says"),
    [
        ([], "a.npz", ["--dpi", "80"], "A .npz file has no use for --dpi: leave it out."),
        ([], "a.csv", ["--letters", "--no-caption"], "A .csv file has no use for --no-caption, --letters: leave them"),
        ([], "a.16-bit.png", ["--venue", "cvpr"], "A .16-bit.png file has no use for --venue"),
        ([], "a.mask.png", ["--mass", "0.7", "--width-mm", "60"], "A .mask.png file has no use for --width-mm"),
        (["film"], "a.gif", ["--dpi", "80", "--columns", "2"], "A .gif file has no use for --dpi, --columns"),
        (["film"], "a.pdf", ["--seconds", "1"], "A .pdf file has no use for --seconds"),
        (["film"], "a.zip", ["--width-px", "200"], "A .zip file has no use for --width-px"),
        (["film"], "a.csv", ["--scale", "shared"], "A .csv file has no use for --scale"),
        (["plate", "--show", "metrics"], "a.csv", ["--dpi", "80"], "A .csv file has no use for --dpi"),
        (["plate", "--show", "metrics"], "a.csv", ["--metrics", "entropy"], "A .csv of --show metrics holds every metric of every head: leave --metrics out."),
        (["plate", "--show", "heads"], "a.npz", ["--original"], "A .npz file has no use for --original"),
        (["faithfulness"], "a.npz", ["--no-caption"], "A .npz file has no use for --no-caption"),
        (["film"], "a.16-bit.png", [], "'a.16-bit.png' ends in .16-bit.png, as only one map can."),
        (["plate", "--show", "heads"], "a.mask.png", [], "'a.mask.png' ends in .mask.png, as only one map can."),
        (["plate", "--show", "metrics"], "a.mask.png", [], "'a.mask.png' ends in .mask.png, as only one map can."),
        (["faithfulness"], "a.16-bit.png", [], "'a.16-bit.png' ends in .16-bit.png, as only one map can."),
        ([], "a.16-bit.png", ["--method", "pca"], "A .16-bit.png file is of one value a patch, and --method pca has three"),
        ([], "a.png", ["--method", "pca", "--mass", "0.6"], "and --method pca has three: leave it out."),
        (["batch"], "maps", ["--as", "mask.png", "--method", "pca"], "A .mask.png file is of one value a patch, and --method pca has three"),
        (["batch"], "maps", ["--as", "npz", "--alpha", "0.3"], "A .npz file has no use for --alpha"),
    ],
)  # fmt: skip
def test_a_flag_that_changes_nothing_is_refused(tmp_path, capsys, command, name, flags, says):
    assert main([*command, DIGIT[0], "--model", "digits", "-o", str(tmp_path / name), *flags]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1 and not any(tmp_path.iterdir())


def test_every_kind_says_which_flags_it_uses():
    from_flags = {each.dest for each in parser_of("film")._actions}
    assert {*ALL_KINDS, ".zip"} == USED.keys()
    known = {each.name for paper in (Paper, FilmPaper) for each in fields(paper)}
    assert set().union(*USED.values()) == known
    assert {"width_px", "columns"} < from_flags


def test_numbers_are_made_again_from_their_manifest(tmp_path, capsys):
    out, told = tmp_path / "three.mask.png", tmp_path / "three.json"
    assert main([*DIGIT, "-o", str(out), "--manifest", str(told)]) == 0
    again = tmp_path / "again.mask.png"
    assert main(["replay", str(told), DIGIT[0], "-o", str(again)]) == 0
    assert again.read_bytes() == out.read_bytes()
    assert "the same bytes as then" in capsys.readouterr().out


def test_what_a_zip_has_already_is_not_asked_for(tmp_path, capsys):
    out = tmp_path / "three.zip"
    assert main([*DIGIT, "-o", str(out), "--manifest", str(tmp_path / "a.json")]) == 2
    assert "The zip holds manifest and LaTeX" in capsys.readouterr().err
    assert main(["faithfulness", *DIGIT, "-o", str(out)]) == 2
    assert "ends in .zip" in capsys.readouterr().err
    for flag, says in (("--manifest", "A manifest can be saved as .json"), ("--latex", "LaTeX can be saved as .tex")):  # fmt: skip
        assert main([*DIGIT, "-o", str(tmp_path / "a.png"), flag, str(tmp_path / "a.txt")]) == 2
        assert says in capsys.readouterr().err
    out.write_bytes(b"mine")
    assert main([*DIGIT, "-o", str(out)]) == 2
    assert "exists" in capsys.readouterr().err and out.read_bytes() == b"mine"


def test_a_map_is_what_its_values_allow(tmp_path):
    assert kinds_for(heat()) == tuple(KINDS)
    signed = replace(heat(), values=-heat().values)
    three = heat(np.ones((2, 2, 3)))
    assert {*KINDS} - {*kinds_for(signed)} == {".mask.png"}
    assert {*KINDS} - {*kinds_for(three)} == {".mask.png", ".16-bit.png"}
    assert render(three, ".csv").decode().splitlines()[:2] == ["row,col,red,green,blue", "0,0,1.0,1.0,1.0"]  # fmt: skip
    with pytest.raises(BadOption):
        save(signed, tmp_path / "a.mask.png")
    assert not [*tmp_path.iterdir()]


def test_a_row_of_maps_is_one_table(tmp_path):
    blank = np.array([[False, True, False], [False, False, False]])
    first, second = heat([[1, 2, 3], [4, 5, 6]]), replace(heat(), blank=blank)
    made = attnviz.beside([first, second], ["a", 'b, "c"']).save(tmp_path / "row.CSV")
    lines = made.read_text("utf-8").splitlines()
    assert lines[:3] == ["map,row,col,value,name", "0,0,0,1.0,a", "0,0,1,2.0,a"]
    assert len(lines) == 1 + 6 + 5 and not any(line.startswith("1,0,1,") for line in lines)
    assert {(line["map"], line["name"]) for line in csv.DictReader(lines)} == {("0", "a"), ("1", 'b, "c"')}  # fmt: skip
    three = attnviz.beside([first, heat(np.ones((2, 2, 3)))], ["a", "b"])
    assert kinds_of(three) == (".png", ".svg", ".pdf", ".npz")
    with pytest.raises(BadOption, match="one value a patch, and b has three"):
        three.save(tmp_path / "b.csv")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cat.png", ".png"),
        ("cat.Mask.PNG", ".mask.png"),
        ("cat.16-bit.png", ".16-bit.png"),
        ("my.mask.pdf", ".pdf"),
        (".mask.png", ".png"),
        (".png", ""),
        ("catpng", ""),
        ("cat.jpg", ""),
    ],
)
def test_the_longest_suffix_counts(name, kind):
    assert kind_of(name, KINDS) == kind


def test_the_mask_holds_the_share_that_is_outlined():
    made = heat([[5, 2, 2], [1, 0, 0]])  # a half, 0.7, 0.9, all
    for mass, count in ((0.4, 1), (None, 2), (0.9, 3)):
        mask = Image.open(BytesIO(render(made, ".mask.png", mass=mass, **SMALL)))
        assert np.asarray(mask).mean() / 255 == pytest.approx(count / 6)
