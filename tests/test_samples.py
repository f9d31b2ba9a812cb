"""The pictures that come along: small, free, credited, and all there."""

from __future__ import annotations

import pytest
from PIL import Image

from attnviz.errors import UnknownName
from attnviz.samples import FOLDER, SAMPLES, open_sample, sample_names, sample_path

README = (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_small_free_and_credited(name):
    sample, path = SAMPLES[name], sample_path(name)
    image = open_sample(name)
    digit = name.startswith("digit-")  # as large as the models for them take
    assert image.mode == "RGB"
    assert image.size == (32, 32) if digit else 400 <= max(image.size) <= 900
    assert path.stat().st_size <= 250_000
    assert sample.licence in (("CC BY 4.0",) if digit else ("CC0 1.0", "public domain"))
    (row,) = [line for line in README.splitlines() if line.startswith(f"| `{sample.file}` |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:4] == [sample.credit, sample.licence]
    source = sample.source.removeprefix("scikit-image, ")
    assert all(part in row.replace("`", "") for part in source.split(", "))
    assert f"({image.width} × {image.height})" in cells[1]


def test_a_sample_carries_no_metadata():
    for name in SAMPLES:
        with Image.open(sample_path(name)) as image:
            assert not {"exif", "xmp", "icc_profile", "comment"} & set(image.info)


def test_the_table_and_the_folder_agree():
    assert {sample.file for sample in SAMPLES.values()} == {
        path.name for path in FOLDER.iterdir() if path.suffix != ".md"
    }


def test_both_shapes_are_at_hand_and_the_cat_comes_first():
    shapes = {image.width > image.height for image in map(open_sample, SAMPLES)}
    assert shapes == {True, False}
    assert sample_names()[0] == "cat" and sample_names() == tuple(SAMPLES)


def test_an_unknown_sample_names_the_nearest():
    with pytest.raises(UnknownName, match=r"There is no sample 'cot'\. Did you mean cat"):
        open_sample("cot")
