"""What of timm's has no map of tokens by tokens: sentences for its modules, names and parts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from timm.layers import EcaModule, GlobalContext, SEModule
from timm.layers.lambda_layer import LambdaLayer
from timm.models import byobnet, efficientformer, metaformer
from timm.models.csatv2 import SpatialAttention, SpatialTransformerBlock
from timm.models.davit import ChannelAttention, ChannelAttentionV2
from timm.models.fastvit import RepMixer
from timm.models.lowformer import LowFormerBlock, ResidualBlock
from timm.models.maxxvit import ParallelMaxxVitBlock, ParallelPartitionAttention
from timm.models.mobilevit import LinearSelfAttention
from timm.models.volo import OutlookAttention
from timm.models.xcit import XCA
from torch import nn

CONVOLUTIONS = "it is a convolutional network without attention over tokens"
_ONLY = f"{CONVOLUTIONS}; of its family only "

_CONVOLUTIONAL = (
    "convmixer convnext cspnet cspnext densenet dla dpn efficientnet fasternet ghostnet hardcorenas"
    " hgnet hrnet inception_next inception_resnet_v2 inception_v3 inception_v4 lcnetv2 nasnet nfnet"
    " pnasnet rdnet regnet repghost repvit res2net resnet resnetv2 rexnet selecsls senet starnet"
    " tresnet vgg vovnet xception xception_aligned"
)

WITHOUT: Mapping[str, str] = {
    "coat": "its softmax runs over the keys of one factor alone, so there is no map of tokens by"
    " tokens",
    "edgenext": "it attends over channels, not over tokens",
    "efficientvit_mit": "its linear attention has no softmax over tokens",
    "efficientvim": "it mixes states, not tokens: there is no map of tokens by tokens",
    "swiftformer": "its additive attention sums all queries to one that all keys are multiplied"
    " with, so there is no map of tokens by tokens",
    "focalnet": "it gathers what surrounds a token by convolutions, not by attention",
    "mambaout": "its blocks are gated convolutions, without attention over tokens",
    "mlp_mixer": "it mixes tokens by matrices that are the same for every picture",
    "sequencer": "it mixes tokens by LSTMs along rows and columns, not by attention",
    "resnest": "its split attention weighs groups of channels, not tokens",
    "sknet": "its selective kernels weigh convolutions of two sizes, not tokens",
    "byobnet": "it is a convolutional network: its gates weigh channels, pool all places to one"
    " context or mix rows and columns, but no token asks another",
    **dict.fromkeys(_CONVOLUTIONAL.split(), CONVOLUTIONS),
}
"""timm's module → why no map of it exists."""

NAMES: Mapping[str, tuple[str, str]] = {
    "mobilenetv3": ("(?!mobilenetv4_hybrid)", f"{_ONLY}MobileNetV4's hybrids attend"),
    "fastvit": ("fastvit_[st][0-9]", f"{_ONLY}the larger ones attend, in their last stages"),
    "vision_transformer": (
        "vit_d(little|pwee|wee)_",
        "its differential attention subtracts one softmax from another and normalises the result,"
        " so that no map multiplies the values",
    ),
    "mobilevit": (
        "mobilevitv2",
        "its separable attention sums all keys to one, by one weight a token, that all values are"
        " multiplied with, so there is no map of tokens by tokens",
    ),
    "metaformer": (
        "(?!caformer)",
        "its blocks mix neighbouring tokens by pooling or convolution; of its family only CAFormer"
        " attends",
    ),
    "lowformer": ("lowformer_e[12]", f"{_ONLY}the others attend"),
    "byoanet": (
        "lambda_",
        "its lambda layers sum keys and values to one matrix that all queries are multiplied with,"
        " so there is no map of tokens by tokens",
    ),
}
"""timm's module → the beginnings of its names that have no map, as a pattern, and why."""

PARTS = {
    ChannelAttention,
    ChannelAttentionV2,
    LambdaLayer,
    LinearSelfAttention,
    OutlookAttention,
    RepMixer,
    SpatialAttention,  # CSATv2's gate: one number a cell of 7 × 7
    SpatialTransformerBlock,  # within it, whose softmax runs over the pictures of a batch
    XCA,
    efficientformer.Pooling,
    metaformer.Pooling,
    metaformer.SepConv,
}
"""What stands where attention may, and has no map of tokens by tokens: not drawn."""


_GATES = {EcaModule, GlobalContext, SEModule, nn.Identity}

WITHIN: Mapping[type[nn.Module], set[type[nn.Module]]] = {
    LowFormerBlock: {ResidualBlock, nn.Identity},
    ParallelMaxxVitBlock: {ParallelPartitionAttention},  # which holds two
    **dict.fromkeys((byobnet.BasicBlock, byobnet.BottleneckBlock, byobnet.EdgeBlock), _GATES),
}
"""Block → what it calls attention that is none: a gate of channels, a shortcut, nothing, or what
holds its attention."""


def why_without(architecture: str, family: str) -> str:
    """Why an architecture of one of timm's modules has no map; "" if that is not known."""
    pattern, why = NAMES.get(family, ("(?!)", ""))
    return WITHOUT.get(family, why if re.match(pattern, architecture) else "")
