"""What of timm is drawn, and how; what is not, and why: the tables behind docs/models.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from timm.models import list_models, list_modules

from models.timm_without import NAMES, WITHOUT, why_without

HOW: Mapping[str, str] = {
    "vision_transformer": "all tokens attend to all; of blocks side by side each layer by itself",
    "deit": "all tokens attend to all; DeiT's distillation token is a query of its own",
    "vision_transformer_hybrid": "all tokens attend to all; the grid is that of its stem",
    "vision_transformer_relpos": "all tokens attend to all, with a bias by relative position",
    "eva": "all tokens attend to all: EVA, EVA-02, DINOv3, Perception Encoder",
    "beit": "all tokens attend to all, with a bias by relative position",
    "naflexvit": "all tokens attend to all",
    "cait": "patches attend to patches, heads mixed after the softmax, so that rows do not sum to"
    " 1; then the class token alone asks",
    "convit": "patches attend to patches by the gated map that multiplies the values; in the last"
    " layers all tokens attend to all",
    "xcit": "only the layers in which the class token asks; the others attend over channels",
    "volo": "patches attend to patches, then the class token alone asks; not its outlook attention",
    "tnt": "all tokens attend to all; in layers of their own, the parts of a patch to each other",
    "pit": "all tokens of a stage attend to all; each stage has a grid of its own",
    "vision_transformer_sam": "windows, and in some layers all tokens",
    "swin_transformer": "windows, moved in every other layer",
    "swin_transformer_v2": "windows, moved in every other layer",
    "swin_transformer_v2_cr": "windows, moved in every other layer",
    "gcvit": "windows; in every other layer the whole picture's features ask",
    "davit": "windows; the layers between them attend over channels and are left out",
    "maxxvit": "MaxViT: windows, and windows spread over the grid; CoAtNet: all tokens of a stage",
    "nest": "windows, of three levels",
    "pvt_v2": "all tokens of a stage ask, keys pooled to a coarser grid answer",
    "visformer": "all tokens of a stage attend to all",
    "tiny_vit": "windows, in stages",
    "crossvit": "two branches with a grid each, all tokens attend to all; then the class token of"
    " one asks the other's patches",
    "twins": "windows, and keys pooled to a coarser grid",
    "mvitv2": "queries and keys pooled to coarser grids, in stages; the queries that it adds to the"
    " result are no part of the map",
    "hiera": "windows, then all tokens of a stage; the first layer of a stage pools its queries",
    "hieradet_sam2": "windows, and in some layers all tokens; the first layer of a stage pools its"
    " queries: SAM 2's encoder",
    "csatv2": "all tokens of the last two stages; not its gates, which have no map of tokens",
    "cpubone": "all cells of a coarser grid attend to all, in the last two stages",
    "lowformer": "all cells of a coarser grid attend to all, in the last two stages",
    "deepseek_vit": "all patches attend to all, with rotary positions",
    "qwen3_vit": "all patches attend to all, with rotary positions",
    "gemma4_vit": "all patches attend to all, with rotary positions",
    "levit": "all tokens of a stage attend to all; between stages a coarser grid asks a finer one",
    "mobilenetv3": "MobileNetV4's hybrids: all tokens of a stage ask, and all heads share the keys,"
    " which may be of a coarser grid",
    "mobilenetv5": "as MobileNetV4's hybrids",
    "fastvit": "all tokens of the last stages attend to all",
    "mobilevit": "windows of cells that are spread over the grid, one at each place of a patch",
    "metaformer": "CAFormer: all tokens of the last two stages attend to all",
    "efficientformer": "all tokens of the last stage's last blocks attend to all",
    "efficientformer_v2": "all tokens of a stage attend to all, in the last but one on a halved"
    " grid, heads mixed after the softmax, so that rows do not sum to 1; between these stages a"
    " coarser grid asks a finer one",
    "nextvit": "all tokens of a stage ask; a key is the mean of tokens that follow each other along"
    " the rows, and its weight is drawn in equal parts on these",
    "efficientvit_msra": "windows, or all tokens of a stage; each head is fed with what the one"
    " before it gave",
    "shvit": "all tokens of a stage attend to all, in one head of a part of the channels",
    "iformer": "all tokens of a stage attend to all, in one head whose outcome is gated",
    "byoanet": "bottleneck attention: all tokens of a stage; halo attention: windows that ask"
    " beyond their edges; their lambda layers are left out",
    "vitamin": "all tokens attend to all; the grid is that of its convolutional stages",
}
"""timm's module → how its layers attend and so how they are drawn."""


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
    for family, how in HOW.items():
        names = [name for name in list_models(module=family) if not why_without(name, family)]
        found.append(Row(family, len(names), min(names, key=lambda name: (len(name), name)), how))
    return tuple(found)


OTHERS: Mapping[str, str] = {
    "torchvision": "`VisionTransformer`, `SwinTransformer` (v1 and v2)",
    "Hugging Face transformers": "`ViTModel`, `DeiTModel`, `BeitModel`, `Dinov2Model`,"
    " `Dinov2WithRegistersModel`, `DINOv3ViTModel`, `SiglipVisionModel`, `CLIPVisionModel`; with"
    " their heads `ViTForImageClassification`, `DeiTForImageClassification`,"
    " `DeiTForImageClassificationWithTeacher`, `BeitForImageClassification`,"
    " `Dinov2ForImageClassification`, `Dinov2WithRegistersForImageClassification`,"
    " `SiglipForImageClassification`, `CLIPForImageClassification`,"
    " `CLIPVisionModelWithProjection`",
    "open_clip": "`transformer.VisionTransformer`, `timm_model.TimmModel`",
    "vit-pytorch": "`ViT`, `SimpleViT`",
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
Methods that go through several layers go as far as these share their tokens.

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
    unsaid = [family for family in list_modules() if family not in {*HOW, *WITHOUT}]
    unsaid = [f"`{family}`" for family in unsaid if list_models(module=family)]
    later = [f"\nRefused for now: {', '.join(unsaid)}.\n"] if unsaid else []
    names = sum(row.models for row in found)
    head = INTRODUCTION.format(names=names, families=len(found))
    others = "".join(f"| {library} | {classes} |\n" for library, classes in OTHERS.items())
    return "".join([head, *drawn, REST, *without, *later, END.format(others=others)])
