import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from timm.data import create_transform

from attnviz.contract import as_fit
from attnviz.errors import BadOption, UnknownName
from models import preprocess
from models.preprocess import Recipe, fit_image, normalise, pixels_of, require_input
from models.sizes import as_size, aspect_size, require_multiples

IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}

PICTURES = [(1, 1), (2, 7), (9, 640), (640, 9), (224, 224), (255, 256), (300, 451), (451, 300)]
TARGETS = [(224, 224), (42, 42), (28, 70), (96, 32)]
RECIPES = [
    Recipe(crop_pct=0.875, interpolation="bilinear", **IMAGENET),
    Recipe(crop_pct=0.9),
    Recipe(crop_pct=0.95, interpolation="nearest"),
    Recipe(crop_pct=1.0, **IMAGENET),
    Recipe(crop_pct=0.9, crop_mode="squash"),
    Recipe(crop_pct=1.0, crop_mode="squash", interpolation="lanczos"),
    Recipe(crop_pct=0.9, crop_mode="border", **IMAGENET),
    Recipe(crop_pct=1.0, crop_mode="border"),
]


def noise(rows, cols):
    """Noise: each pixel that is off by one shows."""
    pixels = np.random.default_rng(rows * 1000 + cols).integers(0, 256, (rows, cols, 3))
    return Image.fromarray(pixels.astype(np.uint8))


def timm_crop(image, size, recipe, **options):
    transform = create_transform(
        (3, *size),
        is_training=False,
        interpolation=recipe.interpolation,
        mean=recipe.mean,
        std=recipe.std,
        crop_pct=recipe.crop_pct,
        crop_mode=recipe.crop_mode,
        **options,
    )
    return transform(image)


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
@pytest.mark.parametrize("picture", PICTURES)
def test_crop_is_timms_evaluation_transform_pixel_for_pixel(picture, recipe):
    image = noise(*picture)
    for size in TARGETS:
        if recipe.crop_mode == "border" and max(picture) > 4 * min(picture):
            continue  # timm fails where a strip would be less than a pixel wide
        pixels, _ = fit_image(image, size, fit="crop", recipe=recipe)
        expected = timm_crop(image, size, recipe, normalize=False)
        np.testing.assert_array_equal(pixels, expected.permute(1, 2, 0).numpy())


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(crop_mode="border")], ids=str)
@pytest.mark.parametrize("picture", [(1, 900), (900, 1)])
def test_the_thinnest_strip_keeps_one_row_or_column_between_borders(picture, recipe):
    fit = "crop" if recipe.crop_mode == "border" else "pad"
    pixels, _ = fit_image(Image.new("RGB", picture[::-1]), (56, 56), fit=fit, recipe=recipe)
    black = (pixels == 0).all(axis=2)
    assert black.sum() == 56
    assert black.all(axis=int(picture[0] == 1)).sum() == 1


@pytest.mark.parametrize("recipe", RECIPES[:2], ids=str)
def test_normalised_crop_is_timms_bit_for_bit(recipe):
    image = noise(80, 123)
    pixels, _ = fit_image(image, (56, 70), fit="crop", recipe=recipe)
    assert torch.equal(normalise(pixels, recipe)[0], timm_crop(image, (56, 70), recipe))


@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
@pytest.mark.parametrize("picture", [(300, 451), (64, 900), (900, 64), (17, 2000), (2000, 17)])
def test_without_the_picture_in_between_a_crop_of_noise_differs_by_two_grey_levels_at_most(
    monkeypatch, picture, interpolation
):
    recipe = Recipe(crop_pct=0.9, interpolation=interpolation)
    expected = timm_crop(noise(*picture), (98, 98), recipe, normalize=False).permute(1, 2, 0)
    monkeypatch.setattr(preprocess, "LARGEST_RESIZED", 0)
    pixels, _ = fit_image(noise(*picture), (98, 98), fit="crop", recipe=recipe)
    off = np.abs(pixels.astype(int) - expected.numpy().astype(int))
    assert off.max() <= 2
    assert off.mean() < 0.05


def test_cropping_a_long_strip_never_makes_the_whole_strip_large(monkeypatch):
    made = []
    resize = Image.Image.resize
    monkeypatch.setattr(
        Image.Image, "resize", lambda *args, **kw: made.append(args[1]) or resize(*args, **kw)
    )
    fit_image(noise(20, 10_000), (518, 518), fit="crop", recipe=Recipe())
    assert made == [(518, 20), (518, 518)]


BOXES = [
    # picture (rows, cols), size, fit, recipe, box (left, top, right, bottom) worked out by hand
    ((200, 400), (100, 100), "crop", Recipe(), (100, 0, 300, 200)),
    ((200, 400), (100, 100), "crop", Recipe(crop_pct=0.5), (150, 50, 250, 150)),
    ((200, 400), (100, 100), "crop", Recipe(crop_pct=0.5, crop_mode="squash"), (100, 50, 300, 150)),
    ((200, 400), (100, 100), "crop", Recipe(crop_mode="border"), (0, -100, 400, 300)),
    ((400, 200), (100, 100), "crop", Recipe(), (0, 100, 200, 300)),
    ((400, 200), (50, 100), "crop", Recipe(), (0, 150, 200, 250)),
    ((200, 400), (100, 100), "squash", Recipe(crop_pct=0.5), (0, 0, 400, 200)),
    ((200, 400), (56, 112), "aspect", Recipe(crop_pct=0.5), (0, 0, 400, 200)),
    ((200, 400), (100, 100), "pad", Recipe(crop_pct=0.5), (0, -100, 400, 300)),
    ((400, 200), (100, 100), "pad", Recipe(), (-100, 0, 300, 400)),
    ((1, 1), (14, 28), "pad", Recipe(), (-0.5, 0, 1.5, 1)),
]


@pytest.mark.parametrize(("picture", "size", "fit", "recipe", "box"), BOXES)
def test_box_by_hand(picture, size, fit, recipe, box):
    pixels, found = fit_image(noise(*picture), size, fit=fit, recipe=recipe)
    assert pixels.shape == (*size, 3)
    assert pixels.dtype == np.uint8
    assert found == pytest.approx(box)


@pytest.mark.parametrize("fit", ["crop", "squash", "pad", "aspect"])
@pytest.mark.parametrize("picture", [(150, 250), (250, 150), (251, 249)])
@pytest.mark.parametrize("size", [(98, 98), (56, 112)])
def test_box_is_where_the_pixels_came_from(picture, size, fit):
    """A picture whose red says its column and whose green its row says where a pixel came from."""
    rows, cols = picture
    row, col = np.mgrid[:rows, :cols]
    image = Image.fromarray(np.stack([col, row, col * 0], axis=-1).astype(np.uint8))
    recipe = Recipe(interpolation="bilinear", crop_pct=0.9)
    pixels, (left, top, right, bottom) = fit_image(image, size, fit=fit, recipe=recipe)
    came_from_col = left + (np.arange(size[1]) + 0.5) * (right - left) / size[1] - 0.5
    came_from_row = top + (np.arange(size[0]) + 0.5) * (bottom - top) / size[0] - 0.5
    inner_col = (came_from_col > 5) & (came_from_col < cols - 6)
    inner_row = (came_from_row > 5) & (came_from_row < rows - 6)
    seen = pixels[inner_row][:, inner_col]
    assert seen.size
    assert np.abs(seen[..., 0] - came_from_col[inner_col]).max() <= 1
    assert np.abs(seen[..., 1] - came_from_row[inner_row][:, None]).max() <= 1


def test_pad_keeps_the_whole_picture_and_paints_the_rest_in_the_mean_colour():
    recipe = Recipe(**IMAGENET)
    image = noise(30, 60)
    pixels, _ = fit_image(image, (30, 30), fit="pad", recipe=recipe)
    assert np.array_equal(
        pixels[7:22], np.asarray(image.resize((30, 15), Image.Resampling.BICUBIC))
    )
    border = np.concatenate([pixels[:7], pixels[22:]])
    assert (border == (124, 116, 104)).all()  # 255 × ImageNet's mean
    assert normalise(border, recipe).abs().max() < 0.01


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "CMYK", "1"])
def test_other_kinds_of_picture_are_read_as_rgb(mode):
    image = noise(20, 30).convert(mode)
    pixels, _ = fit_image(image, (20, 30), fit="squash", recipe=Recipe())
    assert np.array_equal(pixels, np.asarray(image.convert("RGB")))


def test_the_picture_is_left_alone():
    image = noise(30, 50)
    before = np.array(image)
    pixels, _ = fit_image(image, (30, 50), fit="squash", recipe=Recipe())
    pixels[:] = 0
    assert np.array_equal(np.asarray(image), before)


def test_there_is_no_fit_and_no_interpolation_of_that_name():
    with pytest.raises(UnknownName, match="squash"):
        as_fit("squeeze")
    with pytest.raises(UnknownName, match="bicubic"):
        Recipe(interpolation="bicubik")


ASPECTS = [
    # picture (rows, cols), patches, the grid that a person would choose
    ((20, 10_000), 1369, (2, 684)),  # one row of 500 would be true to shape but small
    ((10_000, 20), 1369, (684, 2)),
    ((1, 1), 1369, (37, 37)),
    ((7, 7), 1, (1, 1)),
    ((300, 1), 1, (1, 1)),
    ((600, 600), 196, (14, 14)),
    ((600, 800), 192, (12, 16)),
    ((600, 800), 196, (12, 16)),
    ((400, 600), 1369, (30, 45)),
    ((600, 400), 1369, (45, 30)),
    ((900, 1600), 144, (9, 16)),
    ((100, 250), 16, (2, 5)),  # true to shape, rather than 3 × 5 and 15 patches
    ((500, 700), 100, (8, 11)),  # 1.375 is nearer to 1.4 than 8 × 12 is
]


@pytest.mark.parametrize(("picture", "patches", "grid"), ASPECTS)
def test_aspect_size_by_hand(picture, patches, grid):
    size = aspect_size(picture, patch=(14, 14), patches=patches)
    assert size == (grid[0] * 14, grid[1] * 14)


def test_aspect_size_with_oblong_patches():
    # 8 × 16 patches of 16 × 8 pixels are a square of 128.
    assert aspect_size((50, 50), patch=(16, 8), patches=128) == (128, 128)


@given(
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.sampled_from([8, 14, 16]),
    st.integers(1, 1500),
)
def test_aspect_size_is_within_its_patches_and_near_the_shape(rows, cols, patch, patches):
    height, width = aspect_size((rows, cols), patch=(patch, patch), patches=patches)
    assert height % patch == width % patch == 0
    used = (height // patch) * (width // patch)
    assert 1 <= used <= patches
    shape = math.log(cols / rows)
    if abs(shape) < math.log(3) and patches >= 100:
        assert abs(math.log(width / height) - shape) < 0.12
        assert used >= 0.8 * patches


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(**IMAGENET)], ids=str)
def test_pixels_come_back_from_the_normalised_tensor(recipe):
    pixels = np.stack([np.arange(256).reshape(8, 32)] * 3, axis=-1).astype(np.uint8)
    pixels[..., 1] = 255 - pixels[..., 1]
    assert np.array_equal(pixels_of(normalise(pixels, recipe), recipe), pixels)


def test_pixels_out_of_range_are_clipped_not_wrapped():
    tensor = torch.tensor([-9.0, 9.0]).reshape(1, 1, 1, 2).expand(1, 3, 1, 2)
    assert pixels_of(tensor, Recipe())[..., 0].tolist() == [[0, 255]]


BAD_INPUTS = [
    (np.zeros((1, 3, 28, 28)), "ndarray"),
    (torch.zeros(3, 28, 28), r"\(3, 28, 28\)"),
    (torch.zeros(2, 3, 28, 28), r"\(2, 3, 28, 28\)"),
    (torch.zeros(1, 4, 28, 28), r"\(1, 4, 28, 28\)"),
    (torch.zeros(1, 28, 28, 3), r"\(1, 28, 28, 3\)"),
    (torch.zeros(1, 3, 28, 28, dtype=torch.uint8), "uint8"),
    (torch.full((1, 3, 28, 28), math.nan), "NaN"),
    (torch.full((1, 3, 28, 28), -math.inf), "infinity"),
]


@pytest.mark.parametrize(("tensor", "says"), BAD_INPUTS)
def test_an_input_that_is_none_is_refused(tensor, says):
    with pytest.raises(BadOption, match=says):
        require_input(tensor)


@pytest.mark.parametrize(
    "given", [0, -14, 14.0, True, "224", None, (), (14,), (14, 28, 3), (14, 0)]
)
def test_no_image_size(given):
    with pytest.raises(BadOption, match="rows, cols"):
        as_size(given)


def test_image_size_as_number_or_pair():
    assert as_size(224) == (224, 224)
    assert as_size((14, 28)) == as_size([14, 28]) == (14, 28)


BAD_MULTIPLES = [
    ((225, 224), "224 or 240 rows, 224 columns"),
    ((5, 100), "16 rows, 96 or 112 columns"),
    ((0, 16), "16 rows, 16 columns"),
    ((16, -3), "16 rows, 16 columns"),
]


@pytest.mark.parametrize(("size", "says"), BAD_MULTIPLES)
def test_a_size_that_patches_do_not_tile_names_the_nearest_that_they_do(size, says):
    with pytest.raises(BadOption, match=says):
        require_multiples(size, (16, 16))
