"""A module that is lent for a pass comes back as it was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import nn

from attnviz.contract import AttentionSite


@contextmanager
def as_found(module: nn.Module, sites: Sequence[AttentionSite] = ()) -> Iterator[None]:
    """Evaluation mode within; afterwards each part's mode and each site's switch are as they were.

    Also when what runs within raises.
    """
    modes = [(part, part.training) for part in module.modules()]
    switches = [(site, site.setting) for site in sites]
    try:
        module.eval()
        yield
    finally:
        for part, training in modes:
            part.training = training
        for site, value in switches:
            site.set(value)
