"""Slow, independent float64 twins, written from the papers and nothing else."""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray


def softmax(scores: Array) -> Array:
    """Row by row, one number at a time."""
    out = np.empty_like(scores)
    for index in np.ndindex(scores.shape[:-1]):
        row = [math.exp(s - max(scores[index])) for s in scores[index]]
        out[index] = [e / sum(row) for e in row]
    return out


def layer_norm(x: Array, weight: Array, bias: Array, eps: float = 1e-6) -> Array:
    """Each token on its own, population variance."""
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * weight + bias


def gelu(x: Array) -> Array:
    """The exact one, by the error function."""
    return np.vectorize(lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))))(x)


def vit_maps(
    state: dict[str, Array], picture: Array, *, patch: int, heads: int, prefix: list[str]
) -> list[Array]:
    """The softmax maps (head, query, key) of each layer of a plain ViT, from its parameters.

    `picture` is (channel, height, width); `prefix` names the parameters of the prefix tokens in
    order, such as `["cls_token", "reg_token"]`.
    """
    _, height, width = picture.shape
    kernel, bias = state["patch_embed.proj.weight"], state["patch_embed.proj.bias"]
    patches = [
        [
            (kernel * picture[:, top : top + patch, left : left + patch]).sum((1, 2, 3)) + bias
            for left in range(0, width, patch)
        ]
        for top in range(0, height, patch)
    ]
    flat = [token for row in patches for token in row]
    x = np.concatenate([*(state[name][0] for name in prefix), np.array(flat)])
    x = x + state["pos_embed"][0]
    maps = []
    layer = 0
    while f"blocks.{layer}.norm1.weight" in state:
        w = {
            k.removeprefix(f"blocks.{layer}."): v
            for k, v in state.items()
            if k.startswith(f"blocks.{layer}.")
        }
        y = layer_norm(x, w["norm1.weight"], w["norm1.bias"])
        q, k, v = np.split(y @ w["attn.qkv.weight"].T + w["attn.qkv.bias"], 3, axis=1)
        width_of_head = q.shape[1] // heads
        mixed, layer_maps = [], []
        for head in range(heads):
            at = slice(head * width_of_head, (head + 1) * width_of_head)
            a = softmax(q[:, at] @ k[:, at].T / math.sqrt(width_of_head))
            layer_maps.append(a)
            mixed.append(a @ v[:, at])
        maps.append(np.stack(layer_maps))
        x = x + np.concatenate(mixed, 1) @ w["attn.proj.weight"].T + w["attn.proj.bias"]
        y = layer_norm(x, w["norm2.weight"], w["norm2.bias"])
        y = gelu(y @ w["mlp.fc1.weight"].T + w["mlp.fc1.bias"])
        x = x + y @ w["mlp.fc2.weight"].T + w["mlp.fc2.bias"]
        layer += 1
    return maps


def attention(
    maps: list[Array], *, layer: int, head: int | None, fusion: str, tokens: list[int]
) -> Array:
    """The mean row of the query's tokens, of one head or of all, number by number."""
    chosen = maps[layer]
    heads = len(chosen)
    mean = [
        [sum(chosen[h, t, k] for t in tokens) / len(tokens) for k in range(chosen.shape[-1])]
        for h in range(heads)
    ]
    if head is not None:
        return np.array(mean[head])
    fuse = {"mean": lambda c: sum(c) / heads, "max": max, "min": min}[fusion]
    return np.array([fuse([row[k] for row in mean]) for k in range(chosen.shape[-1])])


def rollout(
    maps: list[Array],
    *,
    fusion: str = "mean",
    residual: float = 0.5,
    ratio: float = 0.0,
    discard: str = "row",
    prefix: int = 0,
) -> Array:
    """The whole R (query, key), by matrix products from the first layer up."""
    tokens = maps[0].shape[-1]
    total = np.eye(tokens)
    for attention in maps:
        fused = np.zeros((tokens, tokens))
        for i in range(tokens):
            for j in range(tokens):
                column = [attention[h, i, j] for h in range(len(attention))]
                fused[i, j] = {
                    "mean": sum(column) / len(column),
                    "max": max(column),
                    "min": min(column),
                }[fusion]
        cells = [(i, j) for i in range(tokens) for j in range(prefix, tokens)]
        groups = (
            [cells]
            if discard == "global"
            else [[c for c in cells if c[0] == i] for i in range(tokens)]
        )
        for group in groups:
            ranked = sorted(group, key=lambda c: fused[c])
            for cell in ranked[: round(math.floor(ratio * len(group) + 1e-9))]:
                fused[cell] = 0
        for i in range(tokens):
            fused[i] = fused[i] / fused[i].sum()
        total = (residual * np.eye(tokens) + (1 - residual) * fused) @ total
    return total
