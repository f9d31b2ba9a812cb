"""What docs/figures.md and CONTRIBUTING.md say of figures is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from attnviz.__main__ import main
from attnviz.arguments import SECOND, parser_of
from attnviz.export import KINDS, render
from attnviz.figure import KINDS as ALL_KINDS
from attnviz.samples import sample_path
from tests.test_export import heat

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "figures.md").read_text("utf-8")

COMMANDS = [
    shlex.split(found)
    for found in [
        *re.findall(r"python -m attnviz ([^`\n]+)", PAGE),
        *re.findall(r"`((?:plate|film) [^`]+-o[^`]+)`", PAGE),
    ]
]


def test_every_kind_of_figure_has_its_command():
    firsts = {words[0] for words in COMMANDS}
    assert {*SECOND, "replay"} & firsts == {"plate", "film", "replay"} and len(COMMANDS) == 11
    shown = {words[words.index("--show") + 1] for words in COMMANDS if "--show" in words}
    assert shown == {"methods", "heads", "metrics"} and "--show models --models A,B" in PAGE


@pytest.mark.parametrize("dpi", [72, 100, 450])
def test_a_width_of_a_vector_file_is_whole_dots(dpi):
    assert "to half a dot (0.03 mm at 450)" in PAGE and "whole dots" in parser_of().format_help()
    content = render(heat(), ".svg", width_mm=89.0, dpi=dpi).decode()
    points = float(re.search(r'<svg [^>]*width="([\d.]+)pt"', content)[1])
    assert points * dpi / 72 == pytest.approx(round(89 / 25.4 * dpi), abs=2e-3)
    assert abs(points / 72 * 25.4 - 89) <= 25.4 / dpi / 2


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_of_the_page_runs_on_small_digits(words, tmp_path):
    """Each as it stands, but for the model, the picture and the place."""
    digit = str(sample_path("digit-3"))
    if words[0] == "replay":
        first = ["cat.jpg", "-o", "cat.pdf", "--manifest", "cat.json"]
        assert main(_here(first, tmp_path, digit)) == 0
        words = [words[0], str(tmp_path / words[1]), *words[2:]]
        assert main([each.replace("again", str(tmp_path / "a")).replace("cat.jpg", digit) for each in words]) == 0  # fmt: skip
        assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "cat.pdf").read_bytes()
        return
    command = words[0] if words[0] in SECOND else None
    given = parser_of(command).parse_args(words[command is not None :])
    assert main(_here(words, tmp_path, digit)) == 0
    assert (tmp_path / given.output).stat().st_size > 0


def _here(words, folder, digit):
    """The same words, of the digit, a layer and a head that it has, into the folder."""
    changed = {"cat.jpg": digit, "11": "1"}
    made = [changed.get(each, each) for each in words]
    for flag in ("-o", "--manifest"):
        if flag in made:
            made[made.index(flag) + 1] = str(folder / made[made.index(flag) + 1])
    return [*made, "--model", "digits"]


def test_the_page_names_every_kind_of_file():
    for kind in (*ALL_KINDS, ".zip"):
        assert kind in PAGE or kind.removeprefix(".").upper() in PAGE, kind
    assert set(KINDS) < set(ALL_KINDS)


def test_the_recipes_name_tables_that_there_are():
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    sources = [*(ROOT / "attnviz").rglob("*.py"), *(ROOT / "models").glob("*.py")]
    code = "\n".join(path.read_text("utf-8") for path in sources)
    named = set(re.findall(r"`(_?[A-Z][A-Z_]{3,})`", page))
    assert {"CITED", "RENDERERS", "PLATE_KINDS", "SHARES"} < named
    missing = {name for name in named if not re.search(rf"^{name}\b.* = ", code, re.M)}
    assert not missing - {"METHOD"}  # each method's own
