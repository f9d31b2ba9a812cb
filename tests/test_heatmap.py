"""Values on the patch grid, their scale, and their way to pixels."""

from __future__ import annotations

from fractions import Fraction

import jaxtyping
import numpy as np
import pytest
from PIL import Image

from attnviz.errors import BadOption, CaptureFailed, UnknownName
from attnviz.heatmap import INTERPOLATIONS, Heatmap, place, resample, shared_scale
from attnviz.scale import Scale, choose_scale, numbers


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user runs it: without the shape checks of the tests, which would come first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def heat(values=((0, 1, 2), (3, 4, 5)), *, size=(30, 20), box=None, **changes) -> Heatmap:
    return Heatmap(
        **{
            "values": values if isinstance(values, np.ndarray) else np.array(values, np.float32),
            "unit": "attention weight",
            "title": "Attention",
            "facts": (("method", "Attention"), ("head", "3"), ("query", "cls token")),
            "image": Image.new("RGB", size, (90, 120, 30)),
            "box": box or (0.0, 0.0, float(size[0]), float(size[1])),
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("box", "drawn"),
    [
        (None, [0, 1, 2, 3, 4, 5]),
        ((0.0, -20.0, 30.0, 20.0), [3, 4, 5]),  # the first row lies above the picture
        ((0.0, -19.0, 30.0, 21.0), [0, 1, 2, 3, 4, 5]),  # all but a pixel of it
        ((-10.0, 0.0, 50.0, 20.0), [0, 1, 3, 4]),  # a column a third to the right of it
        ((-10.0, 0.0, 20.0, 20.0), [1, 2, 4, 5]),
        ((5.0, 5.0, 15.0, 15.0), [0, 1, 2, 3, 4, 5]),  # a crop
    ],
)
def test_what_lies_in_the_padding_is_not_drawn_and_sets_no_scale(box, drawn) -> None:
    assert heat(box=box).drawn.tolist() == drawn


# --- the record ---------------------------------------------------------------------------------


def test_values_are_a_read_only_copy() -> None:
    given = np.zeros((2, 3), np.float32)
    made = heat(given)
    given[0, 0] = 7
    assert made.values.dtype == np.float32
    assert made.values[0, 0] == 0
    assert made.grid == (2, 3)
    with pytest.raises(ValueError, match="read-only"):
        made.values[0, 0] = 1


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"values": [1.0, 2.0]}, BadOption, r"shape \(2,\)"),
        ({"values": np.zeros((0, 3))}, BadOption, r"shape \(0, 3\)"),
        ({"values": np.zeros((1, 2, 1))}, BadOption, r"shape \(1, 2, 1\)"),
        ({"values": np.zeros((1, 2, 4))}, BadOption, r"shape \(1, 2, 4\).* three to draw as a"),
        ({"values": np.zeros((1, 2, 3, 3))}, BadOption, r"shape \(1, 2, 3, 3\)"),
        ({"values": np.zeros((0, 2, 3))}, BadOption, r"shape \(0, 2, 3\)"),
        ({"values": np.full((1, 2, 3), np.nan)}, CaptureFailed, "6 of 6 values"),
        ({"values": [[np.nan, 1.0], [2.0, -np.inf]]}, CaptureFailed, "2 of 4 values"),
        ({"values": np.array([[1e39, 0.0]])}, CaptureFailed, "1 of 2 values"),
        ({"box": (5.0, 0.0, 5.0, 20.0)}, BadOption, "must have an area"),
        ({"box": (10.0, 0.0, 5.0, 20.0)}, BadOption, "must have an area"),
        ({"box": (0.0, 0.0, 30.0, float("inf"))}, BadOption, "must have an area"),
        ({"box": (30.0, 0.0, 60.0, 20.0)}, BadOption, "meet the picture, which is 30 × 20"),
        ({"box": (0.0, -9.0, 30.0, 0.0)}, BadOption, "meet the picture"),
        ({"image": Image.new("L", (30, 20))}, BadOption, "mode RGB is expected, L came"),
        ({"query_cell": (2, 0)}, BadOption, r"\(2, 0\) is not in the 2 × 3 grid"),
    ],
)
def test_what_cannot_be_drawn_is_refused(unchecked, changes, error, says) -> None:
    with pytest.raises(error, match=says):
        heat(**changes)


def test_whole_numbers_and_doubles_are_taken_too(unchecked) -> None:
    made = heat(np.eye(3), box=(0, 0, 30, 20))
    assert made.values.dtype == np.float32
    assert made.box == (0.0, 0.0, 30.0, 20.0)


def test_a_patch_lies_in_its_part_of_the_box() -> None:
    made = heat([[0, 0]] * 4, size=(100, 50), box=(10.0, -6.0, 30.0, 50.0))
    assert made.cell_box(0, 0) == (10.0, -6.0, 20.0, 8.0)
    assert made.cell_box(3, 1) == (20.0, 36.0, 30.0, 50.0)


def test_the_summary_says_every_fact_once() -> None:
    facts = (("method", "Attention"), ("layer", "layer 3 of 0-11"), ("query", "cls token"))
    assert heat(facts=facts).summary == "Attention; layer 3 of 0-11; query: cls token"


# --- three values a patch ------------------------------------------------------------------------

THREE = np.array([[[0, -5, 2], [1, 5, 2]], [[4, 0, 2], [2, 1, 2]]], np.float32)


def test_a_patch_may_have_three_values() -> None:
    made = heat(THREE)
    assert made.in_colour and not heat().in_colour
    assert made.grid == (2, 2)
    assert made.cell_box(1, 1) == (15.0, 10.0, 30.0, 20.0)


def test_three_values_of_a_padding_are_not_drawn_either() -> None:
    made = heat(THREE, box=(0.0, -20.0, 30.0, 20.0))  # the upper row lies above the picture
    np.testing.assert_array_equal(made.drawn, THREE[1])


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_three_values_are_resampled_each_by_itself(interpolation) -> None:
    placement = place((2, 2), (0.25, -1.0, 8.5, 7.0), (6, 9))
    drawn = INTERPOLATIONS[interpolation](THREE, placement)
    assert drawn.shape == (6, 8, 3)
    for at in range(3):
        alone = INTERPOLATIONS[interpolation](THREE[..., at], placement)
        np.testing.assert_array_equal(drawn[..., at], alone)


# --- scales -------------------------------------------------------------------------------------

RAMP = np.arange(101, dtype=np.float32)


@pytest.mark.parametrize(
    ("values", "scale", "clip", "low", "high", "name"),
    [
        ([2.0, 6.0, 3.0], "own", None, 2, 6, "lowest to highest value"),
        ([2.0, 6.0, 3.0], "zero", None, 0, 6, "from zero"),
        ([-2.0, 6.0], "zero", None, -2, 6, "from zero"),
        ([-6.0, -2.0], "zero", None, -6, 0, "from zero"),
        (RAMP, "own", 99.0, 1, 99, "lowest to highest value, clipped at percentiles 1 and 99"),
        (
            RAMP,
            "own",
            97.5,
            2.5,
            97.5,
            "lowest to highest value, clipped at percentiles 2.5 and 97.5",
        ),
        (RAMP, "zero", 90.0, 0, 90, "from zero, clipped at percentile 90"),
        (RAMP - 100, "zero", 90.0, -90, 0, "from zero, clipped at percentile 10"),
        (RAMP - 50, "zero", 90.0, -40, 40, "from zero, clipped at percentiles 10 and 90"),
        (RAMP, "own", 100.0, 0, 100, "lowest to highest value, clipped at percentiles 0 and 100"),
        ([3.0, 3.0], "own", None, 3, 3, "lowest to highest value; constant map"),
        ([3.0, 3.0], "own", 99.0, 3, 3, "lowest to highest value; constant map"),
        ([3.0, 3.0], "zero", None, 0, 3, "from zero; constant map"),
        ([0.0, 0.0], "zero", None, 0, 0, "from zero; constant map"),
        ([-3.0, -3.0], "own", None, -3, -3, "lowest to highest value; constant map"),
    ],
)
def test_the_ends_of_a_scale(values, scale, clip, low, high, name) -> None:
    chosen = choose_scale(np.asarray(values, np.float32), scale, clip=clip)
    assert (chosen.low, chosen.high) == (pytest.approx(low), pytest.approx(high))
    assert chosen.name == name


def test_rounding_noise_is_a_constant_map_and_small_differences_are_not() -> None:
    third = np.float32(1 / 3)
    noise = np.array([third, np.nextafter(third, np.float32(1)), third], np.float32)
    assert choose_scale(noise).flat
    assert (choose_scale(noise).position(noise) == 0).all()
    real = np.array([0.3333, 0.3334], np.float32)
    assert choose_scale(real).position(real).tolist() == [0, 1]


def test_a_hot_patch_stays_hot_where_clipping_leaves_no_range() -> None:
    values = np.zeros(400, np.float32)
    values[7] = 5
    chosen = choose_scale(values, clip=99.0)
    assert chosen.flat
    assert chosen.position(values).nonzero()[0].tolist() == [7]


def test_positions_by_hand_and_cut_off_at_the_ends() -> None:
    values = np.array([-9.0, 2.0, 3.0, 4.0, 9.0], np.float32)
    assert Scale(2.0, 4.0, "mine").position(values).tolist() == [0, 0, 0.5, 1, 1]


@pytest.mark.parametrize("ends", [(2.0, 1.0), (float("nan"), 1.0), (0.0, float("inf"))])
def test_a_scale_needs_ends_in_order(ends) -> None:
    with pytest.raises(BadOption, match="from a low to a high finite number"):
        Scale(*ends, "mine")


@pytest.mark.parametrize("clip", [50.0, 0.0, 101.0, -99.0, float("nan"), "99"])
@pytest.mark.parametrize("values", [RAMP, np.ones(4, np.float32)])
def test_clip_is_a_percentile(unchecked, clip, values) -> None:
    with pytest.raises(BadOption, match="clip is a percentile above 50"):
        choose_scale(values, clip=clip)


def test_a_scale_by_a_wrong_name_or_with_a_second_clip() -> None:
    with pytest.raises(UnknownName, match="own"):
        choose_scale(RAMP, "onw")
    with pytest.raises(BadOption, match="leave clip out"):
        choose_scale(RAMP, Scale(0.0, 1.0, "mine"), clip=99.0)


def test_a_ready_scale_is_used_as_it_is() -> None:
    mine = Scale(-1.0, 7.0, "mine")
    assert choose_scale(RAMP, mine) is mine


def test_maps_share_a_scale_only_in_one_unit() -> None:
    first, second = heat([[1.0, 2.0]]), heat([[-4.0], [1.5]])
    shared = shared_scale([first, second])
    assert (shared.low, shared.high) == (-4, 2)
    assert shared.name == "lowest to highest value, shared by 2 maps"
    with pytest.raises(BadOption, match="attention weight, cosine"):
        shared_scale([first, heat(unit="cosine")])
    with pytest.raises(BadOption, match="no map"):
        shared_scale([])
    with pytest.raises(BadOption, match="three came"):
        shared_scale([heat(THREE), first])


@pytest.mark.parametrize(
    ("values", "span", "texts"),
    [
        ([0.00042, 0.5, 1234.0], 0.0, ("0.00042", "0.5", "1.23e+03")),
        ([0.9991, 0.9999], 0.0008, ("0.9991", "0.9999")),
        ([0.0, -0.0, 3e-7], 0.0, ("0", "0", "3e-07")),
        ([], 0.0, ()),
    ],
)
def test_numbers_show_what_differs(values, span, texts) -> None:
    assert numbers(np.array(values), span) == texts


# --- pixels -------------------------------------------------------------------------------------

# (rows, cols), box (left, top, right, bottom), (height, width)
PLACES = [
    ((2, 3), (0.0, 0.0, 9.0, 4.0), (4, 9)),
    ((3, 2), (0.0, 0.0, 7.0, 11.0), (11, 7)),
    ((2, 2), (3.0, 1.0, 7.0, 5.0), (6, 12)),  # a crop
    ((4, 3), (-2.0, -3.0, 10.0, 13.0), (10, 8)),  # padding
    ((3, 5), (1.25, 0.75, 9.5, 6.25), (8, 10)),  # edges between pixels
    ((5, 7), (0.0, 0.0, 3.0, 2.0), (2, 3)),  # fewer pixels than patches
    ((1, 1), (0.0, 0.0, 5.0, 5.0), (5, 5)),
    ((2, 2), (0.6, 0.6, 1.4, 1.4), (4, 4)),  # no pixel's centre lies inside
]


def exact_cell(pixel: int, start: float, end: float, count: int) -> int | None:
    """The cell whose half-open stretch holds the pixel's centre, by search in exact numbers."""
    centre = Fraction(pixel) + Fraction(1, 2)
    step = (Fraction(end) - Fraction(start)) / count
    for cell in range(count):
        if Fraction(start) + cell * step <= centre < Fraction(start) + (cell + 1) * step:
            return cell
    return None


@pytest.mark.parametrize(("grid", "box", "size"), PLACES)
def test_nearest_gives_each_pixel_its_patch(grid, box, size) -> None:
    values = np.arange(1, grid[0] * grid[1] + 1, dtype=np.float32).reshape(grid)
    pixels, inside = resample(values, box, size)
    for y in range(size[0]):
        for x in range(size[1]):
            row = exact_cell(y, box[1], box[3], grid[0])
            col = exact_cell(x, box[0], box[2], grid[1])
            covered = row is not None and col is not None
            assert inside[y, x] == covered
            if covered:
                assert pixels[y, x] == values[row, col]
            else:
                assert np.isnan(pixels[y, x])


@pytest.mark.parametrize(("grid", "box", "size"), PLACES)
def test_bilinear_is_a_sum_of_tents(grid, box, size) -> None:
    values = np.random.default_rng(3).normal(size=grid).astype(np.float32)
    pixels, inside = resample(values, box, size, "bilinear")
    assert (inside == resample(values, box, size)[1]).all()
    for y, x in zip(*inside.nonzero(), strict=True):
        down = (y + 0.5 - box[1]) / (box[3] - box[1]) * grid[0] - 0.5
        across = (x + 0.5 - box[0]) / (box[2] - box[0]) * grid[1] - 0.5
        down, across = min(max(down, 0), grid[0] - 1), min(max(across, 0), grid[1] - 1)
        expected = sum(
            values[row, col] * max(0, 1 - abs(row - down)) * max(0, 1 - abs(col - across))
            for row in range(grid[0])
            for col in range(grid[1])
        )
        assert pixels[y, x] == pytest.approx(expected, abs=1e-5)


def test_bilinear_by_hand() -> None:
    pixels, _ = resample(np.array([[0, 1]], np.float32), (0.0, 0.0, 4.0, 1.0), (1, 4), "bilinear")
    assert pixels.tolist() == [[0, 0.25, 0.75, 1]]


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_symmetric_stays_symmetric(interpolation) -> None:
    values = np.array([[1, 2, 1], [4, 9, 4], [4, 9, 4], [1, 2, 1]], np.float32)
    pixels, _ = resample(values, (0.0, 0.0, 21.0, 20.0), (20, 21), interpolation)
    np.testing.assert_allclose(pixels, pixels[::-1], atol=1e-6)
    np.testing.assert_allclose(pixels, pixels[:, ::-1], atol=1e-6)


def test_a_constant_map_stays_constant_to_the_last_bit() -> None:
    values = np.full((3, 5), 1 / 3, np.float32)
    pixels, _ = resample(values, (0.0, 0.0, 17.0, 13.0), (13, 17), "bilinear")
    assert (pixels == values[0, 0]).all()


def test_an_unknown_interpolation() -> None:
    with pytest.raises(UnknownName, match="bilinear"):
        resample(np.ones((2, 2), np.float32), (0.0, 0.0, 4.0, 4.0), (4, 4), "bilinera")
