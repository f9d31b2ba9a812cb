"""Weights out of a file: safetensors only, whole and finite, or a clear error."""

from __future__ import annotations

import hashlib
from os import PathLike
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from attnviz.errors import BadWeights

CHECKPOINT_WORDS = "Your checkpoint {}."
RANDOM_WORDS = "Random weights (seed {}): nothing was learned, and the maps mean nothing."
"""What a loaded model says of its weights: with the file's name, with the seed."""

PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""How the files of `torch.save` begin: a zip archive, or a bare pickle."""


def read_safetensors(path: str | PathLike[str]) -> dict[str, Tensor]:
    """All tensors of a safetensors file as float32, each checked to be finite.

    The header is checked against the file before any tensor is read; a pickle is never opened.

    Raises:
        BadWeights: the file is missing, damaged, of another kind, or holds NaN or infinity.
    """
    path, start = Path(path), b""
    if path.exists() and not path.is_file():
        raise BadWeights(f"{path} is not a file. Give the path of a safetensors file.")
    try:
        with path.open("rb") as file:
            start = file.read(4)
        with safe_open(path, framework="pt") as stored:
            # Copies, so that nothing that happens to the file later reaches the model.
            names = list(stored.keys())
            state = {name: _number(stored.get_tensor(name), name, path.name) for name in names}
    except OSError as error:
        raise BadWeights(
            f"The checkpoint {path} cannot be read: {error.strerror}. Give the path of a"
            " safetensors file."
        ) from error
    except SafetensorError as error:
        # Asked only now: a good safetensors file may begin with the same two bytes as a pickle.
        raise BadWeights(
            _pickle_message(path.name)
            if start.startswith(PICKLES)
            else f"{path.name} is not a whole safetensors file ({error}). Give one, or fetch it"
            " again."
        ) from error
    for name, tensor in state.items():
        if not torch.isfinite(tensor).all():
            raise BadWeights(
                f"The tensor {name} in {path.name} holds NaN or infinity: the file is damaged, or"
                " the training diverged."
            )
    return state


def read_checked(path: Path, sha256: str, *, way_out: str, of: str = "") -> bytes:
    """What a file holds, if it has that SHA-256 sum; `of` says in words where it came from.

    Raises:
        BadWeights: it cannot be read, or is not the file that was checked.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadWeights(
            f"The weights {path} cannot be read: {error.strerror}.", way_out
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise BadWeights(
            f"{path.name}{of} has the SHA-256 sum {digest}; expected {sha256}. It is another"
            " version, or damaged.",
            way_out,
        )
    return content


def _number(tensor: Tensor, name: str, source: str) -> Tensor:
    """A copy in float32; whole numbers are a quantised file's, whose scales would be missing.

    But for what a batch norm counts in training, which nothing is computed from.
    """
    if name.endswith("num_batches_tracked") and not tensor.ndim:
        return tensor.clone()
    if not tensor.is_floating_point():
        raise BadWeights(
            f"The tensor {name} in {source} is {str(tensor.dtype).removeprefix('torch.')}, not"
            " floating point: quantised weights are not read. Give the file they were made from."
        )
    return tensor.to(torch.float32, copy=True)


def _pickle_message(name: str) -> str:
    return (
        f"{name} is a pickle, which can run any code when it is opened, so it is not. Convert it"
        " where you trust it: safetensors.torch.save_file(torch.load(file, weights_only=True),"
        " 'weights.safetensors')."
    )
