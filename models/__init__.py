"""Everything that knows a particular network; the rest of the project knows none."""

from models.own_adapter import OwnViT
from models.timm_adapter import TimmViT
from models.zoo import MODELS, AnyViT, ModelCard, load, wrap

__all__ = ["MODELS", "AnyViT", "ModelCard", "OwnViT", "TimmViT", "load", "wrap"]
