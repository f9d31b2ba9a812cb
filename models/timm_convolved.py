"""timm's convolutional networks that attend on coarse grids: CSATv2, CPUBone, LowFormer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timm.layers import Attention
from timm.models import cpubone, lowformer
from timm.models.csatv2 import CSATv2
from torch import nn

from attnviz.geometry import Geometry
from attnviz.tokens import TokenLayout
from models.cells import share_of
from models.sizes import Size
from models.timm_family import Family, Place, said_size

ATTENDING = {Attention, cpubone.ConvAttention, lowformer.ConvAttention}


def _cell(module: Any, name: str) -> int:
    """Pixels of a cell that attends: the stage's, times what the layer itself shrinks it by."""
    stage = ".".join(name.split(".")[:2])
    reduction = {info["module"]: info["reduction"] for info in module.feature_info}[stage]
    return int(reduction * getattr(module.get_submodule(name), "att_stride", 1))


def _finest(module: nn.Module) -> Size:
    """Pixels of the smallest cell that attends in some layer."""
    named = module.named_modules()
    side = min((_cell(module, name) for name, part in named if type(part) in ATTENDING), default=1)
    return side, side


def on_stage(module: Any, name: str) -> Place:
    """All cells of a stage attend to all, or all of a coarser grid that the layer makes of it.

    Convolutions lie between these layers, so that none adds up with another.
    """
    times, stage = _cell(module, name) // _finest(module)[0], name.split(".")[1]
    shrunk = getattr(module.get_submodule(name), "att_stride", 1) > 1

    def place(layout: TokenLayout) -> Geometry:
        rows, cols = (side // times for side in layout.grid)
        tokens = TokenLayout((), (rows, cols))
        return Geometry(
            tokens,
            tokens,
            f"all tokens of stage {stage}" + f", shrunk to {rows} × {cols}" * shrunk,
            branch=name,
            place=share_of(tokens.grid, (times, times), layout),
        )

    return place


ON_STAGES = Family(
    patch=_finest,
    native=lambda module: said_size(module, _finest(module)),
    any_size=lambda module: True,
    places={"": on_stage},
    prefix=(),
)

CONVOLVED: Mapping[type[nn.Module], Family] = {
    CSATv2: ON_STAGES,
    cpubone.CPUBone: ON_STAGES,
    lowformer.LowFormer: ON_STAGES,
}
"""Exact class → family."""
