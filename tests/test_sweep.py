"""What lives when a model is loaded is not swept after each run, and is swept at the next."""

import gc
import weakref

import pytest

from attnviz.ui import cache
from attnviz.ui.sweep import keep_out_of_sweeps


class Part:
    """One of two that know each other, as modules of a model may."""

    def __init__(self):
        self.other = self


@pytest.fixture(autouse=True)
def as_before():
    yield
    gc.freeze()


def test_a_loaded_model_is_out_of_the_sweeps():
    cache.model.clear()
    gc.unfreeze()
    cache.model("digits", False)
    assert gc.get_freeze_count() > 100_000  # torch alone has as many
    cache.model.clear()


def test_what_is_let_go_afterwards_goes_with_the_next():
    part = Part()
    alive = weakref.ref(part)
    keep_out_of_sweeps()
    del part
    gc.collect()
    assert alive() is not None
    keep_out_of_sweeps()
    assert alive() is None
