"""Every hostile file opens rightly or is refused in a sentence, soon, in little memory, silently."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hostile_pictures import CASES
from hostile_run import counted, run, table

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

PAGE = Path(__file__).parents[1] / "docs" / "security.md"
SECONDS, MEGABYTES = 5, 200
LARGE = 20
"""Megabytes that the largest pictures take at least: less, and nothing was measured."""
LONGEST = 300
"""Letters of a refusal."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    return run(tmp_path_factory.mktemp("hostile"))


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file_opens_rightly_or_is_refused_at_little_cost(name, seen):
    case, found = CASES[name], seen[name]
    allowed = {True: {"opened"}, False: {"refused"}, None: {"opened", "refused"}}
    assert found.outcome in allowed[case.opens], found
    if found.outcome == "opened":
        assert found.mode == "RGB"
        assert case.size in (None, found.size)
        for place, colour in zip(case.pixels or (), found.colours, strict=True):
            assert colour == pytest.approx(case.pixels[place], abs=case.tolerance), place
    else:
        assert re.search(case.words, found.message)
        assert_says_only_what_is_wrong(found.message, case.name or "This file")
    assert found.printed == ""
    assert found.seconds <= SECONDS and found.megabytes <= MEGABYTES
    assert found.megabytes >= LARGE or "as large" not in case.group


def assert_says_only_what_is_wrong(message: str, start: str) -> None:
    assert message.startswith(start) and message.endswith(".") and len(message) <= LONGEST
    assert not re.search(r"0x[0-9a-f]{4}|object at|Traceback|/tmp|Error\b|\n", message)


def test_the_page_has_the_table_of_today(seen):
    today = counted(table(seen))
    assert len(today) > 10 and counted(PAGE.read_text("utf-8")) == today, "run `make hostile`"
