"""Nothing that a visitor or a file says is ever run: on the source, and in a running process."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*ROOT.glob("attnviz/**/*.py"), *ROOT.glob("models/**/*.py"), ROOT / "app.py"])
RUNS = {"eval", "exec", "compile", "__import__", "globals", "breakpoint", "input"}
"""Built-in functions that make code of text, or wait for somebody."""
MODULES = {
    "subprocess",
    "pty",
    "code",
    "codeop",
    "runpy",
    "ctypes",
    "multiprocessing",
    "shelve",
    "marshal",
}
"""Modules that run programs, code or machine code, or read what was pickled."""
CALLS = {
    "system",
    "popen",
    "fork",
    "posix_spawn",
    "execv",
    "execve",
    "execvp",
    "spawnv",
    "startfile",
}
"""The same of `os`."""
HOMES = {
    "attnviz/images/quiet.py": "ctypes",  # has a decoder's own messages turned off
    "attnviz/ui/room.py": "ctypes",  # has free memory given back to the system
}


def found(source: str) -> list[str]:
    """`line: what` for each way to run data."""
    said = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in RUNS:
                said.append((node.lineno, name))
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in CALLS:
                said.append((node.lineno, f"os.{name}"))
            case ast.Attribute(value=ast.Name(id="torch"), attr="load" | "compile" as name):
                said.append((node.lineno, f"torch.{name}"))
            case ast.Import(names=names):
                said += [(node.lineno, each.name) for each in names if _root(each.name) in MODULES]
            case ast.ImportFrom(module=str(module)) if _root(module) in MODULES:
                said.append((node.lineno, module))
            case ast.keyword(arg="shell" | "allow_pickle", value=ast.Constant(value=False)):
                pass
            case ast.keyword(arg="shell" | "allow_pickle" as name):
                said.append((node.value.lineno, f"{name}="))
    return [f"{line}: {what}" for line, what in said]


def _root(module: str) -> str:
    return module.partition(".")[0]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("eval('1')", ["1: eval"]),
        ("model.eval()", []),
        ("import os\nos.system('x')", ["2: os.system"]),
        ("from subprocess import run", ["1: subprocess"]),
        ("import multiprocessing.pool", ["1: multiprocessing.pool"]),
        ("torch.load(file)", ["1: torch.load"]),
        ("np.load(file, allow_pickle=True)", ["1: allow_pickle="]),
        ("np.load(file, allow_pickle=yes)", ["1: allow_pickle="]),
        ("np.load(file, allow_pickle=False)", []),
        ("re.compile('x')", []),
    ],
)
def test_a_way_to_run_data_is_found(source, expected):
    assert found(source) == expected


@pytest.mark.parametrize("path", SOURCES, ids=[str(path.relative_to(ROOT)) for path in SOURCES])
def test_no_source_has_one(path):
    said = found(path.read_text("utf-8"))
    home = HOMES.get(path.relative_to(ROOT).as_posix())
    assert [line for line in said if line.partition(": ")[2] != home] == []


WATCHED = """
import sys

def watch(event, arguments):
    if event in WATCHES:
        seen.append((event, str(arguments)[:80]))

WATCHES = {"pickle.find_class", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn",
           "os.spawn", "os.fork", "pty.spawn", "socket.connect", "socket.getaddrinfo", "code.__new__"}
seen = []
import attnviz.__main__ as line  # what the libraries do as they are loaded is their own
import models
from attnviz.images.quiet import hush
sys.addaudithook(watch)
picture, weights, out = sys.argv[1:]
for more in (["--model", "digits"], ["--model", "digits", "--checkpoint", weights]):
    assert line.main([picture, "-o", f"{out}/{len(more)}.png", *more]) == 0
bad = f"{out}/bad.png"
assert line.main([weights, "-o", bad]) == 2  # no picture
assert line.main([picture, "-o", bad, "--model", "digits", "--checkpoint", picture]) == 2
import pickle
pickle.loads(pickle.dumps(int))  # the watch is awake
print(seen)
"""


def test_a_run_starts_no_program_reads_no_pickle_and_asks_no_network(tmp_path):
    picture = ROOT / "samples" / "digit-3.png"
    weights = ROOT / "models" / "trained" / "digits.safetensors"
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(picture), str(weights), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = ast.literal_eval(done.stdout.splitlines()[-1])
    assert [event for event, _ in seen] == ["pickle.find_class"]  # the one of the watch's own trial
