"""Values to colours: the palettes, and the overlay on a picture.

With `mosaic`, which puts many maps together, the only file that makes uint8 colours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from einops import repeat
from jaxtyping import Bool, Float, Float32, UInt8
from matplotlib import colormaps
from PIL import Image, ImageDraw

from attnviz.errors import BadOption, unknown
from attnviz.heatmap import INTERPOLATIONS, Heatmap, Placement, place
from attnviz.legend import channels
from attnviz.mass import MassMask
from attnviz.scale import Scale, choose_scale, numbers, within

LONGEST = 12
"""Longer pictures and tiles are drawn stretched to this many times their shorter side."""

BAND = 256
"""Rows of pixels smoothed at a time: a 12-megapixel picture needs no 12 million floats."""

DOT = "#0072b2"
"""The blue of a plot's dots, told apart with any colour vision (Okabe & Ito 2008)."""


def _table(name: str) -> UInt8[np.ndarray, "256 3"]:
    colours = np.rint(colormaps[name](np.arange(256))[:, :3] * 255).astype(np.uint8)
    colours.setflags(write=False)
    return colours


COLORMAPS: Mapping[str, UInt8[np.ndarray, "256 3"]] = {
    "inferno": _table("inferno"),
    "viridis": _table("viridis"),
    "cividis": _table("cividis"),
    "magma": _table("magma"),
    "plasma": _table("plasma"),
    "gray": _table("gray"),
}
"""Sequential palettes, dark to light, so that they survive print and colour blindness; no jet."""


def palette(colormap: str) -> UInt8[np.ndarray, "256 3"]:
    """The 256 colours of a palette, lowest first."""
    if colormap not in COLORMAPS:
        raise unknown("colormap", colormap, COLORMAPS)
    return COLORMAPS[colormap]


def colourise(
    values: Float[np.ndarray, "*shape"], scale: Scale, colormap: str = "inferno"
) -> UInt8[np.ndarray, "*shape 3"]:
    """Each value's colour: the scale's range in 256 equal steps, its high end the last colour."""
    colours: UInt8[np.ndarray, "*shape 3"] = palette(colormap)[_step(values, scale)]
    return colours


def _step(values: Float[np.ndarray, "*shape"], scale: Scale) -> UInt8[np.ndarray, "*shape"]:
    return np.minimum(scale.position(values) * 256, 255).astype(np.uint8)


def mix(
    values: Float[np.ndarray, "*shape 3"], scales: tuple[Scale, ...]
) -> UInt8[np.ndarray, "*shape 3"]:
    """Three values as red, green and blue: 0 at the low end of their scales, 255 at the high."""
    parts = [_step(values[..., at], scale) for at, scale in enumerate(scales)]
    return np.stack(parts, axis=-1)


def overlay(
    heat: Heatmap,
    *,
    alpha: float = 0.5,
    colormap: str = "inferno",
    scale: str | Scale = "own",
    clip: float | None = None,
    interpolation: str = "nearest",
    size: tuple[int, int] | None = None,
) -> Image.Image:
    """The picture with the map's colours over its box: (1 - alpha) · picture + alpha · colour.

    `size` is the result's (width, height) in pixels, the picture's own if None. Three values a
    patch are mixed as `legend.channels` says. Raises `UnknownName` and `BadOption` for options that
    don't exist.
    """
    require_alpha(alpha)
    if interpolation not in INTERPOLATIONS:
        raise unknown("interpolation", interpolation, INTERPOLATIONS)
    paint = _painter(heat, colormap, scale, clip)
    picture = _resized(heat.image, size)
    placement = _placed(heat, picture.size)
    colours = _pixels(heat, placement, paint, interpolation)
    if colours.size:
        left, top = placement.left, placement.top
        height, width, _ = colours.shape
        under = picture.crop((left, top, left + width, top + height))
        blended = Image.blend(under, Image.fromarray(colours), float(alpha))
        picture.paste(blended, (left, top), _filled(heat, placement))
    return picture


def cells(
    heat: Heatmap,
    *,
    alpha: float = 0.5,
    colormap: str = "inferno",
    scale: str | Scale = "own",
    clip: float | None = None,
) -> Image.Image:
    """The map alone, one pixel a patch, in mode RGBA: as opaque as `alpha`, clear where blank."""
    require_alpha(alpha)
    opaque = np.where(heat.filled, round(255 * alpha), 0).astype(np.uint8)
    colours = _painter(heat, colormap, scale, clip)(heat.values)
    return Image.fromarray(np.concatenate([colours, opaque[..., None]], axis=-1))


def require_alpha(alpha: float) -> None:
    """BadOption for what is no opacity."""
    if not within(alpha, 0.0, 1.0):
        raise BadOption(f"alpha is from 0 (picture alone) to 1 (colours alone); {alpha!r} came.")


def mask_image(heat: Heatmap, kept: Bool[np.ndarray, "row col"]) -> Image.Image:
    """The kept patches in white (255), all else in black, at the picture's size, mode L.

    A pixel belongs to the patch that holds its centre; what the model did not see is black.
    """
    if kept.shape != heat.grid:
        raise BadOption(
            f"A mask of {' × '.join(map(str, kept.shape))} patches came for a map of"
            f" {' × '.join(map(str, heat.grid))}. Make it from this map's values."
        )
    placement = _placed(heat, heat.image.size)
    rows, cols = placement.cells
    pixels = np.zeros((heat.image.height, heat.image.width), np.uint8)
    shown = pixels[placement.top :, placement.left :][: rows.size, : cols.size]
    shown[kept.take(rows, 0).take(cols, 1)] = 255
    return Image.fromarray(pixels)


def outlined(heat: Heatmap, mask: MassMask, *, width: float = 0.006) -> Image.Image:
    """The picture with the mask's outline: white on black, `width` of its longer side thick.

    What lies outside the mask is drawn at a third of its brightness.
    """
    shade = Image.new("RGB", heat.image.size)
    inside = mask_image(heat, mask.kept)
    drawn = Image.composite(heat.image, Image.blend(shade, heat.image, 1 / 3), inside)
    thick = max(1, round(width * max(drawn.size)))
    pen = ImageDraw.Draw(drawn)
    for colour, extra in (("black", 2), ("white", 0)):
        for segment in heat.outline(mask):
            pen.line(segment, fill=colour, width=thick + extra)
    return drawn


def _resized(image: Image.Image, size: tuple[int, int] | None) -> Image.Image:
    if size is None or tuple(size) == image.size:
        return image.copy()
    width, height = size
    if width < 1 or height < 1:
        raise BadOption(f"size is (width, height), each at least 1 pixel; {size} came.")
    larger = width > image.width or height > image.height
    # Enlarging invents no pixels, shrinking averages them.
    how = Image.Resampling.NEAREST if larger else Image.Resampling.LANCZOS
    return image.resize((width, height), how)


def _placed(heat: Heatmap, size: tuple[int, int]) -> Placement:
    across, down = size[0] / heat.image.width, size[1] / heat.image.height
    left, top, right, bottom = heat.box
    box = (left * across, top * down, right * across, bottom * down)
    return place(heat.grid, box, (size[1], size[0]))


_Paint = Callable[[Float[np.ndarray, "*values"]], UInt8[np.ndarray, "*shape 3"]]


def _painter(heat: Heatmap, colormap: str, scale: str | Scale, clip: float | None) -> _Paint:
    if heat.in_colour:
        return partial(mix, scales=channels(heat, colormap=colormap, scale=scale, clip=clip))
    chosen = choose_scale(heat.drawn, scale, clip=clip)
    return partial(colourise, scale=chosen, colormap=colormap)


def _filled(heat: Heatmap, placement: Placement) -> Image.Image | None:
    """Which of the covered pixels get a colour; None for all."""
    if heat.blank is None:
        return None
    rows, cols = placement.cells
    return Image.fromarray(heat.filled.take(rows, 0).take(cols, 1).astype(np.uint8) * 255)


def _spread(heat: Heatmap) -> Float32[np.ndarray, "row col *three"]:
    """The values, and in blank patches those of the nearest that has one, for smoothing."""
    if heat.blank is None:
        return heat.values
    held = np.argwhere(heat.filled)
    every = np.indices(heat.grid)[..., None]
    far = (every[0] - held[:, 0]) ** 2 + (every[1] - held[:, 1]) ** 2
    rows, cols = held[far.argmin(-1)].transpose(2, 0, 1)
    nearest: Float32[np.ndarray, "row col *three"] = heat.values[rows, cols]
    return nearest


def _pixels(
    heat: Heatmap, placement: Placement, paint: _Paint, interpolation: str
) -> UInt8[np.ndarray, "height width 3"]:
    if interpolation == "nearest":  # as many colours as patches, so colour the patches
        rows, cols = placement.cells
        cells = paint(heat.values)
        return cells.take(rows, 0).take(cols, 1)
    colours = np.empty((placement.down.size, placement.across.size, 3), np.uint8)
    spread = _spread(heat)
    for top in range(0, len(colours), BAND):
        band = Placement(0, 0, placement.down[top : top + BAND], placement.across)
        values = INTERPOLATIONS[interpolation](spread, band)
        colours[top : top + BAND] = paint(values)
    return colours


def paletted(picture: Image.Image) -> Image.Image:
    """A picture in at most 256 colours of its own, as a GIF's frame has: each pixel the nearest.

    One that has no more colours than that stays as it is. Nothing is dithered: a patch of one
    colour stays a patch of one colour.
    """
    parts = np.asarray(picture.convert("RGB")).astype(np.uint32)
    codes, place = np.unique(parts @ np.array([1 << 16, 1 << 8, 1], np.uint32), return_inverse=True)
    if len(codes) > 256:
        return picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    exact = Image.fromarray(place.astype(np.uint8))
    exact.putpalette([int(code) >> shift & 255 for code in codes for shift in (16, 8, 0)])
    return exact


def colour_bar(
    scale: Scale, colormap: str = "inferno", *, size: tuple[int, int] = (256, 12)
) -> Image.Image:
    """The scale's colours from low (left) to high, (width, height) in pixels, without text."""
    width, height = size
    if scale.flat:
        values = np.full(width, scale.low)
    else:
        values = scale.low + (np.arange(width) + 0.5) / width * (scale.high - scale.low)
    row = colourise(values, scale, colormap)
    return Image.fromarray(repeat(row, "width rgb -> height width rgb", height=height))


def ticks(
    scale: Scale, values: Float[np.ndarray, "*shape"] | None = None
) -> tuple[tuple[float, str], ...]:
    """The numbers of a colour bar with their text: low, middle, high; one for a flat scale.

    Given the map's values, an end that some of them lie beyond is marked ≤ or ≥.
    """
    if scale.flat:
        return ((scale.low, scale.one_value(values)),)
    at = [scale.low, (scale.low + scale.high) / 2, scale.high]
    texts = list(numbers(np.array(at), scale.high - scale.low))
    if values is not None:
        texts[0] = ("≤ " if values.min() < scale.low else "") + texts[0]
        texts[-1] = ("≥ " if values.max() > scale.high else "") + texts[-1]
    return tuple(zip(at, texts, strict=True))


def bounded(size: tuple[int, int]) -> tuple[int, int]:
    """A picture's (width, height), its shorter side stretched to a `LONGEST`th of the longer."""
    width, height = size
    return max(width, -(-height // LONGEST)), max(height, -(-width // LONGEST))


def stretched(size: tuple[int, int]) -> str:
    """What to say of a picture that `bounded` stretches, else nothing."""
    if bounded(size) == size:
        return ""
    ratio = f"{LONGEST} : 1" if size[0] > size[1] else f"1 : {LONGEST}"
    return (
        f"drawn stretched to {ratio}: a picture of {size[0]} × {size[1]} pixels (width × height)"
        " would be a mere line"
    )


def fit_within(size: tuple[int, int], max_side: int) -> tuple[int, int]:
    """A picture's (width, height) shrunk so that the longer side is at most `max_side`."""
    share = min(1.0, max_side / max(size))
    return max(1, round(size[0] * share)), max(1, round(size[1] * share))
