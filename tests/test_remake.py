"""A figure is made again from its manifest, byte for byte, or it is said why not."""

from __future__ import annotations

import gc
import json
import os
import shutil
import weakref
import zipfile
from dataclasses import fields, replace
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import small_vit
from PIL import Image
from safetensors.torch import save_file

import attnviz
import models
from attnviz import trace
from attnviz.__main__ import main
from attnviz.again import again, chosen_options, options_from, options_of
from attnviz.bundle import bundle, manifests_in
from attnviz.carried import carried
from attnviz.errors import BadOption
from attnviz.export import render
from attnviz.manifest_shape import FLAGS
from attnviz.paper import Paper
from attnviz.remake import read_manifest
from attnviz.scale import Scale
from attnviz.strip import FilmPaper
from attnviz.trace import picture_sum, seal_of, versions, weights_sum
from attnviz.venue import PlotPaper

TINY = ["--model", "vit_tiny_patch16_224", "--random", "--size", "64x96", "--dpi", "80"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two pictures, and a figure with its manifest."""
    place = tmp_path_factory.mktemp("remake")
    for number, name in enumerate(("picture", "other")):
        pixels = np.random.default_rng(number).integers(0, 256, (60, 90, 3), np.uint8)
        Image.fromarray(pixels).save(place / f"{name}.png")
    words = [str(place / "picture.png"), "-o", str(place / "figure.pdf")]
    assert main([*words, *TINY, "--query", "1,2", "--manifest", str(place / "m.json")]) == 0
    return place


def replayed(folder, out, *words, manifest="m.json", pictures=("picture.png",)):
    places = [str(folder / name) for name in pictures]
    return main(["replay", str(folder / manifest), *places, "-o", str(out), *words])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.svg", ["--method", "rollout", "--discard-ratio", "0.3", "--mass", "0.6", "--letters"]),
        ("b.png", ["--method", "relevance", "--similar-to", "1,2", "--venue", "cvpr", "--original"]),
        ("c.npz", ["--method", "legrad", "--target", "predicted"]),
        ("d.gif", ["film", "--width-px", "160", "--scale", "shared"]),
        ("e.pdf", ["film", "--head", "1", "--no-caption"]),
        ("f.pdf", ["plate", "--show", "methods", "--methods", "attention,pca", "--original"]),
        ("g.png", ["plate", "--show", "heads", "--query", "1,2"]),
        ("h.svg", ["plate", "--show", "metrics", "--metrics", "entropy,to_cls"]),
    ],
)  # fmt: skip
def test_every_kind_of_figure_comes_again_byte_for_byte(folder, tmp_path, capsys, name, words):
    command = [words.pop(0)] if words[0] in ("film", "plate") else []
    out, manifest = tmp_path / name, tmp_path / "manifest.json"
    picture = str(folder / "picture.png")
    tiny = TINY if name.endswith(("png", "svg", "pdf")) else TINY[:-2]
    words = [*tiny, *words, "--manifest", str(manifest)]
    assert main([*command, picture, "-o", str(out), *words]) == 0
    shutil.copy(folder / "picture.png", tmp_path / "renamed.png")  # its name is in the manifest
    again = tmp_path / f"again{out.suffix}"
    assert replayed(tmp_path, again, manifest="manifest.json", pictures=["renamed.png"]) == 0
    assert again.read_bytes() == out.read_bytes()
    assert "the same bytes as then" in capsys.readouterr().out
    inside, beside = (
        read_manifest(content, "") for content in (carried(out.read_bytes()), manifest.read_bytes())
    )
    assert inside.keys() == beside.keys() - {"file"}
    assert all(inside[part] == beside[part] for part in inside if part != "seal")


def test_two_pictures_come_in_any_order(folder, tmp_path):
    out, manifest = tmp_path / "a.pdf", tmp_path / "m.json"
    words = ["--method", "gradcam", "--similar-to", str(folder / "other.png"), *TINY]
    picture = str(folder / "picture.png")
    assert main([picture, "-o", str(out), *words, "--manifest", str(manifest)]) == 0
    for order in (("picture.png", "other.png"), ("other.png", "picture.png")):
        places = [str(folder / name) for name in order]
        again = tmp_path / f"{order[0]}.pdf"
        assert main(["replay", str(manifest), *places, "-o", str(again)]) == 0
        assert again.read_bytes() == out.read_bytes()
    assert main(["replay", str(manifest), picture, "-o", str(tmp_path / "none.pdf")]) == 2


def edited(folder, name, change, *, sealed=False):
    said = json.loads((folder / "m.json").read_text("utf-8"))
    change(said)
    if sealed:
        said["seal"] = seal_of(said)
    (folder / name).write_text(json.dumps(said), "utf-8")
    return name


def method(said):
    said["again"]["maps"][0]["method"] = "rollout"


def torch_of_old(said):
    said["versions"]["torch"] = "1.0"


def weights(said):
    said["again"]["maps"][0]["from"]["weights_sha256"] = "0" * 64


def format_two(said):
    said["format"] = 2


def by_hand(said):
    said["again"] = None


@pytest.mark.parametrize(
    ("change", "sealed", "says"),
    [
        (method, False, "was edited since it was written"),
        (torch_of_old, True, "made with torch 1.0 (here"),
        (weights, True, "The weights of vit_tiny_patch16_224 are not those of the figure"),
        (format_two, True, "a manifest of format 2, and 1 is read here"),
        (by_hand, True, "takes more than names to compute"),
    ],
)
def test_a_manifest_that_does_not_fit_is_one_sentence(folder, tmp_path, capsys, change, sealed, says):  # fmt: skip
    name = edited(folder, f"{change.__name__}.json", change, sealed=sealed)
    out = tmp_path / "out.pdf"
    assert replayed(folder, out, manifest=name) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1 and not out.exists()


def test_other_versions_can_be_had_all_the_same(folder, tmp_path):
    name = edited(folder, "old.json", torch_of_old, sealed=True)
    out = tmp_path / "out.svg"
    assert replayed(folder, out, "--nearly", manifest=name) == 0 and out.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"made_by": "attnviz"}'])  # fmt: skip
def test_what_is_no_manifest_is_refused(folder, tmp_path, capsys, content):
    (tmp_path / "m.json").write_bytes(content)
    places = [str(tmp_path / "m.json"), str(folder / "picture.png"), "-o", str(tmp_path / "o.pdf")]
    assert main(["replay", *places]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "o.pdf").exists()


def put(*path):
    """A change of a manifest: the last is put where the others lead to."""
    *way, last, value = path

    def change(said):
        for step in way:
            said = said[step]
        said[last] = value

    return change


SHOWN = ("again", "maps", 0)
FROM = (*SHOWN, "from")


@pytest.mark.parametrize(
    "change",
    [
        *(put("versions", value) for value in ([], None, 5, {"torch": 5}, {"torch": "1" * 256})),
        *(put("again", value) for value in (5, "x", [], {"maps": []})),
        *(put("again", "maps", value) for value in ({}, [], [5], None)),
        *(put("again", "options", value) for value in ([1], None, {"colormap": []}, {"kind": "x"},
                                                      {"scale": {"low": "x"}}, {"original": 3},
                                                      {"letters": "yes"}, {"caption": "x"},
                                                      {"letters": None}, {"columns": True},
                                                      {"alpha": True}, {"dpi": False})),
        *(put(*SHOWN, "query", value) for value in (5, None, [1], ["a", "b"], [True, 1], [1e3, 2])),
        *(put(*SHOWN, "method", value) for value in ([], None, "x" * 256)),
        *(put(*SHOWN, "options", value) for value in (None, [], {"record": 1}, {"layer": [1]},
                                                      {"layer": 10**30}, {"layer": True}, {"discard": float("nan")})),
        *(put(*SHOWN, "picture", value) for value in (None, [], {"name": None, "sha256": []},
                                                      {"name": "a" * 200_000, "sha256": "0"},
                                                      {"name": "\ud800", "sha256": "0"})),
        *(put(*SHOWN, "from", value) for value in (None, {})),
        *(put(*FROM, "model", value) for value in (["x"], None, "m" * 256)),
        *(put(*FROM, "seed", value) for value in ("x", 10**30, 1.0, False)),
        *(put(*FROM, "image_size", value) for value in ("x", [1], [64.0, 96])),
        *(put(*FROM, "target", value) for value in ({"x": 1}, {"similar_to": 5}, [], 0.5)),
        *(put(*FROM, name, 5) for name in ("device", "fit", "keep", "weights", "checkpoint")),
        *(put("file", value) for value in (5, [], {"kind": 5, "sha256": "0"})),
        *(put("kind", value) for value in (5, [], "poster")),
    ],
)  # fmt: skip
def test_a_sealed_manifest_of_other_types_is_none(folder, change):
    said = json.loads((folder / "m.json").read_text("utf-8"))
    change(said)
    content = json.dumps({**said, "seal": seal_of(said)}).encode()
    with pytest.raises(BadOption, match=r"^m\.json is no manifest of attnviz's"):
        read_manifest(content, "m.json")


@pytest.mark.parametrize(("kind", "part"), [("row", "names"), ("metrics", "metrics")])
def test_names_of_panels_are_a_list(folder, kind, part):
    said = json.loads((folder / "m.json").read_text("utf-8")) | {"kind": kind}
    twice = [["entropy", "entropy"], [], [f"m{number}" for number in range(101)]]
    for names in (["entropy"], 5, [5], {"entropy": 1}, None, *(twice if kind == "metrics" else ())):
        said["again"][part] = names
        content = json.dumps({**said, "seal": seal_of(said)}).encode()
        if names == ["entropy"]:
            assert read_manifest(content, "m.json")["kind"] == kind
            continue
        with pytest.raises(BadOption, match="is no manifest"):
            read_manifest(content, "m.json")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (put("again", "options", {"alpha": None}), "alpha is from 0 (picture alone) to 1"),
        (put("again", "options", {"alpha": "x"}), "alpha is from 0 (picture alone) to 1"),
        (put("again", "options", {"clip": "x"}), "clip is a percentile above 50"),
        (put("again", "options", {"mass": "x"}), "The mass to hold is above 0"),
        (put("again", "options", {"width_mm": None}), "width_mm is from 50 to 400; None came"),
        (put("again", "options", {"scale": None}), "There is no scale None"),
        (put(*FROM, "device", "cpu:99"), "The device 'cpu:99' is not usable here."),
    ],
)
def test_a_sealed_value_that_is_none_gets_its_own_sentence(folder, tmp_path, capsys, change, says):
    name = edited(folder, "value.json", change, sealed=True)
    assert replayed(folder, tmp_path / "out.pdf", "--nearly", manifest=name) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1 and not any(tmp_path.iterdir())


def test_the_options_that_are_flags_are_those_of_all_papers():
    papers = (Paper, FilmPaper, PlotPaper)
    assert {f.name for paper in papers for f in fields(paper) if f.type == "bool"} == {*FLAGS}


@pytest.mark.parametrize("written", [True, 1.0, "1" * 10_000, None])
def test_another_format_is_named_shortly(folder, written):
    said = json.loads((folder / "m.json").read_text("utf-8")) | {"format": written}
    with pytest.raises(BadOption, match="of format") as raised:
        read_manifest(json.dumps({**said, "seal": seal_of(said)}).encode(), "m.json")
    assert len(str(raised.value)) < 160


def test_of_what_is_no_manifest_nothing_is_drawn(folder, tmp_path, capsys):
    name = edited(folder, "typed.json", put("versions", []), sealed=True)
    assert replayed(folder, tmp_path / "out.pdf", manifest=name) == 2
    said = capsys.readouterr().err
    assert "is no manifest of attnviz's" in said and said.count("\n") == 1
    assert not any(tmp_path.iterdir())


def test_a_picture_that_changed_is_told(folder, tmp_path, capsys):
    out = tmp_path / "out.pdf"
    assert replayed(folder, out, pictures=["other.png"]) == 2
    assert "it has changed since, or is another one" in capsys.readouterr().err
    assert not out.exists()


def test_places_are_checked_too(folder, tmp_path, capsys):
    (tmp_path / "there.pdf").write_bytes(b"mine")
    for name, says in (("there.pdf", "exists"), ("a.bmp", "ends in .bmp"), ("a.gif", "This figure can be")):  # fmt: skip
        assert replayed(folder, tmp_path / name) == 2
        assert says in capsys.readouterr().err
    assert (tmp_path / "there.pdf").read_bytes() == b"mine"
    assert main(["replay", str(tmp_path), "p.png", "-o", str(tmp_path / "o.pdf")]) == 2
    assert "can't be read" in capsys.readouterr().err


@pytest.mark.parametrize("again", [False, True])
def test_no_file_that_is_read_is_replaced(folder, tmp_path, capsys, again):
    places = [shutil.copy(folder / f"{name}.png", tmp_path) for name in ("picture", "other")]
    first, second = map(str, places)
    before = Path(second).read_bytes()
    words = ["replay", str(folder / "m.json"), first, second]
    if not again:
        words = [first, "--similar-to", second, "--method", "relevance", *TINY]
    assert main([*words, "-o", second, "--overwrite"]) == 2
    assert f"would replace {second}, which is read" in capsys.readouterr().err
    assert Path(second).read_bytes() == before


def test_manifest_latex_and_bibtex_are_written_beside_the_figure_or_nothing_is(folder, tmp_path, capsys):  # fmt: skip
    words = [str(folder / "picture.png"), "-o", str(tmp_path / "a.pdf"), *TINY, "--latex"]
    (tmp_path / "f.bib").write_text("mine")
    assert main([*words, str(tmp_path / "f.tex")]) == 2
    assert "f.bib exists" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["f.bib"]
    (tmp_path / "d.bib").mkdir()
    assert main([*words, str(tmp_path / "d.tex"), "--overwrite"]) == 2
    assert "d.bib can't be written: a directory or a device" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"f.bib", "d.bib"}
    assert main([*words, str(tmp_path / "g.tex")]) == 0
    assert r"\cite{vaswani2017attention}" in (tmp_path / "g.tex").read_text("utf-8")
    assert (tmp_path / "g.bib").read_text("utf-8").startswith("@inproceedings{vaswani2017attention")
    assert main([*words, str(tmp_path / "f.txt")]) == 2
    assert "{a.pdf}" in (tmp_path / "g.tex").read_text("utf-8")


@pytest.mark.parametrize(
    ("output", "says"),
    [
        *((f"a{kind}", "LaTeX includes .pdf and .png") for kind in (".npz", ".svg")),
        *((f"a{sign}b.pdf", "LaTeX can't include a file called") for sign in "%#&~^{}$ \\\""),
    ],
)  # fmt: skip
def test_what_latex_cannot_include_is_refused_before_the_model_runs(folder, tmp_path, capsys, output, says):  # fmt: skip
    words = [str(folder / "picture.png"), "-o", str(tmp_path / output), "--model", "no model"]
    assert main([*words, "--latex", str(tmp_path / "f.tex")]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1 and not any(tmp_path.iterdir())
    assert main(words) == 2 and "no model" in capsys.readouterr().err  # without LaTeX it may be


@pytest.mark.parametrize("kind", ["gif", "webp"])
def test_latex_includes_no_film_that_moves(folder, tmp_path, capsys, kind):
    words = ["film", str(folder / "picture.png"), "-o", str(tmp_path / f"a.{kind}"), *TINY[:-2]]
    assert main([*words, "--latex", str(tmp_path / "f.tex")]) == 2
    assert "LaTeX includes .pdf and .png" in capsys.readouterr().err


def test_latex_finds_the_figure_from_its_own_folder(folder, tmp_path):
    for name in ("my figures", "text"):
        (tmp_path / name).mkdir()
    (tmp_path / "text" / "drawn").mkdir()
    picture = str(folder / "picture.png")
    out = tmp_path / "text" / "drawn" / "a_b.png"
    tex = tmp_path / "text" / "f.tex"
    assert main([picture, "-o", str(out), *TINY, "--latex", str(tex)]) == 0
    assert "mm]{drawn/a_b.png}" in tex.read_text("utf-8")
    assert "\\label{fig:a-b}" in tex.read_text("utf-8")  # wherever it lies
    beside = tmp_path / "my figures" / "f.tex"  # LaTeX reads the way from there on
    assert main([picture, "-o", str(out), "--overwrite", *TINY, "--latex", str(beside)]) == 0
    assert "mm]{../text/drawn/a_b.png}" in beside.read_text("utf-8")


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf", "a.npz", "a.16-bit.png"])
def test_a_figure_carries_its_manifest_whatever_is_in_a_name(folder, tmp_path, capsys, name):
    odd = "(a\\b) <i>&amp;\u2028\u200b é 猫.png"
    vit = models.load("digits")
    image = attnviz.open_image(folder / "picture.png")
    out = attnviz.explain(attnviz.observe(vit, image)).named(odd).save(tmp_path / name)
    said = read_manifest(carried(out.read_bytes()), name)
    assert said["again"]["maps"][0]["picture"]["name"] == odd
    again = tmp_path / f"again.{name}"
    assert main(["replay", str(out), str(folder / "picture.png"), "-o", str(again)]) == 0
    assert "the same bytes as then" in capsys.readouterr().out
    assert again.read_bytes() == out.read_bytes()


def test_a_figure_that_was_changed_since_is_told(folder, tmp_path, capsys):
    words = [str(folder / "picture.png"), "-o", str(tmp_path / "a.svg"), "--model", "digits"]
    assert main(words) == 0
    text = (tmp_path / "a.svg").read_bytes()
    (tmp_path / "a.svg").write_bytes(text + b"<!-- mine -->")
    (tmp_path / "b.svg").write_bytes(text.replace(b"inferno", b"viridis"))
    for name, says in (("a.svg", "or the figure was changed since"), ("b.svg", "was edited")):
        assert replayed(tmp_path, tmp_path / "o.svg", manifest=name, pictures=[words[0]]) == 2
        assert says in capsys.readouterr().err
    assert not (tmp_path / "o.svg").exists()


@pytest.mark.parametrize("start", [b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF", b"<?xml", b"%PDF", b"PK\3\4"])  # fmt: skip
@pytest.mark.parametrize("rest", [b"", b"\0" * 99, b"<dc:description>\xff</dc:description>", b"/Subject (\xfe\xff\\)"])  # fmt: skip
def test_a_damaged_figure_carries_nothing(start, rest):
    with pytest.raises(BadOption, match="no manifest of attnviz's"):
        read_manifest(carried(start + rest), "a")


# --- what is in it ------------------------------------------------------------------------------


def test_the_manifest_says_all_and_the_files_own_metadata_too(folder):
    said = json.loads((folder / "m.json").read_text("utf-8"))
    (shown,) = said["again"]["maps"]
    assert shown["query"] == [1, 2] and shown["method"] == "attention"
    assert shown["options"]["layer"] == 11
    vit = models.load("vit_tiny_patch16_224", pretrained=False, image_size=(64, 96))
    assert shown["from"]["weights_sha256"] == weights_sum(vit.module)
    assert (shown["from"]["seed"], shown["from"]["image_size"]) == (0, [64, 96])
    image = attnviz.open_image(folder / "picture.png")
    assert shown["picture"] == {"name": "picture.png", "sha256": picture_sum(image)}
    assert said["box"] == [0.0, 0.0, 90.0, 60.0] and said["versions"] == versions()
    pdf = (folder / "figure.pdf").read_bytes()
    assert said["file"]["bytes"] == len(pdf)
    inside = pdf.replace(b"\\", b"")
    assert b"weights_sha256" in inside or "weights_sha256".encode("utf-16-be") in pdf


def test_the_versions_name_this_project(monkeypatch):
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    assert versions()["attnviz"] == project["project"]["version"]
    assert versions()["torch"] == torch.__version__.partition("+")[0]


def test_weights_are_summed_anew_once_one_changes():
    vit = small_vit()
    first = weights_sum(vit.module)
    assert weights_sum(vit.module) == first
    with torch.no_grad():
        next(vit.module.parameters()).add_(1e-3)
    assert weights_sum(vit.module) != first
    half = small_vit().module.to(torch.bfloat16)
    assert len({weights_sum(half), weights_sum(small_vit().module), first}) == 2


def test_pictures_are_summed_by_size_and_pixels():
    flat = np.arange(24, dtype=np.uint8)
    wide, high = (Image.fromarray(flat.reshape(shape)) for shape in ((2, 4, 3), (4, 2, 3)))
    assert picture_sum(wide) != picture_sum(high)
    assert picture_sum(wide) == picture_sum(wide.copy())


def test_a_module_of_ones_own_and_a_tensor_cannot_be_named():
    record = attnviz.observe(small_vit(), Image.new("RGB", (40, 24)))
    assert record.origin is None and attnviz.explain(record).request is None
    vit = models.load("digits")
    assert attnviz.observe(vit, Image.new("RGB", (32, 32))).origin["model"] == "digits"
    assert attnviz.observe(vit, torch.zeros(1, 1, 32, 32)).origin is None


@pytest.mark.parametrize(
    "paper",
    [Paper(), Paper(venue="cvpr", clip=90.0), Paper(scale=Scale(0.1, 0.3, "mine"), letters=True),
     FilmPaper(columns=3, seconds=0.25),
     Paper(alpha=np.float32(0.25), clip=np.int64(95), scale="zero"),
     Paper(scale=Scale(np.float32(0.25), np.int16(3), "mine")),
     FilmPaper(width_px=np.int64(200), seconds=np.float16(0.5), colormap=np.str_("gray")),
     PlotPaper(dpi=np.uint16(150))],
)  # fmt: skip
def test_options_come_back_from_plain_values(paper):
    plain = json.loads(json.dumps(options_of(paper)))
    assert replace(paper, venue=None) == type(paper)(**options_from(plain))


@pytest.mark.parametrize(
    ("paper", "one", "other"),
    [
        (Paper, {"clip": 99, "dpi": 100.0, "mass": 1, "alpha": 0}, {"clip": 99.0, "dpi": 100, "mass": 1.0, "alpha": 0.0}),
        (FilmPaper, {"seconds": 1, "width_px": 200.0, "columns": 3.0}, {"seconds": Fraction(1), "width_px": 200, "columns": 3}),
        (PlotPaper, {"width_mm": 90, "dpi": Fraction(72)}, {"width_mm": np.float32(90), "dpi": 72}),
    ],
)  # fmt: skip
def test_equal_numbers_are_written_alike(paper, one, other):
    first, second = (json.dumps(options_of(chosen_options(paper, each))) for each in (one, other))
    assert first == second
    assert options_of(chosen_options(paper, {"dpi": 100.5})) == {"dpi": 100.5}
    for flag in ("alpha" if paper is Paper else "dpi", "width_mm"):
        with pytest.raises(BadOption, match="True came"):
            chosen_options(paper, {flag: True})


def test_numbers_of_numpy_s_are_plain_in_the_manifest():
    heat = attnviz.explain(
        attnviz.observe(models.load("digits"), Image.new("RGB", (32, 32)), target=np.int64(3)),
        query=(np.int64(1), np.int64(2)),
    )
    (shown,) = read_manifest(carried(render(heat, ".npz")), "it")["again"]["maps"]
    assert (shown["query"], shown["from"]["target"]) == ([1, 2], 3)


def test_a_scale_that_is_none_is_refused():
    with pytest.raises(BadOption, match="low, high and name"):
        options_from({"scale": {"low": "x"}})
    assert trace.FORMAT == 1


@pytest.fixture(scope="module")
def zipped(folder):
    """Two figures of two pictures by one model, as the page's set has them."""
    vit = models.load("digits")
    heats = [
        attnviz.explain(attnviz.observe(vit, attnviz.open_image(folder / name))).named(name)
        for name in ("picture.png", "other.png")
    ]
    row = attnviz.beside(heats)
    place = folder / "set.zip"
    place.write_bytes(bundle([(heats[0], {"dpi": 80}), (row, {"dpi": 80, "venue": "cvpr"})]))
    return place


def test_a_zip_of_figures_comes_again_byte_for_byte(folder, zipped, tmp_path, capsys, monkeypatch):
    asked, load = [], models.load
    monkeypatch.setattr(
        models, "load", lambda *args, **more: asked.append(0) or load(*args, **more)
    )
    again, both = tmp_path / "again.zip", ["other.png", "picture.png"]
    assert replayed(folder, again, manifest="set.zip", pictures=both) == 0
    assert again.read_bytes() == zipped.read_bytes() and len(asked) == 1
    assert capsys.readouterr().out == f"{again}: 2 figures; the same bytes as then\n"
    # A figure alone becomes the zip that the command writes of it.
    picture, one = str(folder / "picture.png"), tmp_path / "one.zip"
    assert main([picture, "-o", str(one), "--model", "digits", "--dpi", "80"]) == 0
    with zipfile.ZipFile(one) as archive:
        (pdf,) = (name for name in archive.namelist() if name.endswith(".pdf"))
        archive.extract(pdf, tmp_path)
    assert main(["replay", str(tmp_path / pdf), picture, "-o", str(tmp_path / "b.zip")]) == 0
    assert (tmp_path / "b.zip").read_bytes() == one.read_bytes()
    assert "another kind of file than then, when it was .pdf" in capsys.readouterr().out
    # And one in a zip can be had as any file.
    assert main(["replay", str(one), picture, "-o", str(tmp_path / "c.pdf")]) == 0
    assert (tmp_path / "c.pdf").read_bytes() == (tmp_path / pdf).read_bytes()


def test_a_zip_that_cannot_come_again_is_one_sentence(folder, zipped, tmp_path, capsys):
    with zipfile.ZipFile(zipped) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    (name, *_) = (name for name in parts if name.endswith(".manifest.json"))
    said = json.loads(parts[name])
    said["file"]["sha256"] = "0" * 64
    made = {
        "edited.zip": parts | {name: json.dumps(said).encode()},
        "changed.zip": parts | {name: json.dumps(said | {"seal": seal_of(said)}).encode()},
        "strange.zip": {"notes.txt": b"mine"},
        "bare.zip": {"a.manifest.json": b"{}"},
    }
    for place, files in made.items():
        with zipfile.ZipFile(tmp_path / place, "w") as archive:
            for each, content in files.items():
                archive.writestr(each, content)
    (tmp_path / "torn.zip").write_bytes(zipped.read_bytes()[:-50])
    (tmp_path / "set.zip").write_bytes(zipped.read_bytes())
    both = [str(folder / each) for each in ("picture.png", "other.png")]
    for place, out, pictures, says in (
        ("edited.zip", "o.zip", both, f"{name} was edited since it was written"),
        ("changed.zip", "o.zip", both, f"{name} came out with other bytes"),
        ("strange.zip", "o.zip", both, "strange.zip is no manifest of attnviz's"),
        ("bare.zip", "o.zip", both, "a.manifest.json is no manifest of attnviz's"),
        ("torn.zip", "o.zip", both, "torn.zip is no manifest of attnviz's"),
        ("set.zip", "o.pdf", both, f"holds 2 figures: give -o NAME.zip for all of them, or unpack it and give one, as {name}."),
        ("set.zip", "o.zip", both[:1], "None of the pictures that came is the figure's picture, other.png"),
    ):  # fmt: skip
        assert main(["replay", str(tmp_path / place), *pictures, "-o", str(tmp_path / out)]) == 2
        told = capsys.readouterr().err
        assert says in told and told.count("\n") == 1 and not (tmp_path / out).exists()


def test_only_a_zip_as_it_was_is_the_same(folder, tmp_path, capsys):
    picture, one = str(folder / "picture.png"), tmp_path / "one.zip"
    assert main([picture, "-o", str(one), "--model", "digits", "--dpi", "80"]) == 0
    with zipfile.ZipFile(one) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    made = {
        "less.zip": {name: part for name, part in parts.items() if not name.endswith(".png")},
        "more.zip": parts | {"../more.txt": b"mine"},
    }
    for place, files in made.items():
        with zipfile.ZipFile(tmp_path / place, "w") as archive:
            for each, content in files.items():
                archive.writestr(each, content)
        again = tmp_path / f"again.{place}"
        words = ["replay", str(tmp_path / place), picture, "-o", str(again)]
        assert main(words) == 2 and not again.exists()
        said = capsys.readouterr().err
        assert f"{place} is not the zip that attnviz wrote" in said and said.count("\n") == 1
        assert main([*words, "--nearly"]) == 0 and again.read_bytes() == one.read_bytes()
        assert capsys.readouterr().out.endswith("; not the same bytes as then\n")


def of_a_hub(said):
    weights(said)
    said["again"]["maps"][0]["from"]["seed"] = None


def of_a_file(said):
    weights(said)
    said["again"]["maps"][0]["from"] |= {"seed": None, "checkpoint": "mine.safetensors"}


@pytest.mark.parametrize(
    ("change", "given", "says"),
    [
        (weights, False, "Random ones of that seed come out otherwise here: ask for the figure anew"),
        (of_a_hub, False, "What is published under that name has changed since: ask for the figure anew"),
        (of_a_file, True, "Give them as --checkpoint FILE."),
    ],
)  # fmt: skip
def test_the_way_out_of_other_weights_is_one_that_replay_takes(folder, tmp_path, capsys, monkeypatch, change, given, says):  # fmt: skip
    tiny = models.load("vit_tiny_patch16_224", pretrained=False, image_size=(64, 96))
    monkeypatch.setattr(models, "load", lambda *args, **more: tiny)
    name = edited(folder, f"way-{change.__name__}.json", change, sealed=True)
    file = ["--checkpoint", "any.safetensors"] if given else []
    assert replayed(folder, tmp_path / "a.pdf", *file, manifest=name) == 2
    said = capsys.readouterr().err
    assert says in said and ("--checkpoint" in said) == given


def test_weights_that_no_map_has_are_refused(folder, tmp_path, capsys):
    out = tmp_path / "again.pdf"
    assert replayed(folder, out, "--checkpoint", "nowhere.safetensors") == 2 and not out.exists()
    assert "the weights of the figure were no file of your own" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [".zip", ".svg"])
def test_another_kind_of_file_is_told(folder, tmp_path, capsys, kind):
    assert replayed(folder, tmp_path / f"again{kind}") == 0
    said, *notes = capsys.readouterr().out.splitlines()
    assert said.endswith("; another kind of file than then, when it was .pdf")
    assert "note: random weights: this map means nothing" in notes


def test_no_zip_is_read_beyond_its_bounds(monkeypatch):
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.manifest.json", b" " * 400)
    assert [len(each) for each in manifests_in(file.getvalue()).values()] == [400] * 3
    monkeypatch.setattr("attnviz.bundle.MOST", 1000)
    assert manifests_in(file.getvalue()) == {}


def test_a_name_that_is_no_text_is_escaped_in_every_file_and_comes_again(folder, tmp_path, capsys):
    odd = os.fsdecode(b"\xff\xe7\x8c\xab.png")
    shutil.copy(folder / "picture.png", tmp_path / odd)
    words = [str(tmp_path / odd), "--model", "digits", "--similar-to", str(tmp_path / odd)]
    words += ["--method", "gradcam", "--dpi", "80"]
    figure, manifest = tmp_path / "a.svg", tmp_path / "m.json"
    assert main([*words, "-o", str(figure), "--manifest", str(manifest)]) == 0
    assert main([*words, "-o", str(tmp_path / "a.zip")]) == 0
    for content in (figure.read_bytes(), manifest.read_bytes()):
        (shown,) = read_manifest(carried(content), "it")["again"]["maps"]
        assert shown["picture"]["name"] == shown["from"]["target"]["name"] == "\\udcff猫.png"
    for source in (figure, manifest):
        again = tmp_path / f"{source.name}.svg"
        assert main(["replay", str(source), words[0], "-o", str(again)]) == 0
        assert again.read_bytes() == figure.read_bytes()
    maps = tmp_path / "maps"
    assert main(["batch", words[0], "-o", str(maps), "--model", "digits", "--as", "svg"]) == 0
    (drawn,) = maps.glob("*.svg")
    assert main(["replay", str(drawn), words[0], "-o", str(tmp_path / "b.svg")]) == 0
    assert (tmp_path / "b.svg").read_bytes() == drawn.read_bytes()


def test_weights_and_outputs_may_have_names_that_are_no_text(folder, tmp_path, capsys):
    save_file(models.load("digits").module.state_dict(), tmp_path / "plain")
    weights = (tmp_path / "plain").rename(tmp_path / os.fsdecode(b"\xff.safetensors"))
    figure, manifest, again = (
        tmp_path / os.fsdecode(b"\xfe" + end) for end in (b".pdf", b".json", b"-again.pdf")
    )
    picture, given = str(folder / "picture.png"), ["--checkpoint", str(weights)]
    words = ["--model", "digits", "--dpi", "80", "--manifest", str(manifest)]
    assert main([picture, "-o", str(figure), *words, *given]) == 0
    assert "\\udcfe.pdf: Attention" in capsys.readouterr().out
    for source in (figure, manifest):
        (shown,) = read_manifest(carried(source.read_bytes()), "it")["again"]["maps"]
        assert shown["from"]["checkpoint"] == "\\udcff.safetensors"
        assert shown["from"]["weights"] == "Your checkpoint \\udcff.safetensors."
        assert main(["replay", str(source), picture, "-o", str(again), "--overwrite", *given]) == 0
        assert "\\udcfe-again.pdf: Attention" in capsys.readouterr().out
        assert again.read_bytes() == figure.read_bytes()
    weights.write_bytes(b"none")
    assert main([picture, "-o", str(tmp_path / "b.png"), "--model", "digits", *given]) == 2
    said = capsys.readouterr().err
    assert "not a whole safetensors file" in said and said.count("\n") == 1


def test_a_row_of_two_checkpoints_takes_both_in_any_order_and_loads_each_once(folder, tmp_path, capsys, monkeypatch):  # fmt: skip
    files = []
    for seed in range(2):
        files.append(str(tmp_path / f"{seed}.safetensors"))
        save_file(models.load("digits", pretrained=False, seed=seed).module.state_dict(), files[-1])
    images = [attnviz.open_image(folder / f"{name}.png") for name in ("picture", "other")]
    vits = [models.load("digits", checkpoint=file) for file in files]
    heats = [attnviz.explain(attnviz.observe(vit, image)) for vit in vits for image in images]
    row = attnviz.beside(heats, ["a", "b", "c", "d"]).save(tmp_path / "row.png", dpi=80)
    words = ["replay", str(row), *(str(folder / f"{name}.png") for name in ("other", "picture"))]
    asked, load = [], models.load
    monkeypatch.setattr(
        models, "load", lambda *args, **more: asked.append(0) or load(*args, **more)
    )
    for number, order in enumerate((files, files[::-1])):
        again = tmp_path / f"again-{number}.png"
        given = [word for file in order for word in ("--checkpoint", file)]
        assert main([*words, "-o", str(again), *given]) == 0
        assert again.read_bytes() == row.read_bytes()
    assert len(asked) == 4
    out = ["-o", str(tmp_path / "none.png"), "--checkpoint", files[0]]
    assert main([*words, *out, "--checkpoint", files[0]]) == 2
    assert "None of the 2 files given as --checkpoint has the weights of digits that were in 1.safetensors" in capsys.readouterr().err  # fmt: skip
    assert main([*words, *out]) == 2
    assert "it was made with: Your checkpoint 1.safetensors." in capsys.readouterr().err


def test_a_picture_s_sum_is_of_its_pixels_now_and_holds_no_picture():
    image = Image.new("RGB", (3, 2))
    request = {"method": "attention"}

    def said():
        made = again("map", [(request, image, None)], Paper())
        return made["again"]["maps"][0]["picture"]["sha256"]

    before = said()
    assert before == picture_sum(image)
    image.putpixel((1, 1), (9, 9, 9))
    assert said() == picture_sum(image) != before
    held = weakref.ref(image)
    del image
    gc.collect()
    assert held() is None


def test_a_picture_that_is_there_twice_is_summed_once(monkeypatch):
    asked = []
    monkeypatch.setattr("attnviz.again.picture_sum", lambda image: asked.append(image) or "sum")
    one, other = (Image.new("RGB", (3, 2)) for _ in range(2))
    again("row", [({}, one, None), ({}, other, None), ({}, one, None)], Paper())
    assert asked == [one, other] and len(asked) == 2
