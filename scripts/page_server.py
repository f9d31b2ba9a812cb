"""The page on a free port of this machine, and a browser to look at it: for tests and pictures."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Playwright, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

ROOT = Path(__file__).resolve().parent.parent
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--use-fake-device-for-media-stream",  # a camera that shows a test picture,
    "--use-fake-ui-for-media-stream",  # and a person who lends it
]
LISTEN = Path(__file__).with_name("listen.js").read_text("utf-8")
MESSAGES = {
    "rerun": BackMsg.RERUN_SCRIPT_FIELD_NUMBER,
    "begun": ForwardMsg.NEW_SESSION_FIELD_NUMBER,
    "ended": ForwardMsg.SCRIPT_FINISHED_FIELD_NUMBER,
    "early": ForwardMsg.FINISHED_EARLY_FOR_RERUN,
}
"""`page.evaluate(LISTEN, MESSAGES)`: from then on `window.asked` knows what was asked for."""

_STILL = """() => {
  const roots = [document, ...document.querySelectorAll("*")].map((at) => at.shadowRoot ?? at);
  const whole = roots.filter((root) => root instanceof Document || root instanceof ShadowRoot);
  const all = (what) => whole.flatMap((root) => [...root.querySelectorAll(what)]);
  const ready = !window.asked?.waiting && !window.asked?.running
    && document.fonts.status === "loaded" && all("img").every((image) => image.complete);
  const places = all('[data-testid="stElementContainer"], .surface').map((element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return [x, y, width, height];
  }).join();
  const before = window.stillness;
  if (!ready || before?.places !== places) {
    window.stillness = { places, since: performance.now(), frames: 0 };
    return false;
  }
  before.frames += 1;
  return before.frames >= 6 && performance.now() - before.since >= 200;
}"""
"""Whether nothing on the page has moved for a while: the last of what came is laid out late."""

PATIENCE = 90
"""Seconds that the server has to start, and a run to end."""


@contextmanager
def serving(
    port: int | None = None, *, script: str = "app.py", kill: bool = False, **environment: str
) -> Iterator[str]:
    """The page's address; the server ends with the context, without a word where it is killed."""
    port = free_port() if port is None else port
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.address=127.0.0.1"]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [*command, f"--server.port={port}"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as server,
    ):
        try:
            _wait(address, server)
            yield address
        except RuntimeError as error:
            log.seek(0)
            raise RuntimeError(f"{error}\n{log.read().decode(errors='replace')}") from error
        finally:
            (server.kill if kill else server.terminate)()


@dataclass(frozen=True)
class Host:
    """A page as a host runs it."""

    address: str
    process: subprocess.Popen[bytes]
    log: Path

    def passes(self) -> list[dict[str, Any]]:
        """What its log says of passes, the first first."""
        lines = self.log.read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


@contextmanager
def hosting(
    log: Path, *, command: Sequence[str] = (), port: int | None = None, **environment: str
) -> Iterator[Host]:
    """The page by `python -m attnviz.ui`, or by another command, told to end at the end."""
    port = free_port() if port is None else port
    with (
        log.open("ab") as out,
        subprocess.Popen(
            [*(command or (sys.executable, "-m", "attnviz.ui"))],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "ATTNVIZ_PORT": str(port), **environment},
            stdout=out,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        host = Host(f"http://127.0.0.1:{port}", process, log)
        try:
            _wait(host.address, process)
            yield host
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{log.read_text('utf-8', 'replace')}") from error
        finally:
            process.terminate()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def open_browser(playwright: Playwright) -> Browser:
    """The browser that ATTNVIZ_CHROMIUM names, else one on the PATH, else Playwright's own."""
    path = os.environ.get("ATTNVIZ_CHROMIUM") or shutil.which("chromium")
    return playwright.chromium.launch(executable_path=path or None, args=FLAGS)


def settle(page: Page) -> None:
    """Wait until nothing runs, and what came has been painted and has found its place.

    From the first call on, what was asked for by then is waited for too, though it has not begun.
    """
    page.evaluate(LISTEN, MESSAGES)
    running = page.get_by_test_id("stApp")
    expect(running).to_have_attribute(
        "data-test-script-state", "notRunning", timeout=1000 * PATIENCE
    )
    page.evaluate("window.stillness = undefined")
    page.wait_for_function(_STILL, polling="raf")


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if server.poll() is not None:
            raise RuntimeError(f"The server ended with {server.returncode} as it started.")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=5) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"The server did not answer within {PATIENCE} s.")
