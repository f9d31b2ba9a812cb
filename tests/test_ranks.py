"""Maps compared by the order of their patches: by hand, and against SciPy's own correlation."""

import numpy as np
import pytest
from PIL import Image
from scipy.stats import spearmanr

from attnviz.errors import BadOption
from attnviz.heatmap import Heatmap
from attnviz.ranks import agreement, ranked


def heat(values, blank=None):
    values = np.array(values, np.float32)
    return Heatmap(
        values=values,
        unit="unit",
        title="A map",
        facts=(),
        image=Image.new("RGB", (40, 20)),
        box=(0, 0, 40, 20),
        blank=None if blank is None else np.array(blank),
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[3.0, 1.0, 2.0]], [[1.0, 0.0, 0.5]]),
        ([[5.0, 5.0, 9.0]], [[0.25, 0.25, 1.0]]),  # two tie for the places 0 and 1 of 0 to 2
        ([[7.0, 7.0, 7.0]], [[0.5, 0.5, 0.5]]),
        ([[-1.0, 1e-30], [2e-30, 4.0]], [[0.0, 1 / 3], [2 / 3, 1.0]]),
        ([[4.0]], [[0.0]]),
    ],
)
def test_ranks_by_hand(values, expected):
    made = ranked(heat(values))
    assert made.values == pytest.approx(np.array(expected))
    assert made.unit == "rank among patches" and not made.share_of_all


def test_blank_cells_have_no_rank():
    made = ranked(heat([[1.0, 0.0, 3.0]], blank=[[False, True, False]]))
    assert made.values.tolist() == [[0.0, 0.0, 1.0]] and made.blank.tolist() == [
        [False, True, False]
    ]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([[1.0, 2.0, 3.0]], [[10.0, 20.0, 25.0]], 1.0),
        ([[1.0, 2.0, 3.0]], [[3.0, 2.0, 1.0]], -1.0),
        ([[1.0, 2.0, 3.0, 4.0]], [[2.0, 1.0, 4.0, 3.0]], 0.6),  # 1 - 6 · 4 / (4 · 15)
        ([[1.0, 2.0, 3.0]], [[5.0, 5.0, 5.0]], None),
        ([[1.0, 2.0]], [[1.0], [2.0]], None),
    ],
)
def test_agreement_by_hand(one, other, expected):
    found = agreement(heat(one), heat(other))
    assert found == (None if expected is None else pytest.approx(expected))


def test_agreement_is_scipys_over_the_patches_that_both_hold():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 9, (2, 5, 7)).astype(float)
    blank = rng.random((5, 7)) < 0.3
    held = ~blank
    expected = spearmanr(one[held], other[held]).statistic
    assert agreement(heat(one, blank), heat(other)) == pytest.approx(expected)


def test_three_values_a_patch_have_no_order():
    colours = heat(np.zeros((2, 3, 3)))
    with pytest.raises(BadOption, match="no order"):
        ranked(colours)
    with pytest.raises(BadOption, match="no order"):
        agreement(colours, heat([[1.0]]))
