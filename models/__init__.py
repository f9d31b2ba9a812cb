"""Everything that knows a particular network; the rest of the project knows none."""

from models.timm_adapter import TimmViT
from models.zoo import MODELS, ModelCard, load, wrap

__all__ = ["MODELS", "ModelCard", "TimmViT", "load", "wrap"]
