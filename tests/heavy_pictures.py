"""Pictures close to each limit of size, on the side that opens."""

from __future__ import annotations

from collections.abc import Callable

import picture_files as odd
from picture_files import chunk, exif, plain, png, saved
from PIL import Image

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


HEAVY: dict[str, Callable[[], bytes]] = {
    "PNG, turned": lambda: png(SIDE, 8, 2, rows(15_900), chunk(b"eXIf", exif(6))),
    "PNG with alpha": lambda: png(SIDE, 8, 6, rows(21_200), chunk(b"eXIf", exif(6))),
    "PNG, grey with alpha": lambda: png(SIDE, 8, 4, rows(10_600)),
    "PNG of 16 bits": lambda: png(SIDE, 16, 0, rows(10_600), chunk(b"eXIf", exif(3))),
    "PNG, a colour clear": lambda: png(SIDE, 8, 2, rows(15_900), chunk(b"tRNS", bytes(6))),
    "PNG, a long text": lambda: texted(14_000_000),
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
    "WebP": lambda: saved(noise("RGBA", (3300, 3000)), "WEBP", lossless=True, method=0),
    "AVIF": lambda: saved(noise("RGBA", (2200, 2200)), "AVIF", speed=10, subsampling="4:4:4"),
}
