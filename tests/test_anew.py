"""Layers that are kept as what they were fed with give the same maps as their queries and keys."""

import pytest
import timm
import torch

import attnviz
import models
from attnviz import keeping
from attnviz.errors import CaptureFailed
from attnviz.record import Factors, Replayed
from tests import oracles
from tests.conftest import PREFIXES, small_input, small_vit
from tests.test_capture import assert_same_state, state_of


@pytest.fixture
def lean(monkeypatch):
    """Small models are kept as large ones are."""
    monkeypatch.setattr(keeping, "LEAN_FROM", -1)
    monkeypatch.setattr(keeping, "VALUES_BUDGET", -1)


def rotary():
    module = timm.create_model("eva02_tiny_patch14_224", depth=3, img_size=(28, 42)).eval()
    return models.wrap(module), torch.randn(1, 3, 28, 42)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_maps_equal_an_independent_forward_pass(lean, prefix):
    vit = small_vit(prefix)
    record = attnviz.observe(vit, small_input(), keep="factors")
    state = {k: v.detach().double().numpy() for k, v in vit.module.state_dict().items()}
    expected = oracles.vit_maps(
        state, small_input()[0].double().numpy(), patch=16, heads=3, prefix=PREFIXES[prefix][2]
    )
    assert record.keep == "factors"
    for layer, attention in zip(record.layers, expected, strict=True):
        assert isinstance(layer.source, Replayed)
        assert layer.probs().numpy() == pytest.approx(attention, abs=2e-5)


@pytest.mark.parametrize("make", [lambda: (small_vit(), small_input()), rotary])
def test_half_the_bytes_and_the_same_values_to_the_last_bit(monkeypatch, make):
    vit, tensor = make()
    monkeypatch.setattr(keeping, "VALUES_BUDGET", -1)
    whole = attnviz.observe(vit, tensor, keep="factors")
    monkeypatch.setattr(keeping, "LEAN_FROM", -1)
    lean = attnviz.observe(vit, tensor, keep="factors")
    for factors, replayed in zip(whole.layers, lean.layers, strict=True):
        assert isinstance(factors.source, Factors) and isinstance(replayed.source, Replayed)
        assert factors.source.shape == replayed.source.shape
        assert 2 * replayed.nbytes == sum(part.nbytes for part in factors.source.held)
        assert torch.equal(factors.probs(), replayed.probs())
    pair = [attnviz.explain(record, "rollout").values for record in (whole, lean)]
    assert (pair[0] == pair[1]).all()


def test_only_large_records_without_values_are_kept_so(monkeypatch):
    vit, tensor = small_vit(), small_input()
    queries_and_keys = 2 * 3 * 7 * 24 * 4  # layers, tokens, channels, bytes each
    monkeypatch.setattr(keeping, "VALUES_BUDGET", -1)
    for bound, kind in ((queries_and_keys, Factors), (queries_and_keys - 1, Replayed)):
        monkeypatch.setattr(keeping, "LEAN_FROM", bound)
        record = attnviz.observe(vit, tensor, keep="factors")
        assert all(type(layer.source) is kind for layer in record.layers)
    target = attnviz.observe(vit, tensor, keep="factors", target=attnviz.similarity_to((0, 0)))
    assert all(type(layer.source) is Factors for layer in target.layers)


def test_the_model_is_left_as_found_also_while_it_trains(lean):
    vit = small_vit()
    record = attnviz.observe(vit, small_input(), keep="factors")
    expected = [layer.probs() for layer in record.layers]
    vit.module.train()
    vit.module.blocks[1].attn.fused_attn = False
    before = state_of(vit.module)
    for layer, maps in zip(record.layers, expected, strict=True):
        assert torch.equal(layer.probs(), maps)
    assert_same_state(before, state_of(vit.module))


@pytest.mark.parametrize(
    "change",
    [
        lambda layer: layer.attn.qkv.weight.data.zero_(),
        lambda layer: layer.attn.qkv.weight.data.neg_(),
        lambda layer: layer.attn.qkv.weight.copy_(layer.attn.qkv.weight.flip(0)),
        lambda layer: layer.attn.double(),
        lambda layer: setattr(layer.attn, "qkv", torch.nn.Linear(24, 72)),
    ],
)
def test_weights_that_changed_since_are_refused_by_name(lean, change):
    vit = small_vit()
    record = attnviz.observe(vit, small_input(), keep="factors")
    record.layers[0].probs()
    with torch.no_grad():
        change(vit.module.blocks[1])
    record.layers[0].probs()  # another layer's stay as they are
    with pytest.raises(CaptureFailed, match=r"layer blocks\.1\.attn .* changed since .* again"):
        record.layers[1].probs()


def test_values_that_are_not_finite_are_refused_by_name(lean):
    vit = small_vit()
    attnviz.observe(vit, small_input(), keep="factors")  # proved while it was sound
    with torch.no_grad():
        vit.module.blocks[1].attn.qkv.weight[0] = torch.nan
    with pytest.raises(CaptureFailed, match=r"blocks\.1\.attn computed values that are not finite"):
        attnviz.observe(vit, small_input(), keep="factors")
