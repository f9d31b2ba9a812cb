"""Where a figure comes from, so exactly that it can be made again: checksums, versions, a seal."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from weakref import WeakKeyDictionary

import torch
from PIL import Image
from torch import Tensor, nn

from attnviz.contract import LoadedViT
from attnviz.tokens import Query

FORMAT = 1
"""Of manifests: a reader refuses those of another."""

PACKAGES = ("torch", "timm", "numpy", "pillow", "matplotlib")
"""Whose versions may change a map, or how it is printed."""

HERE = "0.1.0"
"""attnviz's own version, as in pyproject.toml: it is run from its folder and not installed."""

Origin = Mapping[str, Any]
"""Which model saw a picture, and how; plain values."""

_known: WeakKeyDictionary[nn.Module, tuple[tuple[object, ...], str]] = WeakKeyDictionary()


def origin_of(vit: LoadedViT, *, fit: str, keep: str, target: Any) -> Origin | None:
    """What it takes to observe the same again; None for a model that was not loaded by name."""
    if vit.loading is None:
        return None
    size = vit.loading.image_size
    return {
        "model": vit.name,
        "weights": vit.weights,
        "weights_sha256": weights_sum(vit.module),
        "seed": vit.loading.seed,
        "checkpoint": vit.loading.checkpoint,
        "image_size": None if size is None else list(size),
        "device": str(vit.device),
        "fit": fit,
        "keep": keep,
        "target": target,
    }


def weights_sum(module: nn.Module) -> str:
    """The SHA-256 of all parameters and buffers with their names, shapes and types.

    Computed once, until a tensor is exchanged or changed in place.
    """
    state = dict(_tensors(module))
    marks = tuple((name, id(held), held.data_ptr(), held._version) for name, held in state.items())
    known = _known.get(module)
    if known is not None and known[0] == marks:
        return known[1]
    found = hashlib.sha256()
    for name, tensor in sorted(state.items()):
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        found.update(_bytes(tensor))
    _known[module] = marks, found.hexdigest()
    return found.hexdigest()


def _tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _bytes(tensor: Tensor) -> memoryview:
    held = tensor.detach().cpu().contiguous().flatten()
    if held.dtype == torch.bfloat16:  # NumPy has no such numbers
        held = held.view(torch.int16)
    return held.numpy().data


def picture_sum(image: Image.Image) -> str:
    """The SHA-256 of an RGB picture's size and pixels, whatever file they came in."""
    found = hashlib.sha256(f"{image.width} x {image.height} {image.mode}\n".encode())
    found.update(image.tobytes())
    return found.hexdigest()


@cache
def versions() -> Mapping[str, str]:
    """Of attnviz, Python, and what draws and computes."""
    said = {"attnviz": HERE, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            said[name] = version(name)
        except PackageNotFoundError:
            said[name] = "none"
    return said


def other_versions(were: Mapping[str, str]) -> list[str]:
    """What is of another version here, in words."""
    here = versions()
    return [
        f"{name} {was} (here {here.get(name, 'none')})"
        for name, was in were.items()
        if here.get(name) != was
    ]


def plain_query(query: Query) -> Any:
    """A query as JSON has it: a patch as [row, col]."""
    return query if isinstance(query, str) else [*map(int, query)]


def text_of(manifest: Mapping[str, Any]) -> str:
    """A manifest as JSON, on one line, with its seal last.

    What no file can hold as it is, as signs that can't be printed, is escaped: so the
    seal fits what is read back.
    """
    text = json.dumps({**manifest, "seal": seal_of(manifest)}, ensure_ascii=False)
    return "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in text)


def seal_of(manifest: Mapping[str, Any]) -> str:
    """The SHA-256 of all of a manifest but its seal: whoever edits it by hand breaks it.

    It guards against mistakes, not against somebody who makes a new one.
    """
    kept = {name: value for name, value in manifest.items() if name != "seal"}
    text = json.dumps(kept, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
