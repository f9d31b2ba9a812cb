"""Two maps that differ in one thing: a picture, a model, a resolution or a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import streamlit as st

from attnviz.apart import short
from attnviz.errors import BadOption
from attnviz.explain import Explanation
from attnviz.facts import CHOSEN
from attnviz.heatmap import shared_scale
from attnviz.methods import METHODS
from attnviz.methods.options import settle
from attnviz.plates import Beside, beside
from attnviz.record import AttentionRecord
from attnviz.scale import Scale
from attnviz.ui.asked import Ground
from attnviz.ui.look_panel import Look
from attnviz.ui.method_panel import Ask, choose_method
from attnviz.ui.one_map import MapAsked, aim
from attnviz.ui.other_side import Other
from attnviz.ui.stage import Stage
from attnviz.ui.target_panel import Wish

SCALE_WORDS = {"own": "Each map its own", "both": "One for both"}


@dataclass(frozen=True)
class Pair:
    """Two maps that were asked for; the second one's side is not run yet."""

    kind: str
    """In what they differ, of `other_side.KINDS`."""
    other: Other
    first: MapAsked
    one_scale: bool
    """Whether equal colours are to be equal values on both sides."""

    @property
    def own_query(self) -> bool:
        """Whether each side has a query of its own."""
        return self.kind == "query"

    @property
    def second_ground(self) -> Ground | None:
        """Where the second query is picked, if there is one."""
        return self.other.stand().ground if self.own_query else None

    def second(self) -> MapAsked:
        """The same of the other side; raises AttnVizError where that cannot be.

        What was left as it is means each model's own, as its last layer. Two queries are of one
        record, and of one target.
        """
        first, stage = self.first, self.other.stand()
        asked = first.asked if self.own_query else _by_hand(first.asked, first.stage.record)
        if not first.method.needs_gradient:
            return MapAsked(stage, asked, stage.seen, stage.request)
        if self.own_query:
            return MapAsked(stage, asked, first.aimed, first.request)
        wish = _wish(first.request.wish, stage, first.stage.model_run.vit.classes)
        request, aimed = stage.model_run.observe(wish)
        return MapAsked(stage, asked, aimed, request)

    def scale_of(self, heats: Sequence[Explanation]) -> Scale | None:
        """The one of both, if it is asked for; a word of why where there is none."""
        if not self.one_scale:
            return None
        scale = _shared(heats, self.first.stage.look)
        if scale is None:
            st.caption("Maps in different units, or in colour, have no scale in common.")
        return scale


def ask_for_pair(stage: Stage, kind: str, other: Other) -> Pair:
    """The widgets for the method, its target and the scale, once the other side is chosen.

    Raises BadOption where both maps would be one: of a method that has no query, by another query.
    """
    asked = choose_method(stage.record)
    if kind == "query" and not METHODS[asked.method].asks:
        raise BadOption(
            f"{METHODS[asked.method].label} is of the whole picture, the same for every query:"
            " choose another method, or compare by another picture, model or resolution."
        )
    request, seen = stage.request, stage.seen
    if METHODS[asked.method].needs_gradient:
        request, seen = aim(stage)
    return Pair(kind, other, MapAsked(stage, asked, seen, request), _choose_scale())


def printed(pair: Pair) -> tuple[Beside, Scale | None, tuple[MapAsked, MapAsked]]:
    """Both maps as a row, their scale if they share one, and themselves; says what else differs.

    Raises AttnVizError where the other side cannot be seen.
    """
    maps = pair.first, pair.second()
    heats = [each.compute() for each in maps]
    differ = [fact for fact in CHOSEN if len({heat.fact(fact) for heat in heats}) > 1]
    names = [
        ", ".join([name, *_telling(heat, [fact for fact in differ if fact != pair.kind])])
        for name, heat in zip(pair.other.names, heats, strict=True)
    ]
    scale = pair.scale_of(heats)
    say_differences(maps, heats)
    return beside(heats, names if len({*names}) == len(names) else ()), scale, maps


def _telling(heat: Explanation, facts: Sequence[str]) -> list[str]:
    return [short(fact, value) for fact in facts if (value := heat.fact(fact)) is not None]


def _wish(wish: object, stage: Stage, classes: Sequence[str]) -> Wish:
    """The same target on the other side: a patch is the one at the same place.

    Raises BadOption for a class or a place, of those of the first side, that the other has not.
    """
    match wish:
        case ("class", int(number)) if not _same(number, classes, stage.model_run.vit.classes):
            raise BadOption(
                f"The target is class {number}, {classes[number]}, and this model has no class of"
                " that number and name: explain what both have, as a similarity."
            )
        case ("token", (int(), int())):
            if not isinstance(stage.query, tuple):
                raise BadOption(
                    "The target is likeness to a patch, and the other side has no patch at that"
                    " place: pick a patch that lies in both."
                )
            return "token", stage.query
        case ("class" | "token" | "sample" as kind, what):
            return cast("Wish", (kind, what))
    raise BadOption("The target of the first side is none of the other's: choose another.")


def _same(number: int, *models: Sequence[str]) -> bool:
    """Whether models call the class of that number alike."""
    return len({tuple(classes[number : number + 1]) for classes in models}) == 1


def _by_hand(asked: Ask, record: AttentionRecord) -> Ask:
    """Without the options that are the record's own defaults."""
    usual = settle(asked.method, METHODS[asked.method].options, {}, record)
    kept = {name: value for name, value in asked.options.items() if usual[name] != value}
    return Ask(asked.method, kept)


def _shared(heats: Sequence[Explanation], look: Look) -> Scale | None:
    try:
        return shared_scale(heats, "zero" if look.scale == "zero" else "own", clip=look.clip)
    except BadOption:
        return None


def say_differences(maps: Sequence[MapAsked], heats: Sequence[Explanation]) -> None:
    """What of the two cannot be read off their colours."""
    if said := " ".join(_differences(maps, heats)):
        st.info(said, icon=":material/compare_arrows:")


def _differences(maps: Sequence[MapAsked], heats: Sequence[Explanation]) -> Iterator[str]:
    one, other = heats
    if one.grid != other.grid:
        rows, cols = (f"{grid[0]} × {grid[1]}" for grid in (one.grid, other.grid))
        yield f"The grids differ: {rows} patches on the first side, {cols} on the second."
        if one.share_of_all and other.share_of_all:
            yield (
                "Each map's shares sum to 1, so that on the finer grid a patch has less: compare"
                " where they lie, or each map on a scale of its own."
            )
    here, there = (each.stage for each in maps)
    if here.asks == there.asks and maps[0].method.asks:
        yield from _other_asker(here, there)
    if one.unit != other.unit:
        yield f"The units differ: {one.unit} and {other.unit}."


def _other_asker(here: Stage, there: Stage) -> Iterator[str]:
    """That what asks on one side is not there on the other, so that its usual token asks."""
    match here.query, there.query:
        case (str(), tuple()):
            yield (
                f"The first side has no patch at that place: there the {here.asker} asks, and on"
                f" the second side the {there.asker}."
            )
        case (tuple(), str()):
            yield f"The second side has no patch at that place: there the {there.asker} asks."
        case (str(one), str(other)) if one != other:
            yield f"The second side has no {here.asker}: there the {there.asker} asks."


def _choose_scale() -> bool:
    """Whether both maps have one scale."""
    return (
        st.radio(
            "Colour scale of the two",
            SCALE_WORDS,
            key="compare_scale",
            horizontal=True,
            persist_state="session",
            format_func=SCALE_WORDS.__getitem__,
            help="*One for both*: equal colours are equal values on both sides.",
        )
        == "both"
    )
