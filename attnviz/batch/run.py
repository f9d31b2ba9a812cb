"""The whole of a batch: what is done already, the rest of it, and what is said at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from attnviz.batch.bar import Bar
from attnviz.batch.journal import Journal
from attnviz.batch.line import Part, parts_of, results_here
from attnviz.batch.opened import Stamp, sha256_of, stamp_of
from attnviz.batch.outputs import Output
from attnviz.batch.request import Request
from attnviz.batch.worker import Result, Worker
from attnviz.contract import LoadedViT

Engine = Callable[[Callable[[], LoadedViT], Request, Iterable[Part]], Iterator[Result]]
"""(what loads the model, what is asked, the parts) → the results, in any order."""


def here(
    load: Callable[[], LoadedViT], request: Request, parts: Iterable[Part]
) -> Iterator[Result]:
    """The engine of one machine."""
    return results_here(Worker(load, request), parts)


@dataclass
class Report:
    """What a run did."""

    total: int
    """Pictures that were asked for."""
    before: int = 0
    """Of these, done by earlier runs."""
    changed: list[str] = field(default_factory=list)
    """Done by earlier runs, but the file is another one since: done again, or among `failed`."""
    gone: list[str] = field(default_factory=list)
    """Of those done before, the pictures whose file is not there any more."""
    others: int = 0
    """Results kept of pictures that were not asked for."""
    done: int = 0
    """Done by this run."""
    failed: dict[str, str] = field(default_factory=dict)
    """Picture → why it could not be done."""
    seconds: float = 0.0
    """From the first part to the last result."""


def run(
    names: Sequence[str],
    output: Output,
    request: Request,
    load: Callable[[], LoadedViT],
    *,
    engine: Engine = here,
    report: Report | None = None,
) -> Report:
    """Do what is left of a batch; `report` is kept up to date for who stops it on the way.

    Each result is kept, and then written to the journal, before the next one is. So a run that is
    killed has lost at most the pictures in flight, and the next run goes on from there.

    Raises BadOption where the output is another request's, in use, or can't be written.
    """
    report = report or Report(len(names))
    output.prepare()
    try:
        with Journal(output.journal, request.identity()) as journal:
            output.require_own()
            there = _Index.read(journal)
            known = len(there.places)
            done = there.still(names, output, report)
            report.before, report.others = len(done), len(there.places.keys() - set(names))
            if len(done) < len(names):

                def keep(result: Result) -> None:
                    named = {"picture": result.name, "sha256": result.sha256}
                    kept = named | {"stamp": result.stamp} | output.keep(result)
                    there.places[result.name] = journal.append(kept)

                results = engine(load, request, parts_of(names, request.part, done))
                _follow(results, keep, Bar(len(names) - len(done)), report)
            for name in set(report.changed) & report.failed.keys():
                output.drop(name)
            changed = report.done > 0 or len(there.places) < known
            if there.places or changed:
                output.finish(journal, there.places, changed=changed)
    finally:
        output.leave()
    return report


def _follow(
    results: Iterator[Result], keep: Callable[[Result], None], bar: Bar, report: Report
) -> None:
    """Keep each result as it comes, and count it."""
    start = time.monotonic()
    try:
        for result in results:
            if result.failed:
                report.failed[result.name] = result.failed
            else:
                keep(result)
                report.done += 1
            report.seconds = time.monotonic() - start
            bar.step(failed=bool(result.failed))
    finally:
        bar.close()


@dataclass
class _Index:
    """What a journal says: of each picture the newest entry's place, stamp and sum."""

    places: dict[str, int] = field(default_factory=dict)
    known: dict[str, tuple[Stamp, str, int | None]] = field(default_factory=dict)

    @classmethod
    def read(cls, journal: Journal) -> _Index:
        index = cls()
        for place, entry in journal.entries():
            if "picture" in entry:
                name, stamp = entry["picture"], tuple(entry["stamp"])
                index.places[name] = place
                index.known[name] = stamp, entry["sha256"], entry.get("bytes")
        return index

    def still(self, names: Sequence[str], output: Output, report: Report) -> set[str]:
        """The pictures that are done, and the same as they were; forgets what is not."""
        done = set()
        for name in names:
            if name not in self.known:
                continue
            stamp, sha256, size = self.known[name]
            now = stamp_of(name)
            if now is not None and now != stamp and sha256_of(name) != sha256:
                report.changed.append(name)
            elif output.holds(name, size):
                done.add(name)
                if now is None:
                    report.gone.append(name)
                continue
            del self.places[name]
        self.known.clear()
        return done
