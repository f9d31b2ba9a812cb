"""What of timm's is drawn: its modules, and in words how the layers of their models attend."""

from __future__ import annotations

from collections.abc import Mapping

DRAWN: Mapping[str, str] = {
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
    "maxxvit": "MaxViT: windows, and windows spread over the grid, as two layers also where a"
    " block has them side by side; CoAtNet: all tokens of a stage",
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

RESIZED = {"vision_transformer", "deit", "vision_transformer_hybrid", "eva", "vitamin"}
"""Those whose models take any multiple of the patch if they are made with dynamic_img_size=True."""
