"""The page docs/models.md, made of the tables of what is drawn, and how, and of what is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from timm.models import list_models, list_modules

from models import hf_modules, open_clip_modules, vit_pytorch_modules
from models.timm_drawn import DRAWN
from models.timm_without import NAMES, WITHOUT, why_without


@dataclass(frozen=True)
class Row:
    """A family of timm's."""

    family: str
    models: int
    example: str
    how: str


def rows() -> tuple[Row, ...]:
    """The families that are drawn, in their order."""
    found = []
    for family, how in DRAWN.items():
        names = [name for name in list_models(module=family) if not why_without(name, family)]
        found.append(Row(family, len(names), min(names, key=lambda name: (len(name), name)), how))
    return tuple(found)


def _named(paths: Iterable[str]) -> str:
    return ", ".join(f"`{path.rpartition('.')[2]}`" for path in paths)


OTHERS: Mapping[str, str] = {
    "torchvision": "`VisionTransformer`, `SwinTransformer` (v1 and v2)",
    "Hugging Face transformers": f"{_named(hf_modules.ENCODERS)}; with their heads"
    f" {_named(hf_modules.HEADS)}",
    "open_clip": ", ".join(
        f"`{path.removeprefix('open_clip.')}`"
        for path in (open_clip_modules.TOWER, open_clip_modules.OF_TIMM)
    ),
    "vit-pytorch": _named(vit_pytorch_modules.HEADS),
}
"""Library → the classes of modules whose layout is known."""

INTRODUCTION = """\
# Models

{names} names of timm 1.0.31 in {families} families can be loaded by name, with their own weights,
with yours or with random ones, and modules of these classes can be wrapped. The first time a model
is observed, each layer is proved on a small input: rows sum to 1, and map × values is what the
layer sent to its projection. `python -m attnviz check NAME` prints that proof, and
`python -m attnviz models WORD` searches the names. A few names within a family are refused with
their reason, such as differential attention, which subtracts one softmax from another.
[models.csv](models.csv) has every name of timm's: its family, parameters, input, grid and layers,
or why it has no map.

| family | names | such as | how its layers attend |
| --- | --- | --- | --- |
"""

REST = """
Windows are drawn in place, with shifts undone, and cells outside the query's window stay blank.
Methods that go through several layers go as far as these share their tokens, and no convolution
between them moves what tokens hold. A cell is drawn as its equal part of the picture: behind a stem
of convolutions, what the token sees is centred up to half a cell above it and to its left.

## Half precision

A model in bfloat16 or float16 runs as it is, fused kernels included, and its maps are finite and
within 2e-2 of those in float32 (the largest difference of two weights; a small model of every
family, random weights), but for three families in bfloat16:

| family | small models | larger ones, random weights | of that in one layer, given the same input |
| --- | --- | --- | --- |
| `swin_transformer_v2` | 4.8e-2 | `swinv2_tiny_window8_256`: 3.3e-2 | 2.9e-2 |
| `swin_transformer_v2_cr` | 3.2e-2 | `swinv2_cr_tiny_ns_224`: 2.3e-2 | 1.6e-2 |
| `gemma4_vit` | 2.9e-2 | `gemma4_vit_167m`: 6.4e-2 to 1, from layer to layer | 4.9e-2 |

Their scores are large before the softmax: Swin v2's are cosines times 10 (up to 100 after training)
plus a bias of about 8 (up to 16), Gemma 4's are products of normed queries and keys that nothing
scales down. bfloat16 has 8 bits, so that the model moves a score between 8 and 16 by up to 1/32;
with cosines times 100, one layer's weights are moved by up to 0.15. The map that is shown is the
softmax of the scores that the model had (to 1e-6; the softmax that it rounds itself differs by up
to 2e-3), so that it is what the model used: that another precision would attend otherwise is the
model's own. `models.wrap(module.float())` shows it in float32. Hiera with window-wise positions
(`abswin`) is refused in half precision on processors, where torch cannot resample its positions.

On processors with AMX, torch 2.14.1 computes some convolutions in bfloat16 wrongly (of 16 channels
in steps of 8 pixels by as much as their results), and PVT v2 and Twins see something else there.
`ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16` in the environment leaves AMX out.

## Without a map

| family | why |
| --- | --- |
"""

END = """
## Other libraries, and your own

`models.wrap` takes these modules, and any other whose layout is given, as
[own_models.md](own_models.md) says.

| library | classes |
| --- | --- |
{others}
This page is made by `python scripts/models_page.py`, and with `--table` the table of all names.
"""


def _grouped() -> list[tuple[str, str]]:
    """(families, why): whole ones of one reason in one row, then the parts of drawn ones."""
    reasons: dict[str, list[str]] = {}
    for family, why in WITHOUT.items():
        reasons.setdefault(why, []).append(f"`{family}`")
    parts = []
    for family, (_, why) in NAMES.items():
        names = [name for name in list_models(module=family) if why_without(name, family)]
        parts.append((f"{len(names)} of `{family}`, such as `{names[0]}`", why))
    return [(", ".join(families), why) for why, families in reasons.items()] + parts


def page() -> str:
    """docs/models.md, whole."""
    found = rows()
    drawn = [f"| `{row.family}` | {row.models} | `{row.example}` | {row.how} |\n" for row in found]
    without = [f"| {families} | {why} |\n" for families, why in _grouped()]
    unsaid = [family for family in list_modules() if family not in {*DRAWN, *WITHOUT}]
    unsaid = [f"`{family}`" for family in unsaid if list_models(module=family)]
    later = [f"\nRefused for now: {', '.join(unsaid)}.\n"] if unsaid else []
    names = sum(row.models for row in found)
    head = INTRODUCTION.format(names=names, families=len(found))
    others = "".join(f"| {library} | {classes} |\n" for library, classes in OTHERS.items())
    return "".join([head, *drawn, REST, *without, *later, END.format(others=others)])
