"""What is measured: the default model, a sample picture, and the model's own forward pass."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median, quantiles

import psutil
import torch
from PIL import Image
from torch import Tensor

import models
from attnviz.samples import open_sample
from models import dinov2_small


@dataclass(frozen=True)
class Subject:
    """A model on the CPU with its weights loaded, and the picture it is shown."""

    vit: models.TimmViT
    image: Image.Image
    tensor: Tensor

    @classmethod
    def load(cls, name: str = dinov2_small.NAME, *, pretrained: bool = True) -> Subject:
        """A model, DINOv2 ViT-S/14 at 518 px if left out, and the cat cropped to a square."""
        vit = models.load(name, pretrained=pretrained, device="cpu")
        image = open_sample("cat")
        assert isinstance(vit, models.TimmViT)
        return cls(vit, image, vit.view(image, "crop").tensor)

    @property
    def factor_bytes(self) -> int:
        """Bytes of all layers' queries and keys: 2 · layer · token · width · 4."""
        tokens = self.vit.layout(*self.tensor.shape[-2:]).tokens
        return 2 * len(self.vit.sites) * tokens * self.vit.module.embed_dim * 4

    def forward(self) -> Tensor:
        """The plain pass, fused kernels and all, with nothing of attnviz in it."""
        with torch.no_grad():
            return self.vit.module(self.tensor)


def seconds(job: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


class Watch:
    """Sees how much of the machine others take: ratios of a busy one say little."""

    def __init__(self) -> None:
        self.start = self._now()

    def others(self) -> float:
        """Share of the processors' time since the start that other processes took."""
        everything, idle, own = (
            now - then for now, then in zip(self._now(), self.start, strict=True)
        )
        return max(0.0, (everything - idle - own) / everything)

    @staticmethod
    def _now() -> tuple[float, float, float]:
        times, own = psutil.cpu_times(), psutil.Process().cpu_times()
        ended = own.children_user + own.children_system  # of what it started: a server, a browser
        everything = time.perf_counter() * psutil.cpu_count()
        return everything, times.idle, own.user + own.system + ended


def machine() -> str:
    """What the numbers were measured on, in one line."""
    return (
        f"{psutil.cpu_count()} CPUs ({platform.machine()}), {torch.get_num_threads()} threads,"
        f" torch {torch.__version__}, timm {version('timm')}, Python {platform.python_version()}"
    )


def ratio(found: Sequence[float]) -> str:
    """The median, and the middle half of all rounds."""
    if len(found) < 2:
        return f"{found[0]:.3f}"
    low, _, high = quantiles(found, n=4)
    return f"{median(found):.3f} ({low:.3f}–{high:.3f})"
