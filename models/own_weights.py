"""The networks that attnviz trained itself: what they are, checked by SHA-256 and loaded.

`models/digits.py` trained them; their files and their card lie in `models/trained/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from attnviz.contract import Loading
from models.fitting import require_fit
from models.own_adapter import OwnViT
from models.seeds import seeded
from models.vit import ViT
from models.weights import (
    CHECKPOINT_WORDS,
    RANDOM_WORDS,
    file_called,
    read_checked,
    read_safetensors,
)

FOLDER = Path(__file__).resolve().parent / "trained"
LABELS = tuple("0123456789")


@dataclass(frozen=True)
class Trained:
    """One set of weights in `FOLDER`."""

    block: str
    """A name in `models.vit.BLOCKS`."""
    sha256: str
    accuracy: float
    """Share of the test pictures that it classifies rightly, to four digits."""

    def build(self) -> ViT:
        """The network with its initial weights, from torch's global random numbers."""
        return ViT(
            image_size=(32, 32),
            patch_size=4,
            channels=1,
            hidden_size=64,
            depth=4,
            num_heads=4,
            mlp_ratio=2.0,
            block=self.block,
            classes=len(LABELS),
        )


TRAINED = {
    "digits": Trained(
        "separate", "1861a2edf51bb1289ceb0e45c8b42d273a43f6c4738d34606e7bb2917f354df1", 0.9889
    ),
    "digits-fused-qkv": Trained(
        "fused", "b77077aab49c1850b1d203a3d9a649342ee4ea1fb09655b5364d0b8658301b8a", 0.9917
    ),
}
"""Name → what it is; the file is `FOLDER`/name.safetensors."""


def file(name: str) -> Path:
    """Where the weights of that name lie."""
    return FOLDER / f"{name}.safetensors"


def load(
    name: str,
    *,
    pretrained: bool = True,
    checkpoint: str | PathLike[str] | None = None,
    image_size: int | tuple[int, int] | None = None,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> OwnViT:
    """A network of `TRAINED`, by the arguments of `models.load`.

    Raises:
        BadOption: `image_size` is not 32 × 32.
        BadWeights: the weights are missing, damaged or of another model.
    """
    trained = TRAINED[name]
    if checkpoint is not None:
        source = file_called(checkpoint)
        module = _assemble(trained.build, read_safetensors(checkpoint), source)
        weights = CHECKPOINT_WORDS.format(source)
    elif not pretrained:
        with seeded(seed):
            module = trained.build()
        weights = RANDOM_WORDS.format(seed)
    else:
        module = _assemble(trained.build, _committed(name), name)
        weights = (
            "Trained by attnviz itself on UCI's handwritten digits (CC BY 4.0), and on nothing"
            f" else; it named {trained.accuracy:.1%} of the test pictures rightly. Its file is"
            " checked by SHA-256."
        )
    random = checkpoint is None and not pretrained
    loading = Loading(
        seed=seed if random else None,
        checkpoint=None if checkpoint is None else file_called(checkpoint),
    )
    vit = OwnViT(module.eval().to(device), name, weights, random, labels=LABELS, loading=loading)
    return vit if image_size is None else vit.at(image_size)


def _assemble(build: Callable[[], ViT], state: dict[str, Tensor], source: str) -> ViT:
    """The network with exactly these weights."""
    with torch.device("meta"):
        module = build()
    require_fit(module, state, source)
    module.load_state_dict(state, strict=True, assign=True)
    return module


def _committed(name: str) -> dict[str, Tensor]:
    """The tensors of a file in `FOLDER`, if it is the one that was committed."""
    way_out = "Take the file from attnviz's repository again."
    return safetensors.torch.load(read_checked(file(name), TRAINED[name].sha256, way_out=way_out))
