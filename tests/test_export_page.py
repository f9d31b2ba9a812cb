"""The view Export: two maps compared on one figure, and a set of figures that outlives what made it."""

import json
import re
import shlex
import zipfile
from base64 import b64decode
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from page_visit import (
    FAR,
    SHALLOW,
    calm,
    choose_model,
    open_view,
    picker,
    stand_ins,
    texts,
    upload,
    visit,
    widget,
)
from PIL import Image
from streamlit.runtime.scriptrunner_utils.exceptions import StopException

import attnviz
import attnviz.figure
import models
from attnviz.__main__ import main
from attnviz.bundle import Packed, zip_of
from attnviz.errors import BadOption, UnknownName
from attnviz.figure import Inclusion
from attnviz.remake import read_manifest
from attnviz.samples import open_sample, sample_path
from attnviz.ui import export_panel, set_panel
from attnviz.ui.plate_panel import plate_of


@pytest.fixture(scope="module")
def stood_in():
    """Small models for all visits of this file."""
    with pytest.MonkeyPatch.context() as patch, stand_ins(patch):
        yield


@pytest.fixture
def page(stood_in, monkeypatch):
    """A visitor's page, with the view open, small files, and what it shows and offers."""
    at = visit()
    at.session_state["export_venue"], at.session_state["export_dpi"] = "column", 150
    open_view(at, "export")
    return at


@pytest.fixture
def shown(monkeypatch):
    """The previews, the newest last."""
    previews = []
    monkeypatch.setattr(
        "attnviz.ui.export_panel.show_picture",
        lambda uri, **_: previews.append(b64decode(uri.partition(",")[2])),
    )
    return previews


@pytest.fixture
def offered(monkeypatch):
    """What makes the set's zip, the newest last."""
    makers = []
    monkeypatch.setattr(
        "attnviz.ui.set_panel.offer_file", lambda label, make, *_: makers.append((label, make))
    )
    return makers


def seen(picture="cat", name="dinov2-small", size=None, **loaded):
    vit = models.load(name, **loaded)
    vit = vit if size is None else vit.at(size)
    return attnviz.observe(vit, open_sample(picture), fit="aspect" if vit.any_size else "crop")


def compare(at, kind, **state):
    for key, value in {"export_what": "compared", "compare": kind, **state}.items():
        at.session_state[key] = value
    return calm(at.run())


def keep(at):
    return calm(at.button(key="keep_figure").click().run())


def kept(at):
    return getattr(at.session_state, "figure_set", ())


def arrays(figure):
    return np.load(BytesIO(figure.files[".npz"]))


@pytest.mark.parametrize(("kind", "drawn"), [("NPZ", False), ("PDF", True)])
def test_a_file_keeps_only_the_options_that_change_it_as_the_command_line_takes_them(page, monkeypatch, kind, drawn):  # fmt: skip
    made, makers, real = [], [], export_panel.render
    monkeypatch.setattr(
        "attnviz.ui.export_panel.offer_file", lambda label, make, *_: makers.append(make)
    )
    monkeypatch.setattr(
        "attnviz.ui.export_panel.render",
        lambda figure, kind, **options: made.append(options) or real(figure, kind, **options),
    )
    page.session_state["export_format"] = kind
    calm(page.run())
    makers[0]()
    assert made[-1].get("dpi") == (150 if drawn else None) and bool(made[-1]) == drawn


def test_two_models_are_a_row_of_each_one_s_own_map(page):
    compare(page, "model", compare_model=SHALLOW, compare_random=False, compare_scale="both")
    assert "2 × 3 patches on the first side, 4 × 6 on the second" in page.info[0].value
    (row,) = kept(keep(page))
    said = json.loads(row.files[".manifest.json"])
    names = [each["name"] for each in said["maps"]]
    # Each model's own last layer and default query, which differ.
    assert names[0] == "DINOv2 ViT-S/14, layer 2, class token"
    assert names[1].endswith(", layer 0, mean of all patches")
    first, second = attnviz.explain(seen()), attnviz.explain(seen(name=SHALLOW))
    assert np.array_equal(arrays(row)["values_0"], first.values)
    assert np.array_equal(arrays(row)["values_1"], second.values)
    with pytest.raises(BadOption, match="more than names to compute"):  # stand-ins have no name
        read_manifest(row.files[".manifest.json"], "manifest.json")


def test_a_row_of_known_models_is_made_again_byte_for_byte(page, shown, tmp_path):
    choose_model(page, "digits")
    compare(page, "model", compare_model="digits", compare_random=True, compare_scale="both")
    (row,) = kept(keep(page))
    assert row.files[".png"] == shown[-1]
    said = json.loads(row.files[".manifest.json"])["again"]
    assert [each["from"]["seed"] for each in said["maps"]] == [None, 0]
    scale = said["options"]["scale"]
    heats = [attnviz.explain(seen(name="digits", pretrained=known)) for known in (True, False)]
    assert scale["low"] == min(heat.values.min() for heat in heats)
    assert scale["high"] == max(heat.values.max() for heat in heats)
    manifest, again = tmp_path / "manifest.json", tmp_path / "again.pdf"
    manifest.write_bytes(row.files[".manifest.json"])
    assert main(["replay", str(manifest), str(sample_path("cat")), "-o", str(again)]) == 0
    assert again.read_bytes() == row.files[".pdf"]


# (what differs, what is chosen, the two names, the same two records and queries from the library)
PAIRS = [
    (
        "picture",
        {"compare_picture": "sample/coffee", "asked": (1.0, 1.0)},
        ["Cat", "Cup of espresso"],
        lambda: [(seen(), (0, 0)), (seen("coffee"), (0, 0))],
    ),
    (
        "size",
        {"compare_side": 128},
        ["32 px", "128 px"],
        lambda: [(seen(), "cls"), (seen(size=(128, 128)), "cls")],
    ),
    (
        "query",
        {"asked/query": (450.0, 1.0)},
        ["class token", "patch (row 0, column 2)"],
        lambda: [(seen(), "cls"), (seen(), (0, 2))],
    ),
]


@pytest.mark.parametrize(
    ("kind", "state", "names", "expected"), PAIRS, ids=lambda it: it if isinstance(it, str) else ""
)
def test_two_of_a_kind_are_printed_as_the_library_has_them(page, kind, state, names, expected):
    compare(page, kind, **state)
    (row,) = kept(keep(page))
    held = arrays(row)
    assert list(held["names"]) == names
    for number, (record, query) in enumerate(expected()):
        heat = attnviz.explain(record, query=query)
        assert np.array_equal(held[f"values_{number}"], heat.values)


def test_a_map_of_the_whole_picture_is_not_printed_for_two_queries(page):
    compare(page, "query", method="pca")
    assert "of the whole picture, the same for every query" in page.error[0].value
    assert not any(button.key == "keep_figure" for button in page.button)
    open_view(page, "compare")
    assert "of the whole picture, the same for every query" in page.error[0].value


def test_a_figure_that_there_is_not_is_no_other_one():
    with pytest.raises(UnknownName, match=r"figure 'curves'.*numbers"):
        plate_of(SimpleNamespace(picture_name="a.png"), "curves")


def test_a_side_that_cannot_be_is_said_and_nothing_is_lost(page):
    keep(page)
    compare(page, "model", compare_model=FAR, compare_random=False)
    assert "The hub is far." in page.error[0].value
    assert not any(button.key == "keep_figure" for button in page.button)
    assert len(kept(page)) == 1 and "1 figure of at most 20" in texts(page)
    calm(page.toggle(key="compare_random").set_value(True).run())
    assert not page.error
    assert "has 2 figures" in keep(page).success[0].value
    assert " beside DINO ViT-S/16, untrained: " in kept(page)[1].summary


def test_a_set_outlives_what_made_it_and_is_nobody_else_s(page, offered):
    keep(page)
    first = attnviz.explain(seen()).named("Cat")
    (figure,) = kept(page)
    assert np.array_equal(arrays(figure)["values"], first.values)
    assert figure.files[".pdf"] == _drawn(first, ".pdf")
    keep(page)
    assert "this very figure" in page.warning[-1].value and len(kept(page)) == 1
    calm(widget(page, "Sample").set_value("coffee").run())
    keep(page)
    choose_model(page, SHALLOW)
    open_view(page, "map")
    open_view(page, "export")
    assert [each.stem for each in kept(page)] == [
        figure.stem,
        figure.stem.replace("cat", "cup-of-espresso"),
    ]
    label, make = offered[-1]
    assert label == "The set as one zip (2 figures)"
    content = make()
    with zipfile.ZipFile(BytesIO(content)) as files:
        assert files.read(f"{figure.stem}.pdf") == figure.files[".pdf"]
        assert len([name for name in files.namelist() if name.endswith(".tex")]) == 2
    assert content == make() == zip_of(kept(page))
    offered.clear()
    other = visit()  # somebody else
    open_view(other, "export")
    assert not kept(other) and not offered
    out, _ = (each for each in page.button if each.key.startswith("take-out-"))
    assert out.label.replace("\\", "") == f"Take {figure.stem} out of the set"
    calm(out.click().run())
    assert [each.stem for each in kept(page)] == [figure.stem.replace("cat", "cup-of-espresso")]


def _drawn(heat, kind):
    options = {"alpha": 0.5, "colormap": "inferno", "width_mm": 89.0, "dpi": 150}
    return attnviz.figure.render(heat, kind, **options)


COMMANDED = [
    ("map", {"layer": 1, "head": 2, "asked": (1.0, 1.0)}, "map.png"),
    ("map", {"scale": "own"}, "map.png"),
    ("map", {"scale": "zero"}, "map.png"),
    ("methods", {"export_methods": ["attention", "pca"], "asked": (1.0, 1.0)}, "row.png"),
    ("layers", {"head": 1, "direction": "to", "asked": (1.0, 1.0)}, "film.png"),
    ("heads", {"scale": "shared"}, "heads.png"),
    ("numbers", {"export_metrics": ["entropy", "distance"]}, "metrics.png"),
]


@pytest.mark.parametrize(("kind", "state", "file"), COMMANDED)
def test_the_command_below_a_figure_makes_that_very_file(
    page, shown, tmp_path, monkeypatch, kind, state, file
):
    monkeypatch.chdir(tmp_path)
    pixels = np.random.default_rng(0).integers(0, 256, (40, 48, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "mine.png")
    upload(page, "mine.png", (tmp_path / "mine.png").read_bytes())
    choose_model(page, "digits")
    for key, value in {"export_words": False, "export_letters": True, "export_original": True, "clip": True, "export_what": kind, **state}.items():  # fmt: skip
        page.session_state[key] = value
    calm(page.run())
    command = next(each.value for each in page.code if each.language == "bash")
    assert main(shlex.split(command)[3:]) == 0  # after python -m attnviz
    assert (tmp_path / file).read_bytes() == shown[-1]


WRITTEN = [
    ("map", {"layer": 1, "head": 2, "scale": "shared", "export_words": False}, "map.png"),
    ("methods", {"export_methods": ["attention", "rollout"], "scale": "zero"}, "row.png"),
    ("layers", {"head": 1, "film_scale": "shared", "scale": "zero"}, "film.png"),
    ("heads", {"asked": (1.0, 1.0)}, "heads.png"),
    ("numbers", {}, "metrics.png"),
    ("compared", {"compare": "picture", "asked": (1.0, 1.0), "compare_scale": "both"}, "row.png"),
    ("compared", {"compare": "model", "compare_model": SHALLOW, "compare_random": True}, "row.png"),
    ("compared", {"compare": "query", "method": "relevance"}, "row.png"),
]


@pytest.mark.parametrize(("kind", "state", "file"), WRITTEN)
def test_the_lines_below_a_figure_make_that_very_file(
    page, shown, tmp_path, monkeypatch, kind, state, file
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(sample_path("cat").parent)
    for key, value in {"export_what": kind, **state}.items():
        page.session_state[key] = value
    calm(page.run())
    exec(next(each.value for each in page.code if each.language == "python"), {})
    assert (tmp_path / file).read_bytes() == shown[-1]


ANY_FILE = [
    ("map", "PDF", "column", "map.pdf", None),
    ("map", "NPZ", "page", "map.npz", None),
    ("methods", "SVG", "page", "row.svg", 183.0),
    ("compared", "PDF", "iclr", "row.pdf", 139.7),
    ("layers", "NPZ", "page", "film.npz", None),
    ("layers", "PDF", "cvpr", "film.pdf", 82.55),
    ("heads", "SVG", "free", "heads.svg", 120.0),
    ("numbers", "PDF", "neurips", "metrics.pdf", 139.7),
]


@pytest.mark.parametrize(("kind", "format_", "venue", "file", "width"), ANY_FILE)
def test_the_lines_write_the_chosen_kind_of_file_in_the_chosen_width(
    page, tmp_path, monkeypatch, kind, format_, venue, file, width
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(sample_path("cat").parent)
    chosen = {"export_what": kind, "export_format": format_, "export_venue": venue}
    for key, value in {**chosen, "compare": "query", "export_width": 120}.items():
        page.session_state[key] = value
    calm(page.run())
    lines = next(each.value for each in page.code if each.language == "python")
    exec(lines, {})
    assert [each.name for each in tmp_path.iterdir() if each.name != "samples"] == [file]
    assert [float(each) for each in re.findall(r"width_mm=([\d.]+)", lines)] == [width] * (
        width is not None
    )
    commands = [shlex.split(each.value) for each in page.code if each.language == "bash"]
    assert len(commands) == (kind != "compared")
    for words in commands:
        assert words[words.index("-o") + 1] == file
        assert ("--width-mm" in words) == (width is not None)
        assert width is None or float(words[words.index("--width-mm") + 1]) == width


def test_the_command_that_makes_the_zip_again_is_said_and_does(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page.session_state["export_dpi"] = 150
    choose_model(page, "digits")
    (figure,) = kept(keep(page))
    Path("cat.zip").write_bytes(zip_of([figure]))
    Path("cat.manifest.json").write_bytes(figure.files[".manifest.json"])
    (said,) = (each.value for each in page.caption if "replay" in each.value)
    command, manifest, pdf = (said.split("`")[at] for at in (1, 3, 7))
    assert (manifest, pdf) == (".manifest.json", "again.pdf")
    picture = shlex.quote(str(sample_path("cat")))
    words = command.replace("PICTURE", picture).replace("ZIP", "cat.zip")
    assert main(shlex.split(words)[3:]) == 0  # after python -m attnviz
    assert Path("again.zip").read_bytes() == Path("cat.zip").read_bytes()
    words = words.replace("cat.zip", "cat.manifest.json").replace("again.zip", pdf)
    assert main(shlex.split(words)[3:]) == 0
    assert Path("again.pdf").read_bytes() == figure.files[".pdf"]


def test_layers_are_printed_as_the_view_of_layers_shows_them(page):
    chosen = {"export_what": "layers", "head": 1, "direction": "to", "asked": (1.0, 1.0)}
    for key, value in chosen.items():
        page.session_state[key] = value
    calm(page.run())
    (figure,) = kept(keep(page))
    film = attnviz.film(seen(), query=(0, 0), head=1, direction="to")
    expected = np.stack([heat.values for heat in film.maps.values()])
    assert np.array_equal(arrays(figure)["values"], expected)
    calm(page.selectbox(key="head").set_value("max").run())
    calm(page.radio(key="film_scale").set_value("shared").run())
    _, other = kept(keep(page))
    film = attnviz.film(seen(), query=(0, 0), head=None, head_fusion="max", direction="to")
    expected = np.stack([heat.values for heat in film.maps.values()])
    assert np.array_equal(arrays(other)["values"], expected)
    options = {"scale": "shared", "width_mm": 89.0, "dpi": 150}
    drawn = attnviz.figure.render(film.named("Cat"), ".png", **options)
    assert other.files[".png"] == drawn


def test_a_grid_that_is_only_drawn_anew_computes_no_head_anew(page, monkeypatch):
    page.session_state["export_what"] = "heads"
    calm(page.run())
    monkeypatch.setattr("attnviz.head_maps._tile", lambda *_: pytest.fail("computed anew"))
    calm(page.toggle(key="export_words").set_value(False).run())
    assert "attnviz.heads" in next(each.value for each in page.code if each.language == "python")


def test_heads_in_numbers_have_no_patch_to_pick(page):
    assert picker(page, "patches")["size"]
    page.session_state["export_what"] = "numbers"
    calm(page.run())
    with pytest.raises(StopIteration):
        picker(page, "patches")


def test_the_grid_of_heads_has_no_switch_in_vain(page):
    keys = {each.key for each in page.toggle}
    assert {"export_letters", "export_original"} <= keys
    page.session_state["export_letters"], page.session_state["export_what"] = True, "heads"
    calm(page.run())
    assert not {"export_letters", "export_original"} & {each.key for each in page.toggle}
    page.session_state["export_what"] = "numbers"
    assert "export_letters" in {each.key for each in calm(page.run()).toggle}


def small(number, size=10):
    files = {".pdf": b"x" * size, ".manifest.json": str(number).encode()}
    return Packed(f"figure-{number}", "A map", files, Inclusion(89.0, ("A map",), ()))


def test_a_full_set_says_so_and_keeps_what_it_has(page, monkeypatch):
    page.session_state["figure_set"] = full = tuple(map(small, range(20)))
    keep(page)
    assert "holds 20 figures and is full" in page.warning[-1].value and kept(page) == full
    page.session_state["figure_set"] = large = (small(0, 40 * 2**20 - 1000),)
    keep(page)
    assert "40.0 MB is the most" in page.warning[-1].value and kept(page) == large
    page.session_state["figure_set"] = ()

    def fail(*_):
        raise BadOption("The disk is far.")

    monkeypatch.setattr(set_panel, "pack", fail)
    keep(page)
    assert page.warning[-1].value == "Not kept: The disk is far." and not kept(page)


def test_a_press_that_was_cut_off_is_said_once(page, monkeypatch):
    def cut_off(*_):
        raise StopException

    with monkeypatch.context() as patch:
        patch.setattr(set_panel, "pack", cut_off)
        keep(page)
    assert not kept(page) and not page.success
    calm(page.run())
    assert page.warning[-1].value.startswith("Not kept: something else was chosen")
    calm(page.run())
    assert not page.warning
