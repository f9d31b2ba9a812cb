"""Opens each of many files in a process of its own, and measures it: time, memory, what is printed.

`walk` starts one Python, which loads what it needs (for pictures, their part of attnviz alone) and
forks for each file.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SECONDS = 20
"""Of processor time, after which a file is given up."""


@dataclass(frozen=True)
class Job:
    """A file to open: by its path, or by its bytes, as the page does."""

    path: str
    by_path: bool = False
    places: Sequence[tuple[int, int]] = ()
    """(column, row) of pixels to report."""


@dataclass(frozen=True)
class Seen:
    """What came of one file."""

    outcome: str
    """`opened`, `refused` (by an `AttnVizError`), `raised` (anything else), or `died`."""
    message: str = ""
    size: tuple[int, int] = (0, 0)
    mode: str = ""
    colours: tuple[tuple[int, ...], ...] = field(default=())
    seconds: float = 0
    """Of processor time."""
    megabytes: float = 0
    """The most that it took above what the process had before, in 10^6 bytes."""
    printed: str = ""
    """What went to stdout and stderr."""


def walk(jobs: Mapping[str, Job], kind: str = "picture") -> dict[str, Seen]:
    """Job by job, in one child process; the kind is one of `OPENERS`."""
    asked = json.dumps([vars(job) for job in jobs.values()])
    command = [sys.executable, __file__, kind]
    done = subprocess.run(
        command,
        input=asked,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert not done.stderr, done.stderr
    found = map(json.loads, done.stdout.splitlines())
    return {
        name: Seen(**{key: _tuples(value) for key, value in each.items()})
        for name, each in zip(jobs, found, strict=True)
    }


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _picture(job: Job, source: str | bytes) -> dict[str, Any]:
    from attnviz.images import open_image

    image = open_image(source)
    colours = [image.getpixel(tuple(place)) for place in job.places]
    return {"size": image.size, "mode": image.mode, "colours": colours}


def _weights(job: Job, source: str | bytes) -> dict[str, Any]:
    from models.weights import read_safetensors

    return {"size": (len(read_safetensors(source)), 0)}


OPENERS = {"picture": _picture, "weights": _weights}


def _open(job: Job, kind: str) -> dict[str, Any]:
    """In the forked process."""
    from attnviz.errors import AttnVizError

    source = job.path if job.by_path else Path(job.path).read_bytes()  # an upload is there already
    before, started = status("VmRSS"), os.times()
    try:
        seen = {"outcome": "opened", **OPENERS[kind](job, source)}
    except AttnVizError as error:
        seen = {"outcome": "refused", "message": str(error)}
    except BaseException as error:
        seen = {"outcome": "raised", "message": repr(error)}
    seen["megabytes"] = (status("VmHWM") - before) * 1024 / 1e6
    seen["seconds"] = sum(os.times()[:2]) - sum(started[:2])
    return seen


def status(name: str) -> int:
    """Kilobytes, as Linux counts them for this process."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.split(f"{name}:")[1].split()[0])


def _apart(job: Job, kind: str) -> dict[str, Any]:
    """The same in a fork, with what it prints."""
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as answer:
        if not (child := os.fork()):
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            answer.write(json.dumps(_open(job, kind)).encode())
            answer.flush()
            sys.stderr.flush()
            os._exit(0)
        _, code = os.waitpid(child, 0)
        printed.seek(0)
        answer.seek(0)
        said = printed.read().decode(errors="replace")
        if code:
            return {"outcome": "died", "message": f"by signal {code & 127}", "printed": said}
        return {**json.loads(answer.read()), "printed": said}


def main(kind: str) -> None:
    """In the child process: the jobs are on stdin, what came of them goes to stdout."""
    if kind == "picture":
        package = types.ModuleType("attnviz")  # the pictures alone, without torch
        package.__path__ = [str(ROOT / "attnviz")]
        sys.modules["attnviz"] = package
        from attnviz.images.quiet import hush

        hush()
        known = ROOT / "samples" / "digit-3.png"
    else:
        sys.path.insert(0, str(ROOT))
        known = ROOT / "models" / "trained" / "digits.safetensors"
    OPENERS[kind](Job(str(known)), str(known))  # what is loaded once
    for asked in json.load(sys.stdin):
        print(json.dumps(_apart(Job(**asked), kind)), flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main(sys.argv[1])
