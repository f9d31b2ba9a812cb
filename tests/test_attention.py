"""The two attention blocks against golden values, a twin written in loops, and their promises."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnviz.errors import BadOption
from models.attention import Attention, MultiHeadSelfAttention

GOLDENS = np.load(Path(__file__).parent / "goldens" / "seed_attention.npz")

GOLDEN_BLOCKS: dict[str, Callable[[], nn.Module]] = {
    "mhsa_h3_d32_floor": lambda: MultiHeadSelfAttention(3, 32),
    "mhsa_h4_d32": lambda: MultiHeadSelfAttention(num_heads=4, hidden_size=32),
    "fused_masked": lambda: Attention(24, heads=4, dim_head=8),
    "fused_h1_dh16_d16_identity": lambda: Attention(16, heads=1, dim_head=16),
    "fused_h4_dh8_d24": lambda: Attention(24, heads=4, dim_head=8),
}


def run(block: Any, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Output, map and what `after_mix` is fed, the last two seen by plain hooks."""
    seen: dict[str, Tensor] = {}
    block.softmax.register_forward_hook(lambda _m, _i, out: seen.update(attn=out))
    block.after_mix.register_forward_pre_hook(lambda _m, i: seen.update(mixed=i[0]))
    with torch.no_grad():
        return block(*inputs), seen["attn"], seen["mixed"]


def test_every_golden_case_is_used() -> None:
    assert {key.split("/")[0] for key in GOLDENS.files} == set(GOLDEN_BLOCKS)


@pytest.mark.parametrize("case", GOLDEN_BLOCKS)
def test_output_and_map_are_the_golden_ones(case: str) -> None:
    stored = {
        key.removeprefix(f"{case}/"): torch.from_numpy(GOLDENS[key])
        for key in GOLDENS.files
        if key.startswith(f"{case}/")
    }
    params = {key.removeprefix("param/"): v for key, v in stored.items() if "param/" in key}
    block = GOLDEN_BLOCKS[case]().double()
    block.load_state_dict(params, strict=True)

    inputs = [stored[name] for name in ("x", "mask") if name in stored]
    out, attn, _ = run(block, *inputs)

    torch.testing.assert_close(out, stored["y"], rtol=0, atol=1e-10)
    torch.testing.assert_close(attn, stored["attn"], rtol=0, atol=1e-10)


# A twin in plain loops, from the formulas: one sequence, lists of numbers, nothing shared.


def matvec(weight: list[list[float]], bias: list[float], x: list[float]) -> list[float]:
    rows = zip(weight, bias, strict=True)
    return [b + sum(w * v for w, v in zip(row, x, strict=True)) for row, b in rows]


def slow_attention(
    q: list[list[float]],
    k: list[list[float]],
    v: list[list[float]],
    heads: int,
    kept: list[bool],
) -> tuple[np.ndarray, np.ndarray]:
    """Maps (head, query, key) and concatenated head outputs (token, feature) of one sequence."""
    tokens, width = len(q), len(q[0]) // heads
    maps = np.zeros((heads, tokens, tokens))
    mixed = np.zeros((tokens, heads * width))
    for h in range(heads):
        for i in range(tokens):
            if kept[i]:
                keys = [j for j in range(tokens) if kept[j]]
                scores = [
                    sum(q[i][h * width + d] * k[j][h * width + d] for d in range(width))
                    / math.sqrt(width)
                    for j in keys
                ]
            else:
                keys, scores = list(range(tokens)), [0.0] * tokens
            total = math.fsum(math.exp(s) for s in scores)
            for j, score in zip(keys, scores, strict=True):
                maps[h, i, j] = math.exp(score) / total
                for d in range(width):
                    mixed[i, h * width + d] += maps[h, i, j] * v[j][h * width + d]
    return maps, mixed


def wide_weights(block: nn.Module, seed: int) -> None:
    """Weights so large that the maps are far from uniform."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.6)


def assert_matches_twin(
    block: nn.Module,
    x: Tensor,
    qkv: Callable[[list[float]], list[list[float]]],
    project: Callable[[list[float]], list[float]],
    *,
    heads: int,
    mask: Tensor | None = None,
) -> None:
    out, attn, after = run(block, x) if mask is None else run(block, x, mask)
    for b, sequence in enumerate(x.tolist()):
        kept = [True] * len(sequence) if mask is None else [True, *mask[b].flatten().tolist()]
        q, k, v = zip(*(qkv(token) for token in sequence), strict=True)
        maps, mixed = slow_attention(list(q), list(k), list(v), heads, kept)
        assert maps.max() > 0.9, "the case is too flat to tell anything"
        np.testing.assert_allclose(attn[b], maps, rtol=0, atol=1e-12)
        np.testing.assert_allclose(after[b], mixed, rtol=0, atol=1e-12)
        expected = [project(token) for token in mixed.tolist()]
        np.testing.assert_allclose(out[b], expected, rtol=0, atol=1e-12)


def test_separate_block_is_its_slow_twin() -> None:
    block = MultiHeadSelfAttention(3, 17).double()  # heads 5 wide, projections 15 wide
    wide_weights(block, seed=1)
    p = {name: value.tolist() for name, value in block.state_dict().items()}
    assert_matches_twin(
        block,
        torch.randn(2, 7, 17, dtype=torch.float64, generator=torch.Generator().manual_seed(2)),
        lambda t: [matvec(p[f"{name}.weight"], p[f"{name}.bias"], t) for name in "QKV"],
        lambda t: matvec(p["dense.weight"], p["dense.bias"], t),
        heads=3,
    )


@pytest.mark.parametrize("masked", [True, False])
def test_fused_block_is_its_slow_twin(masked: bool) -> None:
    block = Attention(11, heads=3, dim_head=5).double()  # 15 wide inside, 11 outside
    wide_weights(block, seed=3)
    p = {name: value.tolist() for name, value in block.state_dict().items()}

    def qkv(token: list[float]) -> list[list[float]]:
        wide = matvec(p["to_qkv.weight"], [0.0] * 45, token)
        return [wide[:15], wide[15:30], wide[30:]]

    # A mask over a 2 × 3 grid of patches, another one for each image.
    mask = torch.tensor([[[1, 0, 1], [0, 0, 1]], [[1, 1, 1], [1, 1, 0]]], dtype=torch.bool)
    assert_matches_twin(
        block,
        torch.randn(2, 7, 11, dtype=torch.float64, generator=torch.Generator().manual_seed(4)),
        qkv,
        lambda t: matvec(p["to_out.0.weight"], p["to_out.0.bias"], t),
        heads=3,
        mask=mask if masked else None,
    )


def test_heads_split_the_features_in_order() -> None:
    block = MultiHeadSelfAttention(num_heads=3, hidden_size=32)
    assert (block.attn_head_size, block.head_size) == (10, 30)
    x = torch.arange(2 * 5 * 30).reshape(2, 5, 30).float()
    heads = block.tp_attn(x)
    assert heads.shape == (2, 3, 5, 10)
    for head in range(3):
        assert torch.equal(heads[:, head], x[:, :, 10 * head : 10 * head + 10])


def test_shapes_with_the_defaults() -> None:
    block: Any = Attention(dim=1024)
    out, attn, mixed = run(block, torch.randn(1, 65, 1024))
    assert block.to_qkv.weight.shape == (3 * 16 * 64, 1024)
    assert block.to_qkv.bias is None
    assert (attn.shape, mixed.shape) == ((1, 16, 65, 65), (1, 65, 1024))
    assert out.shape == (1, 65, 1024)


@pytest.mark.parametrize(
    ("dim", "heads", "dim_head", "identity"),
    [(16, 1, 16, True), (16, 1, 8, False), (16, 2, 16, False), (16, 2, 8, False)],
)
def test_only_one_head_of_full_width_goes_unprojected(
    dim: int, heads: int, dim_head: int, identity: bool
) -> None:
    block = Attention(dim, heads=heads, dim_head=dim_head)
    assert isinstance(block.to_out, nn.Identity) == identity
    assert block(torch.randn(3, 4, dim)).shape == (3, 4, dim)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_masked_patches_are_not_seen_and_see_all_alike(dtype: torch.dtype) -> None:
    block = Attention(8, heads=2, dim_head=4).to(dtype)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    out, attn, _ = run(block, torch.randn(2, 4, 8).to(dtype), mask)

    assert torch.isfinite(out).all()
    uniform = torch.full((2, 4), 0.25, dtype=dtype)
    assert torch.equal(attn[0, :, 2], uniform)
    assert (attn[0, :, [0, 1, 3]][..., 2] == 0).all()
    assert (attn[0, :, [0, 1, 3]][..., [0, 1, 3]] > 0).all()
    # With every patch masked the class token is left with itself.
    assert torch.equal(attn[1, :, 0], torch.tensor([[1.0, 0, 0, 0]] * 2, dtype=dtype))
    assert all(torch.equal(attn[1, :, patch], uniform) for patch in (1, 2, 3))


def test_a_mask_that_keeps_everything_changes_nothing() -> None:
    block, x = Attention(8, heads=2, dim_head=4), torch.randn(2, 7, 8)
    assert torch.equal(block(x, torch.ones(2, 2, 3, dtype=torch.bool)), block(x))


@pytest.mark.parametrize(
    ("mask", "got"),
    [
        (torch.ones(2, 7, dtype=torch.bool), "torch.bool of shape (2, 7)"),  # class token counted
        (torch.ones(2, 5, dtype=torch.bool), "torch.bool of shape (2, 5)"),
        (torch.ones(2, 2, 4, dtype=torch.bool), "torch.bool of shape (2, 2, 4)"),
        (torch.ones(1, 6, dtype=torch.bool), "torch.bool of shape (1, 6)"),
        (torch.ones(12, dtype=torch.bool), "torch.bool of shape (12,)"),
        (torch.tensor(True), "torch.bool of shape ()"),
        (torch.ones(2, 6), "torch.float32 of shape (2, 6)"),
        (torch.ones(2, 6, dtype=torch.int64), "torch.int64 of shape (2, 6)"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask: Tensor, got: str) -> None:
    expected = rf"{re.escape(got)}; expected torch\.bool of \(batch, patches\) = \(2, 6\)"
    with pytest.raises(BadOption, match=expected):
        Attention(8, heads=2, dim_head=4)(torch.randn(2, 7, 8), mask)


def test_dropout_falls_on_the_output_only() -> None:
    block = Attention(8, heads=2, dim_head=4, dropout=1.0).train()
    out, attn, mixed = run(block, torch.randn(2, 5, 8))
    assert (out == 0).all()  # the bias of the projection as well
    torch.testing.assert_close(attn.sum(-1), torch.ones(2, 2, 5))
    assert (mixed != 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MultiHeadSelfAttention(5, 4), "hidden_size is 4 for 5 heads.*at least 5"),
        (lambda: MultiHeadSelfAttention(0, 4), "num_heads is 0.*at least 1"),
        (lambda: MultiHeadSelfAttention(1, -4), "hidden_size is -4"),
        (lambda: Attention(0), "dim is 0"),
        (lambda: Attention(8, heads=0), "heads is 0"),
        (lambda: Attention(8, dim_head=0), "dim_head is 0"),
        (lambda: Attention(8, dropout=1.5), "dropout is 1.5.*between 0 and 1"),
        (lambda: Attention(8, dropout=-0.1), "dropout is -0.1"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(make: Callable[[], nn.Module], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        make()


def test_the_narrowest_heads_work() -> None:
    assert MultiHeadSelfAttention(4, 4)(torch.randn(1, 3, 4)).shape == (1, 3, 4)
