"""What a model's own forward pass died of, in words that help."""

from __future__ import annotations

import torch
from torch import Tensor

from attnviz.errors import AttnVizError, BadOption, CaptureFailed

HALF = (torch.float16, torch.bfloat16)
"""Half precision."""


def in_words(name: str, tensor: Tensor, error: Exception) -> AttnVizError:
    """The failure of the model of that name on that input."""
    if is_out_of_memory(error):
        size = " × ".join(str(side) for side in tensor.shape[-2:])
        return BadOption(
            f"There is too little memory to run {name} on {size} pixels: choose a smaller"
            " size, or keep factors instead of maps."
        )
    if isinstance(error, NotImplementedError) and tensor.dtype in HALF:
        operation = str(error).split('"')[1] if '"' in str(error) else "operation that it needs"
        kind = str(tensor.dtype).removeprefix("torch.")
        return CaptureFailed(
            f"{name} cannot run in half precision here: torch has no {operation!r} for {kind} on"
            f" {tensor.device.type}. Load it in float32."
        )
    return CaptureFailed(f"{name} failed in its own forward pass: {type(error).__name__}: {error}")


def is_out_of_memory(error: Exception) -> bool:
    """Python's, the device's, or the processor's allocator's, which has no class of its own."""
    own = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return own or "can't allocate memory" in str(error)
