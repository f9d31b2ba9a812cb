"""Colours: the hottest value gets the hottest colour, and it lies where its patch lies."""

from __future__ import annotations

import jaxtyping
import numpy as np
import pytest
from PIL import Image

from attnviz.colour import (
    BAND,
    COLORMAPS,
    bounded,
    colour_bar,
    colourise,
    fit_within,
    mask_image,
    outlined,
    overlay,
    stretched,
    ticks,
)
from attnviz.errors import BadOption, CaptureFailed, UnknownName
from attnviz.heatmap import Heatmap, resample
from attnviz.mass import mass_mask
from attnviz.mosaic import mosaic
from attnviz.scale import Scale, choose_scale

UNIT = Scale(0.0, 1.0, "0 to 1")

# Published first and last colours of the palettes.
ENDS = {
    "inferno": ("000004", "fcffa4"),
    "viridis": ("440154", "fde725"),
    "cividis": ("00224e", "fee838"),
    "magma": ("000004", "fcfdbf"),
    "plasma": ("0d0887", "f0f921"),
    "gray": ("000000", "ffffff"),
}
TOP = tuple(bytes.fromhex(ENDS["inferno"][1]))


def photo(width: int, height: int) -> Image.Image:
    """Noise without the top colour of inferno."""
    noise = np.random.default_rng(1).integers(0, 200, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(noise)


def heat(values, image: Image.Image, box=None, **changes) -> Heatmap:
    return Heatmap(
        **{
            "values": np.asarray(values, dtype=np.float32),
            "unit": "attention weight",
            "title": "Attention",
            "facts": (),
            "image": image,
            "box": box or (0.0, 0.0, float(image.width), float(image.height)),
            **changes,
        }
    )


def luminance(colours: np.ndarray) -> np.ndarray:
    """Relative luminance of sRGB colours (IEC 61966-2-1)."""
    part = colours / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


# --- palettes -----------------------------------------------------------------------------------


def test_every_palette_is_tested_and_jet_is_not_there() -> None:
    assert set(COLORMAPS) == set(ENDS)


@pytest.mark.parametrize("name", ENDS)
def test_hotter_in_hotter_colour(name) -> None:
    values = np.linspace(0, 1, 32, dtype=np.float32)
    assert (np.diff(luminance(colourise(values, UNIT, name))) > 0).all()


@pytest.mark.parametrize("name", ENDS)
def test_the_ends_have_the_published_colours(name) -> None:
    colours = colourise(np.array([-5.0, 0.0, 1.0, 5.0], np.float32), UNIT, name)
    assert [bytes(colour).hex() for colour in colours] == [
        ENDS[name][0],
        ENDS[name][0],
        ENDS[name][1],
        ENDS[name][1],
    ]


def test_the_range_is_cut_into_256_equal_steps() -> None:
    # gray's colour is its step: value v of 0..1 falls into step floor(256 v)
    values = np.array([0, 0.0039, 0.0040, 0.5, 0.9960, 0.9961, 1], np.float32)
    assert colourise(values, UNIT, "gray")[:, 0].tolist() == [0, 0, 1, 128, 254, 255, 255]


def test_a_palette_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        COLORMAPS["inferno"][0] = 0


def test_an_unknown_palette_names_the_near_ones() -> None:
    with pytest.raises(UnknownName, match="viridis"):
        colourise(np.ones(2, np.float32), UNIT, "virdis")


# --- overlay ------------------------------------------------------------------------------------

# (rows, cols), hottest (row, col), picture (width, height), box
PLACES = [
    ((2, 3), (1, 2), (9, 4), None),
    ((3, 2), (0, 1), (14, 30), None),
    ((4, 4), (0, 3), (40, 20), (10.0, 0.0, 30.0, 20.0)),  # a crop
    ((4, 4), (1, 3), (20, 10), (0.0, -5.0, 20.0, 15.0)),  # padding above and below
    ((4, 4), (0, 0), (21, 13), (-4.5, -2.25, 25.5, 15.25)),  # a patch that is partly outside
    ((3, 5), (2, 4), (31, 17), (1.25, 0.75, 29.5, 16.25)),  # edges between pixels
]


@pytest.mark.parametrize(("grid", "hot", "size", "box"), PLACES)
def test_the_top_colour_lies_on_exactly_the_hottest_patch(grid, hot, size, box) -> None:
    values = np.random.default_rng(2).uniform(0, 0.9, grid)
    values[hot] = 1
    picture = photo(*size)
    drawn = np.asarray(overlay(heat(values, picture, box), alpha=1.0))
    assert drawn.shape == (size[1], size[0], 3)
    left, top, right, bottom = box or (0, 0, *size)
    high, wide = (bottom - top) / grid[0], (right - left) / grid[1]
    on_patch = np.zeros(drawn.shape[:2], bool)
    in_box = np.zeros(drawn.shape[:2], bool)
    for y in range(size[1]):
        for x in range(size[0]):
            row, col = (y + 0.5 - top) / high, (x + 0.5 - left) / wide
            on_patch[y, x] = hot[0] <= row < hot[0] + 1 and hot[1] <= col < hot[1] + 1
            in_box[y, x] = 0 <= row < grid[0] and 0 <= col < grid[1]
    assert on_patch.any()
    np.testing.assert_array_equal((drawn == TOP).all(-1), on_patch)
    np.testing.assert_array_equal(drawn[~in_box], np.asarray(picture)[~in_box])


def test_alpha_0_is_the_picture_and_leaves_the_original_alone() -> None:
    picture = photo(16, 10)
    before = picture.tobytes()
    made = heat(np.arange(6).reshape(2, 3), picture)
    assert overlay(made, alpha=0.0).tobytes() == before
    overlay(made, alpha=1.0)
    assert picture.tobytes() == before


def test_alpha_mixes_picture_and_colour() -> None:
    picture = photo(16, 10)
    made = heat(np.arange(6).reshape(2, 3), picture)
    pure = np.asarray(overlay(made, alpha=1.0)).astype(float)
    mixed = np.asarray(overlay(made, alpha=0.25)).astype(float)
    np.testing.assert_allclose(mixed, 0.75 * np.asarray(picture) + 0.25 * pure, atol=1)


def test_a_constant_map_is_flat() -> None:
    made = heat(np.full((5, 7), 1 / 35), photo(97, 61))
    for interpolation in ("nearest", "bilinear"):
        drawn = np.asarray(overlay(made, alpha=1.0, interpolation=interpolation))
        assert len(np.unique(drawn.reshape(-1, 3), axis=0)) == 1


def test_smoothing_keeps_symmetry_and_goes_over_bands() -> None:
    values = np.array([[1, 2, 1], [4, 9, 4], [4, 9, 4], [1, 2, 1]])
    height = 2 * BAND + 6
    made = heat(values, Image.new("RGB", (33, height)))
    drawn = np.asarray(overlay(made, alpha=1.0, interpolation="bilinear", colormap="gray"))
    # A value on the edge between two of the 256 steps may fall to either side.
    np.testing.assert_allclose(drawn.astype(int), drawn[::-1].astype(int), atol=1)
    np.testing.assert_allclose(drawn.astype(int), drawn[:, ::-1].astype(int), atol=1)
    pixels, inside = resample(made.values, made.box, (height, 33), "bilinear")
    assert inside.all()
    np.testing.assert_allclose(drawn[..., 0], ((pixels - 1) / 8 * 256).clip(0, 255), atol=1.01)


# --- three components ---------------------------------------------------------------------------


@pytest.mark.parametrize(("grid", "hot", "size", "box"), PLACES)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_three_components_are_three_gray_maps_in_one(grid, hot, size, box, interpolation) -> None:
    values = np.random.default_rng(2).normal(size=(*grid, 3)) * [1, 10, 100]
    picture = photo(*size)
    drawn = overlay(heat(values, picture, box), alpha=1.0, interpolation=interpolation)
    assert (drawn.mode, drawn.size) == ("RGB", size)
    grays = [
        overlay(
            heat(values[..., at], picture, box),
            alpha=1.0,
            colormap="gray",
            interpolation=interpolation,
        )
        for at in range(3)
    ]
    # Beside the box lies the picture, of which each gray map shows the same.
    expected = np.stack([np.asarray(gray)[..., at] for at, gray in enumerate(grays)], axis=-1)
    np.testing.assert_array_equal(np.asarray(drawn), expected)


def test_a_component_without_a_range_adds_no_colour() -> None:
    made = heat([[[1, 7, 0], [2, 7, 0]]], photo(8, 4))
    drawn = np.asarray(overlay(made, alpha=1.0))
    assert drawn[0, 0].tolist() == [0, 0, 0]
    assert drawn[0, 7].tolist() == [255, 0, 0]


@pytest.mark.parametrize("size", [(20, 10), (80, 40), (7, 9)])
def test_another_size_moves_the_patch_along(size) -> None:
    values = np.zeros((2, 4))
    values[1, 2] = 1
    made = heat(values, photo(40, 20), (8.0, 0.0, 40.0, 20.0))
    drawn = overlay(made, alpha=1.0, size=size)
    assert drawn.size == size
    hot = (np.asarray(drawn) == TOP).all(-1)
    xs, ys = (np.arange(size[0]) + 0.5) / size[0], (np.arange(size[1]) + 0.5) / size[1]
    expected = np.outer(ys >= 0.5, (xs >= 24 / 40) & (xs < 32 / 40))
    np.testing.assert_array_equal(hot, expected)


def test_enlarging_invents_no_colours() -> None:
    picture = photo(5, 4)
    drawn = overlay(heat(np.eye(2), picture), alpha=0.0, size=(23, 17))
    colours = [
        {tuple(colour) for colour in np.asarray(image).reshape(-1, 3).tolist()}
        for image in (drawn, picture)
    ]
    assert colours[0] == colours[1]


def test_scales_are_told_apart() -> None:
    made = heat([[0.5, 1.0]], Image.new("RGB", (2, 1)))
    gray = {"alpha": 1.0, "colormap": "gray"}
    assert np.asarray(overlay(made, **gray))[0, :, 0].tolist() == [0, 255]
    assert np.asarray(overlay(made, scale="zero", **gray))[0, :, 0].tolist() == [128, 255]
    twice = Scale(0.0, 2.0, "shared")
    assert np.asarray(overlay(made, scale=twice, **gray))[0, :, 0].tolist() == [64, 128]


def test_clipping_brings_out_what_one_hot_patch_flattens() -> None:
    values = np.linspace(0, 1, 200).reshape(10, 20)
    values[0, 0] = 1000
    made = heat(values, Image.new("RGB", (20, 10)))
    gray = {"alpha": 1.0, "colormap": "gray"}
    assert np.asarray(overlay(made, **gray))[5, 5, 0] == 0
    assert np.asarray(overlay(made, clip=99.0, **gray))[5, 5, 0] > 100


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"alpha": 1.1}, BadOption, "alpha is from 0"),
        ({"alpha": -0.1}, BadOption, "alpha is from 0"),
        ({"alpha": float("nan")}, BadOption, "nan came"),
        ({"alpha": "0.5"}, BadOption, "'0.5' came"),
        ({"colormap": "jet"}, UnknownName, "no colormap 'jet'"),
        ({"scale": "log"}, UnknownName, "no scale 'log'"),
        ({"clip": 40.0}, BadOption, "clip"),
        ({"interpolation": "bicubic"}, UnknownName, "no interpolation 'bicubic'"),
        ({"size": (0, 4)}, BadOption, "at least 1 pixel"),
    ],
)
def test_options_that_do_not_exist(monkeypatch, options, error, says) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=says):
        overlay(heat(np.eye(2), photo(4, 4)), **options)


# --- mask ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("box", "size", "rows"),
    [
        (None, (6, 4), ["000111", "000111", "111000", "111000"]),
        ((2.0, 1.0, 4.0, 3.0), (6, 4), ["000000", "000100", "001000", "000000"]),
        ((-2.0, 0.0, 2.0, 4.0), (3, 4), ["110", "110", "000", "000"]),  # half outside
        ((0.0, 0.0, 5.0, 2.0), (5, 2), ["00111", "11000"]),  # the middle pixel's centre is right's
        ((0.0, 0.6, 4.0, 2.6), (4, 3), ["0000", "0011", "1100"]),  # centres 0.5 out, 1.5 and 2.5 in
    ],
)
def test_a_mask_lies_where_the_map_lies(box, size, rows) -> None:
    made = heat([[0.0, 1.0], [1.0, 0.0]], photo(*size), box)
    drawn = mask_image(made, made.values > 0)
    assert (drawn.mode, drawn.size) == ("L", size)
    expected = [[255 * int(pixel) for pixel in row] for row in rows]
    assert np.asarray(drawn).tolist() == expected


def test_a_mask_covers_the_pixels_that_the_overlay_colours() -> None:
    values = np.random.default_rng(3).random((3, 5))
    made = heat(values, Image.new("RGB", (61, 47), (255, 255, 255)), (5.3, 2.2, 58.1, 44.9))
    kept = made.values > 0.5
    pixels, _ = resample(kept.astype(np.float32), made.box, (47, 61))
    np.testing.assert_array_equal(np.asarray(mask_image(made, kept)), np.nan_to_num(pixels) * 255)
    assert kept.any() and not kept.all()


def test_a_mask_of_another_grid_is_refused() -> None:
    with pytest.raises(BadOption, match="3 × 2 patches came for a map of 2 × 3"):
        mask_image(heat(np.ones((2, 3)), photo(6, 4)), np.ones((3, 2), bool))


# --- mosaic -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 2, 2, 4), (1, 5, 3, 3), (24, 16, 37, 37), (2, 1, 36, 3)])
def test_a_mosaic_is_equal_cells_with_each_tile_in_its_own(shape) -> None:
    layers, heads, rows, cols = shape
    tiles = np.random.default_rng(4).uniform(0, 0.9, shape).astype(np.float32)
    layer, head, row, col = layers - 1, heads - 1, 0, cols - 1
    tiles[layer, head, row, col] = 1
    made = mosaic(tiles, scale="shared", max_side=400)
    height, width = made.cell
    assert made.image.size == (heads * width, layers * height)
    ys, xs = (np.asarray(made.image) == TOP).all(-1).nonzero()
    patch = round(len(ys) ** 0.5)
    assert len(ys) == patch**2
    assert {made.at(float(x), float(y)) for x, y in zip(xs, ys, strict=True)} == {(layer, head)}
    # upper right corner of the tile, which is centred in its cell
    assert ys.min() == layer * height + (height - rows * patch) // 2
    assert xs.max() + 1 == head * width + (width - cols * patch) // 2 + cols * patch
    assert made.at(*made.centre(layer, head)) == (layer, head)


@pytest.mark.parametrize(
    ("size", "drawn"),
    [
        ((2000, 3), (2000, 167)),
        ((1, 30000), (2500, 30000)),
        ((1200, 100), (1200, 100)),
        ((1201, 100), (1201, 101)),
        ((4, 3), (4, 3)),
    ],
)
def test_a_mere_line_is_stretched_and_it_is_said(size, drawn) -> None:
    assert bounded(size) == drawn
    assert bool(stretched(size)) == (size != drawn)


@pytest.mark.parametrize("columns", [1, 2, 4, 8, 12, 24])
def test_a_mosaic_in_other_lines_has_every_tile_once_and_in_order(columns) -> None:
    tiles = (np.arange(24, dtype=np.float32) + 1).reshape(6, 4, 1, 1) * np.ones((2, 50), np.float32)
    made = mosaic(tiles, scale=Scale(0, 256, "mine"), colormap="gray", columns=columns, max_side=99)
    pixels = np.asarray(made.image)[..., 0]
    for layer, head in np.ndindex(6, 4):
        x, y = made.centre(layer, head)
        assert pixels[int(y), int(x)] == layer * 4 + head + 1
        assert made.at(x, y) == (layer, head)
        line, column = divmod(layer * 4 + head, columns)
        assert (int(y) // made.cell[0], int(x) // made.cell[1]) == (line, column)
    with pytest.raises(BadOption, match="full lines of 5"):
        mosaic(tiles, columns=5)


def test_a_long_tile_is_thick_enough_to_see() -> None:
    tiles = np.random.default_rng(0).uniform(size=(2, 1, 1, 222)).astype(np.float32)
    high, wide = mosaic(tiles, max_side=300).cell
    assert (high, wide) == (2 + 19, 2 + 222)  # 222 / 12, in whole pixels


def test_a_mosaic_keeps_to_its_size_until_a_patch_is_a_pixel() -> None:
    tiles = np.zeros((4, 8, 10, 10), np.float32)
    assert max(mosaic(tiles, max_side=1000).image.size) <= 1000
    assert mosaic(tiles, max_side=1000).cell == (122, 122)  # 12 pixels a patch and the gap of 2
    assert mosaic(tiles, max_side=10).cell == (12, 12)


def test_tiles_have_their_own_range_or_a_shared_one() -> None:
    tiles = np.array([[[[0.0, 1.0]], [[0.0, 100.0]]]], np.float32)

    def brightest(**options) -> list[int]:
        made = mosaic(tiles, colormap="gray", gap=0, max_side=4, **options)
        return np.asarray(made.image)[0, :, 0].tolist()

    assert brightest(scale="own") == [0, 255, 0, 255]
    assert brightest(scale="shared") == [0, 2, 0, 255]
    assert brightest(scale=Scale(0.0, 200.0, "mine")) == [0, 1, 0, 128]
    assert mosaic(tiles).scale is None
    assert mosaic(tiles, scale="shared").scale == choose_scale(tiles)


def test_a_clip_cuts_each_tile_at_its_own_percentiles() -> None:
    """Of 0, 1, 2, 3, 10 the quarters are 1 and 3: colours from 1 to 3, so 2 is step 128 of 256."""
    first = np.array([0.0, 1.0, 2.0, 3.0, 10.0], np.float32)
    tiles = np.stack([first, first * 100]).reshape(1, 2, 1, 5)

    def drawn(**options) -> list[int]:
        made = mosaic(tiles, colormap="gray", gap=0, max_side=10, clip=75.0, **options)
        return np.asarray(made.image)[0, :, 0].tolist()

    assert drawn() == [0, 0, 128, 255, 255] * 2
    # Of all ten 0, 0, 1, 2, 3, 10, 100, 200, 300, 1000 they are 1.25 and 175.
    assert drawn(scale="shared") == [0, 0, 1, 2, 12, 0, 145, 255, 255, 255]


def test_gaps_are_white() -> None:
    drawn = np.asarray(mosaic(np.zeros((2, 2, 3, 3), np.float32), gap=2, max_side=10).image)
    white = (drawn == 255).all(-1)
    np.testing.assert_array_equal(white[0], True)
    np.testing.assert_array_equal(white[:, 4:6], True)
    assert white.sum() == 10 * 10 - 4 * 9


@pytest.mark.parametrize("point", [(-1.0, 0.0), (0.0, 12.0), (12.0, 0.0)])
def test_a_point_outside_the_mosaic(point) -> None:
    with pytest.raises(BadOption, match="outside the mosaic"):
        mosaic(np.zeros((2, 2, 4, 4), np.float32), max_side=12).at(*point)


def test_what_a_mosaic_refuses() -> None:
    tiles = np.zeros((1, 1, 2, 2), np.float32)
    with pytest.raises(UnknownName, match="shared"):
        mosaic(tiles, scale="shraed")
    with pytest.raises(BadOption, match="leave clip out"):
        mosaic(tiles, scale=UNIT, clip=99.0)
    tiles[0, 0, 0, 0] = np.nan
    with pytest.raises(CaptureFailed, match="not finite"):
        mosaic(tiles)


# --- colour bar ---------------------------------------------------------------------------------


def test_the_colour_bar_runs_from_low_to_high() -> None:
    bar = np.asarray(colour_bar(Scale(-3.0, 5.0, "mine"), "viridis", size=(256, 3)))
    assert bar.shape == (3, 256, 3)
    np.testing.assert_array_equal(bar[1], COLORMAPS["viridis"])


def test_the_colour_bar_of_a_flat_scale_has_one_colour() -> None:
    bar = np.asarray(colour_bar(Scale(2.0, 2.0, "constant"), "viridis"))
    assert (bar == COLORMAPS["viridis"][0]).all()
    assert ticks(Scale(2.0, 2.0, "constant")) == ((2.0, "2"),)


def test_ticks_have_true_numbers_and_mark_what_lies_beyond() -> None:
    scale = Scale(0.0, 0.5, "mine")
    assert ticks(scale) == ((0.0, "0"), (0.25, "0.25"), (0.5, "0.5"))
    inside, beyond = np.array([0.0, 0.5]), np.array([-1.0, 0.2, 0.6])
    assert ticks(scale, inside) == ticks(scale)
    assert [text for _, text in ticks(scale, beyond)] == ["≤ 0", "0.25", "≥ 0.5"]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([0.0, 0.0], "0"),
        ([0.0, 1.0], "≥ 0"),
        ([-1.0, 0.0], "≤ 0"),
        ([-1.0, 1.0], "≤ 0 and ≥ 0"),
    ],
)
def test_a_flat_scale_s_number_is_marked_on_both_sides(values, says) -> None:
    assert ticks(Scale(0.0, 0.0, "mine"), np.array(values)) == ((0.0, says),)


@pytest.mark.parametrize(
    ("size", "fitted"),
    [((4000, 3000), (900, 675)), ((300, 200), (300, 200)), ((9000, 1), (900, 1))],
)
def test_fit_within(size, fitted) -> None:
    assert fit_within(size, 900) == fitted


def test_an_outline_runs_along_the_borders_of_the_mask_and_darkens_what_is_outside():
    values = np.zeros((2, 3), np.float32)
    values[0, 1] = 1
    map_ = heat(values, Image.new("RGB", (90, 60), (90, 120, 30)))
    drawn = np.array(outlined(map_, mass_mask(map_.values, 0.6), width=1 / 90))
    plain = np.array(map_.image)
    assert (drawn[15, 45] == plain[15, 45]).all()  # the middle of the kept patch
    assert (drawn[45, 45] <= plain[45, 45] // 3 + 1).all()  # below it
    for row, col in [(15, 30), (15, 60), (30, 45)]:
        near = drawn[row - 1 : row + 2, col - 1 : col + 2].reshape(-1, 3)
        assert (near == 255).all(1).any()
