"""Weights out of a file: safetensors only, whole and finite, or a clear error."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from attnviz.contract import called
from attnviz.errors import BadWeights

CHECKPOINT_WORDS = "Your checkpoint {}."
RANDOM_WORDS = "Random weights (seed {}): nothing was learned, and the maps mean nothing."
"""What a loaded model says of its weights: with the file's name, with the seed."""

MOST_HEADER = 4 * 2**20
"""Bytes of a header, for some 60 000 tensors: ten times those of any model that has a map."""

MOST_SIDES = 8
"""Of a tensor's shape. torch computes with up to 64, and no model has more than 5."""

READ = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""Kinds of numbers that are read. Others are a quantised file's, whose scales would be missing."""

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
            start = file.read(8)
            _check_header(file.read(min(MOST_HEADER, _length(start))), _length(start), path)
        with _stored(path) as (names, read):
            # Copies, so that nothing that happens to the file later reaches the model.
            state = {name: _number(read(name), name, path.name) for name in names}
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
            else f"{path.name} is not a whole safetensors file ({str(error)[:200]}). Give one, or"
            " fetch it again."
        ) from error
    for name, tensor in state.items():
        if not torch.isfinite(tensor).all():
            raise BadWeights(
                f"The tensor {named(name)} in {path.name} holds NaN or infinity: the file is"
                " damaged, or the training diverged."
            )
    return state


@contextmanager
def _stored(path: Path) -> Iterator[tuple[list[str], Callable[[str], Tensor]]]:
    """The names of a file's tensors, and what reads one."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:  # the library opens no file of such a name
        held = safetensors.torch.load(path.read_bytes())
        yield list(held), held.__getitem__
        return
    with safe_open(path, framework="pt") as stored:
        yield list(stored.keys()), stored.get_tensor


def file_called(path: str | PathLike[str]) -> str:
    """What figures and manifests call a file: its name without its folder, as text."""
    return called(Path(path).name)


def named(tensor: str) -> str:
    """A tensor's name in a sentence: as it is, unless it is odd or long."""
    return re.sub(r"[^\w.:/-]", "?", tensor)[:80]


def _length(start: bytes) -> int:
    """How long a file's header is, as its first 8 bytes say."""
    return int.from_bytes(start, "little")


def _check_header(header: bytes, length: int, path: Path) -> None:
    """Refuse what takes long to read or can be read in two ways; the library refuses the rest."""

    def once(pairs: list[tuple[str, object]]) -> None:
        names = {name for name, _ in pairs}
        if len(names) < len(pairs):
            raise BadWeights(
                f"{path.name} has two tensors of one name. Give a file in which each has its own."
            )

    if MOST_HEADER < length <= path.stat().st_size:
        raise BadWeights(
            f"{path.name} has a header of {length / 2**20:.0f} MB; expected at most"
            f" {MOST_HEADER // 2**20}. Give the file of one model, without a long description."
        )
    with suppress(ValueError, RecursionError):
        json.loads(header, object_pairs_hook=once)


def read_checked(path: Path, sha256: str, *, way_out: str, of: str = "") -> bytes:
    """What a file holds, if it has that SHA-256 sum; `of` says in words where it came from.

    Raises:
        BadWeights: it cannot be read, or is not the file that was checked.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadWeights(
            f"The weights {path.name}{of} cannot be read: {error.strerror}.",
            f"They should lie at {path}. {way_out}",
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
    """A copy in float32, but for what a batch norm counts: nothing is computed from that."""
    if name.endswith("num_batches_tracked") and not tensor.ndim:
        return tensor.clone()
    if tensor.dtype not in READ:
        raise BadWeights(
            f"The tensor {named(name)} in {source} is {str(tensor.dtype).removeprefix('torch.')},"
            " not floating point of 16 bits or more: quantised weights are not read. Give the file"
            " they were made from."
        )
    if tensor.ndim > MOST_SIDES:
        raise BadWeights(
            f"The tensor {named(name)} in {source} has {tensor.ndim} sides; expected at most"
            f" {MOST_SIDES}: the file is damaged."
        )
    return tensor.to(torch.float32, copy=True)


def _pickle_message(name: str) -> str:
    return (
        f"{name} is a pickle, which can run any code when it is opened, so it is not. Convert it"
        " where you trust it: safetensors.torch.save_file(torch.load(file, weights_only=True),"
        " 'weights.safetensors')."
    )
