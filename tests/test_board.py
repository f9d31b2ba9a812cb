"""Pictures on paper: cells as an image, photographs as fine as the file has room for, letters."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from attnviz.board import letter_of
from attnviz.colour import COLORMAPS, overlay
from attnviz.errors import BadOption, UnknownName
from attnviz.export import render
from attnviz.film_export import render_film
from attnviz.light import BUDGET, budget_of, light
from attnviz.paper import Paper
from attnviz.venue import VENUES, PlotPaper
from tests.test_export import SMALL, heat, svg_text
from tests.test_film import frames


def noisy(width: int, height: int) -> Image.Image:
    """A photograph as a poor sensor makes it: slopes under noise."""
    across, down = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    slopes = np.stack([across, down, 255 - across], axis=-1)
    noise = np.random.default_rng(0).normal(0, 30, slopes.shape)
    return Image.fromarray(np.clip(slopes + noise, 0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def large():
    """A map on a noisy photograph of 12 million pixels."""
    values = np.random.default_rng(0).random((37, 49))
    return replace(heat(values, size=(4, 3), box=(0, 0, 4000, 3000)), image=noisy(4000, 3000))


def images_of(content: bytes) -> list[Image.Image]:
    """The pictures in an SVG, in their order."""
    found = re.findall(rb"data:image/png;base64,\s*([^\"]+)", content)
    return [Image.open(BytesIO(base64.b64decode(each))) for each in found]


def sizes_in_pdf(content: bytes) -> set[tuple[int, int]]:
    """(height, width) of each picture, in this order in the file."""
    said = re.findall(rb"/Height (\d+)|/Width (\d+)", content)
    numbers = [int(high or wide) for high, wide in said]
    return set(zip(numbers[1::2], numbers[::2], strict=True))


@pytest.mark.parametrize("kind", [".png", ".pdf"])
def test_a_panel_is_small_whatever_the_photograph(large, kind):
    content = render(large, kind)
    assert len(content) < 300_000
    if kind == ".png":
        assert Image.open(BytesIO(content)).width == round(89 / 25.4 * 450)


def test_files_of_vectors_hold_each_map_cell_by_cell():
    made = heat(box=(3.0, 0.0, 24.0, 20.0))
    content = render(made, ".svg", alpha=0.4, colormap="viridis", scale="zero", **SMALL)
    photograph, cells, bar = images_of(content)
    np.testing.assert_array_equal(photograph.convert("RGB"), made.image)
    assert cells.size == (3, 2) and bar.size[0] == 256
    pixels = np.asarray(cells.convert("RGBA"))
    np.testing.assert_array_equal(pixels[..., 3], 102)  # 0.4 of 255
    steps = [[0, 5, 10], [15, 20, 255]]  # v / 50 · 256, cut to whole numbers
    np.testing.assert_array_equal(pixels[..., :3], COLORMAPS["viridis"][steps])
    assert {(2, 3), (20, 30)} <= sizes_in_pdf(render(made, ".pdf", **SMALL))


def test_cells_without_a_value_are_clear():
    blank = np.array([[False, True, False], [False, False, True]])
    _, cells, _ = images_of(render(replace(heat(), blank=blank), ".svg", alpha=1.0, **SMALL))
    np.testing.assert_array_equal(np.asarray(cells)[..., 3], np.where(blank, 0, 255))


def spans_in_svg(content: bytes) -> list[np.ndarray]:
    """For each picture (across, down): where its first dot begins and its last one ends, points.

    SVG counts downwards: a picture that begins below its end is upside down.
    """
    spans = []
    for node in ElementTree.fromstring(content).iter():
        if node.tag.endswith("}image"):
            moved = re.search(r"matrix\(([-\d.e ,]+)\)", node.get("transform"))
            wide, skewed, slanted, high, x, y = map(float, re.split("[ ,]+", moved[1].strip()))
            assert skewed == slanted == 0
            spans.append(
                np.array(
                    [
                        (x, x + wide * float(node.get("width"))),
                        (y, y + high * float(node.get("height"))),
                    ]
                )
            )
    return spans


def test_cells_lie_where_their_box_is_and_stand_upright():
    """A tenth to a half of the picture across, a fifth to nine tenths down."""
    made = heat(size=(40, 20), box=(4.0, 4.0, 20.0, 18.0))
    whole, part, _ = spans_in_svg(render(made, ".svg", **SMALL))
    (left, right), (top, bottom) = whole
    wide, high = right - left, bottom - top
    assert wide > 100 and high == pytest.approx(wide / 2, rel=0.02)
    expected = [
        (left + 0.1 * wide, left + 0.5 * wide),
        (top + 0.2 * high, top + 0.9 * high),
    ]
    np.testing.assert_allclose(part, expected, atol=0.01 * wide)


def test_a_picture_that_fits_stays_as_it_is():
    small = noisy(60, 40)
    assert light(small, (200, 133), spread=False) is small
    spread = light(small, (200, 133), spread=True)
    np.testing.assert_array_equal(spread, small.resize((200, 133), Image.Resampling.NEAREST))


@pytest.mark.parametrize("spread", [True, False])
def test_one_that_does_not_is_made_coarser_and_stays_like_itself(spread):
    large = noisy(900, 600)
    made = light(large, (600, 400), budget=BUDGET / 8, spread=spread)
    assert (made.size == (600, 400)) == spread
    seen = made.resize((60, 40), Image.Resampling.BOX)
    expected = large.resize((60, 40), Image.Resampling.BOX)
    off = np.abs(np.asarray(seen).astype(int) - np.asarray(expected))
    assert off.mean() < 6
    file = BytesIO()
    (made if not spread else made.resize((600, 100))).save(file, "PNG")
    assert len(file.getvalue()) < 1.3 * BUDGET / 8


def test_the_picture_alone_stands_beside_its_map():
    made = heat(size=(40, 30))
    drawn = Image.open(BytesIO(render(made, ".png", original=True, width_mm=76.2, dpi=100)))
    # 300 pixels: margins and the gap of 6, so two pictures of 141 × 106, below a line of 11.
    left = drawn.convert("RGB").crop((6, 17, 147, 123))
    right = drawn.convert("RGB").crop((153, 17, 294, 123))
    enlarged = made.image.resize((141, 106), Image.Resampling.NEAREST)
    np.testing.assert_array_equal(left, enlarged)
    np.testing.assert_array_equal(right, overlay(made, size=(141, 106)))


@pytest.mark.parametrize("kind", ["map", "film"])
def test_panels_have_letters_on_request(kind):
    def drawn(**options):
        if kind == "film":
            return svg_text(render_film(frames(), ".svg", original=True, **options))
        return svg_text(render(heat(), ".svg", original=True, **options))

    assert not drawn().startswith("a picture")
    text = drawn(letters=True)
    assert text.startswith("a picture b ")
    assert ("d layer 3" in text) == (kind == "film")


def test_letters_go_on_after_z():
    assert [letter_of(number) for number in (0, 25, 26, 27, 52)] == ["a", "z", "aa", "ab", "ba"]


@pytest.mark.parametrize(("venue", "inches"), [
    ("column", 89 / 25.4), ("page", 183 / 25.4), ("neurips", 5.5), ("iclr", 5.5),
    ("cvpr", 3.25), ("cvpr-wide", 6.875),
])  # fmt: skip
def test_a_venue_is_a_width(venue, inches):
    assert VENUES[venue] / 25.4 == pytest.approx(inches)
    assert Paper(venue=venue).width_mm == PlotPaper(venue=venue).width_mm == VENUES[venue]
    root = ElementTree.fromstring(render(heat(), ".svg", venue=venue))
    assert float(root.get("width")[:-2]) == pytest.approx(72 * inches, abs=0.2)
    sizes = set(re.findall(r"font-size: ([\d.]+)px", str(ElementTree.tostring(root))))
    assert sizes == {"6"}  # whatever the width


def test_a_venue_that_is_none_or_contradicted_is_refused():
    with pytest.raises(UnknownName, match=r"no venue 'nips'\. Did you mean neurips"):
        Paper(venue="nips")
    with pytest.raises(BadOption, match=r"cvpr is 82\.55 mm wide, and width_mm=120 came"):
        Paper(venue="cvpr", width_mm=120)


@pytest.mark.parametrize(
    ("panels", "each"), [(1, 200_000), (2, 100_000), (6, 100_000), (12, 50_000)]
)
def test_photographs_of_many_panels_share_what_a_file_has_room_for(panels, each):
    assert budget_of(panels) == each
    assert budget_of(panels, 0.5) == each
    assert budget_of(panels, 2.0) == (800_000 if panels == 1 else each)  # four columns' area
