"""The rules of docs/design.md that no linter knows: what is named where, how long a file is.

Who may import whom is checked by import-linter, configured in pyproject.toml.
"""

import ast
import re
import tomllib
from pathlib import Path, PurePath

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError

from attnviz.contract import View

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*ROOT.glob("attnviz/**/*.py"), *ROOT.glob("models/**/*.py"), ROOT / "app.py"])
LONGEST = 300

# (what, the names that betray it, the files and folders where it belongs)
HOMES = [
    (
        "hooks and autograd",
        r"register_\w*hook|autograd|TorchFunctionMode|TorchDispatchMode|requires_grad_|backward",
        # The last one trains.
        {
            "attnviz/capture.py",
            "attnviz/tap.py",
            "attnviz/scout.py",
            "attnviz/backward.py",
            "models/digits.py",
        },
    ),
    (
        "8-bit pixels",
        r"uint8",
        {"attnviz/colour.py", "attnviz/mosaic.py", "attnviz/images", "models/preprocess.py"},
    ),
    ("16-bit steps of values", r"uint16", {"attnviz/ui/live_map.py", "attnviz/levels.py"}),
    ("scikit-learn, which only make test installs", r"sklearn", {"models/digits.py"}),
    ("pyplot, which threads share", r"pyplot", set()),
    ("unpickling, which runs what it reads", r"pickle|cloudpickle|joblib|dill", set()),
    ("white text on the theme's blue (.streamlit/config.toml)", r"primary|multiselect", set()),
    ("shape changes without axis names", r"view_as|reshape|permute|swapaxes|moveaxis", set()),
]


def names(tree: ast.AST) -> set[tuple[int, str]]:
    """Every (line, name) that code says: variables, attributes, imports, and bare-word strings."""
    found = set()
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name):
            found.add((line, node.id))
        elif isinstance(node, ast.Attribute):
            found.add((line, node.attr))
        elif isinstance(node, ast.ImportFrom):
            found |= {(line, part) for part in (node.module or "").split(".")}
        elif isinstance(node, ast.alias):
            found |= {(line, part) for part in node.name.split(".")}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add((line, node.value))
    return found


def strays(source: str, pattern: str) -> list[str]:
    """The names in a source that match a pattern as a whole, as `line: name`."""
    said = sorted(names(ast.parse(source)))
    return [f"{line}: {name}" for line, name in said if re.fullmatch(pattern, name)]


@pytest.mark.parametrize(
    ("source", "pattern", "expected"),
    [
        ("m.register_forward_pre_hook(f)", HOMES[0][1], ["1: register_forward_pre_hook"]),
        ("\nimport torch.autograd as a", HOMES[0][1], ["2: autograd"]),
        ("from torch.overrides import TorchFunctionMode", HOMES[0][1], ["1: TorchFunctionMode"]),
        ("x = np.zeros(3, np.uint8)", HOMES[1][1], ["1: uint8"]),
        ("x.astype('uint8')", HOMES[1][1], ["1: uint8"]),
        ("'''hooks, autograd and uint8 in prose'''", "autograd|uint8", []),
        ("x: UInt8[Array, 'a']", HOMES[1][1], []),
    ],
)
def test_a_stray_name_is_found(source: str, pattern: str, expected: list[str]) -> None:
    assert strays(source, pattern) == expected


@pytest.mark.parametrize(("what", "pattern", "homes"), HOMES, ids=[home[0] for home in HOMES])
def test_each_thing_is_done_only_where_it_belongs(what: str, pattern: str, homes: set[str]) -> None:
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for path in SOURCES
        if (lines := strays(path.read_text(encoding="utf-8"), pattern))
    }
    outside = {
        path: lines
        for path, lines in found.items()
        if not any(PurePath(path).is_relative_to(home) for home in homes)
    }
    assert not outside, f"{what} belong in {sorted(homes) or 'no file'}"


@pytest.mark.parametrize("path", SOURCES, ids=[str(path.relative_to(ROOT)) for path in SOURCES])
def test_no_file_is_long(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"{lines} lines: does it still hold one idea?"


@pytest.mark.parametrize("path", SOURCES, ids=[str(path.relative_to(ROOT)) for path in SOURCES])
def test_no_assert_meets_a_user(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert not found, "an assert disappears under -O and tells a user nothing"


def test_app_is_thin() -> None:
    source = (ROOT / "app.py").read_text(encoding="utf-8")
    imported = {
        module.split(".")[0] if module != "attnviz.ui" else module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [".".join((node.module or "").split(".")[:2])]
        )
    }
    assert imported <= {"streamlit", "attnviz.ui", "__future__"}
    assert len(source.splitlines()) <= 30


def test_shapes_in_signatures_are_checked_in_this_run() -> None:
    pixels = np.zeros((4, 4, 3), np.uint8)
    with pytest.raises(TypeCheckError):
        View(tensor=torch.zeros(2, 3, 4, 4), pixels=pixels, box=(0, 0, 4, 4), fit=None)


def test_every_direct_requirement_is_pinned() -> None:
    loose = [
        f"{path.name}: {line}"
        for path in ROOT.glob("requirements*.txt")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip() and not re.match(r"#|-r requirements|[\w.-]+==\S+|\s+--hash=", line)
    ]
    assert not loose


def test_the_changelog_names_the_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## .*({re.escape(project['version'])}|[Uu]nreleased)", changelog, re.M)


@pytest.mark.parametrize("package", ["attnviz", "models"])
def test_the_design_page_names_every_room(package):
    page = (ROOT / "docs" / "design.md").read_text("utf-8")
    files = {path.name for path in (ROOT / package).glob("*.py")} - {"__init__.py", "__main__.py"}
    folders = {f"{path.name}/" for path in (ROOT / package).iterdir() if any(path.glob("*.py"))}
    assert {name for name in files | folders if f"`{name}`" not in page} == set()


def test_the_design_page_has_the_order_that_imports_are_checked_by():
    page = (ROOT / "docs" / "design.md").read_text("utf-8")
    (told,) = re.findall(r"from right to left of this list:\n(.+?)\n- ", page, flags=re.S)
    order = [[name.strip() for name in step.split(",")] for step in told.split("←")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [each for each in project["tool"]["importlinter"]["contracts"] if "layers" in each]
    checked = [[name.strip() for name in layer.split("|")] for layer in layers["layers"]]
    assert [sorted(step) for step in order] == [
        *(sorted(step) for step in reversed(checked)), ["app.py"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda path: path.name
)
def test_no_page_holds_the_marks_of_a_merge(path: Path) -> None:
    marks = ("<<<<<<< ", ">>>>>>> ")
    assert not [line for line in path.read_text("utf-8").splitlines() if line.startswith(marks)]


def test_no_picture_goes_through_streamlit_s_own_way():
    """It asks the server for a file that may be gone, and keeps texts of pictures past the visit."""
    for file in (ROOT / "attnviz" / "ui").glob("*.py"):
        assert not re.search(r"(?<!Image)\.image\(", file.read_text("utf-8")), file.name
