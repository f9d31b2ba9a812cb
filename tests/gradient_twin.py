"""A slow ViT in float64 whose maps and gradients lie open, and the gradient methods upon it.

Written from the papers, in whole matrices: nothing of attnviz is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass
class Twin:
    """What one pass of a plain ViT (one picture, no batch axis) goes through."""

    maps: list[Tensor]  # A (head, query, key)
    mixed: list[Tensor]  # A V (head, query, channel)
    values: list[Tensor]  # V (head, key, channel)
    fed: list[Tensor]  # what the attention is fed with (token, channel)
    streams: list[Tensor]  # the tokens after each layer (token, channel)
    state: dict[str, Tensor]
    prefix: int

    def norm(self, x: Tensor) -> Tensor:
        name = "norm" if "norm.weight" in self.state else "fc_norm"
        return layer_norm(x, self.state, name)

    @property
    def tokens(self) -> Tensor:
        return self.norm(self.streams[-1])

    @property
    def feature(self) -> Tensor:
        """Class token, or the mean of all tokens: of the normed, or normed afterwards."""
        if "cls_token" in self.state:
            return self.tokens[0]
        mean_then_norm = "fc_norm.weight" in self.state
        last = self.streams[-1]
        return self.norm(last.mean(0)) if mean_then_norm else self.norm(last).mean(0)

    def logits(self, feature: Tensor) -> Tensor:
        return feature @ self.state["head.weight"].T + self.state["head.bias"]


def layer_norm(x: Tensor, state: dict[str, Tensor], name: str) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    spread = (centred**2).mean(-1, keepdim=True)
    return centred / (spread + 1e-6).sqrt() * state[f"{name}.weight"] + state[f"{name}.bias"]


def run(module: torch.nn.Module, picture: Tensor, *, patch: int, heads: int) -> Twin:
    """The pass; every map is a tensor that gradients can be asked of."""
    s = {name: value.detach().double() for name, value in module.state_dict().items()}
    picture = picture[0].double()
    _, height, width = picture.shape
    kernel, offset = s["patch_embed.proj.weight"], s["patch_embed.proj.bias"]
    patches = [
        (kernel * picture[:, top : top + patch, left : left + patch]).sum((1, 2, 3)) + offset
        for top in range(0, height, patch)
        for left in range(0, width, patch)
    ]
    prefix = [s[n][0] for n in ("cls_token", "dist_token", "reg_token") if n in s]
    x = torch.cat([*prefix, torch.stack(patches)])
    x = x + s["pos_embed"][0]
    twin = Twin([], [], [], [], [], s, sum(len(p) for p in prefix))
    for number in range(len(module.blocks)):
        at = f"blocks.{number}."
        y = layer_norm(x, s, at + "norm1").requires_grad_()
        packed = y @ s[at + "attn.qkv.weight"].T + s[at + "attn.qkv.bias"]
        query, key, value = (
            torch.stack(part.chunk(heads, dim=1)) for part in packed.chunk(3, dim=1)
        )
        scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
        attention = scores.softmax(-1)
        mixed = attention @ value
        together = torch.cat(list(mixed), dim=1)
        x = x + together @ s[at + "attn.proj.weight"].T + s[at + "attn.proj.bias"]
        z = layer_norm(x, s, at + "norm2") @ s[at + "mlp.fc1.weight"].T + s[at + "mlp.fc1.bias"]
        z = 0.5 * z * (1 + torch.erf(z / math.sqrt(2)))
        x = x + z @ s[at + "mlp.fc2.weight"].T + s[at + "mlp.fc2.bias"]
        twin.maps.append(attention)
        twin.mixed.append(mixed)
        twin.values.append(value)
        twin.fed.append(y)
        twin.streams.append(x)
    return twin


def relevance(maps: list[Tensor], gradients: list[Tensor]) -> Tensor:
    """The whole R (query, key), by equations 5 and 6."""
    total = torch.eye(maps[0].shape[-1], dtype=torch.float64)
    for attention, gradient in zip(maps, gradients, strict=True):
        total = total + (gradient * attention).clamp(min=0).mean(0) @ total
    return total


def gradient_rollout(maps: list[Tensor], gradients: list[Tensor]) -> Tensor:
    """The whole R (query, key): heads averaged, then relu, identity, rows to the sum 1."""
    total = torch.eye(maps[0].shape[-1], dtype=torch.float64)
    for attention, gradient in zip(maps, gradients, strict=True):
        layer = (gradient * attention).mean(0).clamp(min=0) + torch.eye(len(total)).double()
        total = (layer / layer.sum(-1, keepdim=True)) @ total
    return total


def attention_gradcam(attention: Tensor, gradient: Tensor) -> Tensor:
    """All rows (query, key) of relu(mean_h(mean(∂y/∂A_h) A_h))."""
    weighted = [gradient[h].mean() * attention[h] for h in range(len(attention))]
    return (sum(weighted) / len(weighted)).clamp(min=0)


def gradcam(fed: Tensor, gradient: Tensor, prefix: int) -> Tensor:
    """relu(Σ_c w_c x_c) for each token, w_c the mean gradient over the patches."""
    weights = gradient[prefix:].mean(0)
    return torch.stack([(weights * token).sum() for token in fed]).clamp(min=0)


def legrad(gradients: list[Tensor]) -> Tensor:
    """Mean over layers of mean_h mean_q relu(∂s_l/∂A_l)."""
    layers = [gradient.clamp(min=0).mean(1).mean(0) for gradient in gradients]
    return sum(layers) / len(layers)


def value_weighted(attention: Tensor, value: Tensor, projection: Tensor) -> Tensor:
    """The lengths (query, key), head by head: W_h is the part of the projection that head has."""
    heads, tokens, width = value.shape
    total = torch.zeros(tokens, tokens, projection.shape[0], dtype=torch.float64)
    for h in range(heads):
        said = value[h] @ projection[:, h * width : (h + 1) * width].T
        for i in range(tokens):
            for j in range(tokens):
                total[i, j] += attention[h, i, j] * said[j]
    return (total**2).sum(-1).sqrt()


def similarity(tokens: Tensor, asked: Tensor) -> Tensor:
    """The cosine of the angle between one vector and each token."""
    lengths = (tokens**2).sum(-1).sqrt() * (asked**2).sum().sqrt()
    return torch.stack([(token * asked).sum() for token in tokens]) / lengths


def pca(tokens: np.ndarray, prefix: int, grid: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """(scores (patch, component), shares of variance) of all components, largest first.

    From the covariance, patch by patch. The border's mean is made negative, or, where it is 0, the
    direction's longest loading positive.
    """
    patches = np.asarray(tokens, dtype=np.float64)[prefix:]
    count, channels = patches.shape
    mean = sum(patches) / count
    covariance = np.zeros((channels, channels))
    for patch in patches:
        covariance += np.outer(patch - mean, patch - mean) / (count - 1)
    variances, columns = np.linalg.eigh(covariance)
    order = sorted(range(channels), key=lambda at: -variances[at])
    scores = np.zeros((count, channels))
    for place, at in enumerate(order):
        column = columns[:, at]
        along = np.array([(patch - mean) @ column for patch in patches])
        border = [
            along[row * grid[1] + col]
            for row in range(grid[0])
            for col in range(grid[1])
            if row in (0, grid[0] - 1) or col in (0, grid[1] - 1)
        ]
        wrong = sum(border) > 0
        if abs(sum(border)) < 1e-6 * abs(along).max():
            longest = max(range(channels), key=lambda channel: abs(column[channel]))
            wrong = column[longest] < 0
        scores[:, place] = -along if wrong else along
    return scores, variances[order] / variances.sum()
