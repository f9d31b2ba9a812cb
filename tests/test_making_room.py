"""What is kept makes room for a model that somebody chooses, where that is of any help."""

import weakref

import pytest
from page_visit import DISTILLED, SMALLER, stand_ins

from attnviz.errors import BadOption
from attnviz.ui import cache, room
from attnviz.ui.turns import Turns

GB = 2**30


@pytest.fixture
def crowded(monkeypatch):
    """Two records and a model are kept, and nothing is free while `held` says so."""
    with stand_ins(monkeypatch):
        kept = weakref.ref(cache.model(SMALLER, False))
        store = cache.Observations(GB, Turns(1, 1))
        store._kept.update(older=Kept(), newer=Kept())
        monkeypatch.setattr(cache, "observations", lambda: store)

        def full_while(held):
            for place in (cache, room):
                monkeypatch.setattr(place, "free_bytes", lambda: 0 if held(kept, store) else 4 * GB)

        monkeypatch.setattr(room, "budget", lambda: room.shared_out(8 * GB))
        yield full_while, kept, store


class Kept:
    """An observation of no size."""

    nbytes = 0


def test_an_old_record_goes_before_any_model(crowded):
    full_while, kept, store = crowded
    full_while(lambda kept, store: "older" in store._kept)
    cache.model(DISTILLED, False)
    assert [*store._kept] == ["newer"] and kept() is not None


def test_models_go_where_records_are_not_enough(crowded):
    full_while, kept, store = crowded
    full_while(lambda kept, store: kept() is not None)
    loaded = cache.model(DISTILLED, False)
    assert kept() is None and [*store._kept] == ["newer"]
    assert cache.model(DISTILLED, False) is loaded


def test_what_fits_in_no_case_costs_nobody_anything(crowded, monkeypatch):
    full_while, kept, store = crowded
    full_while(lambda kept, store: True)
    monkeypatch.setattr(room, "budget", lambda: room.shared_out(room.BASE + 150 * 10**6))
    with pytest.raises(BadOption, match=r"about 0\.2 GB, and 0 MB are free here"):
        cache.model(DISTILLED, False)  # 22 million parameters, twice
    assert kept() is not None and len(store._kept) == 2
