"""Any set of methods beside each other, and how far they agree."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from attnviz.errors import AttnVizError, Busy
from attnviz.explain import Explanation
from attnviz.methods import METHODS
from attnviz.ranks import agreement, ranked
from attnviz.ui.code_panel import recipe_on, show_code
from attnviz.ui.drawn_map import draw_map, sentence, show_colours, show_notes
from attnviz.ui.go_to import go_to_method
from attnviz.ui.kept_choice import keep_offered
from attnviz.ui.method_panel import Ask
from attnviz.ui.methods_offered import offered_methods, say_not_offered
from attnviz.ui.one_map import MapAsked, aim
from attnviz.ui.picker import picked_cell
from attnviz.ui.sinks_panel import say_hidden
from attnviz.ui.stage import Stage, say_wrong

FIRST = ("attention", "rollout", "value_weighted", "similarity")
"""Methods that are shown at first: none of them runs the model again or takes long."""

SCALE_WORDS = {"own": "Each in its own unit", "rank": "All by rank"}

ACROSS = 2
"""Maps beside each other on a wide screen."""


def show_methods(stage: Stage) -> None:
    """The widgets, then the maps with their numbers, and a table of how far they agree."""
    st.session_state.setdefault("methods", [*FIRST])
    offered = offered_methods(stage.record)
    keep_offered("methods", offered)
    names: Sequence[str] = st.pills(
        "Methods",
        offered,
        selection_mode="multi",
        key="methods",
        persist_state="session",
        format_func=lambda name: METHODS[name].label,
        help="*Head fusion* is how all heads are made one map: by their mean, for one.",
    )
    st.caption(
        "Each with its usual options, whatever was chosen elsewhere; *Open* shows one by itself,"
        " where they can be changed."
    )
    say_not_offered(stage.record)
    by_rank = (
        st.radio(
            "Colour scale of the methods",
            SCALE_WORDS,
            key="methods_scale",
            horizontal=True,
            persist_state="session",
            format_func=SCALE_WORDS.__getitem__,
            help="Methods measure different things, in different units. *By rank* puts them on one "
            "scale: the lowest patch of a map is 0, the highest 1, whatever its unit.",
        )
        == "rank"
    )
    names = [name for name in METHODS if name in names]  # in the table's order
    if not names:
        st.info("Choose one method or more.", icon=":material/arrow_upward:")
        return
    aimed = {False: (stage.request, stage.seen)}
    held_up = ""
    if any(METHODS[name].needs_gradient for name in names):
        try:
            aimed[True] = aim(stage)
        except Busy:  # said with a way to ask again
            raise
        except AttnVizError as error:  # costs the methods without a target nothing
            held_up = str(error)
    heats: dict[str, Explanation] = {}
    recipes = [
        recipe_on(
            stage,
            "map",
            name,
            request=aimed[METHODS[name].needs_gradient][0],
            name=stage.picture_name,
            output=f"{name}.png",
        )
        for name in names
        if METHODS[name].needs_gradient in aimed
    ]
    with stage.beside_picture(0.3):
        st.subheader(f"What each method makes of the {stage.asker}", anchor=False)
        for start in range(0, len(names), ACROSS):
            for name, place in zip(names[start:], st.columns(ACROSS, gap="medium")):  # noqa: B905
                with place:
                    if METHODS[name].needs_gradient not in aimed:
                        st.markdown(f"**{METHODS[name].label}**")
                        st.info(held_up, icon=":material/block:")
                        continue
                    request, seen = aimed[METHODS[name].needs_gradient]
                    heat = _show(MapAsked(stage, Ask(name, {}), seen, request), by_rank=by_rank)
                if heat is not None and not heat.in_colour:
                    heats[METHODS[name].label] = heat
        _show_agreement(heats)
    show_code(*recipes)


def _show(wanted: MapAsked, *, by_rank: bool) -> Explanation | None:
    """One map; or why there is none, which costs the others nothing."""
    stage, name = wanted.stage, wanted.asked.method
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{wanted.method.label}**", width="stretch")
        st.button("Open", key=f"open-{name}", on_click=go_to_method, args=(name,))
    try:
        heat = wanted.compute()
    except Busy as error:
        say_wrong(error, again=name)
        return None
    except AttnVizError as error:
        st.info(str(error), icon=":material/block:")
        return None
    drawn = ranked(heat) if by_rank and not heat.in_colour else heat
    look, shown = stage.look, stage.seen.on_screen(drawn)
    on_map = stage.ground_of(heat)
    scale = look.own_scale(drawn)
    key = f"map-{name}"
    draw_map(
        drawn,
        shown,
        look,
        scale,
        key=key,
        alt=f"{heat.title} of the {stage.asker}, as colours over the picture",
        on_pick=lambda: on_map.ask(picked_cell(key)),
    )
    show_colours(drawn, look, scale)
    say_hidden(drawn, scale)
    show_notes(heat)
    st.caption(f"{wanted.method.summary} {sentence(heat, on_map)}")
    return heat


def _show_agreement(heats: dict[str, Explanation]) -> None:
    if len(heats) < 2:
        return
    st.markdown("**How far they agree**")
    st.caption(
        "Spearman's rank correlation of each two maps: 1 where both put the patches in the same "
        "order, 0 where one says nothing of the other, −1 where the order is reversed. That two "
        "methods agree does not make either of them right: see *Trust*."
    )
    rows = [
        {"": f"{number}. {name}"} | {other: agreement(heat, heats[other]) for other in heats}
        for number, (name, heat) in enumerate(heats.items(), 1)
    ]
    columns = {  # by their numbers: names would be too wide
        name: st.column_config.NumberColumn(f"{number}.", format="%.2f", help=name)
        for number, name in enumerate(heats, 1)
    }
    st.dataframe(rows, hide_index=True, column_config=columns)
