"""The address of the page: what a link brings back, what it cannot, and that it says what is shown."""

import os
from hashlib import sha256
from types import SimpleNamespace

import pytest
import streamlit as st
from page_visit import (
    APP,
    FAR,
    SHALLOW,
    calm,
    picker,
    png,
    record_on,
    stand_ins,
    texts,
    upload,
    widget,
)
from safetensors.torch import save_file
from streamlit.testing.v1 import AppTest

import attnviz
import models
from attnviz.errors import Busy
from attnviz.metrics import METRICS
from attnviz.samples import SAMPLES
from attnviz.ui import by_hand, cache, checkpoints, go_to
from attnviz.ui.address import SETTINGS
from attnviz.ui.run import Run
from attnviz.ui.settings import Settings


@pytest.fixture(autouse=True)
def _stand_ins(monkeypatch):
    with stand_ins(monkeypatch):
        yield


def follow(**params):
    """A first visit by a link."""
    at = AppTest.from_file(str(APP), default_timeout=60)
    for name, text in params.items():
        at.query_params[name] = text
    return calm(at.run())


def go_back(at, **params):
    """As the browser does, by its history."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "attnviz.ui.link.get_script_run_ctx",
            lambda: SimpleNamespace(is_history_navigation=True),
        )
        at.query_params.clear()
        for name, text in params.items():
            at.query_params[name] = text
        return calm(at.run())


def own(at, data):
    """What the address calls a picture of the visitor's: by its content and the visit's secret."""
    known = at.session_state["own_secret"] + sha256(data).hexdigest()
    return f"own-{sha256(known.encode()).hexdigest()[:8]}"


def said(at):
    """The address, as the page has it."""
    return {
        name: text[0] if isinstance(text, list) else text for name, text in at.query_params.items()
    }


# Each value is another one than at a first visit, and fits the small model on its first view.
LINKS = [
    {"view": "heads"},
    {"view": "numbers"},
    {"model": "digits"},
    {"random": "1"},
    {"size": "128"},
    {"fit": "squash"},
    {"method": "similarity"},
    {"layer": "1"},
    {"head": "max"},
    {"head": "2"},
    {"method": "rollout", "layers": "1-2"},
    {"method": "rollout", "fusion": "min"},
    {"method": "rollout", "residual": "0.25"},
    {"method": "rollout", "discard": "0.5", "discarded": "global"},
    {"method": "flow", "size": "256", "pool": "8"},
    {"method": "gradcam", "layer": "1"},
    {"method": "pca", "component": "1"},
    {"method": "value_weighted", "one_head": "2"},
    {"opacity": "0.25"},
    {"colours": "viridis"},
    {"smooth": "1"},
    {"scale": "shared"},
    {"clip": "1"},
    {"direction": "to"},
    {"view": "layers", "film_scale": "shared"},
    {"view": "mask", "mass": "0.5"},
    {"view": "methods", "methods": "rollout,similarity", "methods_scale": "rank"},
    {"view": "heads", "sort": "entropy", "highest": "1"},
    {"view": "stack", "see_through": "1"},
    {"view": "numbers", "metric": "entropy"},
    {"view": "numbers", "metric": "to_cls"},
    {"view": "methods", "methods": ""},
    {"view": "compare", "shown": "alike", "with_picture": "rocket"},
    {
        "view": "compare",
        "shown": "alike",
        "with_picture": "coffee",
        "with_query": "1-0",
        "asks": "there",
        "pairs": "3",
    },
    {"view": "compare", "both": "both", "with_picture": "astronaut"},
    {"view": "compare", "compare": "model", "with_model": "digits", "with_random": "1"},
    {"view": "compare", "compare": "size", "size": "128", "with_size": "256"},
    {"view": "compare", "compare": "query", "with_query": "0-1"},
    {"view": "export", "figure": "methods", "on_figure": "rollout,similarity"},
    {"view": "export", "figure": "numbers"},
    {"view": "export", "figure": "numbers", "numbers": "distance,to_cls", "file": "SVG"},
    {"view": "export", "figure": "numbers", "numbers": ""},
    {"view": "export", "venue": "cvpr-wide", "dpi": "600", "caption": "0", "original": "1"},
    {"view": "export", "figure": "layers", "width": "183", "file": "NPZ", "letters": "1"},
    {"view": "trust", "test": "insertion"},
    {"view": "export", "figure": "compared", "with_picture": "rocket"},
    {"view": "export", "figure": "compared", "compare": "query", "with_query": "0-1"},
    {"query": "mean"},
    {"query": "1-2"},
    {"picture": "coffee"},
    {"method": "relevance", "target": "class-1"},
    {"method": "relevance", "target": "sample-coffee"},
    {"method": "relevance", "query": "1-0", "target": "token-1-0"},
    {"view": "methods", "methods": "rollout,relevance", "target": "class-1"},
    {"method": "rollout", "without_sinks": "1", "without_itself": "1"},
]


@pytest.mark.parametrize("params", LINKS, ids=str)
def test_a_link_brings_back_what_it_says_and_stays_what_it_was(params):
    at = follow(**params)
    assert not at.error and not [info for info in at.info if "address" in info.value]
    # A target is said whichever it is, as each picture has its own likeliest class.
    expected = {"target": said(at)["target"], **params} if "target" in said(at) else params
    assert said(at) == expected
    for name, text in params.items():
        if name in SETTINGS:
            setting = SETTINGS[name]
            assert at.session_state[setting.key] == setting.read(text)
    assert said(calm(at.run())) == expected


def test_a_metric_of_a_token_that_the_model_has_not_is_the_first_one():
    at = follow(view="numbers", metric="to_reg9")
    assert "this model has no token `reg9`, of which a metric was named" in at.info[0].value
    assert not at.error and at.selectbox(key="metric").value == next(iter(METRICS))
    assert said(at) == {"view": "numbers"}


def test_every_setting_is_tried():
    tried = {name for link in LINKS for name in link} | {"checkpoint"}  # which needs a host's file
    assert tried == SETTINGS.keys() | {"picture", "query", "with_query", "target"}


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The host's, with one file for the model that reads digits."""
    (tmp_path / "mine").mkdir()
    weights = models.load("digits").module.state_dict()
    save_file(weights, tmp_path / "mine" / "own.safetensors")
    monkeypatch.setattr(checkpoints, "settings", lambda: Settings(checkpoints=tmp_path))
    return tmp_path


def test_a_link_names_a_file_of_weights_that_the_host_offers(folder):
    params = {"model": "digits", "checkpoint": "mine/own.safetensors"}
    at = follow(**params)
    assert record_on(at).weights == "Weights of the host's file mine/own.safetensors."
    assert not at.info and said(at) == params
    calm(at.selectbox(key="checkpoint").set_value(None).run())
    assert said(at) == {"model": "digits"}


@pytest.mark.parametrize("name", ["gone.safetensors", "../own.safetensors", "own.safetensors"])
def test_a_file_of_weights_that_is_not_there_leaves_the_model_its_own(folder, name):
    at = follow(model="digits", checkpoint=name)
    (info,) = at.info
    assert f"`{name}` is no file of weights that is offered here" in info.value
    assert "host's file" not in record_on(at).weights and not at.error
    assert said(at) == {"model": "digits"}


@pytest.mark.parametrize(
    ("becomes", "words"),
    [
        ("another", "The file `mine/own.safetensors` has changed: the new one is chosen."),
        ("gone", "The file `mine/own.safetensors` is gone: none is chosen."),
    ],
)
def test_a_file_of_weights_that_changes_under_an_open_page_is_said(folder, becomes, words):
    file, link = folder / "mine" / "own.safetensors", {"model": "digits"}
    at = follow(**link, checkpoint="mine/own.safetensors")
    if becomes == "gone":
        file.unlink()
    else:
        os.utime(file, ns=(1, 1))
        link["checkpoint"] = "mine/own.safetensors"
    calm(at.slider(key="alpha").set_value(0.25).run())
    assert [each.value for each in at.warning] == [words]
    assert ("host's file" in record_on(at).weights) == (becomes == "another")
    assert said(at) == {**link, "opacity": "0.25"}


def test_a_model_that_a_link_compares_with_is_the_one_that_is_seen():
    asked = {"view": "compare", "compare": "model", "with_model": FAR, "with_random": "1"}
    at = follow(**asked)
    assert said(at) == asked and not at.error
    other = "crossvit_9_240.in1k"  # in no list
    at = follow(**(asked | {"with_model": other}))
    assert at.selectbox(key="compare_model").value == other


def test_the_address_follows_the_last_run_even_where_one_before_it_was_cut_off():
    """What that one said reaches the browser after it had sent its own address with the next."""
    at = follow(view="mask")
    said_again, kind = [], type(st.query_params)
    real = kind.from_dict

    def from_dict(self, params):
        said_again.append(dict(params))
        real(self, params)

    at.session_state["link/said"] = {"view": "trust"}  # by the run that was cut off
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "from_dict", from_dict)
        calm(at.run())
        calm(at.run())
    assert said_again == [{"view": "mask"}]


@pytest.mark.parametrize(
    ("link", "key", "value"),
    [
        ({"compare": "query", "with_query": "1-2"}, "compare", "model"),
        (
            {"shown": "alike", "with_picture": "coffee", "with_query": "1-0"},
            "compare_picture",
            "sample/rocket",
        ),
    ],
)
def test_a_second_query_that_is_meant_no_more_is_said_at_no_time(link, key, value):
    at = follow(view="compare", **link)
    assert said(at) == {"view": "compare", **link}
    at.session_state[key] = value
    said_then, kind = [], type(st.query_params)
    real = kind.from_dict

    def from_dict(self, params):
        said_then.append(dict(params))
        real(self, params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "from_dict", from_dict)
        calm(at.run())
    assert len(said_then) == 1 and "with_query" not in said_then[0]


def test_own_pictures_are_called_otherwise_in_every_visit():
    """Who gets a link learns nothing of the picture, and no earlier address names another one."""
    names = set()
    for _ in range(2):
        at = follow()
        upload(at, "mine.png", png((96, 64)))
        names.add(said(at)["picture"])
    assert len(names) == 2
    assert not any(sha256(png((96, 64))).hexdigest().startswith(each[4:]) for each in names)


def test_a_method_that_one_model_lacks_is_back_with_the_next():
    at = follow(view="methods", methods="attention,similarity")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "attnviz.ui.methods_panel.offered_methods", lambda record: ("attention", "rollout")
        )
        calm(at.run())
        assert said(at)["methods"] == "attention"
    calm(at.run())
    assert said(at)["methods"] == "attention,similarity"


def test_a_kind_of_file_that_a_figure_is_not_written_as_is_the_first_one():
    at = follow(view="export", figure="numbers", numbers="entropy,to_reg9", file="NPZ")
    assert at.selectbox(key="export_format").value == "PNG"
    assert at.session_state["export_metrics"] == ["entropy"] and not at.error
    assert said(at) == {"view": "export", "figure": "numbers"}


def test_a_link_draws_the_map_that_it_names():
    at = follow(layer="1", head="2", query="1-2", picture="coffee")
    assert SAMPLES["coffee"].credit in texts(at)
    expected = record_on(at).layers[1].probs()[2, 1 + 1 * 3 + 2, 1:].tolist()
    drawn = [float(value) for row in picker(at, "map")["values"] for value in row]
    assert drawn == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize(
    ("params", "note"),
    [
        ({"view": "x"}, "`x` is no view"),
        ({"model": "../../etc/passwd"}, "`../../etc/passwd` is no model"),
        ({"model": "resnet50"}, "`resnet50` has no map"),
        ({"layer": "-1"}, "`-1` is no layer"),
        ({"layer": "1e3"}, "`1e3` is no layer"),
        ({"layer": "999999"}, "`999999` is no layer"),
        ({"layers": "3"}, "`3` is no layers"),
        ({"head": "inf"}, "`inf` is no head"),
        ({"opacity": "2"}, "`2` is no opacity"),
        ({"checkpoint": "../w.safetensors"}, "is no file of weights that is offered here"),
        ({"width": "49"}, "`49` is no width"),
        ({"width": "401"}, "`401` is no width"),
        ({"dpi": "200"}, "`200` is no dpi"),
        ({"venue": "nature"}, "`nature` is no venue"),
        ({"file": ".png"}, "`.png` is no file"),
        ({"numbers": "entropy,x"}, "`entropy,x` names 'x', which is none of them"),
        ({"layers": "2-0"}, "`2-0` is no layers"),
        ({"methods": "x" * 3900}, f"names '{'x' * 40}…', which is none of them"),
        ({"test": "random"}, "`random` is no test"),
        ({"opacity": "nan"}, "`nan` is no opacity"),
        ({"random": "yes"}, "`yes` is no random"),
        ({"methods": "rollout,x"}, "`rollout,x` names 'x', which is none of them"),
        ({"with_picture": "../x"}, "`../x` is no with_picture"),
        ({"component": "3"}, "`3` is no component"),
        ({"query": "9-9"}, "there is no patch in row 9, column 9 of 2 × 3"),
        ({"query": "reg1"}, "this model has no token `reg1`"),
        ({"query": "<b>"}, "`<b>` is no query"),
        ({"target": "class"}, "`class` is no target"),
        ({"method": "relevance", "target": "class-77"}, "no target class 77 for this picture"),
        ({"picture": "nobody"}, "`nobody` is no picture"),
        ({"picture": "own-1"}, "its picture (`own-1`) was somebody's own"),
        ({"picture": "own-x"}, "its picture (`own-x`) was somebody's own"),
        ({"__proto__": "1"}, "`__proto__` is nothing that a link can set"),
        ({"layer": "1" * 9000}, "is no layer"),
    ],
    ids=str,
)
def test_what_a_link_cannot_be_falls_back_with_a_note(params, note):
    at = follow(**params)
    (info,) = at.info
    assert note in info.value and len(info.value) < 300
    assert not at.error
    assert picker(at, "map")["values"]
    assert said(at).keys() <= {"method", "target"}
    # Something else is chosen, and the note goes.
    calm(at.slider(key="alpha").set_value(0.25).run())
    calm(at.run())
    assert not at.info


@pytest.mark.parametrize(
    ("picture", "note"),
    [
        ({}, "the picture that it compares with (`own-2`) was somebody's"),
        (
            {"picture": "own-1"},
            "its picture (`own-1`) and the picture that it compares with (`own-2`) were somebody's",
        ),
    ],
    ids=str,
)
def test_somebody_s_own_picture_to_compare_with_is_another_one_with_a_note(picture, note):
    at = follow(view="compare", with_picture="own-2", **picture)
    assert note in at.info[-1].value and not at.error
    # Where no picture is compared it has no say.
    at = follow(view="compare", compare="size", with_picture="own-2")
    assert not any("own-2" in info.value for info in at.info) and not at.error


@pytest.mark.parametrize(
    "where", [{}, {"view": "heads"}, {"method": "rollout"}, {"method": "pca"}], ids=str
)
def test_a_layer_or_a_head_that_the_model_lacks_is_said_and_not_kept(where):
    at = follow(layer="3", head="3", layers="1-5", one_head="7", **where)
    (info,) = at.info
    assert info.value.endswith(
        "there is no layer 3: this model has layers 0 to 2;"
        " there is no layer 5: this model has layers 0 to 2;"
        " there is no head 3: this model has heads 0 to 2;"
        " there is no head 7: this model has heads 0 to 2."
    )
    assert said(at) == where and not at.error
    at = follow(layer="2", head="2", layers="0-2", one_head="2")
    assert not at.info and at.session_state["head"] == 2


def test_a_size_that_the_model_lacks_is_said_where_it_is_chosen():
    at = follow(size="77")
    assert "You chose 77 px; this model has no such size" in texts(at)
    assert not at.error


def test_a_grid_that_patches_cannot_be_pooled_to_is_said():
    at = follow(method="flow", size="256", pool="28", methods="rollout,rollout")
    assert "You chose to pool to 28 a side; this grid" in texts(at)
    assert said(at)["methods"] == "rollout"
    assert not at.error


def test_what_was_chosen_is_said_before_the_model_runs_for_it():
    at = follow(query="1-2", layer="1")
    seen, real = [], cache.observe

    def observe(*given, **options):
        seen.append(st.query_params.to_dict())
        return real(*given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "observe", observe)
        calm(widget(at, "Sample").set_value("coffee").run())
        # The same patch asks on the other picture.
        assert seen == [{"picture": "coffee", "query": "1-2", "layer": "1"}]
        calm(at.slider(key="layer").set_value(2).run())  # without a pass
    assert len(seen) == 1 and said(at) == {"picture": "coffee", "query": "1-2"}


def test_a_model_out_of_reach_leaves_the_first_one():
    at = follow(model="vit_small_patch16_224.dino")
    assert "stays with DINOv2 ViT-S/14" in at.error[0].value
    assert picker(at, "map")["values"]


def test_a_link_that_cannot_be_shown_yet_is_not_measured_against_what_is():
    at = follow(model=SHALLOW)
    asked = {"picture": "coffee", "layer": "1", "head": "2", "query": "1-2"}
    with pytest.MonkeyPatch.context() as patch:

        def busy(run, *wish):
            raise Busy("Others wait.")

        patch.setattr(Run, "observe", busy)
        go_back(at, **asked)
        assert at.error[0].value == "Others wait."
        assert [info.value for info in at.info] == ["Below is still the last result."]
        calm(at.slider(key="alpha").set_value(0.25).run())
    calm(at.slider(key="alpha").set_value(0.5).run())
    assert said(at) == asked and not at.info and not at.error


def test_a_second_query_is_of_the_view_that_the_link_leads_to():
    at = follow()
    for name, size in (("tall.png", (16, 96)), ("wide.png", (96, 16))):
        upload(at, name, png(size))
    tall, wide = (own(at, png(size)) for size in ((16, 96), (96, 16)))
    alike = {"view": "compare", "shown": "alike", "picture": wide, "with_picture": tall}
    go_back(at, **alike, with_query="5-0")
    assert said(at) == {**alike, "with_query": "5-0"} and not at.info
    # Another picture to compare with: a place in the last one asks no more.
    calm(at.selectbox(key="compare_picture").set_value("sample/coffee").run())
    assert "with_query" not in said(at)
    at = follow(view="compare", compare="query", with_query="1-2")
    at.session_state["compare"], at.session_state["compare_shown"] = "picture", "alike"
    calm(at.run())
    assert said(at).keys() == {"view", "shown", "with_picture"}


def test_a_head_that_was_gone_back_from_is_opened_again_in_its_own_layer():
    """What is forgotten is not taken for what was shown, were it the same."""
    at = follow(view="heads")
    for _ in range(3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(go_to, "st", SimpleNamespace(session_state=at.session_state))
            patch.setattr(by_hand, "st", SimpleNamespace(session_state=at.session_state))
            go_to.go_to_head(1, 2)
        calm(at.run())
        assert said(at) == {"layer": "1", "head": "2"}
        assert "layer 1 (of 3, counted from 0), head 2" in texts(at)
        go_back(at, view="heads")
        assert said(at) == {"view": "heads"}


def test_a_method_is_opened_with_its_usual_options():
    chosen = {"layer": "1", "head": "2", "direction": "to"}
    others = {"one_head": "1", "discard": "0.5", "fusion": "max"}
    at = follow(view="methods", residual="0.25", layers="1-2", **others, **chosen)
    kept = {"one_head": "1"}  # of another method
    for method, left in (("rollout", {"method": "rollout"} | chosen | kept), ("attention", kept)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(go_to, "st", SimpleNamespace(session_state=at.session_state))
            patch.setattr(by_hand, "st", SimpleNamespace(session_state=at.session_state))
            go_to.go_to_method(method)
        calm(at.run())
        assert said(at) == left
        heat = attnviz.explain(record_on(at), method)
        assert picker(at, "map")["values"] == [[f"{v:.3g}" for v in row] for row in heat.values]


@pytest.mark.parametrize("view", ["layers", "heads", "map"])
def test_a_target_is_kept_where_it_is_not_shown(view):
    link = {"view": view} if view != "map" else {}
    at = follow(**link, method="relevance", target="class-1")
    assert said(at) == {**link, "method": "relevance", "target": "class-1"}


def test_a_picture_compared_with_itself_is_said_to_be_another_one():
    at = follow(view="compare", picture="coffee", with_picture="coffee")
    assert any("cannot be compared with this" in info.value for info in at.info)
    assert said(at)["with_picture"] != "coffee"


def test_a_target_that_nothing_uses_is_not_kept_for_later():
    at = follow(target="class-2")
    assert said(at) == {}
    at.session_state["method"] = "relevance"
    calm(at.run())
    assert said(at)["target"] != "class-2"


def test_what_has_no_say_in_a_comparison_is_not_in_the_address():
    at = follow(view="compare")
    assert said(at).keys() == {"view", "with_picture"}
    for kind, keys in (("model", {"with_model", "with_random"}), ("size", {"with_size"})):
        at.session_state["compare"] = kind
        calm(at.run())
        assert said(at).keys() == {"view", "compare"} | keys
    at.session_state["view"] = "map"
    calm(at.run())
    assert said(at) == {}


def test_a_long_value_is_read_whole():
    at = follow(view="methods", methods="rollout," * 50 + "similarity")
    assert said(at) == {"view": "methods", "methods": "rollout,similarity"} and not at.info


def test_an_upload_is_own_in_the_address():
    at = follow()
    upload(at, "mine.png", png((96, 64)))
    assert said(at) == {"picture": own(at, png((96, 64)))}
    calm(widget(at, "Sample").set_value("coffee").run())
    assert said(at) == {"picture": "coffee"}


def test_one_s_own_pictures_come_back_by_their_names():
    at = follow()
    for name, colour in (("one.png", "red"), ("two.png", "blue")):
        upload(at, name, png((96, 64), colour))
    one, two = (own(at, png((96, 64), colour)) for colour in ("red", "blue"))
    assert said(at) == {"picture": two}
    go_back(at, picture=one)
    assert "`one.png`**, 96 × 64" in texts(at) and not at.info
    go_back(at, picture="own-9")
    assert "`one.png`" in texts(at)


def test_a_picture_that_no_link_can_carry_leaves_the_other_one_what_it_was():
    first, second = list(SAMPLES)[:2]
    at = follow(view="compare", picture="own-1", with_picture=first)
    assert said(at) == {"view": "compare", "picture": second, "with_picture": first}
    (info,) = at.info
    assert "`own-1`" in info.value and first not in info.value


def test_a_patch_goes_on_asking_on_another_picture_and_the_page_says_so():
    at = follow(query="1-2")
    upload(at, "mine.png", png((96, 64)))
    assert said(at) == {"picture": own(at, png((96, 64))), "query": "1-2"}
    assert picker(at, "patches")["chosen"] == [1, 2]
    assert "The patch in row 1, column 2 goes on asking, as on the last picture." in texts(at)
    calm(at.slider(key="alpha").set_value(0.25).run())
    assert "goes on asking" in texts(at)
    calm(widget(at, "Column").set_value(0).run())
    assert "goes on asking" not in texts(at)
    calm(widget(at, "Column").set_value(2).run())
    upload(at, "pole.png", png((16, 64)))  # of one column
    assert "query" not in said(at)
    assert "none there, so the class token asks." in texts(at)


def test_what_the_tray_was_compared_with_is_in_the_address():
    at = follow(view="compare")
    for name, colour in (("one.png", "red"), ("two.png", "blue")):
        upload(at, name, png((96, 64), colour))
    other = at.session_state.tray[0].digest
    calm(at.selectbox(key="compare_picture").set_value(f"own/{other}").run())
    assert said(at)["with_picture"] == own(at, png((96, 64), "red"))


def test_a_smaller_model_gone_back_to_lacks_no_layer_that_nobody_chose():
    at = follow(model="digits")
    calm(at.slider(key="layer").set_value(3).run())
    calm(at.slider(key="layer").set_value(2).run())
    at.session_state["layer"] = 3
    go_back(at)
    assert not at.info and at.slider(key="layer").max == 2
