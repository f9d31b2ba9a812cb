"""Which model, at which size, and how the picture meets it."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

import models
from attnviz.contract import Fit
from attnviz.errors import AttnVizError
from attnviz.ui import cache

FIT_WORDS: dict[Fit, str] = {
    "aspect": "Keep its shape",
    "crop": "Crop to its middle",
    "pad": "Pad to a square",
    "squash": "Squash to a square",
}

PATCHES_A_SIDE = (8, 16, 24, 37, 56)
"""Sizes offered beside the model's own, in patches along a square's side."""


def choose_model(status: Place) -> tuple[models.AnyViT, Fit]:
    """The widgets; gives a loaded model at the chosen size. `status` says that it is loading.

    Raises:
        AttnVizError: the model cannot be loaded, and there was none before that could stay.
    """
    vit = _choose_size(_choose_weights(status))
    fits = [fit for fit in FIT_WORDS if vit.any_size or fit != "aspect"]
    if st.session_state.get("fit") not in fits:
        st.session_state.fit = fits[0]
    fit = st.selectbox(
        "A picture that is no square",
        fits,
        format_func=FIT_WORDS.__getitem__,
        key="fit",
        help="*Keep its shape*: a grid of patches like the picture. *Crop*: as the model was "
        "evaluated; the map covers what is left. *Pad*: borders in a plain colour.",
    )
    return vit, fit


def _choose_weights(status: Place) -> models.AnyViT:
    """A loaded model. One that cannot be loaded leaves the choice at the one before it."""
    if stays := st.session_state.pop("model_stays", None):
        st.session_state.model, st.session_state.random = stays
    st.subheader("Model", anchor=False)
    name = st.selectbox(
        "Vision Transformer",
        models.MODELS,
        format_func=_label,
        key="model",
        on_change=_forget_error,
        help="Those marked *download* are fetched from the model hub when there is a network; the "
        "others' weights are here already. The *digits* models name handwritten digits.",
    )
    random = st.toggle(
        "Random weights",
        key="random",
        on_change=_forget_error,
        help="The same architecture, untrained: what its maps look like before it has learned "
        "anything. Needs no download.",
    )
    try:
        with status, st.spinner(f"Loading {models.MODELS[name].label} …", show_time=True):
            vit = cache.model(name, random)
    except AttnVizError as error:
        _stay(name, random, error)
        raise
    st.session_state.model_loaded = (name, random)
    if message := st.session_state.get("model_error"):
        st.error(message, icon=":material/cloud_off:")
        st.caption(st.session_state.model_why)
    return vit


def _label(name: str) -> str:
    card = models.MODELS[name]
    return card.label if "no network" in card.source else f"{card.label} (download)"


def _stay(name: str, random: bool, error: AttnVizError) -> None:
    """Start the page anew with the last model that could be loaded, if there is one."""
    if loaded := st.session_state.get("model_loaded"):
        kept, kept_random = loaded
        wanted = models.MODELS[name].label
        stays = f"stays with {models.MODELS[kept].label}" + (", untrained" if kept_random else "")
        said = f"{wanted} could not be loaded, and the page {stays}."
        if kept == name and kept_random and not random:
            said = f"The weights of {wanted} could not be loaded: it stays untrained."
        elif not random:
            said += f" To see {wanted} untrained, switch on *Random weights* before you choose it."
        st.session_state.model_error = said
        st.session_state.model_why = getattr(error, "reason", str(error))
        st.session_state.model_stays = loaded
        st.rerun()


def _forget_error() -> None:
    st.session_state.model_error = None


def _choose_size(vit: models.AnyViT) -> models.AnyViT:
    """The model with pictures fitted to a square of the chosen side, where it takes any size."""
    (patch, _), own = vit.patch_size, vit.image_size[0]
    if not vit.any_size:
        width = vit.image_size[1]
        st.caption(f"It takes {width} × {own} pixels (width × height) and nothing else.")
        return vit
    sides = sorted({own, *(patch * count for count in PATCHES_A_SIDE)})
    if st.session_state.get("side") not in sides:
        st.session_state.side = own
    side: int = st.select_slider(
        "Resolution",
        sides,
        key="side",
        format_func=lambda side: f"{side} px",
        help="The model sees about this many pixels a side. More pixels are more patches: a finer "
        "map and a longer wait.",
    )
    note = "" if side == own else f" The model was made for {own} px; its positions are resampled."
    count = side // patch
    st.caption(f"Patches of {patch} × {patch} pixels, about {count} × {count} of them.{note}")
    return vit if side == own else vit.at((side, side))  # its own need not be a square
