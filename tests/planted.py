"""A model whose score is a sum over patches that are known, and records of its pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from attnviz.contract import Readout, View
from attnviz.heatmap import Heatmap
from attnviz.record import AttentionRecord, LayerAttention, Maps
from attnviz.tokens import TokenLayout

HIGH, WIDE = 4, 5
"""Pixels of a patch."""
GRID = (2, 3)


class Planted(nn.Module):
    """Σ over patches of weight · mean pixel, and 0: the logits of two classes, or one output."""

    def __init__(self, weights: np.ndarray, *, outputs: int = 2) -> None:
        super().__init__()
        self.head = nn.Identity()
        self.weights = torch.tensor(weights, dtype=torch.float64)
        self.outputs = outputs
        self.seen: list[int] = []
        self.watching: Callable[[], object] = lambda: None

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(len(x))
        self.watching()
        rows, cols = self.weights.shape
        found = []
        for picture in x.double():
            total = torch.zeros((), dtype=torch.float64)
            for row in range(rows):
                for col in range(cols):
                    patch = picture[:, row * HIGH : (row + 1) * HIGH, col * WIDE : (col + 1) * WIDE]
                    total = total + self.weights[row, col] * patch.mean()
            found.append(torch.stack([total, torch.zeros_like(total)][: self.outputs]))
        return self.head(torch.stack(found))


@dataclass
class Loaded:
    """`Planted` as a loaded model."""

    module: nn.Module
    classes: tuple[str, ...] = ("planted", "other")
    name: str = "planted"
    weights: str = "by hand"
    random: bool = False
    image_size: tuple[int, int] = (GRID[0] * HIGH, GRID[1] * WIDE)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    sites: tuple = ()
    lock: object = field(default_factory=RLock)

    @property
    def readout(self) -> Readout:
        return Readout(norm=lambda tokens: tokens, head=self.module.head, classify=self.module.head)

    def layout(self, height: int, width: int) -> TokenLayout:
        return TokenLayout((), (height // HIGH, width // WIDE))

    def view(self, image, fit):
        raise NotImplementedError

    def view_of_tensor(self, tensor):
        raise NotImplementedError

    def run(self, pictures):
        return self.module(pictures)

    def probe(self):
        raise NotImplementedError

    def predictions(self, output):
        return ()


def planted(weights, **options) -> Loaded:
    """The model of these weights (row, col)."""
    weights = np.array(weights, dtype=float)
    outputs = options.pop("outputs", 2)
    classes = {1: ("output",), 2: ("planted", "other")}[outputs]
    return Loaded(Planted(weights, outputs=outputs), **{"classes": classes, **options})


def record_of_ones(grid=GRID, **changes) -> AttentionRecord:
    """A picture that is 1 everywhere, of `grid` patches, seen by the planted model."""
    rows, cols = grid
    high, wide = rows * HIGH, cols * WIDE
    uniform = torch.full((1, rows * cols, rows * cols), 1 / (rows * cols))
    return AttentionRecord(
        **{
            "layers": (LayerAttention("only", Maps(uniform)),),
            "layout": TokenLayout((), grid),
            "view": View(
                torch.ones(1, 3, high, wide),
                np.zeros((high, wide, 3), np.uint8),
                (0.0, 0.0, float(wide), float(high)),
                None,
            ),
            "image": Image.new("RGB", (wide, high)),
            "predictions": (),
            "model": "planted",
            "weights": "by hand",
            "random": False,
            "device": "cpu",
            **changes,
        }
    )


def map_of(values, record: AttentionRecord, **changes) -> Heatmap:
    """A map of that record."""
    return Heatmap(
        **{
            "values": np.array(values, dtype=np.float32),
            "unit": "worth",
            "title": "By hand",
            "facts": (("method", "By hand"), ("query", "nothing")),
            "image": record.image,
            "box": record.view.box,
            **changes,
        }
    )
