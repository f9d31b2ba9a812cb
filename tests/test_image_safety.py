"""No file raises anything but `BadImage`, or changes Pillow for others; `make fuzz` goes on."""

from __future__ import annotations

import picture_files as odd
import pytest
from hypothesis import given, settings
from picture_files import png
from picture_fuzz import damaged, opens_or_is_refused
from PIL import Image, ImageFile, PngImagePlugin

from attnviz.__main__ import main
from attnviz.errors import BadImage
from attnviz.images import open_image


def test_pillow_stays_as_it_was():
    def state() -> list[object]:
        limits = [PngImagePlugin.MAX_TEXT_CHUNK, PngImagePlugin.MAX_TEXT_MEMORY]
        return [
            Image.MAX_IMAGE_PIXELS,
            ImageFile.LOAD_TRUNCATED_IMAGES,
            ImageFile.MAXBLOCK,
            *limits,
        ]

    before, whole = state(), png((6, 6), 8, 0, [bytes(6)] * 6)
    for file in (odd.pixel_bomb(), odd.text_bomb(), whole[:45], b""):
        with pytest.raises(BadImage):
            open_image(file)
    open_image(whole)
    assert state() == before
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False


@settings(max_examples=400, deadline=None, derandomize=True)
@given(damaged())
def test_a_damaged_file_opens_or_is_refused(data):
    opens_or_is_refused(data)


@pytest.mark.filterwarnings("default")
def test_a_front_end_keeps_pillow_out_of_the_log(tmp_path, capfd):
    bomb, torn = tmp_path / "bomb.png", tmp_path / "torn.tif"
    bomb.write_bytes(odd.png_header((10_000, 10_000)))  # Pillow warns
    torn.write_bytes(
        odd.tiff(odd.tiff_tags((1, 1), [8] * 9, photometric=2), [bytes(9)])
    )  # and logs
    for path, words in ((bomb, "has 100 megapixels"), (torn, "is damaged or of a rare kind")):
        assert main([str(path), "-o", str(tmp_path / "out.png")]) == 2
        said = capfd.readouterr()
        assert said.err.count("\n") == 1 and words in said.err and not said.out
