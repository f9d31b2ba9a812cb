"""What a visit holds: no widget that was ever drawn keeps a record, a model or a picture alive."""

import gc
from types import FunctionType, ModuleType

import numpy as np
import pytest
import torch
from page_visit import calm, open_view, stand_ins, visit
from PIL import Image

from attnviz.ui.observation import Observation
from attnviz.ui.views import VIEWS


@pytest.fixture
def page(monkeypatch):
    with stand_ins(monkeypatch):
        yield visit()


def is_heavy(thing):
    """Cells of one grid are light, as a map is; the tiles of all heads are not."""
    if isinstance(thing, np.ndarray):
        return thing.ndim > 2
    return isinstance(thing, (Observation, torch.nn.Module, torch.Tensor, Image.Image))


def held_by(thing):
    """The heavy objects that can be reached; a function's module is not its own."""
    seen, left = set(), [thing]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, (type, ModuleType)):
            continue
        seen.add(id(one))
        if is_heavy(one):
            yield one
        elif isinstance(one, FunctionType):
            left += [one.__closure__, one.__defaults__, one.__kwdefaults__]
        else:
            left += gc.get_referents(one)


def heavy(at):
    """Each widget's key, with the kinds of heavy objects that what Streamlit keeps of it holds."""
    widgets = at._session_state._state._new_widget_state.widget_metadata
    found = {key: {type(one).__name__ for one in held_by(kept)} for key, kept in widgets.items()}
    assert widgets
    return {key: kinds for key, kinds in found.items() if kinds}


def test_what_streamlit_keeps_of_widgets_is_light(page):
    for view in VIEWS:
        open_view(page, view)
    page.session_state.method = "relevance"
    open_view(page, "map")
    page.session_state.compare_shown = "alike"
    open_view(page, "compare")
    calm(page)
    assert heavy(page) == {}
