"""The layers that a method goes through."""

from __future__ import annotations

from attnviz.errors import BadOption
from attnviz.methods.options import Option
from attnviz.record import AttentionRecord, LayerAttention

OPTIONS = {
    "first_layer": Option(0, "layer", "where to start, counted from 0"),
    "last_layer": Option(-1, "layer", "where to end, included; -1 is the last"),
}


def layers_between(
    record: AttentionRecord, first_layer: int, last_layer: int
) -> tuple[LayerAttention, ...]:
    """The layers from the first to the last, both included; BadOption where there is none."""
    layers = record.layers[first_layer : last_layer % len(record.layers) + 1]
    if not layers:
        raise BadOption(
            f"The span ends at layer {last_layer}, before it starts at layer {first_layer}."
        )
    return layers
