"""`python -m benchmarks.load`: many visitors, each answer checked against a lone visitor's.

A soak is for its memory: its answers are not checked again.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

from benchmarks.subject import Subject, machine, seconds
from benchmarks.visitors import NEW, Report, crowd, lone, wrong
from scripts.page_server import Host, hosting

SMALL_MB = 3277
"""Memory that a soak's server is to stay under: 0.8 of 4 GB."""

LARGER = "vit_base_patch14_dinov2.lvd142m"
"""A model of four times the default's work, with random weights: these take as long as others."""


def growth(memory: Sequence[tuple[float, int]], warm: float = 0.3) -> float:
    """How far memory grew from the end of the warm-up to the end, by medians of a tenth each."""
    values = [size for when, size in memory if when >= warm * memory[-1][0]]
    tenth = max(1, len(values) // 10)
    return median(values[-tenth:]) / median(values[:tenth]) - 1


def peak(host: Host) -> int:
    """The most bytes that the server has held at once since it was started (Linux only)."""
    status = Path(f"/proc/{host.process.pid}/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])  # type: ignore[index]


def row(kind: str, times: Sequence[float]) -> str:
    """A line of the table."""
    p95 = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    return f"| {kind} | {len(times)} | {median(times):.2f} s | {p95:.2f} s |"


def main() -> int:
    """Measure, print a table, and end with 1 where an answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--sessions", type=int, nargs="*", default=[20, 50])
    parser.add_argument("--seconds", type=float, default=120, help="of mixed work (120)")
    parser.add_argument("--soak", type=float, default=0, help="minutes of it by 8 visitors (0)")
    parser.add_argument("--larger", action="store_true", help=f"new pictures with {LARGER} too")
    options = parser.parse_args()
    subject = Subject.load()
    print(f"{machine()}.")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for sessions in options.sessions:
            with hosting(Path(folder, f"{sessions}.log")) as host:
                print(f"\n{sessions} visitors, {options.seconds:.0f} s of mixed work:\n")
                report = asyncio.run(crowd(host, sessions, seconds=options.seconds))
                failed += _tell(report, folder)
                print(f"{_rate(host, sessions, subject)}; peak memory {peak(host) / 1e9:.2f} GB.")
        if options.larger:
            with hosting(Path(folder, "larger.log")) as host:
                larger = Subject.load(LARGER, pretrained=False)
                query = f"model={LARGER}&random=1"
                print(f"\n8 visitors of {LARGER}. {_rate(host, 8, larger, query)}.")
        if options.soak:
            # As in a container of 4 GB: what is kept is at its limit soon, as it is after hours.
            with hosting(Path(folder, "soak.log"), ATTNVIZ_MEMORY_MB=str(SMALL_MB)) as host:
                report = asyncio.run(crowd(host, 8, seconds=60 * options.soak))
                print(
                    f"\n{options.soak:.0f} minutes of 8 visitors, {len(report.answers)} answers,"
                    f" {SMALL_MB} MB allowed:"
                    f" memory grew by {growth(report.memory):.1%} after the warm-up, to"
                    f" {report.memory[-1][1] / 1e9:.2f} GB."
                )
    return int(failed > 0)


def _rate(host: Host, sessions: int, subject: Subject, query: str = "") -> str:
    """Passes a second of visitors who do nothing but bring pictures, beside bare passes."""
    subject.forward()
    bare = [seconds(subject.forward) for _ in range(5)]
    busy = asyncio.run(crowd(host, sessions, seconds=60, mix=NEW, query=query))
    bare += [seconds(subject.forward) for _ in range(5)]
    rate, one = busy.rate(60), median(bare)
    other = {line["model"] for line in host.passes()} - {subject.vit.name}
    assert query == "" or not other, f"the visitors saw {other}"
    return (
        f"New pictures alone: {rate:.2f} passes a second, {rate * one:.2f} of bare ones, which took"
        f" {one:.2f} s"
    )


def _tell(report: Report, folder: str) -> int:
    with hosting(Path(folder, "lone.log")) as other:
        places = [place for place, _ in report.answers]
        missed = wrong(report, asyncio.run(lone(other.address, places)))
    print("| action | times | median | 95 % within |\n| --- | --- | --- | --- |")
    for kind, times in sorted(report.seconds.items()):
        print(row(kind, times))
    print(f"\nWrong answers: {missed} of {len(report.answers)}.")
    return missed


if __name__ == "__main__":
    sys.exit(main())
