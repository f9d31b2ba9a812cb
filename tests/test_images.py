"""Odd files: each opens as what it shows, or is refused in one sentence that says why."""

from __future__ import annotations

import io

import picture_files as odd
import pytest
from odd_pictures import OPENED, REFUSED
from picture_files import BLACK, BLUE, GREEN, RED, WHITE, chunk, plain, png, saved
from PIL import Image

from attnviz.errors import BadImage
from attnviz.images import open_image


@pytest.mark.parametrize("name", OPENED)
def test_an_odd_file_opens_as_what_it_shows(name):
    make, size, colours, tolerance = OPENED[name]
    image = open_image(make())
    assert (type(image), image.mode, image.size) == (Image.Image, "RGB", size)
    for place, colour in colours.items():
        assert image.getpixel(place) == pytest.approx(colour, abs=tolerance), place


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_opened_is_refused_in_one_sentence(name, tmp_path):
    make, words = REFUSED[name]
    path = tmp_path / "photo.png"
    path.write_bytes(make())
    with pytest.raises(BadImage, match=words) as caught:
        open_image(path)
    assert_one_sentence(str(caught.value), "photo.png")


def assert_one_sentence(text: str, start: str) -> None:
    assert text.startswith(start)
    assert text.endswith(".") and "\n" not in text and ". " not in text
    assert ": " in text, "what to do follows a colon"


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "AVIF"])
def test_a_file_cut_short_is_refused(form):
    image = Image.effect_noise((64, 48), 80).convert("RGB")
    whole = saved(image, form)
    assert open_image(whole).size == (64, 48)
    for share in (0.1, 0.5, 0.9):
        with pytest.raises(BadImage, match="damaged or"):
            open_image(whole[: int(len(whole) * share)])


@pytest.mark.filterwarnings("default")
def test_a_bomb_is_refused_with_its_size_where_pillow_only_warns():
    with (
        pytest.warns(Image.DecompressionBombWarning),
        pytest.raises(BadImage, match=r"100 megapixels \(10000 × 10000\)"),
    ):
        open_image(odd.png_header((10_000, 10_000)))


def test_a_large_jpeg_is_opened_at_half_its_size():
    wide = plain("L", (6000, 3600), 0)  # 21.6 megapixels
    wide.paste(255, (3000, 0, 6000, 3600))
    image = open_image(saved(wide, "JPEG"))
    assert image.size == (3000, 1800)
    assert image.getpixel((1480, 900)) == BLACK and image.getpixel((1519, 900)) == WHITE


def test_a_jpeg_just_below_the_limit_stays_as_it_is():
    assert open_image(saved(plain("L", (5900, 3600), 0), "JPEG")).size == (5900, 3600)


# Where the picture's stored corners belong once it's upright (Exif 2.32: tag 0x0112 names the
# sides that the 0th row and the 0th column stand for): (top left, top right) of what is stored.
UPRIGHT = {
    1: ("top left", "top right"),
    2: ("top right", "top left"),
    3: ("bottom right", "bottom left"),
    4: ("bottom left", "bottom right"),
    5: ("top left", "bottom left"),
    6: ("top right", "bottom right"),
    7: ("bottom right", "top right"),
    8: ("bottom left", "top left"),
}
WRITTEN = {
    "JPEG": {"quality": 95, "subsampling": 0},
    "PNG": {},
    "WEBP": {"lossless": True},
    "TIFF": {"compression": "tiff_lzw"},
    "AVIF": {"quality": 100, "subsampling": "4:4:4"},
}


@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.parametrize("orientation", UPRIGHT)
def test_a_photo_is_turned_upright(form, orientation):
    tag = Image.Exif()
    tag[0x0112] = orientation
    assert_upright(saved(odd.corners(), form, exif=tag, **WRITTEN[form]), orientation)


def assert_upright(source: object, orientation: int) -> None:
    image = open_image(source)
    width, height = (48, 32) if orientation < 5 else (32, 48)
    assert image.size == (width, height)
    places = {"left": 8, "right": width - 8, "top": 8, "bottom": height - 8}
    for corner, colour in zip(UPRIGHT[orientation], (RED, GREEN), strict=True):
        row, column = corner.split()
        assert image.getpixel((places[column], places[row])) == pytest.approx(colour, abs=12)


def test_orientation_after_the_pixels_of_a_png_counts():
    rows = [bytes([*RED, *GREEN])] * 3
    image = open_image(png((2, 3), 8, 2, rows, after=chunk(b"eXIf", odd.exif(6))))
    assert image.size == (3, 2)
    assert image.getpixel((0, 0)) == RED and image.getpixel((0, 1)) == GREEN


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_an_orientation_that_does_not_exist_is_left_alone(orientation):
    file = png((2, 1), 8, 2, [bytes([*RED, *GREEN])], chunk(b"eXIf", odd.exif(orientation)))
    assert open_image(file).getpixel((0, 0)) == RED


def test_a_picture_is_turned_once():
    tag = Image.Exif()
    tag[0x0112] = 6
    once = open_image(saved(odd.corners(), "PNG", exif=tag))
    assert once.size == (32, 48)
    assert open_image(once).tobytes() == once.tobytes()


@pytest.mark.parametrize(
    "mode", [mode for mode in Image.MODES if mode != "I"] + ["La", "RGBa", "PA"]
)
def test_a_picture_in_memory_opens_and_stays_as_it_was(mode):
    given_image = plain(mode, (6, 4), 1)
    before = given_image.tobytes()
    image = open_image(given_image)
    assert (image.mode, image.size) == ("RGB", (6, 4))
    image.paste(BLUE, (0, 0, 6, 4))
    assert (given_image.mode, given_image.tobytes()) == (mode, before)


def test_a_picture_in_memory_is_turned_by_its_exif():
    image = odd.corners()
    image.getexif()[0x0112] = 8
    assert_upright(image, 8)
    assert image.size == (48, 32) and image.getexif()[0x0112] == 8


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (plain("RGB", (0, 5), 0), "has no pixels: it is 0 × 5"),
        (plain("I", (2, 2), 9), "whole numbers of 32 bits"),
        (plain("1", (30_001, 1), 0), "at most 30000"),
        (plain("1", (10_000, 10_000), 0), "100 megapixels"),
    ],
)
def test_a_picture_in_memory_may_be_refused(image, words):
    with pytest.raises(BadImage, match=words):
        open_image(image)


def test_a_picture_opened_elsewhere_and_damaged_is_refused():
    whole = saved(Image.effect_noise((64, 48), 80), "PNG")
    damaged = Image.open(io.BytesIO(whole[: len(whole) // 2]))
    with pytest.raises(BadImage, match="damaged or cut short"):
        open_image(damaged)
