"""The map kept is the map used, and the model comes back as it was found."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import attnviz
import models
from attnviz import capture, keeping
from attnviz.record import AttentionRecord, Factors, LayerAttention, Maps
from models.vit import ViT
from tests import oracles
from tests.conftest import PREFIXES, small_input, small_module, small_vit


def state_of(module: nn.Module) -> dict[str, object]:
    """Everything a capture could leave behind."""
    return {
        "hooks": [
            len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks)
            for m in module.modules()
        ],
        "training": [m.training for m in module.modules()],
        "fused": [getattr(m, "fused_attn", None) for m in module.modules()],
        "requires_grad": [p.requires_grad for p in module.parameters()],
        "grad": [p.grad is None for p in module.parameters()],
        "parameters": [p.detach().clone() for p in module.parameters()],
    }


def assert_same_state(before: dict[str, object], after: dict[str, object]) -> None:
    weights_before, weights_after = before.pop("parameters"), after.pop("parameters")
    assert before == after
    assert all(torch.equal(a, b) for a, b in zip(weights_before, weights_after, strict=True))


@pytest.mark.parametrize("keep", ["maps", "factors"])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_maps_equal_an_independent_forward_pass(prefix, keep):
    vit = small_vit(prefix)
    obs = attnviz.observe(vit, small_input(), keep=keep)
    state = {k: v.detach().double().numpy() for k, v in vit.module.state_dict().items()}
    expected = oracles.vit_maps(
        state, small_input()[0].double().numpy(), patch=16, heads=3, prefix=PREFIXES[prefix][2]
    )
    assert obs.layout.prefix == prefix
    assert obs.layout.grid == (2, 3)
    assert obs.keep == keep
    assert len(obs.layers) == len(expected) == 3
    for layer, attention in zip(obs.layers, expected, strict=True):
        assert layer.probs().numpy() == pytest.approx(attention, abs=2e-5)
        assert np.ptp(attention) > 0.1  # far from uniform: a wrong head or layer would show


@pytest.mark.parametrize("prefix", PREFIXES)
def test_both_routes_and_all_readers_agree(prefix):
    vit = small_vit(prefix)
    maps = attnviz.observe(vit, small_input(), keep="maps")
    factors = attnviz.observe(vit, small_input(), keep="factors")
    for dense, rebuilt in zip(maps.layers, factors.layers, strict=True):
        assert isinstance(dense.source, Maps) and isinstance(rebuilt.source, Factors)
        attention = dense.probs()
        torch.testing.assert_close(rebuilt.probs(), attention, atol=1e-5, rtol=0)
        for layer in (dense, rebuilt):
            torch.testing.assert_close(layer.rows(query=1), attention[:, 1], atol=1e-5, rtol=0)
            torch.testing.assert_close(
                layer.rows(query=range(2, 5)), attention[:, 2:5].mean(1), atol=1e-5, rtol=0
            )


def test_blocks_smaller_than_the_map_change_nothing(monkeypatch):
    layer = attnviz.observe(small_vit(), small_input(), keep="factors").layers[1]
    whole = layer.probs()
    weights = torch.rand(7)
    monkeypatch.setattr("attnviz.record.BLOCK_BYTES", 4 * 3 * 7 * 2)
    assert [rows.shape[1] for rows in layer.blocks()] == [2, 2, 2, 1]
    torch.testing.assert_close(torch.cat(list(layer.blocks()), 1), whole)
    weights[[0, 1, 5]] = 0  # an empty stretch, and one that is half empty
    torch.testing.assert_close(layer.pull(weights), torch.einsum("q,hqk->hk", weights, whole))


@pytest.mark.parametrize("block", ["separate", "fused"])
def test_the_projects_own_blocks_are_captured(block):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        own = ViT(
            image_size=(8, 12), patch_size=4, hidden_size=24, depth=2, num_heads=3, block=block,
            registers=2, classes=4,
        )  # fmt: skip
    seen = []
    hooks = [
        b.attn.softmax.register_forward_hook(lambda *args: seen.append(args[2][0].detach()))
        for b in own.blocks
    ]
    x = torch.randn(1, 3, 8, 12)
    own.eval()(x)
    for hook in hooks:
        hook.remove()
    obs = attnviz.observe(models.wrap(own), x)
    assert obs.layout.prefix == ("cls", "reg1", "reg2")
    for layer, expected in zip(obs.layers, seen, strict=True):
        torch.testing.assert_close(layer.probs(), expected, atol=1e-6, rtol=0)


def test_output_is_unchanged_with_fused_kernels_on():
    vit = small_vit()
    with torch.no_grad():
        expected = vit.module.eval()(small_input())
    for keep in ("maps", "factors"):
        output = capture.run(vit, small_input(), keep=keep).output
        torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("keep", ["maps", "factors"])
def test_the_model_comes_back_as_found(keep):
    module = small_module()
    module.train()
    module.blocks[1].eval()  # a mixed state must survive as well
    module.blocks[2].attn.fused_attn = False
    next(module.parameters()).requires_grad_(False)
    vit = models.wrap(module)
    before = state_of(module)
    attnviz.observe(vit, small_input(), keep=keep)
    assert_same_state(before, state_of(module))


class Boom(Exception):
    """Raised in the middle of a pass."""


@pytest.mark.parametrize("keep", ["maps", "factors"])
def test_the_model_comes_back_as_found_when_the_pass_raises(keep):
    module = small_module().train()
    vit = models.wrap(module)
    attnviz.verify(vit)

    def stop(done: int, _: int) -> None:
        if done == 2:
            raise Boom

    before = state_of(module)
    with pytest.raises(Boom):
        attnviz.observe(vit, small_input(), keep=keep, progress=stop)
    assert_same_state(before, state_of(module))
    assert torch.is_tensor(attnviz.observe(vit, small_input(), keep=keep).layers[0].probs())


def test_dropout_does_not_reach_the_map():
    plain, dropping = small_module(), small_module(attn_drop_rate=0.9, proj_drop_rate=0.9)
    for keep in ("maps", "factors"):
        a = attnviz.observe(models.wrap(plain), small_input(), keep=keep)
        b = attnviz.observe(models.wrap(dropping.train()), small_input(), keep=keep)
        torch.testing.assert_close(a.layers[2].probs(), b.layers[2].probs())


def test_a_second_pass_equals_a_fresh_one_bit_for_bit():
    vit = small_vit()
    attnviz.observe(vit, small_input(1))
    again = attnviz.observe(vit, small_input(2))
    fresh = attnviz.observe(small_vit(), small_input(2))
    for a, b in zip(again.layers, fresh.layers, strict=True):
        assert torch.equal(a.probs(), b.probs())


def test_progress_counts_the_layers():
    seen = []
    attnviz.observe(small_vit(), small_input(), progress=lambda *step: seen.append(step))
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.long
def test_eight_threads_on_one_model_get_their_own_maps():
    vit = small_vit()
    expected = [
        attnviz.observe(vit, small_input(i), keep="maps").layers[2].probs() for i in range(8)
    ]

    def work(i: int) -> bool:
        keep = "maps" if i % 3 else "factors"
        got = attnviz.observe(vit, small_input(i % 8), keep=keep).layers[2].probs()
        return torch.allclose(got, expected[i % 8], atol=1e-5)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(400))) == 400


def test_a_module_wrapped_twice_has_one_lock():
    module = small_module()
    assert models.wrap(module).lock is models.wrap(module).lock
    assert models.wrap(module).lock is not models.wrap(small_module()).lock


def test_auto_keeps_maps_within_the_budget_and_factors_beyond(monkeypatch):
    vit = small_vit()
    nbytes = 3 * 3 * 7 * 7 * 4  # layers, heads, queries, keys, bytes a number
    monkeypatch.setattr(keeping, "MAPS_BUDGET", nbytes)
    assert attnviz.observe(vit, small_input()).keep == "maps"
    monkeypatch.setattr(keeping, "MAPS_BUDGET", nbytes - 1)
    assert attnviz.observe(vit, small_input()).keep == "factors"


@pytest.mark.parametrize(("budget", "parts"), [(0, 2), (3 * 3 * 7 * 8 * 4, 3)])
def test_factors_hold_queries_and_keys_and_few_values_and_nothing_beside(
    budget, parts, monkeypatch
):
    monkeypatch.setattr("attnviz.keeping.VALUES_BUDGET", budget)
    obs = attnviz.observe(small_vit(), small_input(), keep="factors")
    held = {}
    for layer in obs.layers:
        for tensor in (layer.source.queries, layer.source.keys, layer.values):
            if tensor is not None:
                held[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
    layer = parts * 3 * 7 * 8 * 4  # parts, heads, tokens, channels, bytes
    assert sum(held.values()) == 3 * layer
    assert [each.nbytes for each in obs.layers] == [layer] * 3
    if parts == 2:
        with pytest.raises(attnviz.BadOption, match='keep="auto"'):
            attnviz.explain(obs, "value_weighted")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_finite_and_near_float32(dtype):
    full = attnviz.observe(small_vit(), small_input(), keep="factors")
    half = attnviz.observe(models.wrap(small_module().to(dtype)), small_input(), keep="factors")
    for layer in half.layers:
        assert layer.probs().dtype == torch.float32
        assert layer.probs().sum(-1) == pytest.approx(1, abs=1e-5)
    assert half.layers[0].probs() == pytest.approx(full.layers[0].probs(), abs=2e-2)


def test_verify_reports_each_layer_by_both_routes():
    checks = attnviz.verify(small_vit(), small_input())
    assert [(c.route, c.name) for c in checks] == [
        (route, f"blocks.{i}.attn") for route in ("maps", "factors") for i in range(3)
    ]
    assert all(c.row_sum_error < 1e-5 and c.output_error < 1e-5 for c in checks)


# --- one broken model for each promise ---------------------------------------------------


class Mutters(nn.Module):
    """Wraps an attention module and spoils one thing."""

    def __init__(self, attn: nn.Module, spoil: str) -> None:
        super().__init__()
        self.inner, self.spoil = attn, spoil
        self.fused_attn = True

    def forward(self, x: torch.Tensor, **_: object) -> torch.Tensor:
        b, n, _ = x.shape
        inner = self.inner
        qkv = inner.qkv(x).reshape(b, n, 3, inner.num_heads, inner.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        if self.spoil == "no softmax":
            a = (q @ k.mT).relu()
            mixed = a / a.sum(-1, keepdim=True).clamp_min(1e-6) @ v
        elif self.spoil == "sharpened after softmax":
            a = (q @ k.mT).softmax(-1) ** 2
            mixed = (a / a.sum(-1, keepdim=True)) @ v
        elif self.spoil == "rows that miss 1":
            mixed = (q @ k.mT).softmax(-2) @ v
        elif self.spoil == "heads swapped":
            mixed = nn.functional.scaled_dot_product_attention(q, k, v).flip(1)
        elif self.spoil == "a map thrown away":
            mixed = (q @ k.mT).softmax(-1).new_ones(n, n) @ v
        elif self.spoil == "all a little off":
            mixed = nn.functional.scaled_dot_product_attention(q, k, v) * (1 + 5e-5)
        elif self.spoil == "one value a little off":
            mixed = nn.functional.scaled_dot_product_attention(q, k, v).clone()
            mixed[0, 0, 0, 0] += 5e-5 * mixed.abs().max()
        elif self.spoil == "a tenth off":
            mixed = nn.functional.scaled_dot_product_attention(q, k, v) * 1.1
        elif self.spoil == "causal":
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            raise NotImplementedError(self.spoil)
        return inner.proj(inner.norm(mixed.transpose(1, 2).reshape(b, n, -1)))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        ("no softmax", "no softmax"),
        ("sharpened after softmax", "is not what"),
        ("rows that miss 1", "miss the sum 1"),
        ("heads swapped", "is not what"),
        ("a map thrown away", "never multiplied"),
        ("all a little off", "is not what"),
        ("one value a little off", "is not what"),
        ("causal", "Causal"),
    ],
)
def test_a_layer_whose_map_is_not_what_it_used_is_refused(spoil, says):
    broken = spoiled(small_module(), spoil)
    for _ in range(2):  # and again: failing once must not count as having been checked
        with pytest.raises(attnviz.CaptureFailed, match=says) as caught:
            attnviz.observe(broken, small_input())
        assert spoil == "causal" or "blocks.1.attn" in str(caught.value)


def spoiled(module: nn.Module, spoil: str) -> WithSites:
    """A model whose middle layer breaks one promise."""
    vit = models.wrap(module)
    first, site, last = vit.sites
    attention = module.blocks[1].attn
    module.blocks[1].attn = Mutters(attention, spoil)
    middle = dataclasses.replace(site, module=module.blocks[1].attn, after_mix=attention.norm)
    return WithSites(vit, (first, middle, last))


def test_half_precision_is_given_its_rounding_and_no_more():
    assert attnviz.verify(models.wrap(small_module().to(torch.bfloat16)))
    broken = spoiled(small_module().to(torch.bfloat16), "a tenth off")
    with pytest.raises(attnviz.CaptureFailed, match="is not what"):
        attnviz.verify(broken)


def test_values_that_are_not_a_number_fail_the_proof():
    module = small_module()
    with torch.no_grad():
        module.blocks[1].attn.qkv.bias[-1] = float("nan")  # a value, no query and no key
    with pytest.raises(attnviz.CaptureFailed, match=r"blocks\.1\.attn"):
        attnviz.verify(models.wrap(module))


def test_a_model_is_proved_once_and_not_at_each_picture():
    module = small_module()
    passes = []
    module.register_forward_pre_hook(lambda *_: passes.append(1))
    vit = models.wrap(module)
    attnviz.observe(vit, small_input())
    assert len(passes) == 3  # two routes of the proof, and the picture
    attnviz.observe(vit, small_input())
    assert len(passes) == 4
    attnviz.observe(models.wrap(module), small_input())
    assert len(passes) == 5


class WithSites:
    """A loaded model that names other attention modules than its own."""

    def __init__(self, vit, sites) -> None:
        self._vit, self.sites = vit, tuple(sites)

    def __getattr__(self, name: str):
        return getattr(self._vit, name)


def test_a_layer_that_is_never_reached_or_runs_twice_is_refused():
    vit = small_vit()
    stranger = small_vit().sites[0]
    with pytest.raises(attnviz.CaptureFailed, match="ran 0 times"):
        attnviz.observe(WithSites(vit, [stranger]), small_input())
    twice = small_module()
    twice.blocks[2] = twice.blocks[1]
    shared = models.wrap(twice)
    with pytest.raises(attnviz.CaptureFailed, match="ran 2 times"):
        attnviz.observe(WithSites(shared, shared.sites[:2]), small_input())


def test_weights_with_a_nan_are_refused_with_the_layers_name():
    module = small_module()
    vit = models.wrap(module)
    attnviz.verify(vit)
    with torch.no_grad():
        module.blocks[1].attn.qkv.weight[0, 0] = float("nan")
    for keep in ("maps", "factors"):
        with pytest.raises(attnviz.CaptureFailed, match=r"blocks\.1\.attn"):
            attnviz.observe(vit, small_input(), keep=keep)


def test_a_record_whose_grid_does_not_fit_is_refused_with_both_counts():
    obs = attnviz.observe(small_vit(), small_input(), keep="maps")
    wrong = (LayerAttention("blocks.0.attn", Maps(torch.full((1, 5, 5), 0.2))),)
    with pytest.raises(attnviz.CaptureFailed, match=r"5 to 5 tokens.* has 7"):
        dataclasses.replace(obs, layers=wrong)
    with pytest.raises(attnviz.CaptureFailed, match="no layer"):
        dataclasses.replace(obs, layers=())
    assert isinstance(obs, AttentionRecord)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"keep": "all"}, attnviz.BadOption, "maps, factors, auto"),
        ({"fit": "stretch"}, attnviz.UnknownName, "squash"),
        ({"target": 9}, attnviz.UnknownName, "no class 9"),
    ],
)
def test_arguments_that_do_not_exist(arguments, error, says):
    with pytest.raises(error, match=says):
        attnviz.observe(small_vit(), small_input(), **arguments)


def test_a_picture_that_pillow_opened_is_turned_upright(tmp_path):
    path = tmp_path / "phone.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6  # turn clockwise to see it upright
    Image.new("RGB", (40, 20)).save(path, exif=exif)
    assert attnviz.observe(small_vit(), Image.open(path), fit="squash").image.size == (20, 40)
    assert attnviz.observe(small_vit(), attnviz.open_image(path), fit="squash").image.size == (
        20,
        40,
    )


def test_a_path_is_not_a_picture_and_a_grey_picture_is_one():
    with pytest.raises(attnviz.BadOption, match="open_image"):
        attnviz.observe(small_vit(), "cat.jpg")
    grey = Image.fromarray(np.arange(90 * 60, dtype=np.uint32).reshape(60, 90).astype(np.uint8))
    obs = attnviz.observe(small_vit(), grey, fit="squash")
    assert obs.image.mode == "RGB"
    assert obs.image.size == (90, 60)
    assert obs.view.box == (0, 0, 90, 60)


@pytest.mark.parametrize("query", [7, -1, range(5, 9), range(0, 0)])
def test_rows_of_a_token_that_does_not_exist(query):
    layer = attnviz.observe(small_vit(), small_input()).layers[0]
    with pytest.raises(attnviz.AttnVizError, match="0 to 6"):
        layer.rows(query=query)


class Biased(nn.Module):
    """An attention module with a bias for each head, query and key, as relative positions give."""

    def __init__(self, attn: nn.Module, bias: torch.Tensor) -> None:
        super().__init__()
        self.inner, self.bias = attn, bias
        self.fused_attn = True

    def forward(self, x: torch.Tensor, **_: object) -> torch.Tensor:
        inner = self.inner
        batch, tokens, _ = x.shape
        packed = inner.qkv(x).reshape(batch, tokens, 3, inner.num_heads, inner.head_dim)
        q, k, v = packed.permute(2, 0, 3, 1, 4).unbind(0)
        if self.fused_attn:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=self.bias)
        else:
            scores = q @ k.mT * inner.scale
            open_to = self.bias if self.bias.dtype != torch.bool else None
            scores = (
                scores + open_to
                if open_to is not None
                else scores.masked_fill(~self.bias, float("-inf"))
            )
            mixed = scores.softmax(-1) @ v
        return inner.proj(inner.norm(mixed.transpose(1, 2).reshape(batch, tokens, -1)))


class Scaled(nn.Module):
    """An attention module that hands the kernel a scale of its own."""

    def __init__(self, attn: nn.Module) -> None:
        super().__init__()
        self.inner = attn

    def forward(self, x: torch.Tensor, **_: object) -> torch.Tensor:
        inner = self.inner
        batch, tokens, _ = x.shape
        packed = inner.qkv(x).reshape(batch, tokens, 3, inner.num_heads, inner.head_dim)
        q, k, v = packed.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, scale=0.05)
        return inner.proj(inner.norm(mixed.transpose(1, 2).reshape(batch, tokens, -1)))


def test_a_scale_of_the_module_s_own_is_the_map_s():
    module = small_module()
    whole = models.wrap(module)
    first, site, last = whole.sites
    inner = module.blocks[1].attn
    fed = []
    module.blocks[1].attn = Scaled(inner)
    module.blocks[1].attn.register_forward_pre_hook(lambda _, given: fed.append(given[0]))
    scaled = dataclasses.replace(
        site, module=module.blocks[1].attn, after_mix=inner.norm, fused_switch=None
    )
    vit = WithSites(whole, (first, scaled, last))
    for keep in ("maps", "factors"):
        layer = attnviz.observe(vit, small_input(), keep=keep).layers[1]
        q, k, _ = inner.qkv(fed[-1])[0].double().detach().chunk(3, dim=1)
        for head in range(3):
            at = slice(8 * head, 8 * head + 8)
            expected = (q[:, at] @ k[:, at].T * 0.05).softmax(-1)
            torch.testing.assert_close(layer.probs()[head].double(), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rows_of_a_half_precision_map_sum_to_one_by_both_routes(dtype):
    vit = models.wrap(small_module().to(dtype))
    for keep in ("maps", "factors"):
        for layer in attnviz.observe(vit, small_input(), keep=keep).layers:
            assert layer.probs().dtype == torch.float32
            torch.testing.assert_close(layer.probs().sum(-1), torch.ones(3, 7), atol=1e-5, rtol=0)


def mask_of(kind: str) -> torch.Tensor:
    """A bias far from constant, of one of the shapes that kernels take."""
    number = torch.Generator().manual_seed(5)
    shapes = {"head query key": (1, 3, 7, 7), "head key": (1, 3, 1, 7), "query key": (7, 7)}
    if kind == "mask":
        return torch.eye(7, dtype=torch.bool) | (torch.rand(7, 7, generator=number) > 0.5)
    return 3 * torch.randn(shapes[kind], generator=number)


@pytest.mark.parametrize("kind", ["head query key", "head key", "query key", "mask"])
def test_a_bias_or_mask_is_part_of_the_map_by_both_routes(kind, monkeypatch):
    monkeypatch.setattr("attnviz.record.BLOCK_BYTES", 4 * 3 * 7 * 2)  # blocks of two rows
    module = small_module()
    vit = models.wrap(module)
    first, site, last = vit.sites
    inner = module.blocks[1].attn
    module.blocks[1].attn = Biased(inner, mask_of(kind))
    biased = dataclasses.replace(site, module=module.blocks[1].attn, after_mix=inner.norm)
    sites = WithSites(vit, (first, biased, last))
    maps = attnviz.observe(sites, small_input(), keep="maps").layers[1]
    factors = attnviz.observe(sites, small_input(), keep="factors").layers[1]
    assert isinstance(factors.source, Factors) and factors.source.bias is not None
    whole = maps.probs()
    torch.testing.assert_close(factors.probs(), whole, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.cat(list(factors.blocks()), 1), whole, atol=1e-5, rtol=0)
    weights = torch.linspace(-1, 1, 7)
    expected = torch.einsum("q,hqk->hk", weights, whole)
    torch.testing.assert_close(factors.pull(weights), expected, atol=1e-5, rtol=0)
    assert factors.nbytes == 4 * (3 * 3 * 7 * 8 + factors.source.bias.numel())


def test_one_weight_is_as_good_as_many_and_a_row_larger_than_a_block_still_comes(monkeypatch):
    layer = attnviz.observe(small_vit(), small_input(), keep="factors").layers[1]
    whole = layer.probs()
    monkeypatch.setattr("attnviz.record.BLOCK_BYTES", 1)
    assert [rows.shape[1] for rows in layer.blocks()] == [1] * 7
    weights = torch.zeros(7)
    weights[4] = 2.5
    torch.testing.assert_close(layer.pull(weights), 2.5 * whole[:, 4])


@pytest.mark.parametrize("keep", ["maps", "factors"])
def test_a_softmax_in_somebody_elses_hook_is_not_the_layers(keep):
    module = small_module()
    vit = models.wrap(module)
    expected = attnviz.observe(vit, small_input(), keep=keep).layers[1].probs()

    def other(*_: object) -> None:
        (torch.eye(7).expand(1, 3, 7, 7) * 9).softmax(-1)

    module.blocks[1].attn.register_forward_hook(other)
    assert torch.equal(attnviz.observe(vit, small_input(), keep=keep).layers[1].probs(), expected)


def test_a_model_that_was_made_otherwise_is_proved_again(monkeypatch):
    module = small_module()
    vit = models.wrap(module)
    attnviz.observe(vit, small_input())
    attention = module.blocks[1].attn
    other = Mutters(attention, "sharpened after softmax")
    monkeypatch.setattr(attention, "forward", other.forward)
    with pytest.raises(attnviz.CaptureFailed, match=r"blocks\.1\.attn"):
        attnviz.observe(vit, small_input())


def test_a_pass_that_fails_says_whose_it_was():
    module = small_module()
    vit = models.wrap(module)
    attnviz.verify(vit)
    before = state_of(module)
    module.norm.register_forward_hook(fail := lambda *_: 1 / 0)
    with pytest.raises(attnviz.CaptureFailed, match="failed in its own forward pass: ZeroDivision"):
        attnviz.observe(vit, small_input())
    module.norm._forward_hooks.clear()
    assert callable(fail)
    assert_same_state(before, state_of(module))


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_too_little_memory_is_said_in_words(error):
    module = small_module()
    vit = models.wrap(module)

    def fail(*_: object) -> None:
        raise error

    module.norm.register_forward_hook(fail)
    with pytest.raises(attnviz.BadOption, match=r"too little memory to run .* 32 × 48"):
        attnviz.observe(vit, small_input())


def test_not_every_mention_of_memory_is_a_lack_of_it():
    vit = small_vit()

    def fail(*_: object) -> None:
        raise ValueError("no memory_format given")

    vit.module.norm.register_forward_hook(fail)
    with pytest.raises(attnviz.CaptureFailed, match="no memory_format given"):
        attnviz.observe(vit, small_input())


def test_what_is_not_a_loaded_model_is_refused():
    with pytest.raises(attnviz.BadOption, match=r"models\.wrap"):
        attnviz.observe(small_module(), small_input())
    with pytest.raises(attnviz.BadOption, match="str came"):
        attnviz.observe("dinov2-small", small_input())
    with pytest.raises(attnviz.AttnVizError):
        attnviz.observe(small_vit(), Image.new("RGB", (0, 0)))


def test_an_output_that_is_not_finite_is_refused():
    module = small_module()
    vit = models.wrap(module)
    attnviz.verify(vit)
    with torch.no_grad():
        module.head.bias[1] = float("inf")
    with pytest.raises(attnviz.CaptureFailed, match="output"):
        attnviz.observe(vit, small_input())
