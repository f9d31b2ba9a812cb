"""`python -m benchmarks.load`: many visitors, each answer checked against a lone visitor's.

A soak is for its memory: its answers are not checked again.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import io
import json
import random
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median, quantiles

import psutil
from PIL import Image

from scripts.page_client import Visitor
from scripts.page_server import Host, hosting

Answer = tuple[str, str]
"""Digests of the map as it is drawn, and of what is said of its cells."""


@dataclass(frozen=True)
class Place:
    """All that makes an answer."""

    picture: int
    layer: int
    cell: tuple[int, int]
    export: bool = False
    """Whether the answer is the downloaded figure."""


@dataclass
class Report:
    """What came of a run."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Kind of action → how long each took."""
    answers: list[tuple[Place, Answer]] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    """(seconds since all had arrived, bytes of the server), now and then."""
    passes: list[tuple[float, int]] = field(default_factory=list)
    """(seconds since all had arrived, passes that had ended by then), the same."""

    def rate(self, until: float) -> float:
        """Passes a second, up to that many seconds."""
        (first, before), *_, (last, after) = [each for each in self.passes if each[0] <= until]
        return (after - before) / (last - first)


@dataclass
class Player:
    """A visitor who does this and that, by a seed."""

    visitor: Visitor
    number: int
    place: Place = Place(0, 0, (0, 0))

    @property
    def layers(self) -> int:
        """Of the model."""
        return int(self.visitor.find("slider", "layer").max) + 1

    @property
    def cells(self) -> list[tuple[int, int]]:
        """All patches of the picture."""
        given = self.visitor.component("patches")
        (top, bottom), (left, right) = given["rows"], given["cols"]
        return [(r, c) for r in range(top, bottom + 1) for c in range(left, right + 1)]

    async def show(self, picture: int) -> None:
        """Another picture, and a patch of it: one pass."""
        await self.visitor.upload(f"{picture}.png", noise(picture))
        self.place = replace(self.place, picture=picture)

    async def pick(self, cell: tuple[int, int]) -> None:
        """A click on a patch."""
        await self.visitor.pick("patches", cell)
        self.place = replace(self.place, cell=cell)

    async def slide(self, layer: int) -> None:
        """Another layer."""
        await self.visitor.run(self.visitor.slid("layer", layer))
        self.place = replace(self.place, layer=layer)

    def seen(self) -> Answer:
        """What is on the page now."""
        given = self.visitor.component("map")
        errors = [text for text in self.visitor.texts("alert") if text]
        assert not errors, errors
        said = [given["values"], given["chosen"], given["size"], given["rows"], given["cols"]]
        return digest(given["picture"].encode()), digest(json.dumps(said).encode())

    async def export(self) -> Answer:
        """The figure, as a file."""
        return digest(await self.visitor.download("Download as PNG")), ""


def noise(number: int) -> bytes:
    """A picture that only this number has."""
    rng = random.Random(number)
    small = Image.frombytes("RGB", (9, 6), rng.randbytes(9 * 6 * 3))
    file = io.BytesIO()
    small.resize((180, 120), Image.Resampling.BICUBIC).save(file, "PNG")
    return file.getvalue()


def digest(data: bytes) -> str:
    """A short name of what is in it."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


async def arrive(address: str, number: int) -> Player:
    """A visitor with a picture, a layer and a patch of their own."""
    player = Player(await Visitor.see(address), number)
    await player.show(1000 * number)
    await player.slide(number % (player.layers - 1))  # never the last, which is shown at first
    await player.pick(player.cells[number % len(player.cells)])
    return player


NEW = ("new picture",)
MIX = ("click", "new picture", "slider", "export", "click", "slider")
"""What visitors do, one thing after the other."""


async def play(
    player: Player,
    report: Report,
    until: float,
    *,
    mix: Sequence[str],
    most: int = 10**9,
) -> None:
    """One thing after the other, until a moment or for a number of actions."""
    rng, pictures = random.Random(player.number), 1000 * player.number
    for step in range(player.number, player.number + most):
        if time.monotonic() > until:
            return
        kind, start = mix[step % len(mix)], time.monotonic()
        if kind == "export":
            answer = await player.export()
        else:
            if kind == "new picture":
                pictures += 1
                await player.show(pictures)
            elif kind == "click":
                await player.pick(rng.choice([c for c in player.cells if c != player.place.cell]))
            else:
                others = [n for n in range(player.layers) if n != player.place.layer]
                await player.slide(rng.choice(others))
        report.seconds[kind].append(time.monotonic() - start)
        if mix == NEW:
            continue  # passes are counted, not answers
        if kind == "new picture":  # nobody asks on a new one: the same patch is picked again
            await player.pick(player.place.cell)
        if kind != "export":
            answer = player.seen()
        report.answers.append((replace(player.place, export=kind == "export"), answer))


async def crowd(
    host: Host,
    sessions: int,
    *,
    seconds: float,
    mix: Sequence[str] = MIX,
    most: int = 10**9,
) -> Report:
    """So many visitors at once, for so long; their pages stay open to the end."""
    report = Report()
    arriving = (arrive(host.address, number) for number in range(1, sessions + 1))
    players = await asyncio.gather(*arriving)
    start = time.monotonic()
    watching = asyncio.create_task(_watch(host, report, start))
    acting = partial(play, report=report, until=start + seconds, mix=mix, most=most)
    await asyncio.gather(*(acting(player) for player in players))
    watching.cancel()
    await asyncio.gather(*(player.visitor.leave() for player in players))
    return report


async def _watch(host: Host, report: Report, start: float) -> None:
    server = psutil.Process(host.process.pid)
    while True:
        now = time.monotonic() - start
        report.memory.append((now, server.memory_info().rss))
        report.passes.append((now, len(host.passes())))
        await asyncio.sleep(1)


async def lone(address: str, places: Sequence[Place]) -> dict[Place, Answer]:
    """What one visitor alone is answered, each thing once."""
    player, found = Player(await Visitor.see(address), 0), {}
    shown, layer, cell = None, player.layers - 1, None
    for place in sorted(set(places), key=lambda p: (p.picture, p.layer, p.cell, p.export)):
        if place.picture != shown:
            await player.show(place.picture)
            shown, cell = place.picture, None
        if place.layer != layer:
            await player.slide(place.layer)
            layer = place.layer
        if place.cell != cell:
            await player.pick(place.cell)
            cell = place.cell
        found[place] = await player.export() if place.export else player.seen()
    await player.visitor.leave()
    return found


def wrong(report: Report, expected: dict[Place, Answer]) -> int:
    """How many answers were not the lone visitor's."""
    return sum(expected[place] != answer for place, answer in report.answers)


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
    parser.add_argument("--sessions", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--seconds", type=float, default=120, help="of mixed work (120)")
    parser.add_argument("--soak", type=float, default=0, help="minutes of it by 8 visitors (0)")
    options = parser.parse_args()
    from benchmarks.subject import Subject, machine
    from benchmarks.subject import seconds as timed

    subject = Subject.load()
    subject.forward()
    print(f"{machine()}.")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for sessions in options.sessions:
            with hosting(Path(folder, f"{sessions}.log")) as host:
                print(f"\n{sessions} visitors, {options.seconds:.0f} s of mixed work:\n")
                report = asyncio.run(crowd(host, sessions, seconds=options.seconds))
                failed += _tell(report, folder)
                bare = [timed(subject.forward) for _ in range(5)]
                busy = asyncio.run(crowd(host, sessions, seconds=60, mix=NEW))
                bare += [timed(subject.forward) for _ in range(5)]
                rate, one = busy.rate(60), median(bare)
                print(
                    f"New pictures alone: {rate:.2f} passes a second, {rate * one:.2f} of bare"
                    f" ones, which took {one:.2f} s; peak memory {peak(host) / 1e9:.2f} GB."
                )
        if options.soak:
            with hosting(Path(folder, "soak.log")) as host:
                report = asyncio.run(crowd(host, 8, seconds=60 * options.soak))
                print(
                    f"\n{options.soak:.0f} minutes of 8 visitors, {len(report.answers)} answers:"
                    f" memory grew by {growth(report.memory):.1%} after the warm-up, to"
                    f" {report.memory[-1][1] / 1e9:.2f} GB."
                )
    return int(failed > 0)


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
