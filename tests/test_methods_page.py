"""docs/methods.md: every method is on it, and its table says what was measured."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from attnviz.faithfulness import Faithfulness
from attnviz.methods import METHODS
from benchmarks.faithfulness import (
    BEGIN,
    END,
    Case,
    Found,
    needed,
    spread,
    table,
    tail,
    verdict,
    written,
)

PAGE = Path(__file__).parents[1] / "docs" / "methods.md"


@pytest.mark.parametrize("name", METHODS)
def test_each_method_has_its_words(name):
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.M)
    (section,) = [part for part in sections if part.startswith(f"{METHODS[name].label} (`{name}`)")]
    for words in ("Answers:", "Needs ", "Conserved:", "Wrong to read:"):
        assert words in section
    year = re.search(r"\d{4}", METHODS[name].source)
    assert year and year.group() in section, "the source's year"
    needs = re.search(r"Needs (no|a) target", section)
    assert needs and (needs.group(1) == "a") == METHODS[name].needs_gradient


@pytest.mark.parametrize(
    ("better", "pictures", "said"),
    [
        (5, 5, ""),  # 1/32
        (4, 5, "no better than chance"),  # 6/32
        (0, 5, "**worse than chance**"),
        (1, 5, "no better than chance"),
        (4, 4, "no better than chance"),  # 1/16
        (15, 20, ""),  # 0.0207
        (14, 20, "no better than chance"),  # 0.0577
        (5, 20, "**worse than chance**"),
    ],
)
def test_a_coin_is_what_chance_means(better, pictures, said):
    assert verdict(better, pictures) == said


def test_what_it_takes_to_be_better_than_chance():
    assert needed(4) == "more pictures than these"
    assert needed(5) == "at least 5 of 5"
    assert needed(20) == "at least 15 of 20"
    assert needed(40) == "at least 26 of 40"  # 0.0403; 25 would be 0.0769


def test_tails_of_a_coin_by_hand():
    assert tail(0, 7) == 1
    assert tail(5, 5) == 1 / 32 and tail(4, 5) == 6 / 32
    assert tail(14, 20) == pytest.approx(0.05766, abs=1e-5)


def curves(mode, score):
    """A level curve: its area is the score."""
    return Faithfulness(
        mode=mode,
        score="probability of the predicted class 12 (twelve)",
        title="By hand",
        facts=(),
        fractions=np.array([0.0, 1.0]),
        scores=np.array([score, score]),
        random=np.array([[0.5, 0.5], [0.7, 0.7]]),
    )


def test_the_table_says_what_was_found():
    good = {"deletion": [0.1, 0.2, 0.3, 0.2, 0.2], "insertion": [0.7, 0.8, 0.9, 0.8, 0.5]}
    bad = {"deletion": [0.9, 0.8, 0.9, 0.8, 0.9], "insertion": [0.8, 0.7, 0.9, 0.8, 0.9]}
    found = [
        Found(label, {mode: [curves(mode, area) for area in areas] for mode, areas in of.items()})
        for label, of in (("Good", good), ("Bad", bad))
    ]
    case = Case("A model", None, [], "predicted", "crop")
    lines = table(case, found, {"legrad": "It has no gradients."}).splitlines()
    assert lines[0] == "### A model"
    assert "probability of the predicted class." in lines[2]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    assert {len(row) for row in rows} == {5}
    assert rows[2] == [
        "Good", "0.200 ± 0.071", "5 of 5", "0.740 ± 0.152", "4 of 5: no better than chance",
    ]  # fmt: skip
    assert rows[3][2] == "0 of 5: **worse than chance**" and rows[3][4] == "5 of 5"
    assert rows[4] == ["*random orders*", "0.600 ± 0.000", "", "0.600 ± 0.000", ""]
    assert "LeGrad: It has no gradients." in lines


def test_spread_by_hand():
    assert spread([1.0, 2.0, 3.0]) == "2.000 ± 1.000"


def test_only_what_is_between_the_markers_is_written():
    page = PAGE.read_text("utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    again = written(page, "a table")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    assert again == f"{before}{BEGIN}\n\na table\n\n{END}{after}"
    assert written(again, "a table") == again


def test_the_page_s_tables_are_of_methods_that_there_are():
    tables = PAGE.read_text("utf-8").split(BEGIN)[1].split(END)[0].split("### ")[1:]
    assert tables
    for measured in tables:
        rows = re.findall(r"^\| ([A-Z*][^|]*) \|", measured, flags=re.M)
        assert len(rows) > 5 and rows[-1] == "*random orders*"
        assert set(rows[:-1]) <= {row.label for row in METHODS.values()}
