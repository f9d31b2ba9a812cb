"""`python -m scripts.check_proxy`: deploy/nginx.conf.template, in front of two pages, for real."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from pathlib import Path

from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from playwright.sync_api import sync_playwright
from websockets.exceptions import InvalidStatus

from attnviz.ui.views import VIEWS
from scripts.page_client import Visitor
from scripts.page_server import ROOT, Host, free_port, hosting, open_browser, settle

TEMPLATE = ROOT / "deploy" / "nginx.conf.template"
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
FRAME = """\
daemon off; pid {folder}/nginx.pid; error_log stderr; worker_processes 1;
events {{ worker_connections 512; }}
http {{
  access_log off; include /etc/nginx/mime.types;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
{site}
}}
"""


@contextmanager
def proxied(*pages: Host) -> Iterator[str]:
    """The address of nginx in front of some pages."""
    port = free_port()
    site = TEMPLATE.read_text("utf-8")
    replicas = " ".join(f"server {page.address.removeprefix('http://')};" for page in pages)
    for name, value in {
        "HOST": "localhost",
        "LISTEN": f"127.0.0.1:{port}",
        "REPLICAS": replicas,
    }.items():
        site = site.replace(f"${{ATTNVIZ_{name}}}", value)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "nginx.conf")
        file.write_text(FRAME.format(folder=folder, site=site), "utf-8")
        subprocess.run([NGINX, "-t", "-q", "-c", file], check=True)
        with subprocess.Popen([NGINX, "-c", file]) as nginx:
            try:
                while nginx.poll() is None:
                    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                        break
                    time.sleep(0.1)
                yield f"http://localhost:{port}"
            finally:
                nginx.terminate()


def ask(address: str, **headers: str) -> tuple[int, Message, bytes]:
    """Code, headers and body."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(address, headers=names)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def _page(address: str) -> bool:
    code, headers, body = ask(f"{address}/", Accept_Encoding="gzip")
    policy = headers["Content-Security-Policy"]
    return (
        code == 200
        and headers["Content-Encoding"] == "gzip"
        and b"<!doctype html>" in gzip.decompress(body).lower()
        and "default-src 'none'" in policy
        and "unsafe-eval" not in policy
        and "camera=(self)" in headers["Permissions-Policy"]
        and headers["X-Content-Type-Options"] == "nosniff"
        and "HttpOnly" in headers["Set-Cookie"]
    )


def _metrics(address: str) -> bool:
    ways = ("/_stcore/metrics", "//_stcore//metrics", "/_stcore/%6detrics", "/_stcore/x/../metrics")
    return all(ask(address + way)[0] == 404 for way in ways)


def _names(address: str) -> bool:
    own = ask(f"{address}/_stcore/health")[0]
    return (own, ask(f"{address}/", Host="elsewhere.example")[0]) == (200, 421)


def _origins(address: str) -> bool:
    foreign = ("https://elsewhere.example", f"{address}.elsewhere.example", "null")
    return ask(f"{address}/", Origin=address)[0] == 200 and all(
        ask(f"{address}/", Origin=origin)[0] == 403 and _refused(address, origin)
        for origin in foreign
    )


def _refused(address: str, origin: str) -> bool:
    try:
        asyncio.run(Visitor.arrive(address, Origin=origin))
    except (InvalidStatus, urllib.error.HTTPError) as error:
        return "403" in str(error)
    return False


def _visits(address: str, *pages: Host) -> bool:
    """A page is drawn and answers through it, and each visitor's requests reach one replica."""

    async def one(visit: str) -> None:
        visitor = await Visitor.arrive(address, Cookie=f"attnviz_visit={visit}")
        await visitor.run()
        shown = visitor.component("map")["picture"]
        await visitor.pick("patches", (1, 2))
        assert visitor.component("map")["picture"] != shown
        await visitor.leave()

    async def all_() -> None:
        for number in range(10):
            await one(f"visitor{number}")

    asyncio.run(all_())
    counts = [len(page.passes()) for page in pages]
    print(f"passes of each replica: {counts}")
    return all(counts)


def _views(address: str) -> bool:
    """A browser draws every view under the policy: nothing is held back, nobody else is asked."""
    mishaps: list[str] = []
    with sync_playwright() as playwright:
        browser = open_browser(playwright)
        page = browser.new_page()
        page.on("console", lambda said: said.type == "error" and mishaps.append(said.text))
        page.on("pageerror", lambda error: mishaps.append(str(error)))
        page.on(
            "request",
            lambda request: (
                request.url.startswith((address, "ws://localhost", "data:", "blob:"))
                or mishaps.append(f"asked for {request.url}")
            ),
        )
        for view in VIEWS:
            page.goto(f"{address}/?view={view}")
            settle(page)
            drawn = page.locator("canvas, img, svg.main-svg").first
            try:
                drawn.wait_for(state="attached", timeout=20_000)
            except PlaywrightTimeoutError:
                mishaps.append(f"{view} shows nothing")
        with page.expect_download() as file:  # the last view is the one of files
            page.get_by_role("button", name="Download as PNG").click()
        if not Path(file.value.path()).read_bytes().startswith(b"\x89PNG"):
            mishaps.append("a download is no PNG")
        page.locator('input[type="file"]').first.set_input_files(ROOT / "samples" / "cat.jpg")
        settle(page)
        browser.close()
    print(*mishaps, sep="\n", end="\n" if mishaps else "")
    return not mishaps


def main() -> int:
    """Say of each promise whether it is kept; 1 where one is not."""
    settings = {"ATTNVIZ_MODELS": "digits", "ATTNVIZ_HOST": "localhost"}
    with (
        tempfile.TemporaryDirectory() as logs,
        hosting(Path(logs, "1.log"), **settings) as first,
        hosting(Path(logs, "2.log"), **settings) as second,
        proxied(first, second) as address,
    ):
        checks: dict[str, Callable[[str], bool]] = {
            "the page comes compressed, with its headers and a visitor's cookie": _page,
            "the server's numbers are not to be had": _metrics,
            "other names are refused": _names,
            "other origins are refused, by page and by WebSocket": _origins,
            "every view is drawn in a browser, whose console says nothing": _views,
            "visitors are answered, by both replicas": lambda at: _visits(at, first, second),
        }
        results = {what: check(address) for what, check in checks.items()}
    for what, kept in results.items():
        print(f"{'kept' if kept else 'BROKEN'}: {what}")
    return int(not all(results.values()))


if __name__ == "__main__":
    sys.exit(main())
