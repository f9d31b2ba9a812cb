"""Which layers add up, past what lies between them; and where grids lie that are not the first."""

import pytest
import timm
import torch

import attnviz
import models
from attnviz.errors import BadOption


def seen(name, **options):
    module = timm.create_model(name, num_classes=3, **options).eval()
    vit = models.wrap(module)
    return attnviz.observe(vit, vit.probe())


@pytest.mark.parametrize(
    ("name", "last"),
    [
        # Convolutions move what tokens hold between any two of their layers.
        ("tiny_vit_5m_224", 1),
        ("davit_tiny", 1),
        ("pvt_v2_b0", 1),
        ("twins_svt_small", 1),
        ("lowformer_b0", 1),
        ("csatv2", 1),
        # Window and grid of one block; a convolution comes before the next block's.
        ("test_maxvit", 2),
        # All tokens, one block right after the other.
        ("visformer_tiny", 4),
        ("swin_tiny_patch4_window7_224", 2),
    ],
)
def test_layers_add_up_only_where_no_convolution_lies_between(name, last):
    record = seen(name)
    assert len(record.layers) - record.shared_from() == last
    attnviz.explain(record, "rollout", query="mean")
    with pytest.raises(BadOption, match=f"start at layer {len(record.layers) - last}"):
        attnviz.explain(record, "rollout", query="mean", first_layer=0)


def test_a_map_on_another_grid_than_the_query_s_names_both():
    record = seen("pvt_v2_b0")
    first, last = (attnviz.explain(record, layer=layer, query=(1, 2)) for layer in (0, -1))
    assert first.fact("query grid") == "56 rows × 56 columns"  # 224 / 4; keys are pooled by 8
    assert first.fact("grid") == "7 rows × 7 columns of patches"
    assert "query grid: 56 rows × 56 columns; " in first.summary
    assert last.fact("query grid") is None  # the last stage's keys are its own 7 × 7
    turned = attnviz.explain(record, layer=0, query=(1, 2), direction="to")
    assert turned.fact("query grid") == "7 rows × 7 columns"
    assert turned.fact("grid") == "56 rows × 56 columns of patches"


def test_pooled_keys_of_mvit_lie_over_the_whole_picture():
    record = seen("mvitv2_tiny")
    places = [record.geometry(layer).place for layer in record.layers]
    assert all(place == pytest.approx((0, 0, 1, 1)) for place in places)


def test_a_grid_that_reaches_past_the_picture_keeps_the_size_of_its_cells():
    record = seen("swin_tiny_patch4_window7_224", img_size=(160, 232))
    geometry = record.geometry(record.layers[-1])
    assert geometry.keys.grid == (5, 8)  # 232 / 32 is 7.25
    assert geometry.place == pytest.approx((0, 0, 8 * 32 / 232, 1))


def test_the_parts_of_a_patch_are_those_of_that_patch_in_reading_order():
    record = seen("tnt_s_patch16_224", img_size=(32, 64), depth=1)
    geometry = record.geometry(record.layers[0])
    assert geometry.keys.grid == (8, 16)  # 4 × 4 parts in each of 2 × 4 patches
    number = torch.arange(8 * 16).unflatten(0, (8, 16))
    for patch, row, col in ((1, 0, 4), (3, 0, 12), (4, 4, 0)):
        expected = number[row : row + 4, col : col + 4].flatten()
        assert torch.equal(geometry.rows[patch], expected)
