"""Where a picture may come from, and what is said where nothing comes."""

from __future__ import annotations

import inspect
import io
import os

import numpy as np
import picture_files as odd
import pytest
from picture_files import saved

from attnviz.errors import BadImage
from attnviz.images import open_image


class Pipe(io.RawIOBase):
    """A binary file that can't be wound back."""

    def __init__(self, data: bytes):
        self.left = data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def readinto(self, buffer) -> int:
        part, self.left = self.left[: len(buffer)], self.left[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def test_every_kind_of_source_gives_the_same_picture(tmp_path):
    data = saved(odd.corners(), "PNG")
    path = tmp_path / "a picture.jpeg"  # names say nothing
    path.write_bytes(data)
    moved = io.BytesIO(data)
    moved.seek(50)
    with path.open("rb") as file, path.open("rb") as mapped:
        mapped.read(7)
        sources = [str(path), path, data, moved, file, mapped, io.BufferedReader(Pipe(data))]
        for source in sources:
            assert open_image(source).tobytes() == odd.corners().tobytes(), source
        assert not file.closed and not moved.closed
    assert open_image(moved).size == (48, 32), "a file object serves twice"


def test_a_tiff_opens_from_every_kind_of_source(tmp_path):
    data = saved(odd.corners(), "TIFF", compression="tiff_lzw")  # read by libtiff, in its own way
    path = tmp_path / "x.tif"
    path.write_bytes(data)
    with path.open("rb") as file:
        for source in (path, data, io.BytesIO(data), file):
            assert open_image(source).tobytes() == odd.corners().tobytes()


def unreadable(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_paths_that_lead_nowhere_are_refused(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty.png").touch()
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(64 * 2**20 + 1)
    for path, words in {
        tmp_path / "gone.png": "There is no file .*gone.png: check",
        tmp_path: "is a folder: name one picture",
        tmp_path / "pipe": "is no ordinary file",
        tmp_path / "empty.png": "empty.png is empty",
        tmp_path / "huge.png": "huge.png is larger than the 64 MB",
        "https://example.org/cat.png": "is a web address: download",
        "a\0b.png": "can't be opened .*: check the path",
        "x" * 5000: "can't be opened .*: check the path",
    }.items():
        with pytest.raises(BadImage, match=words):
            open_image(path)
    monkeypatch.setattr("builtins.open", unreadable)
    with pytest.raises(BadImage, match="may not be read: check its permissions"):
        open_image(tmp_path / "empty.png")


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="Linux has such files")
def test_an_ordinary_file_that_cannot_be_read_is_refused():
    with pytest.raises(BadImage, match=r"^mem can't be read \(.+\): copy the picture elsewhere\.$"):
        open_image("/proc/self/mem")


def test_file_objects_that_give_no_bytes_are_refused(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("hello")
    closed = path.open("rb")
    closed.close()
    with path.open() as text, pytest.raises(BadImage, match=r"x.txt was opened as text.*'rb'"):
        open_image(text)
    with pytest.raises(BadImage, match=r"x.txt can't be read"):
        open_image(closed)
    with pytest.raises(BadImage, match="larger than the 64 MB"):
        open_image(io.BufferedReader(Pipe(bytes(64 * 2**20 + 1))))


def test_an_upload_is_called_by_its_name():
    upload = io.BytesIO(b"hello")
    upload.name = "C:/photos/cat.png"
    with pytest.raises(BadImage, match=r"^cat\.png looks like text"):
        open_image(upload)
    with pytest.raises(BadImage, match=r"^This file looks like text"):
        open_image(b"hello")


def test_something_else_is_refused():
    with pytest.raises(BadImage, match="as a PIL image; ndarray came"):
        inspect.unwrap(open_image)(np.zeros((4, 4, 3), np.uint8))  # past the tests' type checker
