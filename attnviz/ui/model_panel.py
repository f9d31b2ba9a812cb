"""Which model, at which size, and how the picture meets it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

import models
from attnviz.contract import Fit
from attnviz.errors import AttnVizError, UnsupportedModel
from attnviz.ui import cache
from attnviz.ui.by_hand import settle
from attnviz.ui.checkpoints import Checkpoint, checkpoint_folder
from attnviz.ui.model_choice import Choice, choose, go_back_to
from attnviz.ui.offered import offered
from attnviz.ui.resolutions import sides_of

FIT_WORDS: dict[Fit, str] = {
    "aspect": "Keep its shape",
    "crop": "Crop to its middle",
    "pad": "Pad to a square",
    "squash": "Squash to a square",
}


def choose_model(status: Place) -> tuple[models.AnyViT, Choice, Fit]:
    """The widgets; gives a loaded model at the chosen size. `status` says that it is loading.

    Raises:
        AttnVizError: the model cannot be loaded, and there was none before that could stay.
    """
    vit, choice = _load(status)
    vit = _choose_size(vit)
    fits = [fit for fit in FIT_WORDS if vit.any_size or fit != "aspect"]
    lacks = settle("fit", fits[0], fits.__contains__, vit.name)
    fit = st.selectbox(
        "If the picture is not square",
        fits,
        format_func=FIT_WORDS.__getitem__,
        key="fit",
        help="*Keep its shape*: a grid of patches like the picture. *Crop*: as the model was "
        "evaluated; the map covers what is left. *Pad*: borders in a plain colour.",
    )
    if lacks is not None:
        st.caption(
            f"You chose *{FIT_WORDS[lacks]}*; this model takes one size alone, so it is"
            f" *{FIT_WORDS[fit]}*."
        )
    return vit, choice, fit


def _load(status: Place) -> tuple[models.AnyViT, Choice]:
    """A loaded model. One that cannot be loaded leaves the choice at the one before it.

    Raises AttnVizError where that one cannot be loaded any more either.
    """
    if stays := st.session_state.pop("model_stays", None):
        go_back_to(stays)
    choice = choose()
    try:
        with status, st.spinner(f"Loading {choice.label} …", show_time=True):
            vit = cache.model(choice.name, choice.random, choice.checkpoint)
    except AttnVizError as error:
        _stay(choice, error)
        raise
    st.session_state.model_loaded = choice
    return vit, choice


def _stay(wanted: Choice, error: AttnVizError) -> None:
    """Start the page anew with the last model that could be loaded, if there is one."""
    # Only once: what cannot be loaded either, by now, is no place to stay at.
    kept: Choice | None = st.session_state.pop("model_loaded", None)
    if kept is None and st.session_state.get("seen") is None:  # as where a link names it
        kept = Choice(offered()[0])
    if kept is None or kept == wanted:
        return
    said = f"{wanted.label} could not be loaded, and the page stays with {kept.words}."
    if isinstance(error, UnsupportedModel):
        said = f"{wanted.label} cannot be drawn, and the page stays with {kept.words}."
    elif _has_changed(wanted.checkpoint, kept.checkpoint):
        # The file that was loaded is no more.
        kept = replace(kept, checkpoint=None)
        said = f"{wanted.words} could not be loaded since its file has changed."
        st.session_state["checkpoint/lost"] = ""
    elif wanted.checkpoint is not None:
        said = f"{wanted.words} could not be loaded, and the page stays with {kept.words}."
    elif kept.name == wanted.name and kept.random and not wanted.random:
        said = f"The weights of {wanted.label} could not be loaded: it stays untrained."
    elif not wanted.random:
        said += (
            f" To see {wanted.label} untrained, switch on *Random weights* before you choose it."
        )
        if checkpoint_folder() is not None:
            said += " Then a file of weights for it can be chosen too."
    st.session_state.model_error = said
    st.session_state.model_why = getattr(error, "reason", str(error))
    st.session_state.model_stays = kept
    st.rerun()


def _has_changed(wanted: Checkpoint | None, kept: Checkpoint | None) -> bool:
    """Whether both are the file of one name, as it is now and as it was."""
    return bool(wanted and kept and wanted != kept and wanted.name == kept.name)


def _choose_size(vit: models.AnyViT) -> models.AnyViT:
    """The model with pictures fitted to a square of the chosen side, where it takes any size."""
    (patch, _), own = vit.patch_size, vit.image_size[0]
    if not vit.any_size:
        width = vit.image_size[1]
        st.caption(f"It takes {width} × {own} pixels (width × height) and nothing else.")
        return vit
    sides = sides_of(vit)
    lacks = settle("side", own, sides.__contains__, vit.name)
    side: int = st.select_slider(
        "Resolution",
        sides,
        key="side",
        format_func=lambda side: f"{side} px",
        help="The model sees about this many pixels a side. More pixels are more patches: a finer "
        "map and a longer wait.",
    )
    if lacks is not None:
        st.caption(f"You chose {lacks} px; this model has no such size, so it is {side} px.")
    note = "" if side == own else f" The model was made for {own} px; its positions are resampled."
    count = side // patch
    st.caption(f"Patches of {patch} × {patch} pixels, about {count} × {count} of them.{note}")
    return vit if side == own else vit.at((side, side))  # its own need not be a square
