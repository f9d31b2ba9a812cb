"""No file takes 200 MB to open, raises anything but `BadImage`, or changes Pillow for others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import picture_files as odd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from picture_files import chunk, exif, plain, png, saved
from PIL import Image, ImageFile, PngImagePlugin

import attnviz
from attnviz.errors import BadImage
from attnviz.images import open_image

TURNED = Image.Exif()
TURNED[0x0112] = 6
SIDE = (5300, 4000)  # 21.2 megapixels, of the 21.25 that are opened


def noise(mode: str, size: tuple[int, int] = SIDE) -> Image.Image:
    """Something to compress, in blocks so that it's quick."""
    small = Image.effect_noise((size[0] // 10, size[1] // 10), 90)
    return small.resize(size, Image.Resampling.NEAREST).convert(mode)


def rows(length: int, count: int = SIDE[1]) -> list[bytes]:
    return [bytes(length)] * count


def heavy_tiff(mode: str, **options: object) -> bytes:
    return saved(noise(mode, (5200, 4000)), "TIFF", exif=TURNED, **options)


def texted(letters: int) -> bytes:
    """A small picture with a long text, of 4 bytes a letter in Python because of the last."""
    text = b"key\0\0\0\0\0" + b"a" * letters + "😀".encode()
    return png((2, 2), 8, 0, rows(2, 2), chunk(b"iTXt", text))


HEAVY: dict[str, Callable[[], bytes]] = {  # close to each limit, on the side that opens; and bombs
    "PNG, turned": lambda: png(SIDE, 8, 2, rows(15_900), chunk(b"eXIf", exif(6))),
    "PNG with alpha": lambda: png(SIDE, 8, 6, rows(21_200), chunk(b"eXIf", exif(6))),
    "PNG, grey with alpha": lambda: png(SIDE, 8, 4, rows(10_600)),
    "PNG of 16 bits": lambda: png(SIDE, 16, 0, rows(10_600), chunk(b"eXIf", exif(3))),
    "PNG, a colour clear": lambda: png(SIDE, 8, 2, rows(15_900), chunk(b"tRNS", bytes(6))),
    "PNG of 100 megapixels": odd.pixel_bomb,
    "PNG, long texts": odd.text_bomb,
    "PNG, a long text": lambda: texted(14_000_000),
    "PNG, a longer text": lambda: texted(20_000_000),
    "JPEG, turned": lambda: saved(noise("RGB"), "JPEG", exif=TURNED),
    "JPEG, progressive": lambda: saved(noise("RGB"), "JPEG", progressive=True, subsampling=0),
    "JPEG, CMYK": lambda: saved(noise("CMYK", (5200, 4000)), "JPEG", progressive=True, exif=TURNED),
    "JPEG, scans apart": lambda: odd.multi_scan_jpeg((5200, 5200)),
    "JPEG of 88 megapixels": lambda: saved(plain("L", (9400, 9400), 9), "JPEG", exif=TURNED),
    "GIF": lambda: saved(noise("L", (4600, 4000)), "GIF"),
    "BMP": lambda: saved(noise("RGB"), "BMP"),
    "PPM": lambda: b"P5 3700 3800 65535\n" + bytes(2 * 3700 * 3800),
    "TIFF, turned": lambda: heavy_tiff("RGBA", compression="tiff_lzw"),
    "TIFF of 16 bits in one strip": lambda: odd.tiff(
        odd.tiff_tags((4100, 4100), [16] * 3, photometric=2, compression=8),
        [odd.zeros(6 * 4100 * 4100)],
    ),
    "TIFF, one large tile": lambda: odd.tile_bomb(7500),
    "TIFF, a larger tile": lambda: odd.tile_bomb(9000),
    "TIFF, many offsets": odd.offset_bomb,
    "WebP": lambda: saved(noise("RGBA", (3300, 3000)), "WEBP", lossless=True, method=0),
    "AVIF": lambda: saved(noise("RGBA", (2200, 2200)), "AVIF", speed=10, subsampling="4:4:4"),
}
BOMBS = {
    "PNG of 100 megapixels",
    "PNG, long texts",
    "PNG, a longer text",
    "TIFF, a larger tile",
    "TIFF, many offsets",
}

MEASURE = """
import pathlib, sys, types

package = types.ModuleType("attnviz")  # the pictures alone, without torch
package.__path__ = [sys.argv[1]]
sys.modules["attnviz"] = package
from attnviz.errors import BadImage
from attnviz.images import open_image

def peak():  # in kB; ru_maxrss would start from what the parent process holds
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])

small, path = map(pathlib.Path, sys.argv[2:])
open_image(small)  # what is loaded once
idle = peak()
try:
    open_image(path)
    what = "opened"
except BadImage:
    what = "refused"
print(what, peak() - idle)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", HEAVY)
def test_no_file_takes_200_megabytes_to_open(name, tmp_path):
    small, path = tmp_path / "small", tmp_path / "heavy"
    small.write_bytes(saved(noise("RGB", (80, 60)), "PNG"))
    path.write_bytes(HEAVY[name]())
    package = str(Path(attnviz.__file__).parent)
    command = [sys.executable, "-c", MEASURE, package, str(small), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    what, kilobytes = done.stdout.split()
    least, most = (0, 20e6) if name in BOMBS else (20e6, 200e6)  # less: it wasn't measured
    assert what == ("refused" if name in BOMBS else "opened")
    assert least <= int(kilobytes) * 1024 <= most


def test_pillow_stays_as_it_was():
    def state() -> list[object]:
        limits = [PngImagePlugin.MAX_TEXT_CHUNK, PngImagePlugin.MAX_TEXT_MEMORY]
        return [
            Image.MAX_IMAGE_PIXELS,
            ImageFile.LOAD_TRUNCATED_IMAGES,
            ImageFile.MAXBLOCK,
            *limits,
        ]

    before, whole = state(), png((6, 6), 8, 0, rows(6, 6))
    for file in (odd.pixel_bomb(), odd.text_bomb(), whole[:45], b""):
        with pytest.raises(BadImage):
            open_image(file)
    open_image(whole)
    assert state() == before
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False


SMALL = Image.effect_noise((20, 14), 90).convert("RGB")
VALID = [
    *(saved(SMALL, form) for form in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "AVIF")),
    saved(SMALL, "JPEG", progressive=True, exif=TURNED),
    saved(SMALL, "TIFF", compression="tiff_lzw", exif=TURNED),
    saved(SMALL, "TIFF", compression="tiff_adobe_deflate", big_tiff=True),
    saved(SMALL.convert("RGBA"), "WEBP", lossless=True, exif=TURNED),
    saved(SMALL.convert("P"), "PNG", transparency=bytes(range(200)), exif=TURNED),
    saved(SMALL.convert("P"), "BMP"),
    saved(SMALL.convert("CMYK"), "TIFF", compression="packbits"),
    png((6, 4), 16, 0, rows(12, 4), chunk(b"tRNS", bytes(2)), chunk(b"iTXt", b"k\0\0\0\0\0v")),
    b"P3 2 2 9 " + b"1 2 3 " * 4,
    b"P5 4 3 1023\n" + bytes(24),
    b"Pf 2 2 -1.0\n" + bytes(16),
    odd.frames("GIF"),
    odd.frames("PNG"),
    odd.frames("MPO"),
]


@settings(max_examples=400, deadline=None)
@given(
    whole=st.sampled_from(VALID),
    flips=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), max_size=6),
    cut=st.none() | st.integers(0, 1 << 20),
    doubled=st.booleans(),
)
def test_a_damaged_file_opens_or_is_refused(whole, flips, cut, doubled):
    data = bytearray(whole)
    for place, mask in flips:
        data[place % min(len(data), 400)] ^= mask  # where headers are, mostly
    data = data[: None if cut is None else cut % len(data)]
    try:
        image = open_image(bytes(data + data if doubled else data))
    except BadImage:
        return
    assert (type(image), image.mode) == (Image.Image, "RGB")
