"""A figure made again from its manifest: read with suspicion, checked, and computed anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from PIL import Image

from attnviz.again import options_from
from attnviz.contract import LoadedViT
from attnviz.errors import BadOption
from attnviz.explain import Explanation, explain, observe
from attnviz.figure import Figure
from attnviz.film import film
from attnviz.manifest_shape import fits
from attnviz.metrics import head_metrics
from attnviz.plates import beside, heads
from attnviz.plot_export import MetricPlot
from attnviz.record import AttentionRecord
from attnviz.target import Target, similarity_to
from attnviz.tokens import Query
from attnviz.trace import FORMAT, other_versions, picture_sum, seal_of, weights_sum

LARGEST = 4_000_000
"""Bytes of a manifest, at most."""

SEEING = frozenset({"fit", "keep", "target"})
"""Of an origin: how a picture is seen, by whichever model."""

Load = Callable[[Mapping[str, Any]], LoadedViT]
"""Loads the model of an origin."""


def read_manifest(content: bytes, name: str) -> dict[str, Any]:
    """The manifest in a file, as it was written.

    Raises BadOption for a file that is none, one of another format, one that was edited, and one of
    a figure that takes more than names to compute.
    """
    try:
        said = json.loads(content) if len(content) <= LARGEST else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or said.get("made_by") != "attnviz":
        raise _none(name)
    written = said.get("format")
    if type(written) is not int or written != FORMAT:
        raise BadOption(
            f"{name} is a manifest of format {repr(written)[:40]}, and {FORMAT} is read here: use"
            " the attnviz that wrote it."
        )
    if said.get("seal") != seal_of(said):
        raise BadOption(
            f"{name} was edited since it was written: its seal does not fit. Take the manifest as"
            " it was, or ask for another figure on the command line."
        )
    if "again" in said and said["again"] is None:
        raise BadOption(
            f"{name} is of a figure that takes more than names to compute, as curves, or a map of a"
            " module of your own or of a ready tensor: make it again as it was made."
        )
    if not fits(said):
        raise _none(name)
    return said


def _none(name: str) -> BadOption:
    return BadOption(
        f"{name} is no manifest of attnviz's: give the one beside the figure, or the figure itself."
    )


def require_versions(said: Mapping[str, Any]) -> None:
    """BadOption where something that draws or computes is of another version here."""
    others = other_versions(said["versions"])
    if others:
        raise BadOption(
            f"The figure was made with {', '.join(others)}: its bytes may come out otherwise."
            " Install these versions, or say --nearly."
        )


def drawing_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """The options that the figure was drawn with."""
    return options_from(said["again"]["options"])


def remake(said: Mapping[str, Any], pictures: Sequence[Image.Image], load: Load) -> Figure:
    """The figure of a manifest that `read_manifest` gave, from these pictures, in any order.

    Raises BadOption for a picture that is missing or has changed, or weights that are others.
    """
    return next(remake_each([said], pictures, load))


def remake_each(
    told: Sequence[Mapping[str, Any]], pictures: Sequence[Image.Image], load: Load
) -> Iterator[Figure]:
    """The same of several manifests, one after the other; a model is loaded once for all."""
    maker = _Maker({picture_sum(image): image for image in pictures}, load)
    for said in told:
        maker.forget_all_but(said["again"]["maps"])
        yield _made(said, maker)


def _made(said: Mapping[str, Any], maker: _Maker) -> Figure:
    maps = said["again"]["maps"]
    match said["kind"]:
        case "map":
            return maker.map(maps[0])
        case "row":
            return beside([maker.map(each) for each in maps], said["again"]["names"])
        case "film":
            shown, (method, query, options) = maps[0], _asked(maps[0])
            made = film(maker.record(shown), method, query=query, **options)
            return made if _name(shown) is None else made.named(_name(shown) or "")
        case "heads":
            grid = heads(maker.record(maps[0]), query=_query(maps[0]["query"]))
            return grid if _name(maps[0]) is None else grid.named(_name(maps[0]) or "")
        case "metrics":
            metrics = head_metrics(maker.record(maps[0]))
            name = _name(maps[0])
            metrics = metrics if name is None else metrics.named(name)
            return MetricPlot(metrics, tuple(said["again"]["metrics"]))
    raise BadOption(
        f"There is no figure of the kind {said['kind']!r}: use the attnviz of its time."
    )


def _name(shown: Mapping[str, Any]) -> str | None:
    name: str | None = shown["picture"]["name"]
    return name


def _query(plain: Any) -> Query:
    return plain if isinstance(plain, str) else (int(plain[0]), int(plain[1]))


def _asked(shown: Mapping[str, Any]) -> tuple[str, Query, dict[str, Any]]:
    return shown["method"], _query(shown["query"]), dict(shown["options"])


def _way_out(origin: Mapping[str, Any]) -> str:
    """What to do where the weights that were loaded are others."""
    if origin["checkpoint"] is not None:
        return "Give them as --checkpoint FILE."
    others = (
        "What is published under that name has changed since"
        if origin["seed"] is None
        else "Random ones of that seed come out otherwise here"
    )
    return f"{others}: ask for the figure anew on the command line."


def _key(shown: Mapping[str, Any]) -> str:
    """What maps of one record have in common."""
    return json.dumps([shown["from"], shown["picture"]["sha256"]], sort_keys=True)


class _Maker:
    """Computes maps; a model is loaded once, and a record of several maps observed once."""

    def __init__(self, pictures: Mapping[str, Image.Image], load: Load) -> None:
        self.pictures, self.load = pictures, load
        self.models: dict[str, LoadedViT] = {}
        self.records: dict[str, AttentionRecord] = {}

    def map(self, shown: Mapping[str, Any]) -> Explanation:
        method, query, options = _asked(shown)
        heat = explain(self.record(shown), method, query=query, **options)
        name = _name(shown)
        return heat if name is None else heat.named(name)

    def forget_all_but(self, maps: Sequence[Mapping[str, Any]]) -> None:
        """Let go of what was observed for others than these: of many figures it is too much."""
        wanted = [_key(shown) for shown in maps]
        self.records = {key: self.records[key] for key in wanted if key in self.records}

    def record(self, shown: Mapping[str, Any]) -> AttentionRecord:
        origin, sum_ = shown["from"], shown["picture"]["sha256"]
        key = _key(shown)
        if key not in self.records:
            named = "" if (name := _name(shown)) is None else f", {name}"
            image = self._picture(sum_, f"the figure's picture{named}")
            vit = self._model(origin)
            how = {"fit": origin["fit"], "keep": origin["keep"]}
            target = self._target(origin["target"], vit, how)
            self.records[key] = observe(vit, image, target=target, **how)
        return self.records[key]

    def _model(self, origin: Mapping[str, Any]) -> LoadedViT:
        """The model with the very weights, whichever pictures it is to see."""
        alike = {name: value for name, value in origin.items() if name not in SEEING}
        key = json.dumps(alike, sort_keys=True)
        if key not in self.models:
            vit = self.load(origin)
            if weights_sum(vit.module) != origin["weights_sha256"]:
                raise BadOption(
                    f"The weights of {origin['model']} are not those of the figure: it was made"
                    f" with: {origin['weights']} {_way_out(origin)}"
                )
            self.models[key] = vit
        return self.models[key]

    def _target(self, plain: Any, vit: LoadedViT, how: dict[str, Any]) -> Target | None:
        if not isinstance(plain, Mapping):
            return plain
        if "similar_to" in plain:
            return similarity_to(_query(plain["similar_to"]))
        other = self._picture(plain["similar_to_picture"], "the picture that it is compared with")
        return similarity_to(observe(vit, other, **how), name=plain["name"])

    def _picture(self, wanted: str, what: str) -> Image.Image:
        if wanted not in self.pictures:
            raise BadOption(
                f"None of the pictures that came is {what}: it has changed since, or is another"
                " one. Give the picture as it was; of a figure of several, all of them."
            )
        return self.pictures[wanted]
