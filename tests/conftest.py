"""Small models of every prefix, one of each promise that a test can break."""

from __future__ import annotations

import gc
import os

import pytest

# Before torch: on processors with AMX its oneDNN (torch 2.14.1) computes some convolutions in bfloat16
# wrongly, as of 16 channels in steps of 8 pixels, which PVT v2 and Twins have. See docs/models.md.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import torch
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer

import models

torch.set_num_threads(1)

SMALL = {
    "img_size": (32, 48),
    "patch_size": 16,
    "embed_dim": 24,
    "depth": 3,
    "num_heads": 3,
    "num_classes": 5,
}

# prefix -> (class, its arguments, the parameters of the prefix tokens in their order)
PREFIXES = {
    (): (VisionTransformer, {"class_token": False, "global_pool": "avg"}, []),
    ("cls",): (VisionTransformer, {}, ["cls_token"]),
    ("cls", "dist"): (VisionTransformerDistilled, {}, ["cls_token", "dist_token"]),
    ("cls", "reg1", "reg2", "reg3", "reg4"): (
        VisionTransformer,
        {"reg_tokens": 4},
        ["cls_token", "reg_token"],
    ),
}


def small_module(prefix: tuple[str, ...] = ("cls",), **changes: object) -> torch.nn.Module:
    """A random 3-layer, 3-head ViT on a 2 × 3 grid, whose maps are far from uniform."""
    kind, extra, _ = PREFIXES[prefix]
    with torch.random.fork_rng():
        torch.manual_seed(7)
        module = kind(**{**SMALL, **extra, **changes})
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.35)
    return module


def small_vit(prefix: tuple[str, ...] = ("cls",), **changes: object):
    """The same, loaded."""
    return models.wrap(small_module(prefix, **changes))


def small_input(seed: int = 0) -> torch.Tensor:
    """A normalised input for the small models."""
    return torch.randn(1, 3, 32, 48, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(autouse=True)
def _seeded():
    """Models whose weights a test does not set itself are the same at each run."""
    torch.manual_seed(0)


def pytest_addoption(parser):
    """`--long`, for the tests that are marked so too."""
    parser.addoption("--long", action="store_true", help="run the tests marked long as well")


def pytest_collection_modifyitems(config, items):
    """Without `--long`, those marked so are counted as deselected; a file of nothing else runs."""
    long = [item for item in items if item.get_closest_marker("long")]
    if not config.getoption("--long") and len(long) < len(items):
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item.get_closest_marker("long") is None]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Where everything is required (CI), a skipped test is a failed one."""
    report = yield
    if report.skipped and os.environ.get("ATTNVIZ_REQUIRE_ALL") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where every test is required: {report.longrepr}"
    return report


def pytest_collection_finish():
    """All that was imported, a million objects, is not looked through for garbage again and again."""
    gc.collect()
    gc.freeze()
