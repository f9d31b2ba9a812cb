"""What is said of colours: true numbers, whatever is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from attnviz.colour import overlay
from attnviz.errors import BadOption
from attnviz.heatmap import Heatmap
from attnviz.legend import channels, legend, value_texts
from attnviz.scale import Scale

THREE = [[[0, -5, 2], [1, 5, 2]], [[4, 0, 2], [2, 1, 2]]]


def heat(values, box=(0.0, 0.0, 8.0, 4.0)) -> Heatmap:
    return Heatmap(
        values=np.array(values, dtype=np.float32),
        unit="score",
        title="By hand",
        facts=(),
        image=Image.new("RGB", (8, 4)),
        box=box,
    )


@pytest.mark.parametrize(
    ("values", "options", "ends", "words"),
    [
        ([[1, 3]], {}, (1, 3), "score, lowest to highest value"),
        ([[1, 3]], {"scale": "zero", "colormap": "gray"}, (0, 3), "score, from zero"),
        ([[1, 3]], {"scale": Scale(2, 9, "mine")}, (2, 9), "score, mine"),
        (
            [[1, 3]],
            {"interpolation": "bilinear"},
            (1, 3),
            "score, lowest to highest value; smoothed (bilinear)",
        ),
        (
            THREE,
            {"interpolation": "bilinear"},
            None,
            "score, each component from its lowest to its highest value: red is component 0, 0 to"
            " 4; green is component 1, -5 to 5; blue is component 2, 2 throughout; smoothed"
            " (bilinear)",
        ),
    ],
)
def test_a_scale_for_a_bar_or_words_with_the_ranges(values, options, ends, words) -> None:
    scale, said = legend(heat(values), **options)
    assert (scale and (scale.low, scale.high)) == ends
    assert said == words


def test_the_scales_of_components_are_their_ranges_in_the_picture() -> None:
    whole = [(scale.low, scale.high) for scale in channels(heat(THREE))]
    assert whole == [(0, 4), (-5, 5), (2, 2)]
    padded = heat(THREE, box=(0.0, -4.0, 8.0, 4.0))  # the upper row lies above the picture
    seen = [(scale.low, scale.high) for scale in channels(padded)]
    assert seen == [(2, 4), (0, 1), (2, 2)]
    assert overlay(padded, alpha=1.0).getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize(
    "options",
    [{"colormap": "viridis"}, {"scale": "zero"}, {"scale": Scale(0, 1, "mine")}, {"clip": 99.0}],
)
@pytest.mark.parametrize("use", [overlay, channels, legend])
def test_components_take_no_palette_no_scale_and_no_clip(options, use) -> None:
    with pytest.raises(BadOption, match=r"as red, green and blue.*Leave these out"):
        use(heat(THREE), **options)


def test_each_patch_s_numbers() -> None:
    assert value_texts(heat([[0.9991, 0.9999]])) == ["0.9991", "0.9999"]
    assert value_texts(heat(THREE)) == ["0, -5, 2", "1, 5, 2", "4, 0, 2", "2, 1, 2"]
