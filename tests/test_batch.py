"""Many pictures: which ones, what is kept of each, and that no kill and no bad file costs the others."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import resource
import runpy
import signal
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet

import attnviz
from attnviz import batch_command, trace
from attnviz.__main__ import main
from attnviz.batch import Request, here, pictures_in, run
from attnviz.batch.columns import _measures
from attnviz.batch.journal import Journal
from attnviz.batch.outputs import LIST, figure_name, kind_of, output_of
from attnviz.errors import AttnVizError, BadOption
from tests.conftest import small_vit

VIT = small_vit()
"""Made once; a batch loads it as it would any model."""

MODEL = {"name": "small"}

SCALE_PAGE = (Path(__file__).parents[1] / "docs" / "scale.md").read_text("utf-8")


def load():
    return VIT


def draw(path, seed: int, size: tuple[int, int] = (48, 32)):
    noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
    Image.fromarray(noise).save(path)
    return str(path)


@pytest.fixture
def photos(tmp_path):
    """Nine pictures, and a file that is none."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(9):
        draw(folder / f"{number}.png", number)
    (folder / "bad.jpg").write_text("no picture")
    return folder


def request_of(path, *, figures=None, **asked):
    return Request(model=MODEL, kind=kind_of(str(path), figures), **({"batch": 4} | asked))


def go(photos, path, *, engine=here, **asked):
    request = request_of(path, **asked)
    names = pictures_in([str(photos)], without=path)
    return run(names, output_of(path, request), request, load, engine=engine)


# ---- which pictures -----------------------------------------------------------------------------


def test_folders_patterns_lists_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (
        "a/1.png",
        "a/b/2.JPG",
        "a/.hidden/3.png",
        "a/.4.png",
        "a/notes.md",
        "5.png",
        "c/6.png",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "list.txt").write_text("./5.png\n\n  c\nmissing.png\n")
    for given, meant in [
        (["a"], ["a/1.png", "a/b/2.JPG"]),
        (["a/"], ["a/1.png", "a/b/2.JPG"]),
        (["a", "a/1.png", "./a/../a/1.png"], ["a/1.png", "a/b/2.JPG"]),
        (["*.png"], ["5.png"]),
        (["**/*.png"], ["5.png", "a/1.png", "c/6.png"]),
        (["list.txt"], ["5.png", "c/6.png", "missing.png"]),
        (["notes.md", "nowhere.png"], ["notes.md", "nowhere.png"]),  # named, so they are tried
        ([".", "c"], ["5.png", "a/1.png", "a/b/2.JPG"]),
    ]:  # fmt: skip
        assert pictures_in(given, without=tmp_path / "c") == [
            name for name in meant if not name.startswith("c/")
        ]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["empty"], "The folder empty holds no picture"),
        (["x*.png"], r"The pattern x\*\.png holds no picture"),
        (["none.txt"], "There is no list none.txt"),
        (["blank.txt"], "The list blank.txt holds no picture"),
        (["bytes.txt"], "bytes.txt can't be read: it is no text"),
        (["out"], "lie in the output"),
        ([""], "An empty name came"),
        (["nowhere"], "There is no picture or folder nowhere"),
        (["blank.txt/nowhere/"], "There is no picture or folder blank.txt/nowhere/"),
    ],
)
def test_names_that_mean_nothing_are_refused(tmp_path, monkeypatch, given, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "1.png").touch()
    (tmp_path / "blank.txt").write_text("\n \n")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\0")
    with pytest.raises(BadOption, match=says):
        pictures_in(given, without=tmp_path / "out")


# ---- what is kept -------------------------------------------------------------------------------


def test_a_row_is_what_explain_gives(photos, tmp_path):
    table = tmp_path / "maps.parquet"
    report = go(photos, table, method="rollout", query=(1, 2), head_metrics=True)
    assert (report.total, report.done, report.before) == (10, 9, 0)
    assert list(report.failed) == [str(photos / "bad.jpg")]
    rows = parquet.read_table(table).to_pylist()
    assert [row["picture"] for row in rows] == [str(photos / f"{n}.png") for n in range(9)]
    for row in rows:
        image = attnviz.open_image(row["picture"])
        record = attnviz.observe(VIT, image, keep="maps")
        heat = attnviz.explain(record, "rollout", query=(1, 2))
        assert (row["rows"], row["columns"]) == (2, 3)
        assert row["heat"] == pytest.approx(heat.values.ravel(), abs=1e-5)
        assert (row["width"], row["height"]) == (48, 32)
        assert tuple(row[edge] for edge in ("left", "top", "right", "bottom")) == record.view.box
        assert row["label"] == record.predictions[0][0]
        assert row["probability"] == pytest.approx(record.predictions[0][2], abs=1e-4)
        metrics = attnviz.head_metrics(record)
        for name in attnviz.METRICS:
            assert row[f"heads_{name}"] == pytest.approx(metrics[name].ravel(), abs=1e-3)
        # By hand: the entropy of the shares, and how many of the largest reach 0.6.
        shares = np.sort(heat.values.astype(float).ravel() / heat.values.astype(float).sum())[::-1]
        assert row["entropy"] == pytest.approx(-sum(p * math.log(p) for p in shares), abs=1e-4)
        fewest = next(n for n in range(1, 7) if sum(shares[:n]) >= 0.6)
        assert row["area"] == pytest.approx(fewest / 6)
        assert row["total"] == pytest.approx(heat.values.sum(), abs=1e-5)
        assert (row["low"], row["high"]) == pytest.approx(
            (heat.values.min(), heat.values.max()), abs=1e-5
        )


def test_blank_cells_and_the_query_s_own_are_left_out_of_what_is_measured():
    # A window of 4 cells among 400, two of which hold 60 % of it; and one cell beside 399 faint ones.
    values = np.zeros((20, 20), np.float32)
    values[:2, :2] = [[0.2, 0.2], [0.2, 0.4]]
    window = SimpleNamespace(values=values, filled=values > 0, in_colour=False, itself=())
    assert _measures(window)["area"] == 2 / 4
    alone = np.full((20, 20), 1e-4, np.float32)
    alone[3, 3] = 1
    heat = SimpleNamespace(values=alone, filled=np.ones((20, 20), bool), in_colour=False, itself=())
    assert _measures(heat)["swallowed"]
    heat.itself = ((3, 3),)
    assert not _measures(heat)["swallowed"]


def test_a_map_with_signs_and_one_in_colour_and_one_of_a_target(photos, tmp_path):
    for method, asked, values in [
        ("similarity", {}, 6),
        ("pca", {}, 18),
        ("relevance", {"target": 3}, 6),
        ("relevance", {"similar_to": "cls"}, 6),
        ("relevance", {"similar_picture": str(photos / "1.png")}, 6),
    ]:
        table = tmp_path / f"{method}{len(list(tmp_path.iterdir()))}.parquet"
        assert go(photos, table, method=method, **asked).done == 9
        row = parquet.read_table(table).to_pylist()[4]
        assert len(row["heat"]) == values
        (read,) = re.findall(r"```python\n(.*?)```", SCALE_PAGE, re.DOTALL)
        (tmp_path / "read.py").write_text(read.replace("maps.parquet", str(table)))
        heat = runpy.run_path(str(tmp_path / "read.py"))["heat"]
        assert heat.shape == (row["rows"], row["columns"], *((3,) if method == "pca" else ()))
        assert (row["entropy"] is None) == (method != "relevance")
        assert (row["score"] is None) == (method != "relevance")
        image = attnviz.open_image(row["picture"])
        target = asked.get("target")
        if "similar_to" in asked:
            target = attnviz.similarity_to("cls")
        if "similar_picture" in asked:
            other = attnviz.open_image(asked["similar_picture"])
            target = attnviz.similarity_to(attnviz.observe(VIT, other))
        alone = attnviz.explain(attnviz.observe(VIT, image, target=target), method)
        assert row["heat"] == pytest.approx(alone.values.ravel(), abs=1e-4)


def test_figures_are_those_of_a_single_map(photos, tmp_path):
    report = go(photos, tmp_path / "maps", drawing={"dpi": 72, "caption": False})
    assert report.done == 9
    files = sorted(path.name for path in (tmp_path / "maps").iterdir())
    names = [str(photos / f"{number}.png") for number in range(9)]
    assert files == sorted([*(figure_name(name, ".png") for name in names), LIST, "batch.journal"])
    lines = (tmp_path / "maps" / LIST).read_text().splitlines()
    assert lines[0] == "picture,figure,sha256" and len(lines) == 10
    assert [line.split(",")[:2] for line in lines[1:]] == [
        [name, figure_name(name, ".png")] for name in names
    ]
    for number in (3, 8):
        heat = attnviz.explain(attnviz.observe(VIT, attnviz.open_image(names[number])))
        one = heat.named(f"{number}.png").save(tmp_path / f"{number}.png", dpi=72, caption=False)
        drawn = tmp_path / "maps" / figure_name(names[number], ".png")
        assert drawn.read_bytes() == one.read_bytes()


@pytest.mark.parametrize("kind", ["png", "16-bit.png"])
def test_a_figure_is_that_of_the_single_command_and_is_made_again(photos, tmp_path, capsys, kind):
    asked = [*TINY, "--method", "gradient_rollout", "--similar-to", str(photos / "3.png")]
    asked += ["--query", "1,2"]
    words = ["batch", str(photos / "1.png"), str(photos / "2.png"), "-o", str(tmp_path / "maps")]
    assert main([*words, *asked, "--as", kind]) == 0
    figure = tmp_path / "maps" / figure_name(str(photos / "2.png"), f".{kind}")
    one, again = (tmp_path / f"{name}.{kind}" for name in ("one", "again"))
    assert main([str(photos / "2.png"), "-o", str(one), *asked]) == 0
    assert figure.read_bytes() == one.read_bytes()
    pictures = [str(photos / "2.png"), str(photos / "3.png")]
    assert main(["replay", str(figure), *pictures, "-o", str(again)]) == 0
    assert "the same bytes as then" in capsys.readouterr().out
    assert again.read_bytes() == figure.read_bytes()


# ---- it goes on where it stopped ----------------------------------------------------------------


def stop_after(count):
    """An engine that is stopped by Ctrl+C after so many results."""

    def engine(*given):
        for number, result in enumerate(here(*given)):
            if number == count:
                raise KeyboardInterrupt
            yield result

    return engine


def entries(path):
    return [json.loads(line[9:]) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("count", [1, 5, 9])
def test_what_was_stopped_goes_on_and_ends_the_same(photos, tmp_path, count):
    whole, broken = tmp_path / "whole.parquet", tmp_path / "broken.parquet"
    go(photos, whole)
    with pytest.raises(KeyboardInterrupt):
        go(photos, broken, engine=stop_after(count))
    assert not broken.exists()
    kept = len(entries(tmp_path / "broken.parquet.journal")) - 1
    report = go(photos, broken)
    assert (report.before, report.done) == (kept, 9 - kept)
    assert broken.read_bytes() == whole.read_bytes()
    again = go(photos, broken)
    assert (again.before, again.done, again.changed) == (9, 0, [])
    names = [entry["picture"] for entry in entries(tmp_path / "broken.parquet.journal")[1:]]
    assert len(names) == len(set(names)) == 9


def in_twos(photos, path):
    return go(photos, path, figures=None if path.suffix else "npz", batch=2)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("kind", ["maps", "maps.parquet"])
def test_what_was_killed_goes_on_and_ends_the_same(photos, tmp_path, kind):
    """SIGKILL in mid-run, three times; `make batch-kills` has it twenty times at random moments."""
    whole, broken = tmp_path / f"whole-{kind}", tmp_path / kind
    assert in_twos(photos, whole).done == 9
    journal = output_of(broken, request_of(broken)).journal
    for seen in (2, 5, 7):
        child = get_context("fork").Process(target=in_twos, args=(photos, broken))
        child.start()
        while child.is_alive() and (
            not journal.exists() or len(journal.read_bytes().splitlines()) < seen
        ):
            child.join(0.001)
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        assert child.exitcode == -signal.SIGKILL
    in_twos(photos, broken)
    if broken.is_dir():
        assert {each.name: each.read_bytes() for each in broken.iterdir() if each != journal} == {
            each.name: each.read_bytes() for each in whole.iterdir() if each.name != journal.name
        }
    else:
        assert broken.read_bytes() == whole.read_bytes()
    names = [entry["picture"] for entry in entries(journal)[1:]]
    assert len(names) == len(set(names)) == 9


def test_a_picture_that_changed_is_done_again_and_named(photos, tmp_path):
    table = tmp_path / "maps.parquet"
    go(photos, table)
    before = parquet.read_table(table).to_pylist()
    draw(photos / "3.png", 333)
    (photos / "5.png").touch()  # another time, the same bytes
    (photos / "7.png").unlink()
    report = go(photos, table)
    assert report.changed == [str(photos / "3.png")]
    assert (report.before, report.done, report.others) == (7, 1, 1)
    after = parquet.read_table(table).to_pylist()
    assert [row != was for row, was in zip(after, before, strict=True)] == [
        n == 3 for n in range(9)
    ]


def test_a_picture_that_turned_bad_leaves_no_old_row(photos, tmp_path):
    table = tmp_path / "maps.parquet"
    go(photos, table)
    (photos / "3.png").write_text("no picture any more")
    report = go(photos, table)
    assert report.changed == [str(photos / "3.png")] and str(photos / "3.png") in report.failed
    assert len(parquet.read_table(table)) == 8


def test_a_figure_that_is_gone_is_made_again(photos, tmp_path):
    go(photos, tmp_path / "maps", figures="npz")
    lost = tmp_path / "maps" / figure_name(str(photos / "2.png"), ".npz")
    content = lost.read_bytes()
    lost.unlink()
    report = go(photos, tmp_path / "maps", figures="npz")
    assert (report.before, report.done, report.changed) == (8, 1, [])
    assert lost.read_bytes() == content


def test_a_figure_that_is_gone_with_its_picture_leaves_the_list(photos, tmp_path):
    """Nothing is done and no picture is another one, and yet the list would name it."""
    folder, request = tmp_path / "maps", request_of(tmp_path / "maps", figures="npz")
    names = [str(photos / "0.png"), str(photos / "1.png")]
    run(names, output_of(folder, request), request, load)
    lost = folder / figure_name(names[0], ".npz")
    lost.unlink()
    (photos / "0.png").unlink()
    report = run(names, output_of(folder, request), request, load)
    assert (report.done, report.changed, [*report.failed]) == (0, [], [names[0]])
    listed = (folder / LIST).read_text()
    assert names[1] in listed and names[0] not in listed and lost.name not in listed


@pytest.mark.parametrize(("name", "kept"), [("maps.parquet", "row"), ("maps", "figure")])
def test_what_was_not_asked_for_stays_and_is_counted(photos, tmp_path, capsys, name, kept):
    """A picture that is gone keeps its result, whether a folder or a list names the others."""
    (photos / "bad.jpg").unlink()
    for number in range(4, 9):
        (photos / f"{number}.png").unlink()
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"{photos / f'{number}.png'}\n" for number in range(4)))
    path, ends = tmp_path / name, ["-o", str(tmp_path / name), *TINY]
    ends += ["--as", "npz"] if kept == "figure" else []
    assert main(["batch", str(listed), *ends]) == 0
    assert f"{path}: of 4 pictures 4 done in" in capsys.readouterr().out

    note = "note: random weights: these maps mean nothing"
    (photos / "3.png").unlink()
    assert main(["batch", str(photos), *ends]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: of 3 pictures 0 done, 3 were done before",
        f"1 {kept} is of a picture that was not asked for this time",
        note,
    ]
    assert main(["batch", str(listed), *ends]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: of 4 pictures 0 done, 4 were done before",
        f"{photos / '3.png'} is not there any more: its {kept} is kept",
        note,
    ]
    assert main(["batch", str(photos / "0.png"), *ends]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: of 1 picture 0 done, 1 was done before",
        f"3 {kept}s are of pictures that were not asked for this time",
        note,
    ]
    if kept == "row":
        assert len(parquet.read_table(path)) == 4
    else:
        assert len((path / LIST).read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("name", "says"),
    [("maps.parquet", "its earlier row is left out"), ("maps", "its earlier figure is removed")],
)
def test_a_changed_picture_that_is_bad_is_not_said_to_be_done(photos, tmp_path, capsys, name, says):
    path, bad, other = tmp_path / name, photos / "3.png", photos / "4.png"
    words = ["batch", str(bad), str(other), "-o", str(path), *TINY]
    words += ["--as", "npz"] if name == "maps" else []
    assert main(words) == 0
    bad.write_text("no picture any more")
    draw(other, 444)
    capsys.readouterr()
    assert main(words) == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"{bad} is another picture than before, and could not be done: {says}" in lines
    assert f"{other} is another picture than before: done again" in lines
    if name == "maps":
        figures = {figure_name(str(other), ".npz")}
        assert {each.name for each in path.iterdir()} == {LIST, "batch.journal", *figures}
        assert str(bad) not in (path / LIST).read_text()


def test_a_second_run_leaves_the_first_ones_half_figure(photos, tmp_path):
    folder = tmp_path / "maps"
    go(photos, folder, figures="npz")
    half = folder / ".attnviz-0123456789abcdef.part"
    half.write_bytes(b"half")
    first = Journal(folder / "batch.journal", request_of(folder, figures="npz").identity())
    with first, pytest.raises(BadOption, match="Another run is writing"):
        go(photos, folder, figures="npz")
    assert half.exists()
    go(photos, folder, figures="npz")  # the lock is free: whoever wrote it was killed
    assert not half.exists()


def test_a_full_disk_says_that_figures_go_on(photos, tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(BadOption, match=r"npz can't be written.*the same command goes on from"):
            go(photos, tmp_path / "maps", figures="npz")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert go(photos, tmp_path / "maps", figures="npz").done == 9


# ---- the journal --------------------------------------------------------------------------------


def test_a_torn_line_is_cut_off_and_a_damaged_one_skipped(tmp_path):
    path = tmp_path / "journal"
    with Journal(path, {"a": 1}) as journal:
        places = [journal.append({"number": number}) for number in range(4)]
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"number":1', b'"number":7')
    path.write_bytes(b"".join(lines)[:-5])
    with Journal(path, {"a": 1}) as journal:
        assert [entry.get("number") for _, entry in journal.entries()] == [None, 0, 2]
        assert journal.append({"number": 3}) == places[3]
        assert journal.entry(places[3]) == {"number": 3}
    with Journal(path, {"a": 1}) as journal:
        assert [place for place, _ in journal.entries()] == [0, places[0], places[2], places[3]]


@pytest.mark.parametrize("length", range(0, 40, 3))
def test_a_first_line_that_was_cut_short_is_written_anew(tmp_path, length):
    path = tmp_path / "journal"
    with Journal(path, {"a": 1}) as journal:
        journal.append({"number": 0})
    path.write_bytes(path.read_bytes()[:length])
    with Journal(path, {"a": 1}) as journal:
        assert [entry for _, entry in journal.entries()] == [{"request": {"a": 1}}]


@pytest.mark.parametrize("content", ["my notes", "my notes\n", "my notes\nmore", '{"a": 1}\n'])
def test_a_file_that_is_no_journal_stays_as_it_is(tmp_path, content):
    path = tmp_path / "journal"
    path.write_text(content)
    with pytest.raises(BadOption, match="is no journal of a batch"):
        Journal(path, {"a": 1})
    assert path.read_text() == content


def test_a_journal_that_cannot_begin_says_that_nothing_is_done(tmp_path):
    (tmp_path / "is a folder").mkdir()
    for place in ("is a folder", "nowhere/journal"):
        with pytest.raises(BadOption, match=r"Nothing is done yet: give another output") as raised:
            Journal(tmp_path / place, {"method": "attention"})
        assert "stays done" not in str(raised.value)


def test_a_journal_has_one_writer(tmp_path):
    with (
        Journal(tmp_path / "journal", {}),
        pytest.raises(BadOption, match="Another run is writing"),
    ):
        Journal(tmp_path / "journal", {})


def test_a_full_disk_is_a_sentence_and_leaves_whole_lines(tmp_path):
    path = tmp_path / "journal"
    with Journal(path, {"a": 1}) as journal:
        journal.append({"number": 0})
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, limits[1]))
        try:
            with pytest.raises(BadOption, match="can't be written: File too large"):
                journal.append({"number": 1})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert [entry.get("number") for _, entry in journal.entries()] == [None, 0]
        journal.append({"number": 2})
        assert [entry.get("number") for _, entry in journal.entries()] == [None, 0, 2]


@pytest.mark.parametrize("stopped", [False, True])
def test_a_disk_that_is_full_at_the_very_end_is_a_sentence_too(tmp_path, monkeypatch, stopped):
    """Some file systems find out when what was written is to be on the disk."""
    path = tmp_path / "batch.journal"
    said = KeyboardInterrupt if stopped else BadOption
    with pytest.raises(said) as raised, Journal(path, {"model": "m"}) as journal:  # noqa: PT012
        journal.append({"number": 0})
        monkeypatch.setattr(os, "fsync", _full)
        if stopped:
            raise KeyboardInterrupt
    monkeypatch.undo()
    assert stopped or "No space left on device. What is done stays done" in str(raised.value)
    with Journal(path, {"model": "m"}) as journal:  # it was closed, and its lock is free
        assert [entry.get("number") for _, entry in journal.entries()] == [None, 0]


def _full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# ---- what is refused ----------------------------------------------------------------------------


def test_other_settings_in_the_same_place_are_refused(photos, tmp_path):
    table = tmp_path / "maps.parquet"
    go(photos, table)
    content = table.read_bytes()
    with pytest.raises(BadOption, match='method was "attention" and is now "rollout"'):
        go(photos, table, method="rollout")
    with pytest.raises(BadOption, match="query was not given and is now \\[0, 1\\]"):
        go(photos, table, query=(0, 1))
    assert table.read_bytes() == content
    assert go(photos, table, batch=1).before == 9  # of no effect on the results but their last bits


@pytest.mark.parametrize(
    ("name", "package", "refused"),
    [
        ("maps.parquet", "torch", True),
        ("maps.parquet", "timm", True),
        ("maps.parquet", "attnviz", True),
        ("maps.parquet", "matplotlib", False),  # which draws no table
        ("maps", "matplotlib", True),
    ],
)
def test_what_other_versions_began_is_not_gone_on_with(photos, tmp_path, monkeypatch, name, package, refused):  # fmt: skip
    path = tmp_path / name
    kinds = {} if path.suffix else {"figures": "npz"}
    here = trace.versions()
    monkeypatch.setattr(trace, "versions", lambda: {**here, package: "0.0"})
    monkeypatch.setattr("attnviz.batch.request.versions", trace.versions)
    go(photos, path, **kinds)
    monkeypatch.undo()
    if not refused:
        assert go(photos, path, **kinds).before == 9
        return
    with pytest.raises(BadOption) as said:
        go(photos, path, **kinds)
    assert f"begun with {package} 0.0 (here {here[package]}): what" in str(said.value)


def test_a_request_that_came_to_nothing_binds_nobody(photos, tmp_path):
    for path in (tmp_path / "maps.parquet", tmp_path / "maps"):
        with pytest.raises(AttnVizError, match="There is no layer 9"):
            go(photos, path, options={"layer": 9})
        assert not path.exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["photos"]
    with pytest.raises(AttnVizError, match="class"):
        go(photos, tmp_path / "maps.parquet", method="relevance", target=99)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["photos"]


def test_what_is_there_already_stays(photos, tmp_path):
    table, folder = tmp_path / "maps.parquet", tmp_path / "maps"
    table.write_text("mine")
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    for path, says in [
        (table, "Give another output, or remove the file"),
        (folder, "is not empty"),
        (tmp_path / "photos" / "1.png" / "maps.parquet", "no such folder"),
        (tmp_path / "photos" / "1.png" / "maps", "can't be written"),
        (tmp_path / "nowhere" / "maps.parquet", "no such folder"),
    ]:
        with pytest.raises(BadOption, match=says):
            go(photos, path)
    assert table.read_text() == "mine"
    assert [each.name for each in folder.iterdir()] == ["mine.txt"]
    os.rename(table, tmp_path / "other")
    go(photos, table)
    os.rename(tmp_path / "maps.parquet.journal", tmp_path / "lost")
    with pytest.raises(
        BadOption, match=r"no maps\.parquet\.journal that.*another output"
    ) as refused:
        go(photos, table)
    assert "overwrite" not in str(refused.value)  # which a batch does not have
    table.unlink()
    go(photos, table)
    (tmp_path / "other").replace(table)
    with pytest.raises(BadOption, match="is no table of this batch"):
        go(photos, table)
    assert table.read_text() == "mine"


def test_names_say_what_is_written(tmp_path):
    (tmp_path / "run.1").mkdir()
    assert kind_of("maps.parquet", None) == ".parquet"
    assert kind_of("maps", None) == kind_of("run.2/", None) == ".png"
    assert kind_of(str(tmp_path / "run.1"), "pdf") == ".pdf"
    with pytest.raises(BadOption, match=r"ends in \.csv"):
        kind_of("maps.csv", None)
    with pytest.raises(BadOption, match="leave --as out"):
        kind_of("maps.parquet", "pdf")
    for name in (".parquet", "maps/.Parquet"):
        with pytest.raises(BadOption, match="give the table a name"):
            kind_of(name, None)
    assert kind_of(".parquet/", None) == kind_of(".maps", None) == ".png"


# ---- the command --------------------------------------------------------------------------------

TINY = ["--model", "vit_tiny_patch16_224", "--random", "--size", "32x48", "--fit", "squash"]


def test_the_command(photos, tmp_path, capsys):
    table = tmp_path / "maps.parquet"
    words = ["batch", str(photos), "-o", str(table), *TINY, "--query", "1,2", "--layer", "3"]
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert not err  # no bar where nobody watches
    assert "of 10 pictures 9 done in " in out and "1 could not be done" in out
    assert "photos/bad.jpg  bad.jpg looks like text" in out
    (photos / "bad.jpg").unlink()
    assert main(words) == 0
    assert "0 done, 9 were done before" in capsys.readouterr().out
    about = json.loads(parquet.read_schema(table).metadata[b"attnviz"])
    assert about["model"] == "vit_tiny_patch16_224" and about["layer"] == 3
    assert main([*words, "--head-metrics"]) == 2
    assert "head metrics was false and is now true" in capsys.readouterr().err


def test_a_table_and_a_picture_may_have_names_that_are_no_text(tmp_path, capsys):
    folder = tmp_path / "photos"
    folder.mkdir()
    draw(folder / "0.png", 0)
    (folder / os.fsdecode(b"\xff.png")).write_text("no picture")
    table = tmp_path / os.fsdecode(b"\xfe.parquet")
    for done in ("1 done", "1 was done before"):
        assert main(["batch", str(folder), "-o", str(table), *TINY]) == 1
        out = capsys.readouterr().out
        assert "\\udcfe.parquet: of 2 pictures" in out and done in out
        assert out.endswith("note: random weights: these maps mean nothing\n")
        assert "photos/\\udcff.png" in out
    with table.open("rb") as file:
        assert parquet.read_table(file).num_rows == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-o", "maps.csv"], "ends in .csv"),
        (
            ["-o", "maps.parquet", "--alpha", "0.3", "--no-caption"],
            "A table draws nothing: leave --alpha, --no-caption out",
        ),
        (["-o", f"{'x' * 300}.parquet"], "x.parquet.journal beside it can't: File name too long."),
        (["-o", f"{'x' * 245}.parquet"], "x.parquet.journal beside it can't: File name too long."),
        (["-o", f"{'x' * 300}/maps.parquet"], "File name too long. Give another output."),
        (["-o", f"{'x' * 300}"], "File name too long."),
        (["-o", ".parquet"], "give the table a name"),
        (["-o", "maps", "--dpi", "0"], "dpi"),
        (["-o", "maps", "--head-metrics"], "columns of a table"),
        (["-o", "maps", "--together", "0"], "At least 1 picture"),
        (["-o", "maps", "--method", "relevance"], "explains a target"),
        (["-o", "maps", "--checkpoint", "none.safetensors"], "none.safetensors"),
        (["-o", "maps", "--query", "9,9"], "patch"),
    ],
)
def test_mistakes_are_sentences_and_leave_nothing(
    photos, tmp_path, monkeypatch, capsys, options, says
):
    monkeypatch.chdir(tmp_path)
    tiny = TINY if "--checkpoint" not in options else [each for each in TINY if each != "--random"]
    assert main(["batch", "photos", *options, *tiny]) == 2
    said = capsys.readouterr().err
    assert said.startswith("attnviz: ") and says in said and said.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["photos"]


def test_a_name_that_a_terminal_would_obey_is_printed_escaped(tmp_path, capsys):
    name = "bad\x1b]0;mine\x07.png"
    (tmp_path / name).write_bytes(b"no picture")
    assert main(["batch", str(tmp_path / name), "-o", str(tmp_path / "maps"), *TINY]) == 1
    out = capsys.readouterr().out
    assert r"bad\x1b]0;mine\x07.png" in out and not set(out) & {"\x1b", "\x07"}


def test_ctrl_c_says_how_far_it_came(photos, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(batch_command, "here", stop_after(5))
    assert main(["batch", str(photos), "-o", str(tmp_path / "maps.parquet"), *TINY]) == 130
    assert "of 10 pictures are done, and the same command goes on" in capsys.readouterr().err
