"""Counters that a host can scrape, on a port of their own, and whether the page is ready.

Python's own server will do: a dozen numbers in Prometheus' text are not worth another package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

from streamlit import runtime
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY, GaugeStat

from attnviz.ui import cache, room
from attnviz.ui.tally import tally

READY = Event()
"""Set once the first model is loaded."""

Row = tuple[str, str, str, Mapping[str, float]]
"""(name, kind, help, labels → value)."""


def text() -> str:
    """All counters in Prometheus' text format, version 0.0.4."""
    lines = []
    for name, kind, what, values in _rows():
        lines += [f"# HELP attnviz_{name} {what}", f"# TYPE attnviz_{name} {kind}"]
        lines += [f"attnviz_{name}{labels} {value:.12g}" for labels, value in values.items()]
    return "\n".join(lines) + "\n"


def _rows() -> Iterable[Row]:
    so_far, kept, budget = tally(), cache.observations(), room.budget()

    def one(name: str, kind: str, what: str, value: float) -> Row:
        return name, kind, what, {"": value}

    passes = {f'{{outcome="{how}"}}': so_far.passes[how] for how in ("done", "stopped", "failed")}
    refused = {f'{{why="{why}"}}': so_far.refused[why] for why in ("busy", "memory")}
    yield "passes_total", "counter", "Passes of a model.", passes
    yield "refused_total", "counter", "Passes that were not begun.", refused
    yield one("pass_seconds_total", "counter", "Seconds of all passes.", so_far.seconds)
    yield one("wait_seconds_total", "counter", "Seconds waited before passes.", so_far.waited)
    yield one("waiting", "gauge", "Who waits for the model.", kept.line.waiting)
    yield one("visits", "gauge", "Pages that are open.", visits())
    yield one("memory_bytes", "gauge", "Memory of the process.", room.used_bytes())
    yield one("memory_budget_bytes", "gauge", "What it is to stay under.", budget.whole)
    yield one("kept_bytes", "gauge", "What is kept of passes.", kept.nbytes)
    yield one("kept_budget_bytes", "gauge", "And its bound.", budget.records)
    yield one("ready", "gauge", "Whether the first model is loaded.", READY.is_set())


def visits() -> int:
    """Pages that are open."""
    if not runtime.exists():
        return 0
    families = runtime.get_instance().stats_mgr.get_stats(family_names=[ACTIVE_SESSIONS_FAMILY])
    stats = families.get(ACTIVE_SESSIONS_FAMILY, ())
    return sum(stat.value for stat in stats if isinstance(stat, GaugeStat))


PAGES: dict[str, Callable[[], tuple[int, str]]] = {
    "/metrics": lambda: (200, text()),
    "/live": lambda: (200, "ok\n"),
    "/ready": lambda: (200, "ok\n") if READY.is_set() else (503, "not yet\n"),
}


class _Answer(BaseHTTPRequestHandler):
    timeout = 5
    server_version, sys_version = "attnviz", ""

    def do_GET(self) -> None:
        code, body = PAGES.get(self.path, lambda: (404, "there is no such page\n"))()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Says nothing: a scrape every few seconds is no news."""


def serve(address: tuple[str, int]) -> ThreadingHTTPServer:
    """Answer on that address and port, until the process ends; raises OSError if it is taken."""
    server = ThreadingHTTPServer(address, _Answer)
    server.daemon_threads = True
    Thread(target=server.serve_forever, name="counters", daemon=True).start()
    return server
