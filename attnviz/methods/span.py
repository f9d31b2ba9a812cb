"""The layers that a method goes through."""

from __future__ import annotations

from attnviz.errors import BadOption
from attnviz.methods.options import Option
from attnviz.record import AttentionRecord, LayerAttention

OPTIONS = {
    "first_layer": Option(
        None,
        "layer",
        "where to start, counted from 0; if left out, the first from which layers share tokens",
    ),
    "last_layer": Option(-1, "layer", "where to end, included; -1 is the last"),
}


def layers_between(
    record: AttentionRecord, first_layer: int, last_layer: int
) -> tuple[LayerAttention, ...]:
    """The layers from the first to the last, both included.

    Raises:
        BadOption: there is none, or their maps do not add up: they are of different tokens, or the
            rows of one do not sum to 1.
    """
    last = last_layer % len(record.layers)
    layers = record.layers[first_layer : last + 1]
    if not layers:
        raise BadOption(
            f"The span ends at layer {last_layer}, before it starts at layer {first_layer}."
        )
    for layer in layers:
        if layer.mixed:
            raise BadOption(
                f"In layer {layer.name} {layer.mixed}, so that maps do not add up over layers."
                " Choose a method of one layer, or a span without it."
            )
    end = record.geometry(record.layers[last])
    if not end.shares_tokens(end):
        raise BadOption(
            f"Layer {last} attends from {end.queries.tokens} tokens to {end.keys.tokens} different"
            " tokens, so its map cannot be multiplied with others. Choose a method of one layer, or"
            " end at another layer."
        )
    first = record.shared_from(last)
    if first > first_layer:
        raise BadOption(
            f"Layers {first_layer} to {last} attend over different tokens, or convolutions between"
            " them move what tokens hold, so their maps cannot be multiplied: start at layer"
            f" {first}, as is done unless told otherwise, or later."
        )
    return layers
