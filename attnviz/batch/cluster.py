"""On a Ray cluster: a model in each of several workers, parts handed out one by one.

Workers are plain actors and not Ray Data: what is handed out is then known part by part, so that a
worker that is lost costs the parts in its hands and nothing else, and each part's results are
kept as they come. All writing is done here, by the one process that holds the journal.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from attnviz.batch.line import Part
from attnviz.batch.request import Request
from attnviz.batch.worker import Result, Worker
from attnviz.contract import LoadedViT
from attnviz.errors import AttnVizError, BadOption

AT_ONCE = 2
"""Parts in a worker's hands: it opens one's pictures while its model runs on the other's."""

TRIES = 3
"""Workers that a part may cost before its pictures count as bad."""

ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""Read when Ray is imported: it then listens on 127.0.0.1 alone, and reports to nobody."""

TOKEN = "RAY_AUTH_TOKEN"  # noqa: S105 - the name of one
"""What whoever joins a cluster has to know, where the cluster asks for it."""

PATIENCE = 5.0
"""Seconds to wait for an address to answer at all."""

ROOT = Path(__file__).resolve().parents[2]

Loading = Callable[[], LoadedViT]


@dataclass(frozen=True)
class Cluster:
    """An engine: the cluster at an address, or one that is started on this machine alone."""

    address: str | None = None
    workers: int | None = None
    """How many; None: one a GPU, or where there are none, one a processor."""

    def __call__(self, load: Loading, request: Request, parts: Iterable[Part]) -> Iterator[Result]:
        """All results, in the order in which they come.

        Raises BadOption where Ray is not there, or no cluster at that address; and what a worker
        raises that can't begin.
        """
        if self.workers is not None and self.workers < 1:
            raise BadOption(f"At least one worker is needed; {self.workers} came.")
        if self.address is None:
            os.environ.update(ALONE)
            os.environ.setdefault(TOKEN, secrets.token_hex(32))  # else Ray leaves one at home
        ray = _ray()
        self._join(ray)
        try:
            count, needs = self._room(ray)
            yield from _Pool(ray, load, request, needs, count).results(parts)
        finally:
            ray.shutdown()

    def _join(self, ray: Any) -> None:
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
        try:
            if self.address is None:
                ray.init("local", **quiet)
            else:
                del quiet["include_dashboard"]
                _require_answer(self.address)
                modules = [str(ROOT / name) for name in ("attnviz", "models")]
                ray.init(self.address, runtime_env={"py_modules": modules}, **quiet)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            if self.address is None:
                raise BadOption(f"Ray could not be started here: {_cause(error)}") from error
            raise BadOption(
                f"No Ray cluster at {self.address} lets this machine in: {_cause(error)} Check the"
                f" address, and if it asks for a token, RAY_AUTH_MODE=token and {TOKEN}."
            ) from error

    def _room(self, ray: Any) -> tuple[int, dict[str, float]]:
        """How many workers, and what each takes."""
        there = ray.cluster_resources()
        kind = "GPU" if there.get("GPU") else "CPU"
        count = self.workers or int(there.get(kind, 0))
        if count < 1:
            raise BadOption("At least one worker is needed: the cluster has no processor to spare.")
        return count, {"num_gpus": 1} if kind == "GPU" else {"num_cpus": 1}


class _Far:
    """A worker in a process of its own."""

    def __init__(self, load: Loading, request: Request, versions: Mapping[str, str]) -> None:
        """`versions` are those where the command runs."""
        self.error: AttnVizError | None = None
        try:
            _require_same(versions, request.versions)
            self.worker = Worker(load, request)
        except AttnVizError as error:
            self.error = error

    def begin(self) -> AttnVizError | None:
        """Whether it can work at all."""
        return self.error

    def do(self, part: Part) -> list[Result]:
        """A part's results; two may be asked for at a time, and the model's lock is one."""
        opened = [self.worker.open(name) for name in part.names]
        return list(self.worker.results(opened, part.wanted))


@dataclass
class _Pool:
    """The workers, and what is in their hands."""

    ray: Any
    load: Loading
    request: Request
    needs: dict[str, float]
    count: int
    begun: dict[Any, Any] = field(default_factory=dict)
    """Promise of a worker that begins → the worker."""
    hands: dict[Any, tuple[Any, Part]] = field(default_factory=dict)
    """Promise of a part's results → who has it, and the part."""
    back: deque[Part] = field(default_factory=deque)
    """Parts to hand out next: those of workers that were lost."""
    lost: Counter[Part] = field(default_factory=Counter)
    """How many workers each of these has cost."""
    waiting: Iterator[Part] = field(default_factory=lambda: iter(()))

    def results(self, parts: Iterable[Part]) -> Iterator[Result]:
        """Hand out, wait, and hand out again what was lost."""
        self.waiting = iter(parts)
        for _ in range(self.count):
            self._begin()
        while self.hands or (self.begun and self._more()):
            (first, *_), _ = self.ray.wait([*self.begun, *self.hands], num_returns=1)
            if first in self.begun:
                worker = self.begun.pop(first)
                if self._came(first):
                    self._hand_out(worker, AT_ONCE)
                continue
            worker, part = self.hands.pop(first)
            try:
                results = self.ray.get(first)
            except self.ray.exceptions.RayActorError:
                yield from self._lose(worker, part)
                continue
            self._hand_out(worker, 1)
            yield from results

    def _more(self) -> bool:
        """Whether there is a part in nobody's hands."""
        if not self.back and (part := next(self.waiting, None)) is not None:
            self.back.append(part)
        return bool(self.back)

    def _hand_out(self, worker: Any, count: int) -> None:
        for _ in range(count):
            if self._more():
                part = self.back.popleft()
                self.hands[worker.do.remote(part)] = worker, part

    def _begin(self) -> None:
        kind = self.ray.remote(max_concurrency=AT_ONCE, **self.needs)(_Far)
        worker = kind.remote(self.load, self.request, self.request.versions)
        self.begun[worker.begin.remote()] = worker

    def _came(self, promise: Any) -> bool:
        """Whether a new worker can work; one that was lost before is not sent for again."""
        try:
            error = self.ray.get(promise)
        except self.ray.exceptions.RayActorError as lost:
            if not self.begun and not self.hands:
                raise BadOption(f"No worker of the cluster could begin: {_cause(lost)}") from lost
            return False
        if error is not None:
            raise error
        return True

    def _lose(self, worker: Any, part: Part) -> Iterator[Result]:
        """Take back what a lost worker had, and send for another."""
        theirs = [promise for promise, (who, _) in self.hands.items() if who is worker]
        for each in (part, *(self.hands.pop(promise)[1] for promise in theirs)):
            self.lost[each] += 1
            if self.lost[each] < TRIES:
                self.back.append(each)
                continue
            for name in sorted(each.wanted):
                words = f"{TRIES} workers were lost while they had it, or its neighbours, in hand."
                yield Result(name, failed=words)
        self._begin()


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError:
        raise BadOption(
            "--engine ray needs Ray, which is not installed: pip install -r"
            " requirements-cluster.txt, on this and every other machine."
        ) from None


def _require_same(asked: Mapping[str, str], there: Mapping[str, str]) -> None:
    """BadOption where a worker's versions are others; a build, as for GPUs, is no other version."""
    others = [
        f"{name} {there.get(name, 'none')} instead of {number}"
        for name, number in asked.items()
        if there.get(name, "none").partition("+")[0] != number.partition("+")[0]
    ]
    if others:
        raise BadOption(
            f"A worker on {socket.gethostname()} has {', '.join(others)}, by which results may"
            " differ from those of others: install the same versions on every machine."
        )


def _require_answer(address: str) -> None:
    """ConnectionError where nobody answers: Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), PATIENCE).close()


def _cause(error: Exception) -> str:
    """The last line, where a worker's own error stands."""
    return str(error).strip().splitlines()[-1]
