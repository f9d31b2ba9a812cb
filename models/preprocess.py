"""From a picture to what a model is fed: fitted to its size, placed, and normalised.

Sizes are (rows, cols) in pixels throughout; only Pillow's own calls take (width, height).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from attnviz.contract import Box, Fit, View, as_fit
from attnviz.errors import BadOption, unknown
from models.sizes import Size, aspect_size

RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
}

LARGEST_RESIZED = 2**24
"""Pixels (64 MB) that a picture may have between resize and crop; see `_resized_part`."""


@dataclass(frozen=True)
class Recipe:
    """How a model wants its pictures: timm's data configuration, but for the size."""

    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    std: tuple[float, float, float] = (0.5, 0.5, 0.5)
    interpolation: str = "bicubic"
    crop_pct: float = 1.0
    """How much of the resized picture's side the evaluation crop keeps."""
    crop_mode: str = "center"
    """`center` crops, `squash` changes the picture's shape, `border` adds borders."""

    def __post_init__(self) -> None:
        if self.interpolation not in RESAMPLING:
            raise unknown("interpolation", self.interpolation, RESAMPLING)

    @property
    def fill(self) -> tuple[int, int, int]:
        """The mean colour, which normalises to (nearly) zero; borders are painted with it."""
        red, green, blue = (round(255 * value) for value in self.mean)
        return red, green, blue


def fit_image(
    image: Image.Image, size: Size, *, fit: Fit, recipe: Recipe
) -> tuple[UInt8[np.ndarray, "row col 3"], Box]:
    """Resize the picture, then cut or pad it around its centre to `size`.

    `crop` is timm's evaluation transform, pixel for pixel; `squash` changes the picture's shape;
    `pad` keeps it whole and paints the rest in the mean colour; `aspect` is `squash` to a size that
    `aspect_size` chose. Returns the pixels and the box that they cover in the original picture;
    with borders it reaches past the picture's edges.
    """
    picture = (image.height, image.width)
    resized = _resized_size(picture, size, fit, recipe)
    window = tuple(_centred(have, want) for have, want in zip(resized, size, strict=True))
    pixels = _window(image, resized, window, recipe)
    (top, bottom), (left, right) = (
        (start * was / now, stop * was / now)
        for (start, stop), was, now in zip(window, picture, resized, strict=True)
    )
    return pixels, (left, top, right, bottom)


def normalise(
    pixels: UInt8[np.ndarray, "row col 3"], recipe: Recipe
) -> Float[Tensor, "1 3 row col"]:
    """(pixels / 255 − mean) / std, a batch of one picture, channels first."""
    channels = rearrange(torch.from_numpy(pixels), "row col chan -> 1 chan row col").contiguous()
    return (channels.float() / 255 - _channels(recipe.mean)) / _channels(recipe.std)


def pixels_of(
    tensor: Float[Tensor, "1 3 row col"], recipe: Recipe
) -> UInt8[np.ndarray, "row col 3"]:
    """The pixels that a normalised input was made from; what lies outside 0–255 is clipped."""
    unit = tensor.detach().float().cpu() * _channels(recipe.std) + _channels(recipe.mean)
    bytes_ = (unit * 255).round().clamp(0, 255).to(torch.uint8)
    return rearrange(bytes_, "1 chan row col -> row col chan").numpy()


def view_of_picture(
    image: Image.Image, fit: str, *, name: str, size: Size, step: Size | None, recipe: Recipe
) -> View:
    """What a model is fed with of a picture: fitted to `size`, and normalised, in float32.

    With `aspect` the size has the picture's shape, and at most as many steps (rows, cols) as
    `size`; `step` is None for a model that takes no other size. `name` is what messages call it.

    Raises:
        BadOption: `aspect`, but the model takes only one size.
        UnknownName: there is no such `fit`.
    """
    fit = as_fit(fit)
    if fit == "aspect":
        if step is None:
            raise BadOption(
                f"{name} takes only {size[0]} × {size[1]} pixels, so the fit 'aspect' does not"
                " work: use 'pad', 'squash' or 'crop'."
            )
        steps = (size[0] // step[0]) * (size[1] // step[1])
        size = aspect_size((image.height, image.width), patch=step, patches=steps)
    pixels, box = fit_image(image, size, fit=fit, recipe=recipe)
    return View(normalise(pixels, recipe), pixels, box, fit)


def view_of_input(tensor: Float[Tensor, "1 channel row col"], recipe: Recipe) -> View:
    """A normalised input, of three channels or a grey one; its box is the input itself."""
    height, width = tensor.shape[2:]
    pixels = pixels_of(tensor.expand(1, 3, -1, -1), recipe)
    return View(tensor, pixels, (0.0, 0.0, float(width), float(height)), None)


def noise(channels: int, rows: int, cols: int) -> Float[Tensor, "1 channel row col"]:
    """Standard normal noise from a seed of its own; the global random numbers stay untouched."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(1, channels, rows, cols, generator=generator)


def require_input(tensor: object, *, channels: int = 3) -> None:
    """Refuse what is no finite floating-point (1, channels, rows, cols) tensor.

    Raises:
        BadOption: the tensor has another shape or type, or holds NaN or infinity.
    """
    expected = f"expected a normalised float tensor of shape (1, {channels}, rows, cols)"
    if not isinstance(tensor, Tensor):
        raise BadOption(f"A {type(tensor).__name__} came; {expected}.")
    batch_and_channels = tuple(tensor.shape[:2])
    if tensor.ndim != 4 or batch_and_channels != (1, channels) or not tensor.is_floating_point():
        raise BadOption(
            f"A tensor of shape {tuple(tensor.shape)} and type {tensor.dtype} came; {expected}."
        )
    if not torch.isfinite(tensor).all():
        raise BadOption("The input tensor holds NaN or infinity: check how it was normalised.")


def _channels(values: Sequence[float]) -> Float[Tensor, "channel 1 1"]:
    return rearrange(torch.tensor(values), "chan -> chan 1 1")


def _resized_size(picture: Size, size: Size, fit: Fit, recipe: Recipe) -> Size:
    """The size of the whole picture after resizing, before the cut."""
    match fit:
        case "squash" | "aspect":
            return size
        case "pad":
            return _scaled(picture, max(_ratios(picture, size)))
        case "crop":
            outer = (math.floor(size[0] / recipe.crop_pct), math.floor(size[1] / recipe.crop_pct))
            if recipe.crop_mode == "squash":
                return outer
            if recipe.crop_mode == "border":
                return _scaled(picture, max(_ratios(picture, outer)))
            if outer[0] == outer[1]:
                # torchvision's Resize, which timm uses here, truncates where timm's own rounds.
                rows, cols = (int(outer[0] * side / min(picture)) for side in picture)
                return rows, cols
            return _scaled(picture, min(_ratios(picture, outer)))
    assert_never(fit)


def _ratios(picture: Size, size: Size) -> tuple[float, float]:
    return picture[0] / size[0], picture[1] / size[1]


def _scaled(picture: Size, ratio: float) -> Size:
    return max(1, round(picture[0] / ratio)), max(1, round(picture[1] / ratio))


def _centred(have: int, want: int) -> tuple[int, int]:
    """Start and stop of a centred window; the start is negative where borders are needed."""
    start = round((have - want) / 2) if have >= want else -((want - have) // 2)
    return start, start + want


def _window(
    image: Image.Image, resized: Size, window: Sequence[tuple[int, int]], recipe: Recipe
) -> UInt8[np.ndarray, "row col 3"]:
    """The window of the resized picture, with borders where it reaches past the edges."""
    (top, bottom), (left, right) = window
    inside = (max(left, 0), max(top, 0), min(right, resized[1]), min(bottom, resized[0]))
    image = image if image.mode == "RGB" else image.convert("RGB")  # convert always copies
    part = _resized_part(image, resized, inside, RESAMPLING[recipe.interpolation])
    canvas = Image.new("RGB", (right - left, bottom - top), recipe.fill)
    canvas.paste(part, (inside[0] - left, inside[1] - top))
    return np.array(canvas)


def _resized_part(
    image: Image.Image,
    resized: Size,
    inside: tuple[int, int, int, int],
    resampling: Image.Resampling,
) -> Image.Image:
    """Resize to `resized`, keep the part `inside`: (left, top, right, bottom).

    A long strip, cropped to a square, would be enormous in between. Past `LARGEST_RESIZED` only the
    part that is kept gets resized; Pillow then rounds its phase, by a grey level or two.
    """
    if math.prod(resized) <= LARGEST_RESIZED:
        return image.resize((resized[1], resized[0]), resampling).crop(inside)
    left, top, right, bottom = inside
    along, down = image.width / resized[1], image.height / resized[0]
    cols = (left * along, 0, min(right * along, image.width), image.height)
    rows = (0, top * down, right - left, min(bottom * down, image.height))
    # Rows first, as Pillow does for the whole; for a box it may choose the other order, and a
    # filter that overshoots is clipped in between.
    strip = image.resize((right - left, image.height), resampling, box=cols)
    return strip.resize((right - left, bottom - top), resampling, box=rows)
