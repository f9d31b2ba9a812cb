"""What names of files and of panels say was chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

import attnviz
from attnviz.explanation import Explanation
from attnviz.export import file_stem
from attnviz.facts import USUAL
from attnviz.figure import escaped, latex
from attnviz.film_export import film_stem
from attnviz.methods import METHODS
from attnviz.paper import Paper
from attnviz.plate_export import plate_stem
from attnviz.row import Row, board_of_row
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


# --- what names leave out -----------------------------------------------------------------------


def told_of(*every) -> str:
    """What the captions of such a row say, if all of them say it."""
    row = Row(tuple(map_of(**options) for options in every))
    apart = "; ".join(row.apart)
    printed = " ".join(board_of_row(row, Paper()).caption)
    assert apart in printed and apart in row.summary and escaped(apart) in latex(row, "a.pdf")
    return apart


def test_captions_tell_what_differs_and_names_leave_out():
    one, other = {"layer": 0, "head": 0, "query": "cls"}, {"layer": 1, "head": 1, "query": (1, 2)}
    assert names_of(one, other) == ("layer 0, head 0", "layer 1, head 1")
    asker = map_of(**other).fact("query")
    first, last = (
        f"layer {layer}, head {layer}: layer {layer} (of 2, counted from 0)" for layer in (0, 1)
    )
    asked = f"{first}, query: class token; {last}, query: {asker}"
    assert told_of(one, other) == asked
    turned = f"{first}, direction: from, query: class token; {last}, direction: to, query: {asker}"
    assert told_of(one, other | {"direction": "to"}) == turned


def test_captions_tell_the_layer_of_each_of_several_methods():
    every = [{"method": name} for name in ("attention", "rollout", "value_weighted")]
    layer = "layer 1 (of 2, counted from 0)"
    with_values = record_of(random_maps(2, 3, 7), ("cls",), (2, 3))
    heats = tuple(attnviz.explain(with_values, **options) for options in every[:2])
    weighted = replace(map_of(), title="Value-weighted", facts=(("layer", layer[6:]), *map_of().facts[-6:]))  # fmt: skip
    assert Row((*heats, weighted)).apart == (
        f"Attention: {layer}, head fusion: mean",
        "Attention rollout: head fusion: mean, residual: 0.5, first layer 0 (of 2, counted from 0),"
        " last layer 1 (of 2, counted from 0)",
        f"Value-weighted: {layer}",
    )


def test_captions_tell_no_usual_direction_beside_a_map_that_nobody_asks_for():
    whole = replace(map_of(), title="Feature PCA", facts=())
    assert not any("direction" in words for words in Row((map_of(), whole)).apart)


def test_maps_that_differ_in_an_option_alone_are_named_by_it():
    alike = {"method": "rollout"}
    assert names_of(alike | {"residual": 0.5}, alike | {"residual": 0.9}) == ("residual 0.5", "residual 0.9")  # fmt: skip
    assert names_of(alike, alike | {"first_layer": 1}) == ("first layer 0", "first layer 1")
    told = [f"first layer {layer} (of 2, counted from 0)" for layer in (0, 1)]
    names = ("residual 0.5, first layer 0", "residual 0.9, first layer 1")
    expected = "; ".join(f"{name}: {words}" for name, words in zip(names, told, strict=True))
    assert told_of(alike, alike | {"first_layer": 1, "residual": 0.9}) == expected


def test_captions_of_a_row_with_names_tell_the_methods_and_other_weights():
    heats = map_of(), map_of(method="rollout", residual=0.9)
    first, second = Row(heats, ("left", "right")).apart
    assert first.startswith("left: Attention, ") and "residual: 0.9" in second
    trained = replace(map_of(), facts=tuple((name, "b.pt" if name == "weights" else value) for name, value in map_of().facts))  # fmt: skip
    assert Row((map_of(), trained)).apart[1].endswith("weights: b.pt")
    third = replace(map_of(), facts=tuple((name, "other" if name == "model" else value) for name, value in map_of().facts))  # fmt: skip
    told = Row((map_of(), trained, third)).apart  # the model's name tells only the third
    assert told[1].endswith("weights: b.pt") and "weights" in told[0] and "weights" not in told[2]
