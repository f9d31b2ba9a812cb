"""A point on the corner of four cells is of the one that begins there, whoever asks, and wherever."""

from dataclasses import replace
from itertools import product

import pytest

from attnviz.tokens import TokenLayout
from attnviz.ui.asked import Ground

BOXES = [
    (0.0, 0.0, 451.0, 300.0),
    (-100.5, 41.25, 655.75, 520.0),
    (0.1, 0.2, 0.1 + 7 / 3, 0.2 + 11 / 7),
    (1e-3, 1 / 3, 1000 / 7, 1000 / 3),
]


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("coarse", [(3, 7), (15, 22), (37, 49)])
@pytest.mark.parametrize("times", [2, 4, 6])
def test_the_middle_of_a_coarse_cell_is_of_the_lower_right_of_four_fine_ones(box, coarse, times):
    rows, cols = coarse
    fine = Ground(TokenLayout(("cls",), (rows * times, cols * times)), box)
    middles = replace(fine, layout=TokenLayout((), coarse))
    for row, col in product(range(rows), range(cols)):
        expected = row * times + times // 2, col * times + times // 2
        assert fine.cell_at(middles.centre((row, col))) == expected
        assert fine.layout.same_place((row, col), middles.layout) == expected


def test_what_lies_beyond_the_grid_is_of_no_cell():
    ground = Ground(TokenLayout((), (2, 4)), (10.0, 20.0, 18.0, 26.0))
    at = ground.cell_at
    assert at((10, 20)) == (0, 0) and at((12, 23)) == (1, 1) and at((17.9, 25.9)) == (1, 3)
    for point in ((9.9, 21), (18, 21), (11, 19.9), (11, 26)):
        assert at(point) is None
