"""`python -m benchmarks.kills`: a batch that is killed at random moments ends as one that is not.

The real command is killed (SIGKILL) twenty times, each time after a random part of the time that an
unbroken run takes, and taken up again by the same command until it is whole. Where it gets whole
before, a new one is begun. Each is compared with the unbroken run: the same bytes, and in the
journal no picture twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

MODEL = ["--model", "vit_tiny_patch16_224", "--random", "--size", "96", "--device", "cpu"]


def command(photos: Path, output: Path) -> list[str]:
    """The batch that is killed."""
    kind = [] if output.suffix else ["--as", "npz"]
    words = [sys.executable, "-m", "attnviz", "batch", str(photos), "-o", str(output)]
    return [*words, *kind, *MODEL]


def journal(output: Path) -> list[str]:
    """The pictures that the journal says are done, as often as it says so."""
    path = output / "batch.journal" if not output.suffix else Path(f"{output}.journal")
    lines = path.read_text().split("\n")[1:-1] if path.exists() else []
    return [json.loads(line[9:])["picture"] for line in lines]


def contents(output: Path) -> dict[str, bytes]:
    """All that came out but for the journal, which says when files were made."""
    files = [output] if output.suffix else sorted(output.iterdir())
    return {file.name: file.read_bytes() for file in files if file.name != "batch.journal"}


def trial(photos: Path, folder: Path, name: str, kills: int, chance: random.Random) -> int:
    """Kill and take up again as often as said; the number of runs that were not as they should."""
    whole = folder / f"whole-{name}" / name
    whole.parent.mkdir()
    start = time.monotonic()
    subprocess.run(command(photos, whole), check=True, stdout=subprocess.DEVNULL)
    long = time.monotonic() - start
    expected, total, bad, left, number = contents(whole), len(journal(whole)), 0, kills, 0
    while left:
        number += 1
        output = folder / f"{number}-{name}" / name
        output.parent.mkdir()
        steps: list[int] = []
        while True:
            child = subprocess.Popen(command(photos, output), stdout=subprocess.DEVNULL)
            try:
                if left:
                    child.wait(chance.uniform(0, long))
                else:
                    child.wait()
                break
            except subprocess.TimeoutExpired:
                os.kill(child.pid, signal.SIGKILL)
                child.wait()
                left -= 1
                steps.append(len(journal(output)))
        twice = [picture for picture, often in Counter(journal(output)).items() if often > 1]
        right = child.returncode == 0 and contents(output) == expected and not twice
        bad += not right
        print(
            f"{name}: killed {len(steps)} times, with {steps} of {total} pictures done, then whole:"
            f" {'the same bytes, none done twice' if right else f'NOT THE SAME, twice: {twice}'}",
            flush=True,
        )
    return bad


def main() -> int:
    """Kill, compare, print; exit code 1 where something was not the same."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="in all, of both kinds (20)")
    parser.add_argument("--count", type=int, default=300, help="pictures (300)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (0)")
    given = parser.parse_args()
    chance, bad = random.Random(given.seed), 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "photos").mkdir()
        noise = np.random.default_rng(given.seed)
        for number in range(given.count):
            pixels = noise.integers(0, 256, (120, 160, 3), np.uint8)
            Image.fromarray(pixels).save(folder / "photos" / f"{number:04}.png")
        for name, kills in (
            ("maps.parquet", given.kills - given.kills // 2),
            ("maps", given.kills // 2),
        ):
            bad += trial(folder / "photos", folder, name, kills, chance)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
