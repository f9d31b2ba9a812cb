"""Records come back from files to the last bit, and what is no record is refused."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO

import numpy as np
import pytest
import torch
from conftest import small_input, small_vit
from PIL import Image

import attnviz
from attnviz.errors import BadOption
from attnviz.record_file import save_record
from tests.test_film import cait, swin


def pictures():
    noise = np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8)
    return Image.fromarray(noise)


@pytest.mark.parametrize(
    ("make", "size", "keep"),
    [(small_vit, None, "maps"), (small_vit, None, "factors"), (swin, 64, "auto"), (cait, 32, "auto")],
)  # fmt: skip
def test_the_maps_are_the_same_to_the_last_bit(tmp_path, make, size, keep):
    vit = make()
    source = small_input() if size is None else torch.randn(1, 3, size, size)
    record = attnviz.observe(vit, source, keep=keep)
    path = record.save(tmp_path / "record.npz")
    back = attnviz.load_record(path)
    for ours, theirs in zip(record.layers, back.layers, strict=True):
        assert torch.equal(ours.probs(), theirs.probs())
    for method in ("attention", "value_weighted", "rollout"):
        heat, again = attnviz.explain(record, method), attnviz.explain(back, method)
        np.testing.assert_array_equal(heat.values, again.values)
        assert heat.facts == again.facts and heat.box == again.box
    assert np.array_equal(np.asarray(record.image), np.asarray(back.image))
    before = path.read_bytes()
    assert back.save(tmp_path / "again.npz").read_bytes() == before


def test_gradients_and_half_precision_come_along(tmp_path):
    record = attnviz.observe(small_vit(), small_input(), target=2)
    back = attnviz.load_record(save_record(record, tmp_path / "a.npz"))
    for method in ("relevance", "gradcam", "legrad"):
        heat, again = attnviz.explain(record, method), attnviz.explain(back, method)
        np.testing.assert_array_equal(heat.values, again.values)
    assert back.target == record.target and back.score == record.score


def parts_of(path):
    with np.load(path) as saved:
        return {name: saved[name] for name in saved.files}


def written(path, parts):
    np.savez(path, **parts)
    return path


def test_what_is_no_record_is_refused(tmp_path):
    path = attnviz.observe(small_vit(), small_input()).save(tmp_path / "a.npz")
    whole, parts = path.read_bytes(), parts_of(path)
    contents = json.loads(str(parts["contents"]))

    def told(change):
        copy = json.loads(json.dumps(contents))
        change(copy)
        return {**parts, "contents": np.array(json.dumps(copy))}

    def other_kind(said):
        said["record"]["made of"] = "Popen"

    def other_format(said):
        said["made_by"] = "somebody"

    def other_grid(said):
        said["record"]["parts"]["layout"]["parts"]["grid"] = {"tuple": [{"plain": 9}, {"plain": 9}]}

    def no_layers(said):
        said["record"]["parts"]["layers"] = {"tuple": []}

    bad = tmp_path / "bad.npz"
    for content in (b"", b"text", whole[:100], whole[:-200]):
        bad.write_bytes(content)
        with pytest.raises(BadOption, match=r"no record of attnviz's|can't be read"):
            attnviz.load_record(bad)
    for change in (other_kind, other_format):
        with pytest.raises(BadOption, match="no record of attnviz's"):
            attnviz.load_record(written(bad, told(change)))
    for change in (other_grid, no_layers):
        with pytest.raises(attnviz.AttnVizError):
            attnviz.load_record(written(bad, told(change)))
    missing = {name: part for name, part in parts.items() if name != "array_0"}
    with pytest.raises(BadOption, match="no record"):
        attnviz.load_record(written(bad, missing))
    with pytest.raises(BadOption, match="can't be read"):
        attnviz.load_record(tmp_path / "nothing.npz")


PLAIN = {"plain": 5}
NAN = {"tuple": [{"plain": 0.0}, {"plain": 0.0}, {"plain": float("nan")}, {"plain": 9.0}]}
EMPTY = {"tuple": [{"plain": 5.0}, {"plain": 0.0}, {"plain": 5.0}, {"plain": 9.0}]}
LAYER = ("layers", "tuple", 0)


@pytest.mark.parametrize(
    ("way", "value"),
    [
        *(((name,), PLAIN) for name in ("view", "image", "predictions", "target", "origin", "model",
            "weights", "random", "device", "features", "feature", "reference", "activations",
            "layout", "layers")),
        *(((name,), {"plain": "x"}) for name in ("score", "target_class", "features", "origin")),
        (("score",), {"plain": float("nan")}),
        (("random",), {"plain": 1}),
        (("model",), {"plain": "m" * 256}),
        (("weights",), {"plain": "w" * 200_000}),
        (("device",), {"plain": None}),
        (("origin",), {"plain": {"model": ["x"]}}),
        (("predictions",), {"tuple": [{"tuple": [{"plain": "a"}, {"plain": 1}]}]}),
        (("predictions",), {"tuple": [{"tuple": [{"plain": 1}, {"plain": 1}, {"plain": 0.5}]}]}),
        *((("view", "box"), value) for value in (PLAIN, NAN, EMPTY, {"plain": None})),
        (("view", "fit"), {"plain": "stretch"}),
        (("view", "pixels"), PLAIN),
        (("view", "tensor"), {"plain": None}),
        (("layout", "grid"), {"tuple": [{"plain": -2}, {"plain": -3}]}),
        (("layout", "prefix"), PLAIN),
        ((*LAYER, "name"), PLAIN),
        ((*LAYER, "mixed"), PLAIN),
        ((*LAYER, "source"), {"plain": None}),
        ((*LAYER, "values"), PLAIN),
        ((*LAYER, "geometry"), PLAIN),
        ((*LAYER, "gradient"), PLAIN),
    ],
)  # fmt: skip
def test_parts_of_other_types_are_refused(saved, tmp_path, way, value):
    parts, said = saved[0], json.loads(saved[1])
    place = said["record"]
    for step in way[:-1]:
        place = place["parts"] if isinstance(place, dict) and "parts" in place else place
        place = place[step]
    assert way[-1] in place["parts"]
    place["parts"][way[-1]] = value
    path = written(tmp_path / "bad.npz", {**parts, "contents": np.array(json.dumps(said))})
    with pytest.raises(BadOption, match="no record of attnviz's"):
        attnviz.load_record(path)


@pytest.mark.parametrize("name", ["features", "feature"])
def test_features_of_other_axes_or_tokens_are_refused(saved, tmp_path, name):
    parts, said = dict(saved[0]), json.loads(saved[1])
    place = said["record"]["parts"][name]["tensor"]
    for array in (parts[place][None], parts[place].astype(np.int64), parts[place][..., None]):
        path = written(tmp_path / "bad.npz", {**parts, place: array})
        with pytest.raises(BadOption, match="no record of attnviz's"):
            attnviz.load_record(path)
    if name == "features":
        path = written(tmp_path / "bad.npz", {**parts, place: parts[place][:-1]})
        with pytest.raises(BadOption, match="no record of attnviz's"):
            attnviz.load_record(path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The arrays of a record, and its table of contents."""
    path = tmp_path_factory.mktemp("record") / "a.npz"
    record = attnviz.observe(small_vit(), small_input(), target=2)
    parts = parts_of(save_record(record, path))
    return parts, str(parts["contents"])


@pytest.mark.parametrize("fit", ["crop", "squash", "pad"])
def test_every_fit_comes_back(tmp_path, fit):
    record = attnviz.observe(small_vit(), pictures(), fit=fit, target="predicted")
    back = attnviz.load_record(record.save(tmp_path / "a.npz"))
    assert back.view.fit == fit and back.view.box == record.view.box


def test_a_file_that_would_run_something_or_fill_the_memory_is_refused(tmp_path):
    bad = tmp_path / "bad.npz"
    np.savez(bad, contents=np.array([print], dtype=object))  # as a pickle would be
    with pytest.raises(BadOption, match="no record"):
        attnviz.load_record(bad)
    bomb = BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("contents.npy", bytes(17 * 2**20))
    bad.write_bytes(bomb.getvalue())
    with pytest.raises(BadOption, match="would unpack to"):
        attnviz.load_record(bad)


def test_places_are_checked(tmp_path):
    record = attnviz.observe(small_vit(), small_input())
    with pytest.raises(BadOption, match=r"ends in \.npy"):
        record.save(tmp_path / "a.npy")
    record.save(tmp_path / "a.npz")
    with pytest.raises(BadOption, match="exists"):
        record.save(tmp_path / "a.npz", overwrite=False)
