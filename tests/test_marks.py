"""Numbered outlines: where they lie, and that they are seen on any colour."""

import numpy as np
import pytest
from PIL import Image

from attnviz.marks import cell_boxes, numbered

BLACK, WHITE = (0, 0, 0), (255, 255, 255)


def test_cells_fill_their_box():
    # 2 rows and 4 columns in 80 × 60 pixels, 10 to the right and 5 above the picture's corner.
    boxes = cell_boxes((2, 4), (10.0, -5.0, 90.0, 55.0), [(0, 0), (1, 3)])
    assert boxes == [(10.0, -5.0, 30.0, 25.0), (70.0, 25.0, 90.0, 55.0)]


@pytest.mark.parametrize("ground", ["white", "black", "red"])
def test_an_outline_is_black_and_white_on_any_ground(ground):
    picture = Image.new("RGB", (200, 120), ground)
    marked = numbered(picture, [(80.0, 60.0, 110.0, 90.0)])
    assert picture.getpixel((80, 75)) == Image.new("RGB", (1, 1), ground).getpixel((0, 0))
    for edge in ((80, 75), (110, 75), (95, 60), (95, 90)):
        assert marked.getpixel(edge) == WHITE
    assert marked.getpixel((82, 75)) == BLACK  # beside it, within
    assert marked.getpixel((95, 75)) == picture.getpixel((0, 0))  # its middle is left alone
    tag = np.asarray(marked.crop((81, 46, 89, 59)))  # its number stands above it
    assert (tag == 0).all(2).any() and (tag > 200).all(2).any()


def test_numbers_differ_and_stay_in_the_picture():
    picture = Image.new("RGB", (200, 120), "red")
    corners = [(0.0, 0.0, 20.0, 20.0), (180.0, 100.0, 200.0, 120.0)]
    one, both = numbered(picture, corners[:1]), numbered(picture, corners)
    assert one.crop((0, 0, 20, 20)).tobytes() == both.crop((0, 0, 20, 20)).tobytes()
    assert one.tobytes() != both.tobytes()
    swapped = numbered(picture, corners[::-1])
    assert swapped.crop((0, 0, 20, 20)).tobytes() != both.crop((0, 0, 20, 20)).tobytes()
    assert numbered(picture, []).tobytes() == picture.tobytes()
