"""Patches of two pictures that are alike, by the features that one model has of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import streamlit as st
from PIL import Image
from streamlit.delta_generator import DeltaGenerator as Place

from attnviz.correspond import Match, best_cell, mutual_matches, similar
from attnviz.errors import AttnVizError
from attnviz.explain import Explanation
from attnviz.marks import cell_boxes, numbered
from attnviz.methods import METHODS
from attnviz.recipe import alike_of
from attnviz.ui.asked import OTHERS, Ground
from attnviz.ui.cache import Request
from attnviz.ui.code_panel import show_code, source_on
from attnviz.ui.drawn_map import draw_map, show_colours, show_notes
from attnviz.ui.linked import ask_as_linked
from attnviz.ui.other_side import Other
from attnviz.ui.picker import Cell, pick_cell, picked_cell
from attnviz.ui.query_panel import choose_name
from attnviz.ui.stage import Stage, say_wrong, show_provenance
from attnviz.ui.state import plain

MOST = 20
"""Pairs that are drawn."""

FEW = 6
"""Pairs that are drawn at first."""

SIDES = ("here", "there")
"""Which picture's patch asks: the page's own, or the other."""


@dataclass(frozen=True)
class Side:
    """One of the two pictures."""

    stage: Stage
    name: str
    """One of `SIDES`."""
    place: Place
    cells: tuple[Cell, ...]
    """Of the pairs that are drawn, in their order."""

    @property
    def key(self) -> str:
        """Of its picker."""
        return f"alike-{self.name}"

    def marked(self, image: Image.Image) -> Image.Image:
        """The picture, as large as on screen, with these outlined."""
        seen = self.stage.seen
        grid = seen.record.last_layout.grid
        return numbered(image, cell_boxes(grid, seen.shown_box, self.cells))

    def asking(self, ground: Ground) -> Callable[[], None]:
        """Lets the patch of this ground ask that was just picked here, and the other one answer."""
        name, key = self.name, self.key  # without the side: the session keeps what callbacks hold

        def ask() -> None:
            st.session_state["alike/asks"] = name
            ground.ask(picked_cell(key))

        return ask


def show_alike(stage: Stage, other: Other) -> None:
    """A patch picked on one picture, its likes on the other; and the pairs that agree both ways."""
    st.subheader("Which patches the model sees as alike", anchor=False)
    method = METHODS["similarity"]
    st.caption(
        "**Pick a patch** on either picture: the other one shows how alike each of its patches is,"
        " and outlines the best. Likeness is the cosine of the angle between the last layer's"
        " features: 1 the same direction, 0 nothing in common, −1 the opposite.",
        help=f"{method.formula}. Source: {method.source}.",
    )
    count = st.slider(
        "Pairs that agree both ways",
        0,
        MOST,
        FEW,
        key="alike_pairs",
        persist_state="session",
        help="Two patches, each of which is the likest that the other has in the other picture. "
        "The likest pairs come first, with the same number on both pictures.",
    )
    left, right = st.columns(2, gap="medium")
    left.markdown(other.here)
    right.markdown(other.there)
    try:
        with right:
            # What asks there is its own: the same place would be no answer.
            second = replace(other.stand(), asks=OTHERS[1], per_pixel=(1.0, 1.0))
            ask_as_linked(second.ground)
            st.session_state["alike/ground"] = second.ground
            matches = _matches(stage, second)[:count]
    except AttnVizError as error:
        with right:
            say_wrong(error, again="other")
        _show_asker(Side(stage, "here", left, ()))
        return
    here = Side(stage, "here", left, tuple(match.here for match in matches))
    there = Side(second, "there", right, tuple(match.there for match in matches))
    asks, answers = (here, there) if _asks_here() else (there, here)
    heat = similar(
        asks.stage.record,
        asks.stage.query,
        answers.stage.record,
        name=asks.stage.picture_name,
    ).named(answers.stage.picture_name)
    _show_asker(asks)
    _show_answer(answers, heat)
    for side in (here, there):
        with side.place:
            show_provenance(side.stage.record)
    _show_pairs(stage, second, matches)
    sources = source_on(stage), source_on(second)
    show_code(alike_of(*sources, asks.stage.query, other_asks=asks is there))


def _asks_here() -> bool:
    return bool(st.session_state.get("alike/asks") != "there")


def _matches(first: Stage, second: Stage) -> tuple[Match, ...]:
    """All pairs; the last ones are kept."""
    state, key = st.session_state, (first.request, second.request)
    kept: tuple[tuple[Request, Request], tuple[Match, ...]] | None = state.get("alike/matches")
    if kept is None or kept[0] != key:
        with first.computing("Comparing all patches …"):
            kept = state["alike/matches"] = key, mutual_matches(first.record, second.record)
    return kept[1]


def _show_asker(side: Side) -> None:
    """The picture in patches, of which one asks."""
    stage = side.stage
    query, (rows, cols) = stage.query, stage.record.layout.grid
    with side.place:
        pick_cell(
            side.marked(stage.seen.shown),
            grid=(rows, cols),
            box=stage.seen.shown_box,
            chosen=query if isinstance(query, tuple) else None,
            key=side.key,
            alt=f"{stage.picture_name}, cut into {rows} rows and {cols} columns of patches",
            on_pick=side.asking(stage.ground),
        )
        choose_name(stage.ground)


def _show_answer(side: Side, heat: Explanation) -> None:
    """The other picture, with how alike its patches are; the best has the outline."""
    stage, best = side.stage, best_cell(heat)
    look, shown = stage.look, stage.seen.on_screen(heat)
    scale = look.scale_of(heat)
    with side.place:
        draw_map(
            heat,
            shown,
            look,
            scale,
            key=side.key,
            alt=f"How alike the patches of {stage.picture_name} are to the {heat.fact('query')}",
            # Picked is a cell of the features' grid; what asks is one of the model's first.
            on_pick=side.asking(stage.ground_of(heat)),
            chosen=best,
            marked=side.marked,
        )
        show_colours(heat, look, scale)
        asked, (row, col) = plain(heat.fact("query") or ""), best
        st.caption(
            f"Likest to the **{asked}**: row {row}, column {col}, with a similarity of"
            f" {heat.values[best]:.3f}."
        )
        show_notes(heat)


def _show_pairs(first: Stage, second: Stage, matches: tuple[Match, ...]) -> None:
    if not matches:
        return
    names = [stage.picture_name for stage in (first, second)]
    columns = [f"{name} (row, column)" for name in names]
    if names[0] == names[1]:
        columns = [f"{side}: {name}" for side, name in zip(("1st", "2nd"), columns, strict=True)]
    rows = [
        {
            "": number,
            columns[0]: "{}, {}".format(*match.here),
            columns[1]: "{}, {}".format(*match.there),
            "cosine similarity": match.similarity,
        }
        for number, match in enumerate(matches, 1)
    ]
    st.markdown("**Pairs that agree both ways**, by their numbers on the pictures")
    config = {"cosine similarity": st.column_config.NumberColumn(format="%.3f")}
    st.dataframe(rows, hide_index=True, column_config=config)
