"""A visitor's page without a browser, on small models that load at once."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache as cache_of_all
from pathlib import Path

import pytest
import streamlit as st
from conftest import small_vit
from PIL import Image
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

import models
from attnviz.errors import BadWeights
from attnviz.ui import cache
from models import own_weights

# Each visit would look anew through all that is installed for components, which takes longer than the page.
manifest_scanner.scan_component_manifests = cache_of_all(manifest_scanner.scan_component_manifests)

APP = Path(__file__).parents[1] / "app.py"

# Small stand-ins on 32 × 48 pixels: 3 layers of 3 heads on 2 × 3 patches unless said otherwise.
DISTILLED = "deit_small_distilled_patch16_224.fb_in1k"
SMALLER = "deit_tiny_patch16_224.fb_in1k"
SHALLOW = "vit_base_patch16_siglip_224.webli"
FIXED = "vit_base_patch16_224.mae"
FAR = "vit_small_patch16_224.dino"
STAND_INS = {
    DISTILLED: (("cls", "dist"), {}),
    SMALLER: (("cls",), {"depth": 2, "num_heads": 2}),
    SHALLOW: ((), {"depth": 1, "num_heads": 2, "patch_size": 8}),
    FIXED: (("cls",), {"dynamic_img_size": False}),
}


@contextmanager
def stand_ins(patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Gives the names of the models that were loaded, in order.

    `FAR` cannot be loaded, unless with random weights. attnviz's own small models stand for
    themselves. What the page shares is empty before and after.
    """
    names: list[str] = []
    real = models.load

    def load(name, *, pretrained=True, checkpoint=None, **how):
        names.append(name if checkpoint is None else checkpoint)
        if checkpoint is not None:
            return real(name, checkpoint=checkpoint)
        if name == FAR and pretrained:
            raise BadWeights("The hub is far.")
        if name in own_weights.TRAINED:
            return real(name, pretrained=pretrained, **how)
        prefix, changes = STAND_INS.get(name, (("cls",), {}))
        vit = small_vit(prefix, **{"dynamic_img_size": True, **changes})
        return replace(vit, name=name, random=not pretrained)

    patch.setattr(models, "load", load)
    # All that the tests have imported is kept out already (see conftest): half of a visit's time.
    patch.setattr(cache, "keep_out_of_sweeps", lambda: None)
    st.cache_resource.clear()
    yield names
    st.cache_resource.clear()


def visit():
    return calm(AppTest.from_file(str(APP), default_timeout=60).run())


def calm(at):
    """The page, after it was made sure that nothing in it went wrong."""
    assert [element.value for element in at.exception] == []
    return at


def picker(at, key):
    """What a picker was given."""
    protos = [element.proto for element in at.get("bidi_component")]
    return json.loads(next(proto.json for proto in protos if proto.id.endswith(f"-{key}")))


def open_view(at, name):
    at.session_state.view = name
    calm(at.run())


def mosaic(at):
    """What the picture of all heads was given; the page comes back to the one map."""
    open_view(at, "heads")
    given = picker(at, "mosaic")
    open_view(at, "map")
    return given


def texts(at):
    return "\n".join(element.value for element in [*at.caption, *at.subheader, *at.warning])


def widget(at, label):
    """By its label: widgets that follow the picture or the query have keys that change."""
    kinds = (at.selectbox, at.pills, at.number_input)
    return next(each for kind in kinds for each in kind if each.label.split(" (")[0] == label)


def upload(at, name, data):
    return upload_all(at, {name: data})


def upload_all(at, files):
    """Several files that are dropped at once."""
    (uploader,) = at.file_uploader
    return calm(uploader.set_value([(*file, "image/png") for file in files.items()]).run())


def tray_of(at):
    """The names of what the tray holds, the oldest first."""
    kept = getattr(at.session_state, "tray", ())
    names = [held.name.strip("`") for held in kept]
    rows = [button.help for button in at.button if button.key.startswith("show-")]
    assert len(rows) == len(names)
    assert all(name in row for name, row in zip(reversed(names), rows, strict=True))
    return names


def press(at, what, name=""):
    """A button of the tray, `"show"` or `"remove"`, of the only or the named picture."""
    buttons = [each for each in at.button if each.key.startswith(f"{what}-")]
    kept = list(reversed(at.session_state["tray"]))
    (one,) = [b for b, held in zip(buttons, kept, strict=True) if name in held.name]
    return calm(one.click().run())


def png(size, colour="red"):
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def record_on(at):
    return cache.observations().find(at.session_state["seen"]).record


def choose_model(at, name):
    return calm(at.selectbox(key="model").set_value(name).run())


def states_of(at, *labels):
    ids = [widget(at, label).id for label in labels]
    return [state for state in at._tree.get_widget_states().widgets if state.id in ids]


def send_again(at, states):
    """Run the page as a browser does that has not yet heard of the newest values."""
    ids = {state.id for state in states}
    sent = at._tree.get_widget_states()
    fresh = [state for state in sent.widgets if state.id not in ids]
    del sent.widgets[:]
    sent.widgets.extend([*fresh, *states])
    calm(at._run(sent))
