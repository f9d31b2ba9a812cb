"""Several pictures in one forward pass: what each leaves behind is what it would leave alone.

The pass runs with fused kernels on, and a picture's factors are its part of what went into them:
no map is built. Of every layer and every picture one row of the map is proved in the pass itself:
row × values must be what reached the layer's projection. Whether a model's pictures may go together
at all is tried once, on two of noise that also pass alone.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, fields
from typing import Any
from weakref import WeakKeyDictionary

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from attnviz import capture
from attnviz.capture import Pass
from attnviz.contract import AttentionSite, LoadedViT
from attnviz.errors import AttnVizError, CaptureFailed
from attnviz.failures import HALF
from attnviz.record import LayerAttention
from attnviz.sources import Factors, Unkept
from attnviz.tap import Caught, Tap, finite, only_source, require_finite
from attnviz.verify import TOLERANCE, kernel_rounding

ANY = frozenset(
    {
        *("name", "module", "heads", "after_mix", "join", "block", "projection"),
        *("fused_switch", "switch_of", "settings", "replays"),
    }
)
"""What a site may have as it likes where pictures go together: all else is as usual."""

_TRIED: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
"""Whether a module's pictures may go together, once that was tried."""


def go_together(vit: LoadedViT) -> bool:
    """Whether one pass of several pictures leaves of each what a pass of it alone would.

    Tried once a model, on two pictures of noise. Not where layers attend in windows or from other
    tokens, where a module computes its own softmax, or in half precision.
    """
    with vit.lock:
        if vit.module not in _TRIED:
            _TRIED[vit.module] = _try(vit)
        return _TRIED[vit.module]


def run(
    vit: LoadedViT,
    tensors: Float[Tensor, "picture channel row col"],
    *,
    layers: Container[int] | None = None,
) -> list[Pass]:
    """One forward pass of pictures of one size; what each left behind, as `capture.run` would.

    The factors share their memory with the whole pass: all of it is kept while one of them is. Of
    other layers than `layers`, counted from 0, none are: they are proved all the same, and refuse
    to be read.

    Raises CaptureFailed where a layer was missed or ran twice, a value is not finite, or the row
    that is proved of each picture is not what the layer used.
    """
    layout = vit.layout(*tensors.shape[-2:])
    token = layout.query_tokens(layout.default_query).start
    tap = _Together(vit, len(tensors), token, layers)
    with vit.lock:
        output, features, tokens = capture.shared_pass(vit, tensors, tap)
    if not finite(output) or len(output) != len(tensors):
        raise CaptureFailed(f"The output of {vit.name} holds values that are not finite.")
    for name, caught in tap.caught.items():
        if name not in tap.unkept or caught.runs != 1:
            only_source(name, caught)
    return [
        Pass(
            layers=tuple(tap.layer(caught, number) for caught in tap.caught.values()),
            output=output[number : number + 1],
            features=None if tokens is None else tokens[number],
            feature=None if features is None else features[number],
        )
        for number in range(len(tensors))
    ]


@dataclass(frozen=True)
class _Fed:
    """What one layer's fused kernel was given, axes (picture, head, token, channel)."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    scale: float
    bias: Tensor | None  # (picture or 1, head or 1, query or 1, key)

    def of(self, picture: int) -> Factors:
        """One picture's part of it."""
        bias = self.bias
        if bias is not None:
            bias = bias[picture if len(bias) > 1 else 0]
        return Factors(self.queries[picture], self.keys[picture], self.scale, bias)


class _Together(Tap):
    """A tap of several pictures, which proves one row of each as soon as a layer is done."""

    def __init__(
        self, vit: LoadedViT, pictures: int, token: int, layers: Container[int] | None
    ) -> None:
        super().__init__(vit.sites, check=True)
        self.pictures, self.token, self.name = pictures, token, vit.name
        self.layers = range(len(vit.sites)) if layers is None else layers
        self.fed: dict[str, _Fed] = {}
        self.unkept: dict[str, Unkept] = {}

    def layer(self, caught: Caught, picture: int) -> LayerAttention:
        """What one picture left in one layer."""
        site = caught.site
        projection = None if site.projection is None else site.projection.weight.detach()
        fed = self.fed.get(site.name)
        source = self.unkept[site.name] if fed is None else fed.of(picture)
        return LayerAttention(site.name, source, None, projection)

    def leave(self, *given: Any) -> None:
        """After an attention module ran: it is proved, and its values may go."""
        done = self.running
        super().leave(*given)
        if done is not None:
            self._prove(done)

    def _fused(
        self,
        caught: Caught,
        result: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> None:
        heads = caught.site.heads
        plain = all(
            each.ndim == 4 and each.shape[:2] == (self.pictures, heads)
            for each in (query, key, value)
        )
        if is_causal or enable_gqa or not plain:
            raise CaptureFailed(f"In layer {caught.site.name} pictures do not stand side by side.")
        bias = None if attn_mask is None else attn_mask.detach()
        if bias is not None and bias.dtype == torch.bool:
            bias = torch.zeros(bias.shape, device=bias.device).masked_fill(~bias, float("-inf"))
        if bias is not None:
            bias = bias[(None,) * (4 - bias.ndim)]
        chosen = query.shape[-1] ** -0.5 if scale is None else scale
        fed = _Fed(query.detach(), key.detach(), value.detach(), chosen, bias)
        self.fed[caught.site.name] = fed
        caught.source = fed.of(0)

    def _prove(self, caught: Caught) -> None:
        """Row × values is what the layer sent on, for one token of each picture."""
        site, fed, joined = caught.site, self.fed.get(caught.site.name), caught.joined
        if fed is None or joined is None:
            raise CaptureFailed(f"Layer {site.name} never called a fused kernel.")
        # A row that is not finite makes what is mixed by it so too.
        require_finite(site.name, joined)
        # One by one: heads of one picture are multiplied where they lie, of several as a copy.
        rows = [self._row(fed, picture) for picture in range(self.pictures)]
        ours = rearrange(rows, f"picture head 1 ch -> picture {site.join}")
        theirs = joined[:, self.token]
        scale = float(theirs.abs().max().clamp_min(1e-12))
        missed = float((ours - theirs).abs().max()) / scale
        if not (missed <= TOLERANCE or missed <= TOLERANCE + self._rounding(fed, scale)):
            raise CaptureFailed(
                f"The attention captured in layer {site.name} of {self.name}, of {self.pictures}"
                " pictures together, is not what the layer used: row × values misses the layer's"
                f" own output by {missed:.2g}. It is not drawn."
            )
        caught.joined = None
        if caught.number in self.layers:  # without values
            self.fed[site.name] = _Fed(fed.queries, fed.keys, fed.keys, fed.scale, fed.bias)
        else:
            one = fed.of(0)
            self.unkept[site.name] = Unkept(one.shape, site.name, (one.keys.new_empty(0),))
            caught.source = caught.values = None
            del self.fed[site.name]

    def _row(self, fed: _Fed, picture: int) -> Float[Tensor, "head 1 ch"]:
        """Row × values of one picture."""
        return fed.of(picture).block(self.token, self.token + 1) @ fed.values[picture]

    def _rounding(self, fed: _Fed, scale: float) -> float:
        """What the kernel's own rounding may make of that."""
        scores = (fed.queries[:, :, self.token, None] * fed.keys).sum(-1) * fed.scale
        return kernel_rounding(float(scores.abs().max()), float(fed.values.abs().max()) / scale)


def _try(vit: LoadedViT) -> bool:
    probe = vit.probe()
    if probe.dtype in HALF or not all(map(_is_plain, vit.sites)):
        return False
    pictures = torch.cat([probe, probe.flip(-1) * 0.5])
    try:
        together = run(vit, pictures)
    except AttnVizError:
        return False
    alone = [capture.run(vit, each[None], keep="factors") for each in pictures]
    return all(_agree(one, other) for one, other in zip(together, alone, strict=True))


def _is_plain(site: AttentionSite) -> bool:
    """Whether the first axis of all that its module computes runs over pictures."""
    return all(
        getattr(site, each.name) == each.default
        for each in fields(AttentionSite)
        if each.name not in ANY
    )


def _agree(one: Pass, other: Pass) -> bool:
    """Whether two passes left the same maps and outputs, but for rounding."""
    for mine, its in zip(one.layers, other.layers, strict=True):
        if not torch.allclose(mine.probs(), its.probs(), rtol=1e-3, atol=1e-4):
            return False
    pairs = [(one.output, other.output), (one.features, other.features)]
    pairs.append((one.feature, other.feature))
    for mine_, its_ in pairs:
        if (mine_ is None) != (its_ is None):
            return False
        if mine_ is not None and its_ is not None:
            scale = float(its_.abs().max())
            if mine_.shape != its_.shape or not torch.allclose(
                mine_, its_, rtol=1e-3, atol=1e-4 * scale
            ):
                return False
    return True
