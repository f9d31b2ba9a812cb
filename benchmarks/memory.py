"""Memory as the system sees it: resident bytes of a fresh process for each question.

`python -m benchmarks.memory N` is that process; it prints one number.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable

import psutil

from attnviz import observe
from benchmarks.rivals import GRADIENTS, JOBS
from benchmarks.subject import Subject

HELD = "held"
RECORDS = 8


def ask(question: str) -> float:
    """The answer of a fresh process to `HELD` or to the name of a job."""
    command = [sys.executable, "-m", "benchmarks.memory", question]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def resident() -> int:
    """Bytes of this process that lie in memory."""
    gc.collect()
    return psutil.Process().memory_info().rss


def held(subject: Subject) -> float:
    """Growth for each record kept, over the bytes of its queries and keys."""
    records = [observe(subject.vit, subject.image, keep="factors")]
    before = resident()
    records += [observe(subject.vit, subject.image, keep="factors") for _ in range(RECORDS)]
    return (resident() - before) / RECORDS / subject.factor_bytes


def peak(job: Callable[[], object]) -> int:
    """The most bytes that one call adds, looked at every millisecond."""
    before, done = resident(), threading.Event()
    process, highest = psutil.Process(), [before]

    def watch() -> None:
        while not done.wait(0.001):
            highest.append(process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        job()
    finally:
        done.set()
        watcher.join()
    return max(highest) - before


def main(question: str) -> None:
    """Answer one question."""
    subject = Subject.load()
    print(
        held(subject) if question == HELD else peak(lambda: (JOBS | GRADIENTS)[question](subject))
    )


if __name__ == "__main__":
    main(sys.argv[1])
