"""A batch on a real Ray cluster of two workers, of which one is killed in mid-run."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

import fatal
import pytest
from PIL import Image

import models
from attnviz.__main__ import main
from attnviz.batch import Request, here, pictures_in, run
from attnviz.batch.cluster import ALONE, AT_ONCE, TOKEN, Cluster, _Far
from attnviz.batch.outputs import output_of
from attnviz.errors import BadOption

REQUEST = Request(model={"name": "digits"}, kind=".parquet", batch=2)
DEADLY = 21
ROOT = Path(__file__).parents[1]


@pytest.fixture
def cluster(monkeypatch):
    """Ray on this machine alone, its files where its sockets' names are short enough."""
    for name, value in ALONE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(TOKEN, secrets.token_hex(32))
    ray = pytest.importorskip("ray")
    place = tempfile.mkdtemp(prefix="ray")
    begin = ray.init

    def small(*where, **how):
        how |= {"num_cpus": 2, "_temp_dir": place, "object_store_memory": 80 * 2**20}
        paths = os.pathsep.join(str(each) for each in (ROOT, ROOT / "tests"))
        info = begin(*where, **how, runtime_env={"env_vars": {"PYTHONPATH": paths}})
        assert info.address_info["node_ip_address"] == "127.0.0.1"  # and nothing listens elsewhere
        return info

    monkeypatch.setattr(ray, "init", small)
    yield Cluster(workers=2)
    ray.shutdown()
    shutil.rmtree(place, ignore_errors=True)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning")
def test_a_worker_that_is_killed_costs_its_own_part_alone(cluster, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(50):
        Image.new("RGB", (32, 32), (number, 90, 160)).save(folder / f"{number:02}.png")
    (folder / "bad.png").write_text("no picture")
    names = pictures_in([str(folder)], without=tmp_path / "out")
    whole, far = tmp_path / "whole.parquet", tmp_path / "far.parquet"
    run(names, output_of(whole, REQUEST), REQUEST, partial(models.load, "digits", device="cpu"))
    load = partial(fatal.load, tmp_path, DEADLY)
    report = run(names, output_of(far, REQUEST), REQUEST, load, engine=cluster)
    assert (tmp_path / "died").exists()
    assert report.done == 50 and list(report.failed) == [str(folder / "bad.png")]
    assert far.read_bytes() == whole.read_bytes()
    seen = Counter(map(int, (tmp_path / "seen").read_text().split()))
    twice = {number for number, often in seen.items() if often > 1}
    # What it had in hand, and no more: two parts of two pictures each.
    assert sorted(seen) == list(range(50)) and DEADLY in twice
    assert len(twice) <= 2 * AT_ONCE and max(seen.values()) == 2
    lines = Path(f"{far}.journal").read_text().splitlines()[1:]
    done = [json.loads(line[9:])["picture"] for line in lines]
    assert len(done) == len(set(done)) == 50
    # And what was done elsewhere is not done again here.
    again = run(names, output_of(far, REQUEST), REQUEST, load, engine=here)
    assert (again.before, again.done) == (50, 0)


def test_a_worker_s_versions_are_looked_at_before_it_loads_a_model():
    here = REQUEST.versions
    assert {"attnviz", "torch", "timm", "numpy", "pillow"} == here.keys()
    said = _Far(None, REQUEST, {**here, "timm": "0.1", "pillow": "9"}).begin()
    assert f"timm {here['timm']} instead of 0.1, pillow {here['pillow']} instead of 9" in str(said)
    release = here["torch"].partition("+")[0]
    load = partial(models.load, "digits", device="cpu")
    assert _Far(load, REQUEST, {**here, "torch": f"{release}+cu130"}).begin() is None


def test_without_ray_a_sentence_says_what_to_install(tmp_path, monkeypatch, capsys):
    Image.new("RGB", (32, 32)).save(tmp_path / "1.png")
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ["batch", str(tmp_path), "-o", str(tmp_path / "out"), "--model", "digits"]
    assert main([*words, "--engine", "ray"]) == 2
    said = capsys.readouterr().err
    assert "pip install -r requirements-cluster.txt" in said and said.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["1.png"]


def test_options_of_a_cluster_are_refused_without_one(tmp_path, capsys):
    Image.new("RGB", (32, 32)).save(tmp_path / "1.png")
    words = ["batch", str(tmp_path), "-o", str(tmp_path / "out"), "--model", "digits"]
    for extra in (["--address", "auto"], ["--workers", "2"]):
        assert main([*words, *extra]) == 2
        assert "give --engine ray with it" in capsys.readouterr().err
    with pytest.raises(BadOption, match="At least one worker"):
        next(Cluster(workers=0)(models.load, REQUEST, ()))


def test_an_address_where_nobody_answers_is_a_sentence(tmp_path, capsys):
    Image.new("RGB", (32, 32)).save(tmp_path / "1.png")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = ["batch", str(tmp_path), "-o", str(tmp_path / "out"), "--model", "digits"]
    assert main([*words, "--engine", "ray", "--address", address]) == 2
    said = capsys.readouterr().err
    assert f"No Ray cluster at {address}" in said and said.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["1.png"]
