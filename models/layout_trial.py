"""Whether the tokens of a layout stand where it says, in every layer: tried, not believed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from einops import reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnviz.errors import BadOption, UnsupportedModel
from attnviz.tokens import TokenLayout
from models.preprocess import noise
from models.sizes import Size
from models.torch_plan import Run, fitting, watch

FAINT = 1e-4
"""The share of the largest change in a layer below which a token counts as not changed."""
NO_CHANGE, NO_PATCH = -1, -2
"""What a token follows that follows nothing, or something that is not one patch."""
CLEAR = 0.05
"""How near to one of the two pictures, as a share of their distance, a token is of one patch."""
WIDE = (
    "Its tokens see more than their own patches, so that what one stands for may lie a patch or"
    " more away from where it is drawn."
)

Values = list[Float[Tensor, "head token ch"]]
"""One of each layer."""


def try_layout(
    name: str,
    module: nn.Module,
    run: Run,
    layout: TokenLayout,
    size: Size,
    names: Sequence[str],
) -> tuple[str, ...]:
    """Write each patch's code into pictures, read it back from its token; what is to be said of it.

    There are two pictures, and one for each digit of the codes, in which the patches that have this
    digit are the second picture's, and all others the first's. A token whose values are nearer to
    those of the second picture has the digit. Each token attends to itself alone meanwhile, so that
    in later layers, too, it holds what is its own. Codes of neighbours differ in one digit: a token
    that also sees parts of the patches beside its own is read as its own patch or one beside it.

    `names` are the layers'.

    Raises:
        BadOption: a token is not the patch that the layout says.
        UnsupportedModel: tokens change places between layers, or layers come and go.
    """

    def values(picture: Tensor) -> Values:
        seen = fitting(watch(name, module, run, picture, alone=True), layout)
        if [each.label for each in seen] != list(names):
            raise UnsupportedModel(
                f"{name} attends in other layers in one pass than in the next: a map of one pass"
                " would not stand for the model."
            )
        return [each.values.float() for each in seen]

    followed, clear = _followed(values, layout, size)
    exact = followed == torch.arange(layout.patches)
    beside = (followed >= 0) & (_places_away(followed, layout) <= 1)
    placed = exact | (beside & ~clear)
    wide = ~placed & ~clear & (followed != NO_CHANGE)
    if bool(wide.any()) and bool((placed | wide).all()):
        followed = _one_by_one(values, layout, size)
        placed = followed == torch.arange(layout.patches)
    if not bool(placed.all()):
        raise _misplaced(name, names, layout, followed, placed)
    return () if bool(exact.all()) else (WIDE,)


def _one_by_one(
    values: Callable[[Tensor], Values], layout: TokenLayout, size: Size
) -> Int[Tensor, "layer patch"]:
    """The patch that each token follows, by a picture for each patch, for tokens that see many.

    A patch's own token follows it if it changes at least an eighth as much as the token that does
    most; else the latter does.
    """
    before = values(_picture(layout, size, torch.zeros(layout.patches, dtype=torch.bool)))
    followed = torch.arange(layout.patches).repeat(len(before), 1)
    for patch in range(layout.patches):
        after = values(_picture(layout, size, torch.arange(layout.patches) == patch))
        for layer, pair in enumerate(zip(before, after, strict=True)):
            change = _distance(*pair)[len(layout.prefix) :]
            if change[patch] < change.max() / 8:
                followed[layer, change.argmax()] = patch
    return followed


def _places_away(
    followed: Int[Tensor, "layer patch"], layout: TokenLayout
) -> Int[Tensor, "layer patch"]:
    """How many rows or columns, whichever is more, the patch that is followed lies away."""
    return (layout.cells[followed.clamp_min(0)] - layout.cells).abs().amax(-1)


def _followed(
    values: Callable[[Tensor], Values], layout: TokenLayout, size: Size
) -> tuple[Int[Tensor, "layer patch"], Bool[Tensor, "layer patch"]]:
    """The number of the patch that each patch's token follows, from 0; whether it sees no other."""
    codes = _codes(layout)

    def shown(changed: Bool[Tensor, " patch"]) -> Values:
        return values(_picture(layout, size, changed))

    first, second = shown(codes < 0), shown(codes >= 0)
    whole = torch.stack([_distance(*pair) for pair in zip(first, second, strict=True)])
    digits = int(codes.max()).bit_length()
    read = torch.zeros(len(first), layout.tokens, dtype=torch.int64)
    clear = torch.ones(len(first), layout.tokens, dtype=torch.bool)
    for digit in range(digits):
        for layer, each in enumerate(shown((codes >> digit) % 2 == 1)):
            to_first, to_second = _distance(each, first[layer]), _distance(each, second[layer])
            read[layer] += (to_second < to_first).long() << digit
            clear[layer] &= to_first.minimum(to_second) <= CLEAR * whole[layer]
    patches = torch.full((2**digits,), NO_PATCH)
    patches[codes] = torch.arange(layout.patches)
    still = whole <= FAINT * whole.amax(1, keepdim=True)
    followed = patches[read].masked_fill(still, NO_CHANGE)
    return followed[:, len(layout.prefix) :], clear[:, len(layout.prefix) :]


def _codes(layout: TokenLayout) -> Int[Tensor, " patch"]:
    """A Gray code of the row, then of the column: from one to the next, one digit changes."""
    rows, cols = (layout.cells ^ (layout.cells >> 1)).unbind(1)
    return (rows << (layout.grid[1] - 1).bit_length()) + cols


def _picture(
    layout: TokenLayout, size: Size, changed: Bool[Tensor, " patch"]
) -> Float[Tensor, "1 channel row col"]:
    """Noise, with other noise, just as strong, in the patches that are to change."""
    first, second = noise(6, *size).chunk(2, dim=1)
    (rows, cols), (height, width) = layout.grid, size
    here = repeat(
        changed,
        "(row col) -> (row high) (col wide)",
        row=rows,
        col=cols,
        high=height // rows,
        wide=width // cols,
    )
    return torch.where(here, second, first)


def _distance(
    one: Float[Tensor, "head token ch"], other: Float[Tensor, "head token ch"]
) -> Float[Tensor, " token"]:
    return reduce((one - other).square(), "head token ch -> token", "sum").sqrt().cpu()


def _misplaced(
    name: str,
    names: Sequence[str],
    layout: TokenLayout,
    followed: Int[Tensor, "layer patch"],
    placed: Bool[Tensor, "layer patch"],
) -> BadOption | UnsupportedModel:
    """The first token that is elsewhere: in which layer, and what it follows instead."""
    layer, patch = (~placed).nonzero()[0].tolist()
    said = {NO_CHANGE: "changes with no patch at all", NO_PATCH: "follows no one patch"}
    number = int(followed[layer, patch])
    if number >= 0:
        there = divmod(number, layout.grid[1])
        said[number] = f"follows the patch at row {there[0]}, column {there[1]}"
    token, here = len(layout.prefix) + patch, divmod(patch, layout.grid[1])
    what = (
        f"The layout says that token {token} is the patch at row {here[0]}, column {here[1]}, but"
        f" in layer {names[layer]} of {name} that token {said[number]}"
    )
    if layer:
        return UnsupportedModel(
            f"{what}, though in layer {names[0]} all tokens are where it says: there is no one"
            " layout of tokens that change places on the way."
        )
    return BadOption(
        f"{what}: give the layout that the module has, tokens before the patches first, then the"
        " patches row by row."
    )
