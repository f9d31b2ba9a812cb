"""The other side of a comparison: what differs, and what that is seen as."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import streamlit as st

import models
from attnviz.contract import Fit
from attnviz.errors import BadOption, BadWeights
from attnviz.samples import SAMPLES
from attnviz.ui import cache
from attnviz.ui.asked import OTHERS
from attnviz.ui.model_choice import Choice
from attnviz.ui.offered import is_offered, offered
from attnviz.ui.resolutions import sides_of
from attnviz.ui.run import Run
from attnviz.ui.stage import Stage
from attnviz.ui.state import Picture, note, sample_picture
from attnviz.ui.tray import tray

OPENED = "compare/picture"
"""Under which the session keeps the other picture opened, after its choice."""

KINDS = {
    "picture": "Another picture",
    "model": "Another model",
    "size": "Another resolution",
    "query": "Another query",
}
"""What may differ between the two sides."""


@dataclass(frozen=True)
class Other:
    """Both sides by name, and how the second one comes about."""

    here: str
    there: str
    """In Markdown."""
    names: tuple[str, str]
    """Both as a file says them."""
    stand: Callable[[], Stage]
    """Runs the model where that has not been done; raises AttnVizError where that cannot be."""


def choose_kind() -> str:
    """The widget: what differs."""
    st.session_state.setdefault("compare", next(iter(KINDS)))
    return (
        st.segmented_control(
            "Compare with",
            KINDS,
            key="compare",
            format_func=KINDS.__getitem__,
            required=True,
            wrap=True,
            persist_state="session",
            help="All else is the same on both sides: the method, its options, and who asks.",
        )
        or "picture"
    )


def choose_other(stage: Stage, kind: str) -> Other:
    """The widgets that say which other picture, model or resolution.

    Raises BadOption where there is none, or the model cannot be run now.
    """
    if kind != "picture":
        close_other()
    return _CHOOSE[kind](stage)


def _choose_picture(stage: Stage) -> Other:
    run, own = stage.model_run, {held.digest: held for held in reversed(tray())}
    offered = {f"own/{digest}": held.name.strip("`") for digest, held in own.items()}
    offered |= {f"sample/{name}": sample.label for name, sample in SAMPLES.items()}
    shown = run.picture
    offered.pop(f"own/{shown.digest}" if shown.sample is None else f"sample/{shown.sample}", None)
    chosen = _choose("compare_picture", "The other picture", offered, help=_PICTURE_HELP)
    _leave_other(chosen)

    def stand() -> Stage:
        return _run(stage, replace(run, picture=_open(chosen)))

    return Other(
        f"**{shown.name}**",
        f"**{_named(offered[chosen], own=chosen)}**",
        (stage.picture_name, offered[chosen]),
        stand,
    )


def _leave_other(chosen: str) -> None:
    """A place in the last other picture asks no more in this one."""
    state = st.session_state
    if state.get("compare/asked_of", chosen) != chosen:
        state[OTHERS[1]] = None
    state["compare/asked_of"] = chosen


def close_other() -> None:
    """Opened, a picture takes far more than its file does: it is not to outlive its place."""
    st.session_state.pop(OPENED, None)


_PICTURE_HELP = "A sample, or one of your own from the tray in the sidebar."


def _named(label: str, *, own: str) -> str:
    return f"`{label}`" if own.startswith("own/") else label


def _open(chosen: str) -> Picture:
    """The picture, which the session keeps opened: a large one takes a while."""
    state = st.session_state
    kept: tuple[str, Picture] | None = state.get(OPENED)
    if kept is None or kept[0] != chosen:
        kind, _, name = chosen.partition("/")
        opened = (
            sample_picture(name)
            if kind == "sample"
            else next(held for held in tray() if held.digest == name).open()
        )
        kept = state[OPENED] = chosen, opened
    return kept[1]


def _choose_model(stage: Stage) -> Other:
    run, state = stage.model_run, st.session_state
    linked = [name for name in (state.get("compare_model"),) if name and is_offered(name)]
    labels = {name: Choice(name).label for name in (run.choice.name, *offered(), *linked)}
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    with left:
        name = _choose("compare_model", "The other model", labels)
    # At first the same model as it was before it had learned anything: that is here at once.
    state.setdefault("compare_random", not run.choice.random)
    random = right.toggle(
        "Random weights",
        key="compare_random",
        persist_state="session",
        help="The other model untrained: what its maps look like before it has learned anything.",
    )
    choice = Choice(name, random)

    def stand() -> Stage:
        if choice == run.choice:
            raise BadOption("Both sides are the same: choose another model, or other weights.")
        vit = _load(stage, choice)
        if vit.any_size and choice.name == run.choice.name:  # the weights alone are to differ
            vit = vit.at(run.vit.image_size)
        return _run(stage, replace(run, vit=vit, choice=choice, fit=_fit(vit, run.fit)))

    names = run.choice.words.replace("`", ""), choice.words.replace("`", "")
    return Other(f"**{run.choice.words}**", f"**{choice.words}**", names, stand)


def _choose_size(stage: Stage) -> Other:
    run, state = stage.model_run, st.session_state
    here = run.vit.image_size[0]
    base = _load(stage, run.choice)
    if not base.any_size:
        raise BadOption(
            f"{run.choice.label} takes pictures of one size alone: choose a model that takes any,"
            " as DINOv2 does, to compare resolutions."
        )
    sides = [side for side in sides_of(base) if side != here]
    if state.get("compare_side") not in sides:
        state.compare_side = max((side for side in sides if side < here), default=sides[0])
    side: int = st.select_slider(
        "The other resolution",
        sides,
        key="compare_side",
        persist_state="session",
        format_func=lambda side: f"{side} px",
        help="More pixels are more patches: a finer map and a longer wait.",
    )

    def stand() -> Stage:
        own = side == base.image_size[0]
        return _run(stage, replace(run, vit=base if own else base.at((side, side))))

    return Other(f"**{here} px**", f"**{side} px**", (f"{here} px", f"{side} px"), stand)


def _choose_query(stage: Stage) -> Other:
    """The same record, and a query of its own; at first the patch in the middle."""
    other = replace(stage, asks=OTHERS[0])
    if st.session_state.get(other.asks) is None:
        rows, cols = other.record.layout.grid
        other.ground.ask((rows // 2, cols // 2))
    askers = stage.asker, other.asker
    return Other(f"The **{stage.asker}**", f"The **{other.asker}**", askers, lambda: other)


_CHOOSE: dict[str, Callable[[Stage], Other]] = {
    "picture": _choose_picture,
    "model": _choose_model,
    "size": _choose_size,
    "query": _choose_query,
}


def _choose(key: str, label: str, offered: dict[str, str], help: str | None = None) -> str:
    state = st.session_state
    if (wanted := state.get(key)) not in offered:
        if wanted is not None and state.get("link/fresh"):
            note("what it compares with cannot be compared with this, so another is shown")
        state[key] = next(iter(offered))
    chosen: str = st.selectbox(
        label,
        offered,
        key=key,
        format_func=offered.__getitem__,
        persist_state="session",
        help=help,
    )
    return chosen


def _load(stage: Stage, choice: Choice) -> models.AnyViT:
    try:
        with stage.status, st.spinner(f"Loading {choice.label} …", show_time=True):
            return cache.model(choice.name, choice.random, choice.checkpoint)
    except BadWeights as error:  # its way out is the library's
        raise BadOption(
            f"{choice.label} could not be loaded: {error.reason} Choose another model, or switch on"
            " *Random weights* to see it untrained."
        ) from error


def _fit(vit: models.AnyViT, fit: Fit) -> Fit:
    """As on the first side, where the other model can do that."""
    return fit if vit.any_size or fit != "aspect" else "crop"


def _run(stage: Stage, run: Run) -> Stage:
    """The other side, seen; a place on it is that of the first picture, in shares of both sides."""
    request, seen = run.observe()
    (width, height), (across, down) = stage.record.image.size, seen.record.image.size
    return replace(
        stage,
        run=run,
        seen=seen,
        request=request,
        name=run.picture.name.strip("`"),
        per_pixel=(width / across, height / down),
    )
