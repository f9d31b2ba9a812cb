"""See inside Vision Transformers: the map on screen is the map the model used."""

from attnviz.errors import (
    AttnVizError,
    BadImage,
    BadOption,
    BadWeights,
    CaptureFailed,
    UnknownName,
    UnsupportedModel,
)
from attnviz.explain import Explanation, explain, observe
from attnviz.heatmap import Heatmap
from attnviz.images import open_image
from attnviz.methods import METHODS
from attnviz.record import AttentionRecord, LayerAttention
from attnviz.target import similarity_to
from attnviz.tokens import TokenLayout
from attnviz.verify import verify

__all__ = [
    "METHODS",
    "AttentionRecord",
    "AttnVizError",
    "BadImage",
    "BadOption",
    "BadWeights",
    "CaptureFailed",
    "Explanation",
    "Heatmap",
    "LayerAttention",
    "TokenLayout",
    "UnknownName",
    "UnsupportedModel",
    "explain",
    "observe",
    "open_image",
    "similarity_to",
    "verify",
]
