"""What the page's address can say: names of settings, their plain values, and their defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from attnviz.colour import COLORMAPS
from attnviz.mass import MASS
from attnviz.methods import METHODS
from attnviz.methods.fusion import HEAD_FUSIONS
from attnviz.methods.options import COMPONENTS
from attnviz.metrics import METRICS
from attnviz.samples import SAMPLES
from attnviz.tokens import Query
from attnviz.ui import (
    alike_panel,
    compare_panel,
    export_panel,
    layers_panel,
    methods_panel,
    pair,
    plate_panel,
    trust_panel,
)
from attnviz.ui.checkpoints import Checkpoint, checkpoint_folder, checkpoints
from attnviz.ui.figure_files import FORMATS
from attnviz.ui.has_a_say import (
    compares,
    compares_by,
    compares_pictures_on_screen,
    on_export,
    on_stack,
    on_trust,
    shows_alike,
)
from attnviz.ui.head_choice import ADDED
from attnviz.ui.look_panel import ALPHA, SCALE_WORDS
from attnviz.ui.method_panel import DIRECTIONS
from attnviz.ui.model_panel import FIT_WORDS
from attnviz.ui.offered import is_offered, offered
from attnviz.ui.other_side import KINDS
from attnviz.ui.ranking import LAYERS, OFFERED
from attnviz.ui.readers import (
    bit,
    count,
    number,
    one_of,
    several,
    span,
    switch,
    two,
    two_counts,
    word_or_count,
)
from attnviz.ui.target_panel import Wish
from attnviz.ui.tray import digest_of, mark_of
from attnviz.ui.views import VIEWS
from models.timm_names import why_no_map

OWN = "own-"
"""Before the mark of a picture of the visitor's, which no link can carry to somebody else."""

MODEL_S_OWN = object()
"""A default that every model has for itself."""


@dataclass(frozen=True)
class Setting:
    """One widget's value in the address."""

    key: str
    """Under which the session keeps it."""
    read: Callable[[str], Any]
    """From the address; raises ValueError for what it cannot be, with the reason if there is one
    that not everybody knows."""
    default: Any
    """What is not written."""
    write: Callable[[Any], str] = str
    counts: Callable[[], bool] = lambda: True
    """Whether it has a say in what is chosen now."""


def _model(text: str) -> str:
    if is_offered(text):
        return text
    raise ValueError(text, *([f"has no map: {why}"] if (why := why_no_map(text)) else []))


def _checkpoint(text: str) -> Checkpoint:
    """One of the files that the host offers now, by its name."""
    folder = checkpoint_folder()
    for file in [] if folder is None else checkpoints(folder):
        if file.name == text:
            return file
    raise ValueError(text, "is no file of weights that is offered here")


def _component(text: str) -> str | int:
    return text if text == "all" else count(COMPONENTS - 1)(text)


def _metric(text: str) -> str:
    """One of all models', or of a prefix token that some have."""
    return text if re.fullmatch(r"to_[a-z]{1,9}[0-9]{0,3}", text) else one_of(METRICS)(text)


def _dpi(text: str) -> int:
    return int(one_of([str(dpi) for dpi in export_panel.DPI])(text))


def own_picture(text: str) -> str | None:
    """The digest of the visitor's own picture that the address names; None for a sample's name.

    Raises ValueError where the tray has it no longer.
    """
    if not text.startswith(OWN):
        return None
    digest = digest_of(text.removeprefix(OWN))
    if digest is None:
        raise ValueError(text)
    return digest


def _other_sample(text: str) -> str:
    digest = own_picture(text)
    return f"sample/{one_of(SAMPLES)(text)}" if digest is None else f"own/{digest}"


def _sample_name(chosen: str) -> str:
    kind, _, name = chosen.partition("/")
    return name if kind == "sample" else f"{OWN}{mark_of(name)}"


def _choice(
    key: str,
    values: Collection[str],
    default: Any,
    counts: Callable[[], bool] = lambda: True,
) -> Setting:
    return Setting(key, one_of(values), default, counts=counts)


def _default(method: str, option: str) -> Any:
    return METHODS[method].options[option].default


SETTINGS: Mapping[str, Setting] = {
    "view": _choice("view", VIEWS, next(iter(VIEWS))),
    "model": Setting("model", _model, offered()[0]),
    "checkpoint": Setting("checkpoint", _checkpoint, None, attrgetter("name")),
    "random": Setting("random", switch, False, bit),
    "size": Setting("side", count(), MODEL_S_OWN),
    "fit": _choice("fit", FIT_WORDS, MODEL_S_OWN),
    "method": _choice("method", METHODS, "attention"),
    "layer": Setting("layer", count(), MODEL_S_OWN),
    "head": Setting("head", word_or_count(HEAD_FUSIONS), _default("attention", "head_fusion")),
    "direction": _choice("direction", DIRECTIONS, _default("attention", "direction")),
    "layers": Setting("span", span, MODEL_S_OWN, two),
    "fusion": _choice("fusion", HEAD_FUSIONS, _default("rollout", "head_fusion")),
    "residual": Setting("residual", number(0, 1), _default("rollout", "residual"), "{:g}".format),
    "discard": Setting(
        "discard_ratio", number(0, 0.95), _default("rollout", "discard_ratio"), "{:g}".format
    ),
    "discarded": _choice(
        "discard", METHODS["rollout"].options["discard"].choices, _default("rollout", "discard")
    ),
    "pool": Setting("pool", count(), _default("flow", "pool")),
    "one_head": Setting("one_head", count(), ADDED),
    "component": Setting("component", _component, "all"),
    "opacity": Setting("alpha", number(0, 1), ALPHA, "{:g}".format),
    "colours": _choice("colormap", COLORMAPS, next(iter(COLORMAPS))),
    "smooth": Setting("smooth", switch, False, bit),
    "scale": _choice("scale", SCALE_WORDS, "own"),
    "clip": Setting("clip", switch, False, bit),
    "film_scale": _choice(
        "film_scale", layers_panel.SCALE_WORDS, next(iter(layers_panel.SCALE_WORDS))
    ),
    "methods": Setting("methods", several(one_of(METHODS)), [*methods_panel.FIRST], ",".join),
    "methods_scale": _choice("methods_scale", methods_panel.SCALE_WORDS, "own"),
    "sort": _choice("sort", (LAYERS, *OFFERED), LAYERS),
    "highest": Setting("sort_high", switch, False, bit),
    "see_through": Setting("stack/see_through", switch, False, bit, on_stack),
    "metric": Setting("metric", _metric, next(iter(METRICS))),
    "mass": Setting("mass", number(0.05, 0.95), MASS, "{:g}".format),
    "without_sinks": Setting("without_sinks", switch, False, bit),
    "without_itself": Setting("without_itself", switch, False, bit),
    "figure": _choice("export_what", plate_panel.KINDS, "map", on_export),
    "compare": _choice("compare", KINDS, next(iter(KINDS)), compares),
    "shown": _choice("compare_shown", compare_panel.SHOWN, "maps", compares_pictures_on_screen),
    "both": _choice("compare_scale", pair.SCALE_WORDS, "own", compares),
    "pairs": Setting("alike_pairs", count(alike_panel.MOST), alike_panel.FEW, counts=shows_alike),
    "asks": _choice("alike/asks", alike_panel.SIDES, "here", shows_alike),
    "with_picture": Setting(
        "compare_picture", _other_sample, None, _sample_name, compares_by("picture")
    ),
    "with_model": Setting("compare_model", _model, None, counts=compares_by("model")),
    "with_random": Setting("compare_random", switch, None, bit, compares_by("model")),
    "with_size": Setting("compare_side", count(), None, counts=compares_by("size")),
    "on_figure": Setting(
        "export_methods",
        several(one_of(plate_panel.FREE)),
        [*plate_panel.USUAL],
        ",".join,
        on_export,
    ),
    "numbers": Setting(
        "export_metrics", several(_metric), [*plate_panel.NUMBERS], ",".join, on_export
    ),
    "file": _choice("export_format", FORMATS, next(iter(FORMATS)), on_export),
    "venue": _choice("export_venue", export_panel.VENUE_WORDS, export_panel.FREE, on_export),
    "width": Setting(
        "export_width",
        count(most=export_panel.WIDEST, least=export_panel.NARROWEST),
        export_panel.USUAL_WIDTH,
        counts=on_export,
    ),
    "dpi": Setting("export_dpi", _dpi, export_panel.USUAL_DPI, counts=on_export),
    "caption": Setting("export_words", switch, True, bit, on_export),
    "letters": Setting("export_letters", switch, False, bit, on_export),
    "original": Setting("export_original", switch, False, bit, on_export),
    "test": _choice(
        "trust_mode", trust_panel.MODE_WORDS, next(iter(trust_panel.MODE_WORDS)), on_trust
    ),
}
"""Name in the address → setting. What is neither here nor a picture, a query or a target cannot be
set by a link."""


def query_of(text: str) -> Query:
    """A patch as row-column, or a token's name; whether there is such a one is seen later."""
    if re.fullmatch(r"[0-9]{1,4}-[0-9]{1,4}", text):
        return two_counts(text)
    if not re.fullmatch(r"[a-z]{1,9}[0-9]{0,3}", text):
        raise ValueError(text)
    return text


def target_of(text: str) -> Wish | None:
    """A target as its kind and what it names; "" for none."""
    if not text:
        return None
    kind, _, what = text.partition("-")
    match kind:
        case "class":
            return "class", count(99_999)(what)
        case "token":
            return "token", query_of(what)
        case "sample":
            return "sample", one_of(SAMPLES)(what)
    raise ValueError(text)
