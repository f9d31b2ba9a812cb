"""The attention-mass mask: golden value, exact twin, and its outline."""

from __future__ import annotations

from fractions import Fraction

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attnviz.errors import BadOption
from attnviz.mass import mass_mask
from tests import oracles


def kept(values, threshold=0.6, dtype=np.float64) -> list[list[int]]:
    return mass_mask(np.array(values, dtype), threshold).kept.astype(int).tolist()


def test_the_golden_mask():
    row = [[0.40, 0.05, 0.30, 0.15, 0.10]]
    for dtype in (np.float32, np.float64):
        assert kept(row, dtype=dtype) == [[1, 0, 1, 0, 0]]
        assert kept(np.array(row).T, dtype=dtype) == [[1], [0], [1], [0], [0]]
    found = mass_mask(np.array(row))
    assert (found.area, found.mass) == (0.4, pytest.approx(0.7))


CASES = [
    ([[1, 1, 1], [1, 1, 1]], 0.5, [[1, 1, 1], [0, 0, 0]]),  # of equals the first, row by row
    ([[1, 2, 1], [2, 1, 2]], 0.5, [[0, 1, 0], [1, 0, 1]]),
    ([[1, 2, 1], [2, 1, 2]], 0.4, [[0, 1, 0], [1, 0, 0]]),
    ([[0.2] * 5], 0.6, [[1, 1, 1, 0, 0]]),  # exactly reached, whatever floating point says
    ([[0.1] * 10], 0.3, [[1] * 3 + [0] * 7]),
    ([[0.1] * 10], 0.7, [[1] * 7 + [0] * 3]),
    ([[7]], 0.01, [[1]]),
    ([[0, 3, 0, 1]], 1.0, [[0, 1, 0, 1]]),  # all the mass needs no patch of 0
    ([[0, 5], [0, 0]], 0.6, [[0, 1], [0, 0]]),
    ([[1e300, 1e300], [1e308, 1e308]], 0.9, [[0, 0], [1, 1]]),
    ([[1e-310, 0], [0, 3e-310]], 0.6, [[0, 0], [0, 1]]),
    ([[4, 1], [3, 2]], 0.7, [[1, 0], [1, 0]]),
    ([[6, 1, 0], [3, 0, 0]], 0.9, [[1, 0, 0], [1, 0, 0]]),  # 0.8999999999999999 by division
]


@pytest.mark.parametrize(("values", "threshold", "expected"), CASES)
def test_the_fewest_patches_by_hand(values, threshold, expected):
    assert kept(values, threshold) == expected


@settings(max_examples=200, deadline=None)
@given(
    arrays(np.int64, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=st.integers(0, 5)),
    st.integers(1, 20),
)
def test_the_mask_is_its_exact_twin(values, twentieths):
    if not values.any():
        values[0, 0] = 1
    expected = oracles.mass_mask(values.tolist(), Fraction(twentieths, 20))
    found = mass_mask(values.astype(np.float32), twentieths / 20)
    assert found.kept.tolist() == expected
    assert found.mass >= twentieths / 20 - 1e-9


def test_scaling_the_values_changes_nothing():
    values = np.random.default_rng(0).random((37, 37)).astype(np.float32)
    one, other = mass_mask(values), mass_mask(values * np.float32(2**-20))
    assert (one.kept == other.kept).all()
    least, most = values[one.kept].min(), values[~one.kept].max()
    assert least > most
    assert one.mass - least / values.sum(dtype=float) < 0.6 <= one.mass


@pytest.mark.parametrize(
    ("values", "threshold", "says"),
    [
        ([[1, -1, -2]], 0.6, r"at least 0; 2 of 3 patches have a negative one, down to -2"),
        ([[0, 0], [0, 0]], 0.6, "Every patch has the value 0"),
        ([[1, np.nan]], 0.6, "1 are not finite"),
        ([[1, np.inf]], 0.6, "1 are not finite"),
        (np.empty((0, 3)), 0.6, "0 values came"),
        ([[[1.0, 2.0, 3.0]]], 0.6, "one value a patch; several came"),
        ([[1.0]], 0.0, "above 0 and at most 1; 0.0 came"),
        ([[1.0]], 1.1, "1.1 came"),
        ([[1.0]], float("nan"), "nan came"),
        ([[1.0]], "0.6", "'0.6' came"),
    ],
)
def test_what_is_no_spread_of_mass_is_refused_in_words(monkeypatch, values, threshold, says):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(BadOption, match=says):
        mass_mask(np.array(values, float), threshold)


OUTLINES = [
    ([[1]], {(0, 0, 0, 1), (1, 0, 1, 1), (0, 0, 1, 0), (0, 1, 1, 1)}),
    ([[1, 1, 0]], {(0, 0, 0, 2), (1, 0, 1, 2), (0, 0, 1, 0), (0, 2, 1, 2)}),
    (
        [[0, 1], [1, 1]],
        {(0, 1, 0, 2), (1, 0, 1, 1), (2, 0, 2, 2), (1, 0, 2, 0), (0, 1, 1, 1), (0, 2, 2, 2)},
    ),
]


@pytest.mark.parametrize(("pattern", "expected"), OUTLINES)
def test_outlines_by_hand(pattern, expected):
    outline = mass_mask(np.array(pattern, float), 1.0).outline
    assert set(outline) == expected
    assert len(outline) == len(expected)


@settings(max_examples=100, deadline=None)
@given(arrays(np.bool_, st.tuples(st.integers(1, 5), st.integers(1, 6))))
def test_the_outline_runs_between_kept_and_other_patches_and_nowhere_else(pattern):
    if not pattern.any():
        pattern[0, 0] = True
    rows, cols = pattern.shape

    def at(row, col):
        return 0 <= row < rows and 0 <= col < cols and bool(pattern[row, col])

    expected = {
        ((line, col), (line, col + 1))
        for line in range(rows + 1)
        for col in range(cols)
        if at(line - 1, col) != at(line, col)
    } | {
        ((row, line), (row + 1, line))
        for row in range(rows)
        for line in range(cols + 1)
        if at(row, line - 1) != at(row, line)
    }
    units = []
    for top, left, bottom, right in mass_mask(pattern.astype(float), 1.0).outline:
        assert (top == bottom) != (left == right)
        units += [((top, col), (top, col + 1)) for col in range(left, right)]
        units += [((row, left), (row + 1, left)) for row in range(top, bottom)]
    assert sorted(units) == sorted(expected)


def test_the_mask_says_what_it_is_and_cannot_be_changed():
    found = mass_mask(np.array([[3.0, 1.0], [0.0, 0.0]]))
    assert found.summary == "outlined: the 1 of 4 patches (25.0%) that hold 0.6 of the map's mass"
    with pytest.raises(ValueError, match="read-only"):
        found.kept[0, 0] = False
