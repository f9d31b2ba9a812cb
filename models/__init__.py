"""Everything that knows a particular network; the rest of the project knows none."""

from models.own_adapter import OwnViT
from models.timm_adapter import TimmViT
from models.torch_adapter import TorchViT
from models.wrapping import AnyViT, wrap
from models.zoo import MODELS, ModelCard, load

__all__ = ["MODELS", "AnyViT", "ModelCard", "OwnViT", "TimmViT", "TorchViT", "load", "wrap"]
