"""Trains the project's own ViT on handwritten digits, once with each of its attention blocks.

    python -m models.digits train    write models/trained/*.safetensors, and say their checksums
    python -m models.digits test     say how many of the test pictures the committed weights know

The pictures are UCI's, by way of scikit-learn (requirements-dev.txt): 1797 digits of 13 writers.
Alpaydin and Kaynak 1998, "Optical Recognition of Handwritten Digits", doi 10.24432/C50P49.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import safetensors.torch
import torch
from einops import rearrange
from jaxtyping import Float, Int64
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from attnviz.errors import AttnVizError
from models import own_weights
from models.own_adapter import OwnViT
from models.seeds import seeded
from models.vit import ViT

TESTED = 360
"""Pictures that are kept for testing, drawn from each class alike by seed 0; 1437 are left."""

EPOCHS, BATCH, SEED = 60, 32, 0
PEAK_RATE, WEIGHT_DECAY, SMOOTHING, LONGEST_STEP = 1.5e-3, 0.05, 0.1, 1.0
"""AdamW's learning rate at its highest and its decay, that of labels, a gradient's longest."""

TURN, STRETCH, SLANT, SHIFT = 15.0, 0.15, 0.2, 2.0
"""At most, either way: degrees, share of the size, columns a row, pixels."""


@dataclass(frozen=True)
class Digits:
    """The handwritten digits, in the order of the data set, and the fixed split."""

    pictures: tuple[Image.Image, ...]
    """Grey, light on dark, 32 × 32."""
    classes: Int64[Tensor, "picture"]
    train: Int64[Tensor, "trained"]
    """Which of the pictures."""
    test: Int64[Tensor, "tested"]

    @classmethod
    def read(cls) -> Digits:
        """From scikit-learn, which brings them along.

        UCI counted the pixels of ink, 0 to 16, in each block of 4 × 4 of a 32 × 32 bitmap. So the
        8 × 8 counts are enlarged to where they came from, and a patch of 4 × 4 is one of them.

        Raises:
            AttnVizError: scikit-learn is not installed.
        """
        try:
            from sklearn.datasets import load_digits
            from sklearn.model_selection import train_test_split
        except ImportError as error:
            raise AttnVizError(
                "The handwritten digits come with scikit-learn, which is not installed. Install it"
                " with: pip install -r requirements-dev.txt."
            ) from error
        counts, classes = load_digits(return_X_y=True)
        train, test = train_test_split(
            range(len(classes)), test_size=TESTED, random_state=0, stratify=classes
        )
        pictures = tuple(_enlarged(row) for row in counts.tolist())
        return cls(pictures, *(torch.tensor(each) for each in (classes, train, test)))

    def inputs(
        self, vit: OwnViT, numbers: Int64[Tensor, "chosen"]
    ) -> Float[Tensor, "chosen 1 32 32"]:
        """The pictures of these numbers as the model is fed."""
        chosen = (self.pictures[number] for number in numbers.tolist())
        return torch.cat([vit.view(picture, "squash").tensor for picture in chosen])


def accuracy(vit: OwnViT, digits: Digits) -> float:
    """The share of the test pictures that the model classifies rightly."""
    with torch.inference_mode():
        found = vit.module(digits.inputs(vit, digits.test)).argmax(dim=1)
    return float((found.cpu() == digits.classes[digits.test]).double().mean())


def train(name: str, digits: Digits, *, epochs: int = EPOCHS, seed: int = SEED) -> ViT:
    """A network of `own_weights.TRAINED`, trained from random weights on the CPU.

    AdamW (Loshchilov and Hutter 2019) with one cycle of the learning rate, on cross-entropy with
    smoothed labels. The test pictures are never looked at.
    """
    with seeded(seed):
        module = own_weights.TRAINED[name].build()
        inputs = digits.inputs(OwnViT(module, name, ""), digits.train)
        classes = digits.classes[digits.train]
        steps = epochs * math.ceil(len(inputs) / BATCH)
        optimiser = torch.optim.AdamW(
            module.parameters(), lr=PEAK_RATE, betas=(0.9, 0.99), weight_decay=WEIGHT_DECAY
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, PEAK_RATE, total_steps=steps, pct_start=0.1
        )
        for batch in _batches(len(inputs), epochs):
            optimiser.zero_grad()
            logits = module(_varied(inputs[batch]))
            F.cross_entropy(logits, classes[batch], label_smoothing=SMOOTHING).backward()
            torch.nn.utils.clip_grad_norm_(module.parameters(), LONGEST_STEP)
            optimiser.step()
            schedule.step()
    return module.eval()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m models.digits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", choices=("train", "test"))
    job = parser.parse_args(arguments).job
    try:
        digits = Digits.read()
        torch.set_num_threads(1)  # on any number of cores, sums are added up in the same order
        for name in own_weights.TRAINED:
            if job == "train":
                _write(name, train(name, digits), digits)
            else:
                print(f"{name}: {accuracy(own_weights.load(name), digits):.2%} right")
    except AttnVizError as error:
        print(f"models.digits: {error}", file=sys.stderr)
        return 2
    return 0


def _write(name: str, module: ViT, digits: Digits) -> None:
    content = safetensors.torch.save(module.state_dict())
    own_weights.FOLDER.mkdir(exist_ok=True)
    own_weights.file(name).write_bytes(content)
    share = accuracy(OwnViT(module, name, ""), digits)
    digest = hashlib.sha256(content).hexdigest()
    row = f'Trained("{own_weights.TRAINED[name].block}", "{digest}", {share:.4f})'
    print(f"{name}: {share:.2%} right; its row in own_weights.TRAINED is {row}", flush=True)


def _enlarged(counts: Sequence[float]) -> Image.Image:
    """64 counts of ink, 0 to 16, row by row, as a picture of 32 × 32 grey levels."""
    small = Image.frombytes("L", (8, 8), bytes(round(255 * count / 16) for count in counts))
    return small.resize((32, 32), Image.Resampling.BICUBIC)


def _batches(count: int, epochs: int) -> Iterator[Int64[Tensor, "batch"]]:
    """All numbers below `count` in a new order each epoch, by the global random numbers."""
    for _ in range(epochs):
        yield from torch.randperm(count).split(BATCH)


def _varied(
    pictures: Float[Tensor, "picture 1 row col"],
) -> Float[Tensor, "picture 1 row col"]:
    """Each picture turned, stretched, slanted and shifted a little, and half of them inverted.

    All at random. Output pixel p shows input pixel s · R(angle) · [[1, slant], [0, 1]] · p + shift,
    counted from the middle of the picture, by bilinear interpolation; outside is dark, −1.
    """

    def up_to(most: float) -> Float[Tensor, "picture"]:
        return (2 * torch.rand(len(pictures)) - 1) * most

    angle, stretch, slant = up_to(math.radians(TURN)), 1 + up_to(STRETCH), up_to(SLANT)
    cos, sin = stretch * angle.cos(), stretch * angle.sin()
    half = pictures.shape[-1] / 2  # grids reach from −1 to 1
    across, down = up_to(SHIFT / half), up_to(SHIFT / half)
    entries = [cos, cos * slant - sin, across, sin, sin * slant + cos, down]
    maps = rearrange(torch.stack(entries), "(row col) picture -> picture row col", row=2)
    grid = F.affine_grid(maps, list(pictures.shape), align_corners=False)
    moved = F.grid_sample(pictures + 1, grid, align_corners=False) - 1
    signs = 2 * torch.randint(2, (len(pictures), 1, 1, 1)) - 1
    return moved * signs


if __name__ == "__main__":
    sys.exit(main())
