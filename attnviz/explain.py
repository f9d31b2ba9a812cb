"""The façade: observe a picture once, then explain it as often as you like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from einops import rearrange
from jaxtyping import Bool
from PIL import Image
from torch import Tensor

from attnviz import capture
from attnviz.contract import Box, LoadedViT, Progress, View, as_fit
from attnviz.errors import BadOption, unknown
from attnviz.explanation import Explanation as Explanation
from attnviz.facts import Facts
from attnviz.geometry import Geometry, Share
from attnviz.heatmap import meets
from attnviz.images import open_image
from attnviz.methods import METHODS, Method
from attnviz.methods.options import settle
from attnviz.methods.values import Estimate, Values
from attnviz.record import AttentionRecord
from attnviz.record_file import Observed
from attnviz.sinks import own_cells
from attnviz.target import Similarity, Target, require_target
from attnviz.tokens import Query, TokenLayout
from attnviz.trace import origin_of, picture_sum, plain_query
from attnviz.usage import METHOD
from attnviz.verify import verify_once


def observe(
    vit: LoadedViT,
    source: Image.Image | Tensor,
    *,
    target: Target | None = None,
    keep: str = "auto",
    fit: str = "crop",
    progress: Progress | None = None,
) -> Observed:
    """Run the model once on a picture, or on a ready tensor (1, channel, height, width).

    Args:
        vit: what `models.load` gave.
        source: a picture, or an input that is already normalised.
        target: what gradients are taken of, for the methods that need them: a class by its number
            or label, `"predicted"`, or `attnviz.similarity_to(…)`.
        keep: `"maps"`, `"factors"`, or `"auto"`: maps while they fit `keeping.MAPS_BUDGET`.
        fit: how a picture meets the model's size: `"crop"`, `"squash"`, `"pad"` or `"aspect"`.
        progress: called with (layers done, layers in all); may raise, to stop.

    Raises:
        CaptureFailed: a layer's map could not be captured, or is not what the layer used.
        BadOption: an argument has a value that does not exist, or the tensor's shape is wrong.
        UnknownName: the model has no such class, or the picture no such token.
    """
    if not isinstance(vit, LoadedViT):
        raise BadOption(
            f"A loaded model is observed; {type(vit).__name__} came. Load one with models.load, or"
            " make your own module ready with models.wrap."
        )
    known_fit = as_fit(fit)
    verify_once(vit)
    if isinstance(source, Tensor):
        view = vit.view_of_tensor(source)
        image = Image.fromarray(view.pixels)
    else:
        image = upright_rgb(source)
        view = vit.view(image, known_fit)
    layout = vit.layout(*view.tensor.shape[-2:])
    if target is not None:
        require_target(target, vit, layout, partial(capture.readable, vit))
    seen = capture.run(vit, view.tensor, keep=keep, target=target, progress=progress)
    named = not isinstance(source, Tensor)
    origin = origin_of(vit, fit=fit, keep=keep, target=_aim(target)) if named else None
    return record_of(vit, image, view, layout, seen, origin)


def record_of(
    vit: LoadedViT,
    image: Image.Image,
    view: View,
    layout: TokenLayout,
    seen: capture.Pass,
    origin: Mapping[str, Any] | None = None,
) -> Observed:
    """What a pass of one picture left behind, with where it comes from.

    `origin` is what it takes to observe the very same again, to the last bit.
    """
    return Observed(
        layers=seen.layers,
        layout=layout,
        view=view,
        image=image,
        predictions=vit.predictions(seen.output),
        model=vit.name,
        weights=vit.weights,
        random=vit.random,
        device=str(vit.device),
        features=seen.features,
        feature=seen.feature,
        fed_whole=seen.fed_whole,
        scored=seen.scored,
        target=seen.target,
        score=seen.score,
        target_class=seen.target_class,
        reference=seen.reference,
        activations=seen.activations,
        origin=origin,
    )


def _aim(target: Target | None) -> Any:
    """A target in plain values: None, a class, or what the picture is compared with."""
    if not isinstance(target, Similarity):
        return target if target is None or isinstance(target, str) else int(target)
    if not isinstance(target.reference, AttentionRecord):
        return {"similar_to": plain_query(target.reference)}
    return {"similar_to_picture": picture_sum(target.reference.image), "name": target.name}


def explain(
    record: AttentionRecord,
    method: str = METHOD,
    *,
    query: Query | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Explanation:
    """One method's map for one query, over the patches; pure, and cheap unless `estimate` warns.

    Args:
        record: what `observe` gave.
        method: a name in `METHODS`.
        query: `"cls"`, `"mean"` (all patches), a prefix token's name, or a patch (row, col); if
            left out, the class token, or the mean where there is none. A patch is counted on the
            record's grid (`record.layout.grid`), the model's first and in networks of stages its
            finest, whichever layer is asked; the fact `here` says which cell it is there.
        progress: called with (done, all) by a long method; may raise, to stop.
        options: the method's own, see `METHODS[method].options`.

    Raises:
        UnknownName: no such method, query, layer, head or option.
        BadOption: an option's value is out of range, or the record has not what the method reads.
        CaptureFailed: the values are not finite.
    """
    chosen = _method(method)
    if chosen.needs_gradient and record.target is None:
        raise BadOption(
            f"{chosen.label} explains a target, and this record was made without one: observe the"
            ' picture with target="predicted", a class, or attnviz.similarity_to(…).'
        )
    settled = settle(method, chosen.options, options, record)
    geometry = record.geometry_of(settled)
    named = geometry.default_query if query is None else query
    query = geometry.asked(named, record.layout)
    tokens = geometry.queries.query_tokens(query)
    hears = {} if chosen.estimate is None else {"progress": progress}
    found = chosen.compute(record, tokens, **settled, **hears)
    values, said = (found.tokens, found.notes) if isinstance(found, Values) else (found, ())
    unit = chosen.unit_of(settled)
    notes = [*(["random weights: this map means nothing"] if record.random else []), *said]
    turned = settled.get("direction") == "to"
    if geometry.padded and "layer" in settled and not turned:  # else padding is who asks
        notes.append("a part of the attention may go to padding that the model adds to its grid")
    if chosen.needs_gradient and record.compares_with_itself:
        notes.append("to the model both are the same: the gradient is zero but for rounding")
    elif chosen.needs_gradient and record.gradient_is_zero:
        notes.append("the gradient is zero: nothing that this model attends to changes the target")
    if not geometry.keys.to_grid(values).any():
        held = "on every patch: other tokens have it all" if values.any() else "everywhere"
        notes.append(f"{unit} is zero {held}, so nothing stands out")
    cell = None if isinstance(query, str) or not chosen.asks else geometry.key_of(query)
    grid = geometry.keys.grid
    on_grid = rearrange(geometry.keys.to_grid(values), "... row col -> row col ...")
    heat = Explanation(
        values=on_grid.float().cpu().numpy(),
        unit=unit,
        title=chosen.label,
        facts=_facts(record, chosen, named, settled, geometry, chosen.remarks(record, values)),
        image=record.image,
        box=_within(record.view.box, geometry.place),
        query_cell=cell,
        itself=own_cells(cell, grid, settled.get("pool")) if chosen.keeps_itself(settled) else (),
        notes=tuple(notes),
        blank=_blank(geometry, tokens) if "layer" in settled else None,
        share_of_all=chosen.is_share(settled) and all(each.is_share for each in record.layers),
        request=record.origin
        and {"from": record.origin, "method": method, "query": plain_query(named)}
        | {"options": settled},
        method=method,
    )
    if heat.query_cell is not None and not meets(heat.cell_box(*heat.query_cell), heat.image.size):
        note = "the patch that asks lies in the padding, beside the picture"
        return replace(heat, notes=(*heat.notes, note))
    return heat


def estimate(record: AttentionRecord, method: str, **options: Any) -> Estimate | None:
    """How long `explain` would take with these options; None for a method that is never long.

    Raises what `explain` raises for a method or an option.
    """
    chosen = _method(method)
    settled = settle(method, chosen.options, options, record)
    return None if chosen.estimate is None else chosen.estimate(record, **settled)


def _method(name: str) -> Method:
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]


def _blank(geometry: Geometry, query: range) -> Bool[np.ndarray, "row col"] | None:
    """The cells that the query's windows do not reach."""
    reached = geometry.keys.to_grid(geometry.reach(query))
    return None if bool(reached.all()) else ~reached.cpu().numpy()


def _within(box: Box, place: Share) -> Box:
    """The part of a box that a place, in shares of its sides, names; of the whole, the same box.

    Each edge counts from the box's nearest own one: `left + (right - left)` need not be `right`.
    """
    left, top, right, bottom = box
    wide, high = right - left, bottom - top
    x0, y0, x1, y1 = place
    return left + x0 * wide, top + y0 * high, right - (1 - x1) * wide, bottom - (1 - y1) * high


def upright_rgb(source: object) -> Image.Image:
    """A picture as `open_image` gives it; BadOption for what is none."""
    if not isinstance(source, Image.Image):
        raise BadOption(
            f"A picture or a tensor is observed; {type(source).__name__} came."
            " Open the picture with attnviz.open_image first."
        )
    # A picture that Pillow opened may lie on its side, be transparent, or break off; one that
    # open_image gave is plain pixels and passes as it is.
    plain = type(source) is Image.Image and source.mode == "RGB" and not source.info
    plain = plain and min(source.size) > 0
    return source if plain else open_image(source)


def _facts(
    record: AttentionRecord,
    method: Method,
    query: Query,
    settled: dict[str, Any],
    geometry: Geometry,
    remarks: Facts,
) -> Facts:
    """What a figure must say of where it comes from, in words."""
    return (
        ("method", method.label),
        *_in_words(method, settled, len(record.layers)),
        *remarks,
        *(_asker(record, query, geometry) if method.asks else []),
        *(_asking_grid(geometry) if method.asks and "layer" in settled else []),
        *([("attends to", geometry.kind)] if "layer" in settled and not geometry.is_plain else []),
        *([("target", str(record.target))] if method.needs_gradient else []),
        *record.facts_on(geometry.keys),
    )


def _asker(record: AttentionRecord, query: Query, geometry: Geometry) -> Facts:
    """The query as it has to be given again, and its cell where the grid is another."""
    if isinstance(query, str):
        return (("query", geometry.queries.query_label(query)),)
    typed = ("query", record.layout.query_label(query))
    here = geometry.here(query, record.layout)
    return (typed, ("here", here)) if here else (typed,)


def _asking_grid(geometry: Geometry) -> Facts:
    """The grid of those who ask, where it is not the one that is drawn."""
    if geometry.queries.grid == geometry.keys.grid:
        return ()
    rows, cols = geometry.queries.grid
    return (("query grid", f"{rows} rows × {cols} columns"),)


def _in_words(method: Method, settled: dict[str, Any], layers: int) -> list[tuple[str, str]]:
    """The options that had an effect."""
    words = []
    for name, option in method.options.items():
        value = settled[name]
        if value is None and option.unset is not None:
            words.append(option.unset)
        elif value is not None and not option.idle(settled):
            place = f" (of {layers}, counted from 0)" if option.kind == "layer" else ""
            words.append((name.replace("_", " "), f"{value}{place}"))
    return words
