"""The page as a host runs it: a server of its own, real WebSockets, and what goes wrong for real."""

import asyncio
import re
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from benchmarks.visitors import crowd, lone, noise, wrong
from scripts.page_client import Visitor, WidgetState
from scripts.page_server import free_port, hosting

AUDITED = Path(__file__).with_name("audited.py")
SETTINGS = {
    "ATTNVIZ_MODELS": "digits,dinov2-small",
    "ATTNVIZ_DOWNLOADS": "off",
    "OMP_NUM_THREADS": "1",
    "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "true",  # a host's environment switches nothing on
}


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def counters():
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    """Where each address that the server asks for is written."""
    path = tmp_path_factory.mktemp("audit") / "asked.txt"
    path.touch()
    return path


@pytest.fixture(scope="module")
def host(port, counters, audit, tmp_path_factory):
    log = tmp_path_factory.mktemp("host") / "log.txt"
    command = (sys.executable, str(AUDITED))
    more = {"ATTNVIZ_COUNTERS": counters, "AUDIT": str(audit)}
    with hosting(log, command=command, port=port, **SETTINGS, **more) as running:
        yield running


def finish(story):
    """What `story` gives, run on a thread of its own: once a test has opened a browser, Playwright
    keeps a loop running on this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, story).result()


def counter(counters, name):
    with urllib.request.urlopen(f"http://{counters}/metrics", timeout=30) as answer:
        return float(re.search(rf"^attnviz_{name} (\S+)$", answer.read().decode(), re.MULTILINE)[1])


def test_nothing_crosses_between_visitors(host):
    report = finish(crowd(host, 4, seconds=1000, most=2))
    assert len(report.answers) == 8 and len(report.seconds) == 4
    expected = finish(lone(host.address, [place for place, _ in report.answers]))
    assert wrong(report, expected) == 0
    # The answers do tell one place from another.
    maps = {place: answer[0] for place, answer in report.answers if not place.export}
    assert len(set(maps.values())) == len(maps) > 4


def chosen(visitor, name):
    box = visitor.find("selectbox", "model")
    return WidgetState(id=box.id, string_value=box.options[name])


def is_at_layer(number, message):
    element = message.delta.new_element
    return f"layer {number} of 12" in element.progress.text


def test_a_browser_that_is_closed_in_mid_run_frees_the_model_for_who_waits(host, counters):
    async def story():
        gone, waits = await asyncio.gather(*(Visitor.see(host.address) for _ in range(2)))
        # Its model is there already: it asks within the other's pass, however slow the machine is.
        untrained = WidgetState(id=waits.find("checkbox", "random").id, bool_value=True)
        await waits.run(chosen(waits, 1), untrained)
        await gone.ask(chosen(gone, 1))
        await gone.until(partial(is_at_layer, 1))
        asking = asyncio.create_task(waits.upload("other.png", noise(1)))
        while not (waiting := [said for said in waits.said if "Waiting" in said]):
            assert not asking.done(), "the pass was over before anybody waited"
            await asyncio.sleep(0.01)
        gone.vanish()
        await asking
        await waits.leave()
        return waiting[0], waits

    said, waits = finish(story())
    assert said.startswith("Waiting: you are next")
    assert waits.component("map")["picture"].startswith("data:image")
    stopped, after = host.passes()[-2:]
    assert (stopped["outcome"], after["outcome"]) == ("stopped", "done")
    assert stopped["model"] == after["model"] == "dinov2-small"
    assert counter(counters, "waiting") == 0
    assert counter(counters, r'passes_total\{outcome="stopped"\}') >= 1


def test_a_page_of_another_origin_is_refused_and_nobody_outside_is_asked(host, audit):
    async def stranger():
        await Visitor.arrive(host.address, Origin="https://elsewhere.example")

    with pytest.raises(InvalidStatus, match="403"):
        finish(stranger())
    asked = [line for line in audit.read_text().splitlines() if "127.0.0.1" not in line]
    assert asked == []


def test_told_to_end_it_ends_and_says_nothing_wrong(host):
    assert "Traceback" not in host.log.read_text()
    host.process.terminate()
    assert host.process.wait(60) == 0
    assert "Traceback" not in host.log.read_text()


LOADING = """
import sys, time
from pathlib import Path
from attnviz.ui import __main__ as server

def load(loaded=Path(sys.argv[1])):
    while not loaded.exists():
        time.sleep(0.05)
    print("It was let finish.", flush=True)

server._warm_up = load
sys.exit(server.main())
"""


def test_told_to_end_while_the_first_model_loads_it_lets_that_finish(tmp_path):
    log, loaded = tmp_path / "log.txt", tmp_path / "loaded"
    with hosting(log, command=(sys.executable, "-c", LOADING, str(loaded)), **SETTINGS) as young:
        young.process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):  # Python's end would crash in the library
            young.process.wait(1)
        loaded.touch()
        assert young.process.wait(60) == 0
    assert "It was let finish." in log.read_text()
