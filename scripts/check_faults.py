"""`make faults`: a page that is killed in mid-run, and one that can write nothing; with pytest."""

import asyncio
import io
import random
import sys
import urllib.error
from functools import partial

import pytest
from PIL import Image
from test_hosting import SETTINGS, chosen, is_at_layer
from websockets.exceptions import ConnectionClosed

from benchmarks.load import noise
from scripts.page_client import Visitor
from scripts.page_server import free_port, hosting


def test_killed_in_mid_run_it_comes_again_and_does_with_a_full_disk_and_no_caches(tmp_path):
    """Each file may have 64 KB, and no folder of caches can be made: what is sent is larger."""

    async def killed(host):
        visitor = await Visitor.see(host.address)
        await visitor.ask(chosen(visitor, 1))
        await visitor.until(partial(is_at_layer, 1))
        host.process.kill()
        with pytest.raises(ConnectionClosed):
            await visitor.drawn()

    port = free_port()
    with hosting(tmp_path / "first.txt", port=port, **SETTINGS) as first:
        asyncio.run(killed(first))
        assert first.process.wait(60) == -9
        assert "Traceback" not in first.log.read_text()

    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    caches = ("MPLCONFIGDIR", "HF_HOME", "XDG_CACHE_HOME", "TORCH_HOME")
    settings = SETTINGS | {name: str(blocked / name) for name in caches}
    command = ("prlimit", "--fsize=65536", sys.executable, "-m", "attnviz.ui")

    async def after(address):
        visitor = await Visitor.see(address)
        shown = visitor.component("map")["picture"]
        large = io.BytesIO()
        Image.frombytes("RGB", (800, 700), random.Random(1).randbytes(800 * 700 * 3)).save(
            large, "PNG"
        )
        with pytest.raises(urllib.error.HTTPError, match="500"):  # it would be put into a file
            await visitor.upload("large.png", large.getvalue())
        await visitor.leave()
        other = await Visitor.see(address)
        assert other.component("map")["picture"] == shown
        await other.upload("small.png", noise(5))
        assert other.component("map")["picture"] != shown
        assert (await other.download("Download as PNG")).startswith(b"\x89PNG")
        await other.leave()

    with hosting(tmp_path / "log.txt", command=command, port=port, **settings) as again:
        asyncio.run(after(again.address))
        again.process.terminate()
        assert again.process.wait(60) == 0  # told to end, it ends
