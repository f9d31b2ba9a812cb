"""One model at work: opens pictures, and gives each one's result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any

from attnviz import capture, export
from attnviz.batch.columns import row_of
from attnviz.batch.opened import Fed, Opened, Stamp, open_picture
from attnviz.batch.request import Request
from attnviz.contract import Fit, LoadedViT, as_fit, usual_fit
from attnviz.errors import AttnVizError
from attnviz.explain import explain, observe
from attnviz.images import open_image
from attnviz.many import observe_views
from attnviz.metrics import head_metrics
from attnviz.places import require_places
from attnviz.record import AttentionRecord
from attnviz.target import Target, require_target, similarity_to


@dataclass(frozen=True)
class Result:
    """What became of one picture: a row, or a figure's file, or why neither."""

    name: str
    stamp: Stamp = (0, 0, 0)
    sha256: str = ""
    row: dict[str, Any] | None = None
    file: bytes | None = None
    failed: str = ""


class Worker:
    """A loaded model and a request; holds nothing of a picture once its result is given."""

    def __init__(self, load: Callable[[], LoadedViT], request: Request) -> None:
        """Load the model, and see that it has what is asked.

        Raises what `models.load` raises, and BadOption or UnknownName where the model has no such
        layer, head, token or class.
        """
        self.vit, self.request = load(), request
        free = getattr(self.vit, "any_size", False)
        self.fit: Fit = as_fit(request.fit or usual_fit(free))
        self.target = self._target()
        self.layers = self._layers(self._require_places())

    def open(self, name: str) -> Opened:
        """Read and fit one picture; safe to call from several threads."""
        return open_picture(name, self.vit, self.fit)

    def results(self, opened: Sequence[Opened], wanted: Collection[str]) -> Iterator[Result]:
        """Those of the wanted pictures, the others being there for company in the pass."""
        good = [(each, each.fed) for each in opened if each.fed is not None]
        for each in opened:
            if each.fed is None and each.name in wanted:
                yield Result(each.name, failed=each.failed)
        if not any(each.name in wanted for each, _ in good):
            return
        for each, record in self._observed(good):
            if each.name in wanted:
                yield self._result(each, record)

    def _observed(
        self, good: Sequence[tuple[Opened, Fed]]
    ) -> Iterator[tuple[Opened, AttentionRecord | AttnVizError]]:
        """Each picture's record, or why it has none."""
        alone = self.request.alone
        if not alone and len(good) > 1:
            try:
                records = self._together([fed for _, fed in good])
            except AttnVizError:
                pass  # one of them is to blame: each by itself
            else:
                yield from zip([each for each, _ in good], records, strict=True)
                return
        for each, fed in good:
            try:
                yield each, self._alone(fed) if alone else self._together([fed])[0]
            except AttnVizError as error:
                yield each, error

    def _together(self, fed: Sequence[Fed]) -> list[AttentionRecord]:
        images, views = zip(*fed, strict=True)
        return observe_views(self.vit, images, views, layers=self.layers)

    def _alone(self, fed: Fed) -> AttentionRecord:
        return observe(self.vit, fed[0], target=self.target, fit=self.fit)

    def _result(self, each: Opened, record: AttentionRecord | AttnVizError) -> Result:
        asked = self.request
        try:
            if isinstance(record, AttnVizError):
                raise record
            heat = explain(record, asked.method, query=asked.query, **asked.options)
            known = Result(each.name, each.stamp, each.sha256)
            if asked.is_table:
                metrics = head_metrics(record) if asked.head_metrics else None
                return replace(known, row=row_of(record, heat, metrics))
            named = heat.named(PurePath(each.name).name)
            return replace(known, file=export.render(named, asked.kind, **asked.drawing))
        except AttnVizError as error:
            return Result(each.name, failed=str(error))

    def _target(self) -> Target | None:
        asked = self.request
        if asked.similar_picture is not None:
            other = observe(self.vit, open_image(asked.similar_picture), fit=self.fit)
            return similarity_to(other, name=PurePath(asked.similar_picture).name)
        return asked.target if asked.similar_to is None else similarity_to(asked.similar_to)

    def _layers(self, settled: Mapping[str, Any]) -> range | None:
        """Which layers are read of each picture, as far as that is known; None for all."""
        if "layer" not in settled or self.request.head_metrics:
            return None
        return range(settled["layer"], settled["layer"] + 1)

    def _require_places(self) -> Mapping[str, Any]:
        """The method's options, in their one form.

        What is wrong with the request for any picture is known before the first one.
        """
        vit, asked = self.vit, self.request
        layout = vit.layout(*vit.image_size)
        known = isinstance(asked.query, str) or self.fit != "aspect"  # in every picture the same
        query = asked.query if known else None
        found = require_places(vit, layout, asked.method, asked.options, query)
        if asked.head_metrics:
            head_metrics(observe(vit, vit.probe()))
        if self.target is not None and self.fit != "aspect":
            require_target(self.target, vit, layout, partial(capture.readable, vit))
        return found
