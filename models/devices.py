"""Where a model runs."""

from __future__ import annotations

import torch

from attnviz.errors import BadOption


def choose_device(name: str | torch.device | None = None) -> torch.device:
    """The device of that name, or else the fastest there is: cuda, then mps, then cpu.

    Raises:
        BadOption: there is no such device on this machine.
    """
    usable = _usable()
    if name is None:
        return torch.device(usable[0])
    try:
        device = torch.device(name)
        one_too_many = device.type == "cpu" and device.index not in (None, 0)  # torch takes any
        if device.type in usable and not one_too_many:
            torch.empty(1, device=device)  # a number, as in cuda:7, may still be one too many
            return device
    except (RuntimeError, TypeError, AssertionError):
        pass
    raise BadOption(f"The device {str(name)!r} is not usable here. Usable: {', '.join(usable)}.")


def _usable() -> list[str]:
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [*(name for name, usable in there.items() if usable), "cpu"]
