"""A model whose file of weights is damaged is not loaded, and said so; once it is whole, it is."""

from __future__ import annotations

import shutil

import pytest
from page_visit import calm, choose_model, record_on, stand_ins, texts, visit

import models
from attnviz.errors import BadWeights
from models import own_weights

PLACES = [0, 7, 40, 5000, -1]  # of its length, header, and numbers


def damage(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """attnviz's own weights, where they can be damaged."""
    there = tmp_path / "trained"
    shutil.copytree(own_weights.FOLDER, there)
    monkeypatch.setattr(own_weights, "FOLDER", there)
    return there


@pytest.mark.parametrize("place", PLACES)
def test_one_bit_is_enough(folder, monkeypatch, place):
    damage(folder / "digits.safetensors", place)
    monkeypatch.setattr("safetensors.torch.load", lambda data: pytest.fail("used"))
    with pytest.raises(BadWeights, match=own_weights.TRAINED["digits"].sha256) as caught:
        models.load("digits")
    assert "damaged" in caught.value.reason and str(folder) not in caught.value.reason


def test_a_file_that_is_gone_is_named_without_its_folder(folder):
    (folder / "digits.safetensors").unlink()
    with pytest.raises(BadWeights, match=r"digits\.safetensors cannot be read: No such") as caught:
        models.load("digits")
    assert str(folder) not in caught.value.reason and str(folder) in str(caught.value)


def test_the_page_says_it_and_serves_the_next_visitor(folder, monkeypatch):
    file = folder / "digits.safetensors"
    damage(file, -1)
    with stand_ins(monkeypatch):
        first = visit()
        choose_model(first, "digits")
        (error,) = first.error
        assert "Handwritten digits could not be loaded" in error.value
        assert "It is another version, or damaged." in texts(first)
        assert str(folder) not in texts(first) + error.value
        assert record_on(first).model == "dinov2-small"
        damage(file, -1)  # the same bit again: whole
        second = visit()
        choose_model(second, "digits")
        assert not second.error and record_on(second).model == "digits"
        calm(choose_model(first, "digits"))
        assert not first.error and record_on(first).model == "digits"
