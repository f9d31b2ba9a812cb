"""Opens damaged pictures for a while, each another one, and stops at the first that harms.

What was being opened lies in artifacts/fuzz, also where the interpreter itself dies of it.
"""

import argparse
import faulthandler
import sys
import time
from pathlib import Path

from hypothesis import Phase, Verbosity, given, seed, settings

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import picture_fuzz as fuzz  # noqa: E402
from picture_walk import status  # noqa: E402

from attnviz.images.quiet import hush  # noqa: E402

LAST = ROOT / "artifacts" / "fuzz"
SECONDS, MEGABYTES = 5, 300


def main() -> None:
    """Rounds of 500 files until the time is over; each round's seed is its number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="the first round's (default: 0)")
    given_ = parser.parse_args()
    faulthandler.enable()
    hush()
    LAST.parent.mkdir(exist_ok=True)
    for data in fuzz.SOUND:
        fuzz.opens_or_is_refused(data)
    idle, started, count = status("VmRSS"), time.monotonic(), 0

    @settings(
        max_examples=500,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        verbosity=Verbosity.quiet,
    )
    @given(fuzz.damaged())
    def round_of(data: bytes) -> None:
        nonlocal count
        LAST.write_bytes(data)
        before = time.process_time()
        fuzz.opens_or_is_refused(data)
        assert time.process_time() - before <= SECONDS
        assert (status("VmHWM") - idle) * 1024 / 1e6 <= MEGABYTES
        count += 1

    number = given_.seed
    while time.monotonic() - started < given_.seconds:
        seed(number)(round_of)()
        number += 1
    most = (status("VmHWM") - idle) * 1024 / 1e6
    print(f"{count} files, none harmful; at most {most:.0f} MB above idle; next: --seed {number}")
    LAST.unlink()


if __name__ == "__main__":
    main()
