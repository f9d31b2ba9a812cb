"""Files are written whole or not at all, and never over what somebody else put there."""

from __future__ import annotations

import os
import re
import stat

import pytest

from attnviz.errors import BadOption
from attnviz.writing import checked_target, require_free, write_whole


def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "link.png").symlink_to(tmp_path / "pipe.png")
    for name in ("pipe.png", "link.png"):
        with pytest.raises(BadOption, match="a directory or a device has that name"):
            write_whole(tmp_path / name, b"figure")
    assert stat.S_ISFIFO((tmp_path / "pipe.png").stat().st_mode)


@pytest.mark.parametrize(
    ("name", "overwrite", "says"),
    [
        ("a.png", "no", "overwrite is True or False; 'no' came."),
        ("a.png", None, "overwrite is True or False; None came."),
        ("a\0.png", True, "no file's name has a zero byte in it."),
        (b"a.png", True, "A figure is saved at a path, as text or a Path; bytes came."),
        (None, True, "A figure is saved at a path, as text or a Path; NoneType came."),
    ],
)
def test_what_is_no_place_is_one_sentence(name, overwrite, says):
    with pytest.raises(BadOption, match=re.escape(says)):
        checked_target(name, (".png",), overwrite)


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize(
    ("name", "says"),
    [("folder.png", "a directory or a device"), ("pipe.png", "a directory or a device"), ("lost.png", "no such folder")],
)  # fmt: skip
def test_what_cannot_be_written_is_said_before_anything_is_computed(
    tmp_path, name, says, overwrite
):
    (tmp_path / "folder.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "lost.png").symlink_to(tmp_path / "nowhere" / "a.png")
    with pytest.raises(BadOption, match=says):
        checked_target(tmp_path / name, (".png",), overwrite)


def test_a_file_that_is_written_over_stays_as_private_as_it_was(tmp_path):
    target = tmp_path / "mine.png"
    target.write_bytes(b"old")
    target.chmod(0o640)
    write_whole(target, b"new")
    assert target.read_bytes() == b"new" and stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.parametrize("linked", [True, False])
def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path, monkeypatch, linked):
    if not linked:  # as on a file system without hard links

        def link(*paths):
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", link)
    target = tmp_path / "mine.png"
    assert write_whole(target, b"first", overwrite=False).read_bytes() == b"first"
    with pytest.raises(BadOption, match=r"mine\.png exists.*--overwrite"):
        write_whole(target, b"second", overwrite=False)
    assert target.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [target]  # and no half file is left


def test_a_link_that_leads_nowhere_is_filled_and_one_that_leads_to_a_file_is_not(tmp_path):
    link, there = tmp_path / "link.png", tmp_path / "there.png"
    link.symlink_to(there)
    require_free(link)
    write_whole(link, b"figure", overwrite=False)
    assert link.is_symlink() and there.read_bytes() == b"figure"
    with pytest.raises(BadOption, match="exists"):
        require_free(link)
    with pytest.raises(BadOption, match="exists"):
        write_whole(link, b"other", overwrite=False)
    assert there.read_bytes() == b"figure"
