"""`python -m attnviz.ui`: the page as a host runs it, by the settings of docs/deploy.md."""

from __future__ import annotations

import logging
import os
import socket
import sys
from pathlib import Path
from threading import Thread, Timer
from typing import Any

from streamlit import net_util
from streamlit.web import bootstrap

from attnviz.errors import AttnVizError
from attnviz.ui.downloads import keep_downloads
from attnviz.ui.settings import Settings, settings, unread

APP = Path(__file__).parents[2] / "app.py"

LAST = 5.0
"""Seconds that runs have to end in, once the server has."""


def main() -> int:
    """Serve the page until the process is told to end; 2 where a setting is wrong."""
    if lost := unread(os.environ):
        print(f"attnviz: {lost}", file=sys.stderr)
    try:
        host = settings()
        _prepare(host)
    except (AttnVizError, OSError) as error:
        print(f"attnviz: {error}", file=sys.stderr)
        return 2
    warming = Thread(target=_warm_up, name="warming up", daemon=True)
    warming.start()
    flags = flags_of(host)
    bootstrap.load_config_options(flags)
    bootstrap.run(str(APP), False, [], flags)
    # A computation that looks at nothing while it runs is cut off.
    last = Timer(LAST, os._exit, (0,))
    last.daemon = True
    last.start()
    warming.join()  # Python's end under a library that is at work would be a crash
    return 0


def flags_of(host: Settings) -> dict[str, Any]:
    """Streamlit's options; they win over its own environment variables."""
    flags: dict[str, Any] = {
        "server_address": host.address,
        "server_port": host.port,
        "server_maxUploadSize": host.upload_mb,
        "browser_serverAddress": host.host or "localhost",
        "browser_gatherUsageStats": False,
    }
    if host.host:
        flags["server_allowedHosts"] = [host.host, "localhost", "127.0.0.1"]
    return flags


def _prepare(host: Settings) -> None:
    require_place(host)
    keep_downloads()
    if not host.downloads:
        os.environ["HF_HUB_OFFLINE"] = "1"
    # Asked by a page of a foreign origin, Streamlit looks up its own address on the internet, and
    # answers nobody meanwhile.
    net_util.get_external_ip = net_util.get_internal_ip = lambda: None
    if host.log:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        passes = logging.getLogger("attnviz.passes")
        passes.addHandler(handler)
        passes.setLevel(logging.INFO)
        passes.propagate = False
    if host.models:
        from attnviz.ui.offered import require_known

        require_known(host.models)
    if host.counters:
        from attnviz.ui import counters

        try:
            counters.serve(host.counters)
        except OSError as error:
            raise OSError(
                f"ATTNVIZ_COUNTERS={':'.join(map(str, host.counters))}: nothing can listen there"
                f" ({error.strerror})."
            ) from error


def require_place(host: Settings) -> None:
    """Raises OSError where nothing can listen: Streamlit ends with a traceback, or not at all."""
    try:
        found = socket.getaddrinfo(host.address, host.port, type=socket.SOCK_STREAM)
        family, _, _, _, place = found[0]
        socket.create_server(place[:2], family=family).close()
    except OSError as error:
        raise OSError(
            f"ATTNVIZ_ADDRESS={host.address}, ATTNVIZ_PORT={host.port}: nothing can listen there"
            f" ({str(error.strerror).partition(' (')[0]})."
        ) from error


def _warm_up() -> None:
    """Have everything imported and the first model loaded before the first visitor comes."""
    from attnviz.ui import cache, counters, page  # noqa: F401
    from attnviz.ui.offered import offered
    from attnviz.ui.pass_cost import said_cramped
    from attnviz.ui.room import free_bytes
    from attnviz.verify import verify_once

    logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").disabled = True
    try:
        verify_once(vit := cache.model(offered()[0], False))
    except AttnVizError as error:
        print(f"attnviz: {offered()[0]} cannot be loaded: {error}", file=sys.stderr)
    else:
        counters.READY.set()
        if cramped := said_cramped(vit, free_bytes()):
            print(f"attnviz: {cramped}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
