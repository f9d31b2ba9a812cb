"""Records as files: plain arrays and a table of contents, read without running anything in them."""

from __future__ import annotations

import base64
import json
import os
import zipfile
from dataclasses import fields, is_dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from attnviz.bias import Crossed
from attnviz.contract import View
from attnviz.errors import AttnVizError, BadOption
from attnviz.geometry import Geometry
from attnviz.record import Activations, AttentionRecord, LayerAttention
from attnviz.shapes import is_name, is_origin
from attnviz.sources import Factors, Maps, Product, Replayed
from attnviz.tokens import TokenLayout
from attnviz.typed import require_types
from attnviz.windows import Windows
from attnviz.writing import checked_target, write_whole

KIND, FORMAT = ".npz", "attnviz record 1"
KINDS = (
    *(AttentionRecord, LayerAttention, Activations, View, Geometry, TokenLayout),
    *(Maps, Factors, Product, Windows, Crossed),
)
"""What a file may hold; nothing else is ever made of one."""

LARGEST = 32 * 2**30
"""Bytes that a file may unpack to."""

MOST_WORDS = 16 * 2**20
"""Bytes of a table of contents."""


class Observed(AttentionRecord):
    """A record that can save itself."""

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Write .npz: `attnviz.load_record` reads it, with the same maps to the last bit."""
        return save_record(self, path, overwrite=overwrite)

    def _repr_png_(self) -> bytes:
        """What a notebook shows: the pixels that the model saw."""
        file = BytesIO()
        Image.fromarray(self.view.pixels).save(file, "PNG")
        return file.getvalue()

    def _repr_html_(self) -> str:
        """The same, and what is known of it, in words."""
        heads = sorted({layer.heads for layer in self.layers})
        words = [
            *(f"{name}: {value}" for name, value in self.facts),
            f"{len(self.layers)} layers of {' or '.join(map(str, heads))} heads",
            f"tokens before the patches: {', '.join(self.layout.prefix) or 'none'}",
            *(f"it says: {label} {share:.0%}" for label, _, share in self.predictions[:1]),
        ]
        data = base64.b64encode(self._repr_png_()).decode()
        lines = "<br>".join(escape(line) for line in words)
        alt = f"what {self.model} saw"
        return (
            f'<img alt="{escape(alt, quote=True)}" src="data:image/png;base64,{data}"'
            f' style="max-width: 240px"><p>{lines}</p>'
        )


def save_record(
    record: AttentionRecord, path: str | os.PathLike[str], *, overwrite: bool = True
) -> Path:
    """Write a record whole or not at all; raises BadOption for a place that doesn't work."""
    target = checked_target(path, (KIND,), overwrite, "A record")
    arrays: dict[str, Any] = {}
    words = json.dumps({"made_by": FORMAT, "record": _plain(record, arrays)})
    file = BytesIO()
    np.savez(file, contents=np.array(words), **arrays)
    return write_whole(target, file.getvalue(), overwrite=overwrite)


def load_record(path: str | os.PathLike[str]) -> Observed:
    """The record that `save` wrote, on the CPU.

    Raises BadOption for a file that is none, is damaged, or would unpack to more than `LARGEST`.
    """
    try:
        with zipfile.ZipFile(path) as file:
            unpacked = sum(part.file_size for part in file.infolist())
            words = file.getinfo("contents.npy").file_size
        if unpacked > LARGEST or words > MOST_WORDS:
            raise BadOption(f"{path} would unpack to {unpacked} bytes, more than a record has.")
        with np.load(path, allow_pickle=False) as arrays:
            said = json.loads(str(arrays["contents"]))
            if said["made_by"] != FORMAT:
                raise ValueError("another format")
            record = _made(said["record"], arrays)
        if not isinstance(record, Observed):
            raise TypeError("no record")
        _try_out(record)
    except AttnVizError:
        raise
    except OSError as error:
        raise BadOption(f"{path} can't be read: {error.strerror or error}.") from error
    except Exception as error:  # whatever a damaged or hostile file makes of itself
        raise BadOption(
            f"{path} is no record of attnviz's, or is damaged: give a file that record.save wrote."
        ) from error
    return record


def _plain(value: Any, arrays: dict[str, Any]) -> Any:
    """A value in JSON's terms; arrays are put aside under numbers."""
    if isinstance(value, Replayed):  # what is asked for anew each time, asked for once
        value = value.ask()
    if isinstance(value, Tensor):
        held = value.detach().cpu().contiguous()
        kind = str(held.dtype).removeprefix("torch.")
        bits = held.view(torch.int16) if held.dtype == torch.bfloat16 else held
        return {"tensor": _aside(bits.numpy(), arrays), "type": kind}
    if isinstance(value, Image.Image):
        return {"picture": _aside(np.asarray(value), arrays)}
    if isinstance(value, np.ndarray):
        return {"array": _aside(value, arrays)}
    if is_dataclass(value):
        name = "AttentionRecord" if isinstance(value, AttentionRecord) else type(value).__name__
        parts = {each.name: _plain(getattr(value, each.name), arrays) for each in fields(value)}
        return {"made of": name, "parts": parts}
    if isinstance(value, tuple):
        return {"tuple": [_plain(each, arrays) for each in value]}
    return {"plain": value}


def _aside(array: np.ndarray[Any, Any], arrays: dict[str, Any]) -> str:
    name = f"array_{len(arrays)}"
    arrays[name] = array
    return name


def _made(said: Any, arrays: Any) -> Any:
    """The value that `_plain` told of; only ever one of `KINDS`, or plain."""
    match said:
        case {"tensor": name, "type": kind}:
            held = torch.from_numpy(arrays[name])
            return held.view(torch.bfloat16) if kind == "bfloat16" else held
        case {"picture": name}:
            return Image.fromarray(arrays[name]).convert("RGB")
        case {"array": name}:
            return arrays[name]
        case {"made of": name, "parts": parts}:
            (kind,) = [each for each in KINDS if each.__name__ == name]
            made = {part: _made(value, arrays) for part, value in parts.items()}
            whole = (Observed if kind is AttentionRecord else kind)(**made)
            require_types(whole)
            return whole
        case {"tuple": parts}:
            return tuple(_made(each, arrays) for each in parts)
        case {"plain": value}:
            return value
    raise ValueError("an unknown kind of value")


def _try_out(record: AttentionRecord) -> None:
    """Ask what methods will ask, so that parts which do not fit together are found now."""
    if not is_name(record.model) or not (record.origin is None or is_origin(record.origin)):
        raise ValueError("a model that has no name, or cannot be loaded by it")
    left, top, right, bottom = record.view.box
    if not (left < right and top < bottom):
        raise ValueError("a view of nothing")
    if record.view.pixels.shape[:2] != record.view.tensor.shape[-2:]:
        raise ValueError("a view of two sizes")
    _require_layout(record.layout)
    for layer in record.layers:
        _try_layer(record.geometry(layer), layer)
    of_tokens = (record.features, *_held(record.activations))
    for tokens in of_tokens:
        if tokens is not None and len(tokens) != record.last_layout.tokens:
            raise ValueError("features of other tokens")


def _held(activations: Activations | None) -> tuple[Tensor, ...]:
    return () if activations is None else (activations.values, activations.gradient)


def _try_layer(geometry: Geometry, layer: LayerAttention) -> None:
    rows = layer.source.block(0, 1)
    if not bool(torch.isfinite(rows).all()) or rows.shape[0] != layer.heads:
        raise ValueError("a layer that gives no rows")
    for layout, at in ((geometry.queries, geometry.rows), (geometry.keys, geometry.cols)):
        _require_layout(layout)
        if at is not None and not bool(((at >= -1) & (at < layout.tokens)).all()):
            raise ValueError("windows of tokens that there are not")
    values = layer.values
    if values is not None and values.shape[:2] != (layer.heads, layer.source.shape[2]):
        raise ValueError("values of other tokens")
    for gradient in (layer.gradient, layer.own_gradient):
        if gradient is not None and gradient.block(0, 1).shape != rows.shape:
            raise ValueError("the gradient of another map")


def _require_layout(layout: TokenLayout) -> None:
    if min(layout.grid) < 0:
        raise ValueError("a grid of less than nothing")
