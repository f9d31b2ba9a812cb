"""All hostile files opened, and what came of them as a table for docs/security.md."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from hostile_pictures import CASES
from picture_walk import Job, Seen, walk

HEADER = """\
| files | how many | opened | refused | most processor time | most memory |
| --- | --- | --- | --- | --- | --- |
"""


def run(folder: Path) -> dict[str, Seen]:
    """Each file is written, and opened in a process of its own."""
    jobs, digests = {}, {}
    for number, (name, case) in enumerate(CASES.items()):
        place, data = folder / str(number), case.make()
        assert digests.setdefault(hashlib.sha256(data).digest(), name) == name, "the same file"
        place.mkdir()
        path = place / (case.name or "file")
        path.write_bytes(data)
        jobs[name] = Job(str(path), bool(case.name), [*(case.pixels or ())])
    return walk(jobs)


def table(seen: Mapping[str, Seen]) -> str:
    """A row for each group, and one for all."""
    groups: dict[str, list[Seen]] = {}
    for name, each in seen.items():
        groups.setdefault(CASES[name].group, []).append(each)
    rows = [_row(group, found) for group, found in groups.items()]
    return HEADER + "".join([*rows, _row("**all**", list(seen.values()))])


def _row(group: str, found: list[Seen]) -> str:
    counts = [sum(each.outcome == outcome for each in found) for outcome in ("opened", "refused")]
    seconds, megabytes = (
        max(getattr(each, of) for each in found) for of in ("seconds", "megabytes")
    )
    cells = [group, len(found), *counts, f"{seconds:.1f} s", f"{megabytes:.0f} MB"]
    return f"| {' | '.join(map(str, cells))} |\n"


def counted(page: str) -> list[list[str]]:
    """The cells of such a table that every run gives again."""
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return [row[:4] for row in rows if row[-1].endswith("MB |")]
