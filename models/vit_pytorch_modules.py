"""vit-pytorch's ViT and SimpleViT, known by their classes' names: vit_pytorch is not imported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from attnviz.contract import Readout
from attnviz.errors import BadOption
from attnviz.tokens import TokenLayout
from models.own_modules import described
from models.sizes import Size
from models.torch_plan import Asked, Plan, named

HEADS = {"vit_pytorch.vit.ViT": "mlp_head", "vit_pytorch.simple_vit.SimpleViT": "linear_head"}
"""Class → its head."""


def plan_of(module: nn.Module, name: str, asked: Asked) -> Plan | None:
    """The plan of exactly these classes; None for any other.

    Raises:
        BadOption: neither the layout nor the size was given, where the module keeps neither.
    """
    head = HEADS.get(f"{type(module).__module__}.{type(module).__qualname__}")
    return None if head is None else _plan(module, name, asked, getattr(module, head))


def _plan(module: Any, name: str, asked: Asked, head: nn.Module | None) -> Plan:
    high, wide = module.patch_size
    prefix = ("cls",) * (module.pool == "cls")
    rows, cols = _grid(module, name, asked)
    layout = TokenLayout(prefix, (rows, cols))
    plan = described(module, name, layout, (rows * high, cols * wide), replace(asked, classes=None))
    # The last layer's tokens are what its transformer gives, its norm applied already.
    *sites, last = plan.sites
    end = head or nn.Identity()
    return replace(
        plan,
        sites=(*sites, replace(last, block=module.transformer)),
        readout=Readout(norm=nn.Identity(), head=end, classify=end, of_tokens=False),
        classes=named(head.out_features) if isinstance(head, nn.Linear) else (),
    )


def _grid(module: Any, name: str, asked: Asked) -> Size:
    """(rows, cols) of patches; a ViT keeps only how many there are."""
    patches = len(module.pos_embedding) - (module.pool == "cls")
    if asked.layout is not None:
        return asked.layout.grid
    if asked.image_size is not None:
        high, wide = module.patch_size
        return asked.image_size[0] // high, asked.image_size[1] // wide
    if module.pos_embedding.requires_grad:
        raise BadOption(
            f"Which grid the {patches} patches of {name} make is not kept in it: give"
            " image_size=(rows, cols), the size in pixels that it was made for."
        )
    # SimpleViT's first number of a position is the sine of its column.
    rows = int((module.pos_embedding[:, 0] == 0).sum())
    return rows, patches // rows
