"""Slow, independent float64 twins, written from the papers and nothing else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import scipy.optimize
import scipy.sparse

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


def head_metrics(
    maps: list[Array], *, prefix: int, grid: tuple[int, int], patch: tuple[float, float]
) -> list[list[dict[str, object]]]:
    """Each layer's heads' metrics, and what each token received, number by number.

    `patch` is (height, width) in pixels; the queries are the patches.
    """
    rows, cols = grid
    tokens = prefix + rows * cols
    where = {
        prefix + row * cols + col: ((row + 0.5) * patch[0], (col + 0.5) * patch[1])
        for row in range(rows)
        for col in range(cols)
    }
    count = len(where)
    found = []
    for layer in maps:
        heads = len(layer)
        mean = [
            [sum(layer[h, q, k] for h in range(heads)) / heads for k in range(tokens)]
            for q in range(tokens)
        ]
        of_layer = []
        for h in range(heads):
            dropped, renormalised, entropy, divergence = 0.0, [], 0.0, 0.0
            to = [0.0] * prefix
            for q in where:
                far = sum(layer[h, q, k] * math.dist(where[q], where[k]) for k in where)
                given = sum(layer[h, q, k] for k in where)
                dropped += far / count
                if given > 0:
                    renormalised.append(far / given)
                for k in range(tokens):
                    a = layer[h, q, k]
                    if a > 0:
                        entropy -= a * math.log(a) / count
                        divergence += a * math.log(a / mean[q][k]) / count
                for k in range(prefix):
                    to[k] += layer[h, q, k] / count
            of_layer.append(
                {
                    "distance": dropped,
                    "distance_renormalised": (
                        sum(renormalised) / len(renormalised) if renormalised else math.nan
                    ),
                    "entropy": entropy,
                    "relative_entropy": entropy / math.log(tokens),
                    "to_prefix": sum(to),
                    "agreement": 1 - divergence / math.log(heads) if heads > 1 else 1.0,
                    "to": to,
                    "received": [sum(mean[q][k] for q in where) / count for k in range(tokens)],
                }
            )
        found.append(of_layer)
    return found


def mass_mask(values: list[list[int]], threshold: Fraction) -> list[list[bool]]:
    """The fewest patches, by exact fractions; of equals the first in reading order."""
    cells = [(row, col) for row in range(len(values)) for col in range(len(values[0]))]
    total = sum(values[row][col] for row, col in cells)
    kept: set[tuple[int, int]] = set()
    held = Fraction(0)
    while held < threshold:
        left = [cell for cell in cells if cell not in kept]
        best = max(left, key=lambda cell: (values[cell[0]][cell[1]], -cells.index(cell)))
        kept.add(best)
        held += Fraction(values[best[0]][best[1]], total)
    return [[(row, col) in kept for col in range(len(values[0]))] for row in range(len(values))]


def flow(maps: list[Array], *, tokens: list[int], targets: Iterable[int] | None = None) -> Array:
    """The maximum flow from the query's tokens to each input on its own, by linear programs.

    A variable for each edge; what flows into a node flows out of it again, but for the source
    (which gives an equal part of 1 to each of the query's tokens) and the one input.
    """
    count, levels = maps[0].shape[-1], len(maps)
    source, edges = "source", []  # (from, to, capacity)
    edges += [(source, (levels, token), 1 / len(tokens)) for token in tokens]
    for level, attention in enumerate(maps, start=1):
        for i in range(count):
            for j in range(count):
                mean = sum(head[i, j] for head in attention) / len(attention)
                edges.append(((level, i), (level - 1, j), mean / 2 + (i == j) / 2))
    flows = []
    for target in range(count) if targets is None else targets:
        nodes = {node for edge in edges for node in edge[:2]} - {source, (0, target)}
        row = {node: number for number, node in enumerate(sorted(nodes))}
        balance = scipy.sparse.lil_array((len(nodes), len(edges)))
        for number, (tail, head, _) in enumerate(edges):
            if tail in row:
                balance[row[tail], number] = -1
            if head in row:
                balance[row[head], number] = 1
        solved = scipy.optimize.linprog(
            [-float(head == (0, target)) for _, head, _ in edges],
            A_eq=balance.tocsr(),
            b_eq=np.zeros(len(nodes)),
            bounds=[(0, capacity) for _, _, capacity in edges],
        )
        flows.append(-solved.fun)
    return np.array(flows)


def pooled(attention: Array, parts: list[dict[int, float]]) -> Array:
    """A map (head, query, key) pooled: `parts` says how much of each token is in each part."""
    out = np.zeros((len(attention), len(parts), len(parts)))
    for h, (i, rows), (j, columns) in itertools.product(
        range(len(attention)), enumerate(parts), enumerate(parts)
    ):
        mass = sum(
            u * v * attention[h, query, key]
            for query, u in rows.items()
            for key, v in columns.items()
        )
        out[h, i, j] = mass / sum(rows.values())
    return out
