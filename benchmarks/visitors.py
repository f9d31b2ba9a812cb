"""Visitors who do this and that, and what they were answered: for `load`, and for tests of many."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import psutil
from PIL import Image

from scripts.page_client import Visitor
from scripts.page_server import Host

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


async def arrive(address: str, number: int, query: str = "") -> Player:
    """A visitor with a picture, a layer and a patch of their own."""
    player = Player(await Visitor.see(address, query), number)
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
    query: str = "",
) -> Report:
    """So many visitors at once, for so long; their pages stay open to the end.

    They come by the address's `query`.
    """
    report = Report()
    arriving = (arrive(host.address, number, query) for number in range(1, sessions + 1))
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
