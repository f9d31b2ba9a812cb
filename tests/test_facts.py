"""What names of files and of panels say was chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

import attnviz
from attnviz.explanation import Explanation
from attnviz.export import file_stem
from attnviz.facts import USUAL
from attnviz.film_export import film_stem
from attnviz.methods import METHODS
from attnviz.plate_export import plate_stem
from attnviz.row import Row
from tests.test_methods import random_maps, record_of

RECORD = record_of(random_maps(2, 3, 7), ("cls",), (2, 3))
HERE = "by-hand_attention_layer-1"


def map_of(**options) -> Explanation:
    return attnviz.explain(RECORD, **options)


def names_of(*every) -> tuple[str, ...]:
    return Row(tuple(map_of(**options) for options in every)).names


@pytest.mark.parametrize(
    ("options", "stem"),
    [
        ({}, f"{HERE}_query-class-token"),
        ({"direction": "to"}, f"{HERE}_direction-to_query-class-token"),
        ({"head_fusion": "max"}, f"{HERE}_head-fusion-max_query-class-token"),
        ({"head": 2, "direction": "to"}, f"{HERE}_head-2_direction-to_query-class-token"),
        ({"method": "rollout", "head_fusion": "min"}, "by-hand_attention-rollout_head-fusion-min_query-class-token"),
    ],
)  # fmt: skip
def test_a_map_s_file_is_named_after_what_was_chosen(options, stem):
    assert file_stem(map_of(**options)) == stem


def test_a_film_s_file_and_a_row_s_are_named_alike():
    film = attnviz.film(RECORD, head_fusion="max", direction="to")
    chosen = "head-fusion-max_direction-to_query-class-token"
    assert film_stem(film) == f"by-hand_attention_layers_{chosen}"
    row = Row(tuple(map_of(layer=layer, head_fusion="max", direction="to") for layer in (0, 1)))
    assert plate_stem(row) == f"layer-0-beside-layer-1_by-hand_attention_{chosen}"


def test_maps_are_told_apart_by_fusion_and_direction():
    assert names_of({"head_fusion": "mean"}, {"head_fusion": "max"}) == (
        "head fusion mean",
        "head fusion max",
    )
    assert names_of({"direction": "to"}, {"direction": "from"}) == (
        "direction to",
        "direction from",
    )
    assert names_of({"head": 1}, {"head_fusion": "mean"}) == ("head 1", "head fusion mean")
    # What nobody asks for, as features, has no direction.
    whole = replace(map_of(), title="Feature PCA", facts=())
    assert Row((map_of(direction="to"), whole)).names == ("Attention", "Feature PCA")


def test_what_is_usual_is_every_method_s_default():
    checked = set()
    for method in METHODS.values():
        for name, option in method.options.items():
            if (fact := name.replace("_", " ")) in USUAL:
                assert option.default == USUAL[fact]
                checked.add(fact)
    assert checked == USUAL.keys()
