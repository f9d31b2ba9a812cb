"""Pictures that pass together leave what each would leave alone."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from PIL import Image
from timm.models.beit import Beit
from timm.models.swin_transformer import SwinTransformer

import attnviz
import models
from attnviz import together
from attnviz.many import observe_views
from tests import oracles
from tests.conftest import PREFIXES, small_input, small_vit
from tests.random_models import random_module


def pictures(count: int, size: tuple[int, int] = (48, 32)) -> list[Image.Image]:
    """Pictures of noise, (width, height)."""
    noise = np.random.default_rng(5).integers(0, 256, (count, size[1], size[0], 3), np.uint8)
    return [Image.fromarray(each) for each in noise]


def assert_same(ours, alone, atol=2e-5):
    """Two records of one picture."""
    assert ours.layout == alone.layout and ours.view.box == alone.view.box
    for mine, its in zip(ours.layers, alone.layers, strict=True):
        assert mine.name == its.name
        torch.testing.assert_close(mine.probs(), its.probs(), atol=atol, rtol=0)
    torch.testing.assert_close(ours.features, alone.features, atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(ours.feature, alone.feature, atol=1e-3, rtol=1e-4)
    assert [each[:2] for each in ours.predictions] == [each[:2] for each in alone.predictions]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_each_is_as_alone(prefix):
    vit, images = small_vit(prefix), pictures(3)
    assert together.go_together(vit)
    for record, image in zip(attnviz.observe_many(vit, images), images, strict=True):
        assert record.image is image
        assert_same(record, attnviz.observe(vit, image, keep="maps"))


def test_maps_equal_an_independent_forward_pass():
    vit = small_vit()
    inputs = torch.cat([small_input(seed) for seed in range(3)])
    state = {k: v.detach().double().numpy() for k, v in vit.module.state_dict().items()}
    for seen, x in zip(together.run(vit, inputs), inputs.double().numpy(), strict=True):
        expected = oracles.vit_maps(state, x, patch=16, heads=3, prefix=PREFIXES[("cls",)][2])
        for layer, attention in zip(seen.layers, expected, strict=True):
            assert layer.probs().numpy() == pytest.approx(attention, abs=2e-5)


def test_pictures_of_several_sizes_are_grouped(monkeypatch):
    vit = small_vit(dynamic_img_size=True)
    assert together.go_together(vit)
    passes, run = [], together.run
    monkeypatch.setattr(
        together, "run", lambda *given, **how: passes.append(len(given[1])) or run(*given, **how)
    )
    tall, wide = pictures(2, (32, 128)), pictures(3, (128, 32))
    images = [wide[0], tall[0], wide[1], wide[2], tall[1]]
    records = attnviz.observe_many(vit, images, fit="aspect")
    assert sorted(passes) == [2, 3]
    for record, image in zip(records, images, strict=True):
        assert_same(record, attnviz.observe(vit, image, fit="aspect", keep="factors"))


def test_a_bias_is_each_pictures_own_part():
    vit = models.wrap(
        random_module(
            lambda: Beit(
                img_size=32, patch_size=16, embed_dim=24, depth=2, num_heads=3, num_classes=5,
                use_rel_pos_bias=True, use_abs_pos_emb=False,
            ),
            std=0.35,
        )
    )  # fmt: skip
    assert together.go_together(vit)
    images = pictures(2)
    for record, image in zip(attnviz.observe_many(vit, images), images, strict=True):
        for mine, its in zip(
            record.layers, attnviz.observe(vit, image, keep="maps").layers, strict=True
        ):
            torch.testing.assert_close(mine.rows(3), its.rows(3), atol=2e-5, rtol=0)


def small_swin():
    return models.wrap(
        random_module(
            lambda: SwinTransformer(
                img_size=32, patch_size=4, embed_dim=24, depths=(2, 2), num_heads=(3, 6),
                window_size=4, num_classes=5,
            ),
            std=0.35,
        )
    )  # fmt: skip


@pytest.mark.parametrize("make", [lambda: models.load("digits"), small_swin])
def test_who_cannot_pass_together_passes_alone(make):
    vit = make()
    assert not together.go_together(vit)
    images = pictures(2)
    for record, image in zip(attnviz.observe_many(vit, images), images, strict=True):
        alone = attnviz.observe(vit, image, keep="factors")
        assert all(
            torch.equal(mine.rows(range(1)), its.rows(range(1)))
            for mine, its in zip(record.layers, alone.layers, strict=True)
        )


def test_whatever_else_is_said_of_a_site_keeps_its_pictures_apart():
    site = small_vit().sites[0]
    assert together._is_plain(site)
    for each in fields(site):
        changed = replace(site, **{each.name: object()})
        assert together._is_plain(changed) == (each.name in together.ANY)


def test_a_model_that_mixes_pictures_is_found_out():
    vit = small_vit()
    # Each gets what is the next one's; of a single picture nobody would notice.
    vit.module.blocks[1].norm1.register_forward_hook(lambda _, __, tokens: tokens.roll(1, 0))
    attnviz.observe(vit, small_input())
    assert not together.go_together(vit)


@pytest.mark.parametrize("picture", [0, 2])
def test_a_row_that_is_not_what_the_layer_used_is_refused(picture):
    vit = small_vit()

    def spoil(_, given):  # what map × values is goes on as something else
        (joined,) = given
        mine = torch.arange(len(joined)) == picture
        return torch.where(mine[:, None, None], 1.01 * joined, joined)

    vit.sites[2].after_mix.register_forward_pre_hook(spoil)
    with pytest.raises(attnviz.CaptureFailed, match=r"blocks\.2\.attn .* 3 pictures"):
        together.run(vit, torch.cat([small_input(seed) for seed in range(3)]))


def test_the_model_comes_back_as_found():
    vit = small_vit()
    vit.module.train()
    vit.module.blocks[0].attn.fused_attn = False
    before = [
        len(part._forward_hooks) + len(part._forward_pre_hooks) for part in vit.module.modules()
    ]
    together.run(vit, torch.cat([small_input(0), small_input(1)]))
    after = [
        len(part._forward_hooks) + len(part._forward_pre_hooks) for part in vit.module.modules()
    ]
    assert after == before and vit.module.training and not vit.module.blocks[0].attn.fused_attn


def test_a_layer_that_is_not_kept_is_proved_and_not_read():
    vit, images = small_vit(), pictures(2)
    views = [vit.view(image, "crop") for image in images]
    for record, image in zip(observe_views(vit, images, views, layers=[1]), images, strict=True):
        alone = attnviz.observe(vit, image, keep="maps")
        torch.testing.assert_close(
            record.layers[1].probs(), alone.layers[1].probs(), atol=2e-5, rtol=0
        )
        attnviz.explain(record, layer=1)
        with pytest.raises(attnviz.CaptureFailed, match=r"blocks\.0\.attn was not kept"):
            attnviz.explain(record, layer=0)
    vit.sites[2].after_mix.register_forward_pre_hook(lambda _, given: 1.01 * given[0])
    with pytest.raises(attnviz.CaptureFailed, match=r"blocks\.2\.attn"):
        together.run(vit, torch.cat([view.tensor for view in views]), layers=[1])
