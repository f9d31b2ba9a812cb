"""What a file is, told by its first bytes and never by its name."""

from __future__ import annotations

from PIL import features

HEAD = 1024
"""How many bytes are enough to tell."""

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"II+\0", "TIFF"),
    (b"MM\0+", "TIFF"),
    *((b"P" + digit, "PPM") for digit in (b"1", b"2", b"3", b"4", b"5", b"6", b"f")),
)

FORMATS: tuple[str, ...] = (
    *dict.fromkeys(name for _, name in _SIGNATURES),
    *(name for name in ("WEBP", "AVIF") if features.check(name.lower())),
)
"""The formats that are opened: Pillow can read some forty more, few of them tested by many eyes."""

_AS_PICTURE = "save it as PNG or JPEG"
_LOOKALIKES: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF", "a PDF document", "export the page or the figure as PNG"),
    (b"%!PS", "a PostScript drawing", "export it as PNG"),
    (b"8BPS", "a Photoshop document", _AS_PICTURE),
    (b"\0\0\1\0", "an icon", _AS_PICTURE),
    (b"qoif", "a QOI picture", _AS_PICTURE),
    (b"\xff\x0a", "a JPEG XL picture", _AS_PICTURE),
    (b"\0\0\0\x0cJXL ", "a JPEG XL picture", _AS_PICTURE),
    (b"\0\0\0\x0cjP  ", "a JPEG 2000 picture", _AS_PICTURE),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 picture", _AS_PICTURE),
    (b"\x76\x2f\x31\x01", "an OpenEXR picture", _AS_PICTURE),
    (b"SIMPLE  =", "a FITS file", _AS_PICTURE),
    (b"\x93NUMPY", "a NumPy array", "draw it and save that as PNG"),
    (b"\x1f\x8b", "a gzip archive", "choose a picture from inside it"),
    (b"PK\3\4", "a ZIP archive or an office document", "choose a picture from inside it"),
    (
        b"version https://git-lfs",
        "a Git LFS pointer instead of the file itself",
        "run `git lfs pull`",
    ),
)


def format_of(head: bytes) -> str | None:
    """The name of the picture format that a file's first bytes announce, if it's one of `FORMATS`.

    The bytes after an announcement may still be anything.
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        found = "WEBP"
    elif head[4:8] == b"ftyp" and {b"avif", b"avis"} & _brands(head):
        found = "AVIF"
    else:
        found = next((name for mark, name in _SIGNATURES if head.startswith(mark)), "")
    return found if found in FORMATS else None


def lookalike(head: bytes) -> str:
    """What a file that isn't a picture looks like and what to do, to follow its name."""
    found = _lookalike(head)
    if found is None:
        return f"is in no format that can be opened here: choose a file in {', '.join(FORMATS)}."
    what, remedy = found
    return f"looks like {what}, which can't be opened here: {remedy}."


def _lookalike(head: bytes) -> tuple[str, str] | None:
    for mark, what, remedy in _LOOKALIKES:
        if head.startswith(mark):
            return what, remedy
    if head[4:8] == b"ftyp":
        brands = _brands(head)
        if {b"avif", b"avis"} & brands:
            return "an AVIF picture", _AS_PICTURE
        if any(brand[:3] in (b"hei", b"hev", b"mif", b"msf") for brand in brands):
            return "a HEIC photo, as iPhones take them", "export or share it as JPEG"
        return "a video", "save one of its frames as PNG"
    if head[:4] == b"RIFF":
        return "a WebP picture, a video or a sound", _AS_PICTURE
    if head[128:132] == b"DICM":
        return "a DICOM file", _AS_PICTURE
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith((b"<!doctype html", b"<html")):
        return "a web page", "save the picture itself, not the page that shows it"
    if b"<svg" in text:
        return "an SVG drawing", "export it as PNG"
    if not any(byte < 9 for byte in head):
        return "text", "choose a picture"
    return None


def _brands(head: bytes) -> set[bytes]:
    """The brands in an ISO media file's first box, the major one among them."""
    end = min(int.from_bytes(head[:4], "big"), len(head))
    return {head[at : at + 4] for at in range(8, end, 4)}
