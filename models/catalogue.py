"""What of timm is drawn, and how; what is not, and why: the tables behind docs/models.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from timm.models import list_models

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
}
"""timm's module → how its layers attend and so how they are drawn."""

WITHOUT: Mapping[str, str] = {
    "coat": "its softmax runs over the keys of one factor alone, so there is no map of tokens by"
    " tokens",
    "edgenext": "it attends over channels, not over tokens",
    "efficientvit_mit": "its linear attention has no softmax over tokens",
    "efficientvim": "it mixes states, not tokens: there is no map of tokens by tokens",
    "mlp_mixer": "it mixes tokens by matrices that are the same for every picture",
    "convnext": "it is a convolutional network without attention over tokens",
    "resnet": "it is a convolutional network without attention over tokens",
    "efficientnet": "it is a convolutional network without attention over tokens",
    "vgg": "it is a convolutional network without attention over tokens",
    "densenet": "it is a convolutional network without attention over tokens",
}
"""timm's module → why no map of it exists."""


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
        names = list_models(module=family)
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
Other families of timm are refused by name for now.

## Other libraries, and your own

`models.wrap` takes these modules, and any other whose layout is given, as
[own_models.md](own_models.md) says.

| library | classes |
| --- | --- |
{others}
This page is made by `python scripts/models_page.py`.
"""


def page() -> str:
    """docs/models.md, whole."""
    found = rows()
    drawn = [f"| `{row.family}` | {row.models} | `{row.example}` | {row.how} |\n" for row in found]
    without = [f"| `{family}` | {why} |\n" for family, why in WITHOUT.items()]
    names = sum(row.models for row in found)
    head = INTRODUCTION.format(names=names, families=len(found))
    others = "".join(f"| {library} | {classes} |\n" for library, classes in OTHERS.items())
    return "".join([head, *drawn, REST, *without, END.format(others=others)])
