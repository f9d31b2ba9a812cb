"""A set of figures is one zip: whole, the same each time, and no name twice."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import replace
from hashlib import sha256
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz.bundle import Packed, bundle, names_of, pack, zip_of
from attnviz.errors import BadOption
from attnviz.export import KINDS, render
from attnviz.figure import Inclusion, keys
from attnviz.head_maps import head_maps
from attnviz.levels import render_levels
from attnviz.metrics import head_metrics
from attnviz.plot_export import MetricPlot
from attnviz.references import keys_of
from tests.test_export import SMALL, heat
from tests.test_film import frames
from tests.test_plates import small_record


def test_each_figure_has_all_its_files_and_the_zip_is_the_same_each_time():
    record = small_record()
    set_of = [
        (heat(), SMALL),
        (heat(), SMALL | {"original": True}),
        (frames(), {"width_mm": 60.0, "dpi": 80}),
        (head_maps(record), SMALL),
        (MetricPlot(head_metrics(record), ("entropy",)), SMALL),
    ]
    packed = [pack(figure, options) for figure, options in set_of]
    content = zip_of(packed)
    assert content == bundle(set_of)
    assert names_of([packed[1], packed[0], packed[1]]) == tuple(
        packed[0].stem + number for number in ("", "-2", "-3")
    )
    with zipfile.ZipFile(BytesIO(content)) as files:
        assert files.testzip() is None
        names = files.namelist()
        assert len(set(names)) == len(names)
        stem = "dinov2-small_attention_layer-3_head-5_query-patch-row-1-column-0"
        for name in (stem, f"{stem}-2"):
            for kind in (*KINDS, ".manifest.json", ".tex"):
                assert name + kind in names
        assert files.read(f"{stem}.png") == render(heat(), ".png", **SMALL)
        said = json.loads(files.read(f"{stem}-2.manifest.json"))
        assert said["file"]["sha256"] == sha256(files.read(f"{stem}-2.pdf")).hexdigest()
        assert sum(name.endswith(".csv") for name in names) == len(set_of)
        assert not any(name.endswith((".gif", ".webp")) for name in names)
        assert f"{{{stem}-2.pdf}}".encode() in files.read(f"{stem}-2.tex")
        assert b"vaswani2017attention" in files.read("references.bib")
        assert {info.date_time for info in files.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_no_two_figures_of_a_set_have_one_label():
    # Of the first two nothing is left in a label; the third's is what the second's would become.
    stems = ["原", "模", "attnviz-2", "a_b", "a-b", "原"]
    like = Packed("", "", {}, Inclusion(89, ("Words",), ()))
    with zipfile.ZipFile(BytesIO(zip_of([replace(like, stem=stem) for stem in stems]))) as files:
        texts = [files.read(name).decode() for name in files.namelist()]
    labels = [re.findall(r"\\label\{fig:(.+)\}", text) for text in texts]
    expected = ["attnviz", "attnviz-2", "attnviz-2-2", "a-b", "a-b-2", "2"]
    assert labels == [[label] for label in expected]


def test_a_map_that_no_command_makes_again_is_cited_too():
    record = small_record()  # it says of no model that could be loaded by name
    one, other = (attnviz.explain(record, method) for method in ("rollout", "attention"))
    assert one.request is None
    assert keys(one) == keys_of(["rollout"]) and keys(one) != keys(other)
    assert keys(attnviz.beside([other, one])) == keys_of(["attention", "rollout"])
    with zipfile.ZipFile(BytesIO(bundle([(one, SMALL)]))) as files:
        assert b"abnar2020quantifying" in files.read("references.bib")
        (tex,) = (name for name in files.namelist() if name.endswith(".tex"))
        assert b"abnar2020quantifying" in files.read(tex)


def test_a_set_of_none_is_refused():
    with pytest.raises(BadOption, match="at least one"):
        bundle([])
    assert attnviz.BadOption is BadOption


@pytest.mark.parametrize("blank", [False, True])
def test_a_map_is_sixteen_bits_a_patch(blank):
    cells = np.array([[False, False, False], [False, False, blank]])
    made = replace(heat([[2, 4, 5], [7, 12, 99]]), blank=cells if blank else None)
    file = Image.open(BytesIO(render_levels(made)))
    assert file.size == (3, 2) and file.mode == "I;16"
    said = json.loads(file.info["Description"])
    assert (said["low"], said["high"], said["unit"]) == (2, 12 if blank else 99, "attention weight")
    levels = np.asarray(file).astype(float)
    values = said["low"] + (said["high"] - said["low"]) * levels / 65535
    expected = np.where(cells, 2, [[2, 4, 5], [7, 12, 99]])
    np.testing.assert_allclose(values, expected, atol=97 / 65535 / 2 + 1e-9)
    assert not np.asarray(Image.open(BytesIO(render_levels(heat(np.ones((2, 2))))))).any()
    some = np.random.default_rng(0).uniform(-3, 7, (40, 50)).astype(np.float32)
    found = np.asarray(Image.open(BytesIO(render_levels(heat(some))))).astype(float)
    low, high = float(some.min()), float(some.max())
    exact = (some.astype(float) - low) / (high - low) * 65535
    assert np.abs(found - exact).max() <= 0.5 + 1e-6
    with pytest.raises(BadOption, match="one value a patch; three came"):
        render_levels(heat(np.ones((2, 2, 3))))
