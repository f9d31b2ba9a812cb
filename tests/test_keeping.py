"""What a record holds of each layer: counted by hand, and no more than its maps are made of."""

from importlib import import_module

import pytest
import timm
import torch
from torch import nn
from torch.nn import functional as F

import attnviz
import models
from attnviz import keeping
from attnviz.bias import Crossed
from attnviz.errors import CaptureFailed
from attnviz.record import Factors
from attnviz.tokens import TokenLayout
from tests import test_windows
from tests.conftest import small_input, small_vit

PROVING = import_module("attnviz.verify")  # attnviz.verify itself is its function

# model, bytes of all its maps by hand: 4 · heads · windows · queries · keys, over the layers
MAPS = [
    # 16 × 24 cells in 24 windows of 4 × 4, two layers of 2 heads; then 8 × 12 in 6, two of 4
    ("Swin", 2 * 4 * 2 * 24 * 16 * 16 + 2 * 4 * 4 * 6 * 16 * 16),
    # 6 × 6 cells, padded to 4 windows of 4 × 4; then all to all
    ("SAM", 4 * 3 * 4 * 16 * 16 + 4 * 3 * 36 * 36),
    # 24 × 32 cells to 4 × 6 keys; 12 × 16 to 3 × 4; 6 × 8 to 3 × 4; 3 × 4 to themselves
    ("Twins, pooled", 4 * 2 * (768 * 24 + 192 * 12 + 48 * 12 + 12 * 12)),
]


@pytest.mark.parametrize(("name", "size"), MAPS)
def test_maps_are_kept_while_they_fit_what_they_take(monkeypatch, name, size):
    for budget, kept in ((size, "maps"), (size - 1, "factors")):
        monkeypatch.setattr(keeping, "MAPS_BUDGET", budget)
        vit, _, record = test_windows.seen(name)
        geometries = [record.geometry(layer) for layer in record.layers]
        assert keeping.choose("auto", vit, geometries).route == kept
    _, _, dense = test_windows.seen(name, keep="maps")
    assert sum(layer.source.nbytes for layer in dense.layers) == size


def relative(weights, queries, grid, axis):
    """q · w by how far the key is from the query, up and down or to the sides, in loops."""
    side = grid[axis]
    found = torch.zeros(*queries.shape[:2], grid[0] * grid[1], dtype=torch.float64)
    for query in range(queries.shape[1]):
        for key in range(found.shape[2]):
            apart = divmod(query, grid[1])[axis] - divmod(key, grid[1])[axis]
            found[:, query, key] = queries[:, query] @ weights[apart + side - 1]
    return found


def test_relative_positions_are_kept_as_their_two_parts():
    vit, _, record = test_windows.seen("SAM", keep="factors")
    layer, attn = record.layers[1], vit.module.blocks[1].attn
    source = layer.source
    assert isinstance(source, Factors) and isinstance(source.bias, Crossed)
    # Queries and keys of 3 heads, 36 tokens, 8 channels; 6 rows and 6 columns: 4 bytes each.
    assert source.nbytes == 4 * 3 * 36 * (8 + 8 + 6 + 6)
    queries, keys = source.queries.double(), source.keys.double()
    up, across = (
        relative(weights.detach().double(), queries, (6, 6), axis)
        for axis, weights in enumerate((attn.rel_pos_h, attn.rel_pos_w))
    )
    bias = up + across
    torch.testing.assert_close(source.bias.block(0, 36).double(), bias, atol=1e-5, rtol=1e-5)
    expected = (queries @ keys.mT * 8**-0.5 + bias).softmax(-1)
    torch.testing.assert_close(layer.probs().double(), expected, atol=1e-5, rtol=1e-5)
    some = torch.cat([source.block(0, 5), source.block(5, 36)], dim=1)
    assert torch.equal(some, source.block(0, 36))


class Biased(nn.Module):
    """Attention of 2 × 3 patches whose bias is a sum by row and column, or is made of one."""

    def __init__(self, change):
        super().__init__()
        self.change = change
        self.qkv, self.proj = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        qkv = self.qkv(x).reshape(1, 6, 3, 2, 4).permute(2, 0, 3, 1, 4).flatten(1, 2)
        queries, keys, values = qkv
        grid = queries.reshape(2, 2, 3, 4)
        by_row, by_col = grid[..., :2, None], grid[..., None, :3]
        bias = self.change((by_row + by_col).reshape(2, 6, 6))
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias)
        return self.proj(mixed.transpose(0, 1).reshape(1, 6, 8))


class Net(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.patches, self.attn = nn.Conv2d(3, 8, 8, 8), Biased(change)

    def forward(self, x):
        return self.attn(self.patches(x).flatten(2).mT).mean(1)


@pytest.mark.parametrize(
    ("change", "kind"),
    [(lambda bias: bias, Crossed), (lambda bias: 2 * bias, torch.Tensor)],
)
def test_a_bias_is_kept_as_a_sum_only_where_it_is_that_sum(change, kind):
    torch.manual_seed(0)
    vit = models.wrap(Net(change).eval(), layout=TokenLayout((), (2, 3)), image_size=(16, 24))
    tensor = torch.randn(1, 3, 16, 24)
    first, second = (attnviz.observe(vit, tensor, keep=keep) for keep in ("factors", "maps"))
    assert isinstance(first.layers[0].source.bias, kind)
    torch.testing.assert_close(first.layers[0].probs(), second.layers[0].probs())
    assert max(check.output_error for check in attnviz.verify(vit, tensor)) < 1e-5


def test_a_layer_is_proved_before_the_next_one_is_over(monkeypatch):
    """So that maps of two layers are held at once, and not those of all."""
    vit, events, check = small_vit(), [], PROVING._check
    for number, block in enumerate(vit.module.blocks):
        block.register_forward_hook(lambda *_, number=number: events.append(f"ran {number}"))

    def proving(name, *rest):
        events.append(f"proved {name.split('.')[1]}")
        return check(name, *rest)

    monkeypatch.setattr(PROVING, "_check", proving)
    attnviz.verify(vit, small_input())
    assert events == ["ran 0", "proved 0", "ran 1", "proved 1", "ran 2", "proved 2"] * 2


def test_a_layer_that_runs_again_after_it_was_proved_is_refused():
    module = timm.create_model("vit_tiny_patch16_224", depth=3, img_size=32).eval()
    module.blocks[2].attn = module.blocks[0].attn
    vit = models.wrap(module)
    with pytest.raises(CaptureFailed, match=r"blocks\.0\.attn ran 2 times in one pass; one map"):
        attnviz.verify(vit)
