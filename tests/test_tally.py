"""What a host sees: lines, counters, and nothing of what a visitor brought."""

import json
import logging
import re
import urllib.error
import urllib.request

import pytest
from page_visit import calm, choose_model, png, stand_ins, upload, visit

from attnviz.errors import Busy
from attnviz.ui import cache, counters, room, tally
from attnviz.ui.tally import LOG, Tally
from attnviz.ui.turns import Turns


@pytest.fixture
def lines(monkeypatch):
    """The JSON lines, as they are written."""
    said = []

    class Handler(logging.Handler):
        def emit(self, record):
            said.append(json.loads(record.getMessage()))

    handler = Handler()
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    so_far = Tally()
    monkeypatch.setattr(tally, "tally", lambda: so_far)
    monkeypatch.setattr(counters, "tally", lambda: so_far)
    yield said
    LOG.removeHandler(handler)


def test_a_pass_is_one_line_without_name_or_picture(monkeypatch, lines):
    with stand_ins(monkeypatch):
        page = upload(visit(), "secret holiday.png", png((30, 20), "blue"))
        assert "secret holiday" in str(page.session_state["seen_name"])
        first, second = lines
        assert first.keys() == second.keys() == {
            "event", "model", "size", "gradient", "outcome", "ms", "waited_ms", "waiting", "memory_mb", "kept_mb",
        }  # fmt: skip
        assert (second["model"], second["size"]) == ("dinov2-small", [32, 48])
        assert (second["outcome"], second["gradient"], second["waiting"]) == ("done", False, 0)
        assert second["memory_mb"] > 100 and second["ms"] >= 0
        assert not re.search("secret|holiday|png|blue", json.dumps(lines))
        page.session_state.method = "gradcam"
        calm(page.run())
        assert lines[-1]["gradient"]


def test_how_a_pass_ended_is_said(lines):
    class Cut(BaseException):
        pass

    def describe(outcome, ms):
        return tally.Pass("m", (2, 3), False, outcome, ms, 7, 0, 1, 1)

    with tally.timed(describe):
        pass
    with pytest.raises(Cut), tally.timed(describe):
        raise Cut
    with pytest.raises(ZeroDivisionError), tally.timed(describe):
        1 / 0  # noqa: B018
    assert [line["outcome"] for line in lines] == ["done", "stopped", "failed"]
    with pytest.raises(Busy), tally.counted_refusals():
        raise Busy("no")
    assert lines[-1] == {"event": "refused", "why": "busy"}
    found = values()
    assert [found[f'passes_total{{outcome="{how}"}}'] for how in ("done", "stopped", "failed")] == [
        1,
        1,
        1,
    ]
    assert found['refused_total{why="busy"}'] == 1
    assert found["wait_seconds_total"] == pytest.approx(0.021)


def values():
    """Counters, after it was made sure that each has its help and its kind."""
    text, found = counters.text(), {}
    for block in re.split(r"(?=^# HELP )", text, flags=re.MULTILINE)[1:]:
        help_, kind, *rows = block.splitlines()
        name = help_.split()[2]
        assert re.fullmatch(rf"# TYPE {name} (counter|gauge)", kind)
        assert name.endswith("_total") == kind.endswith("counter")
        for row in rows:
            full, value = re.fullmatch(rf"({name}\S*) (\S+)", row).groups()
            found[full.removeprefix("attnviz_")] = float(value)
    return found


def test_counters_are_those_of_the_page(monkeypatch, lines):
    with stand_ins(monkeypatch):
        page = visit()
        before = values()
        assert before['passes_total{outcome="done"}'] == 1
        assert before["kept_bytes"] == cache.observations().nbytes > 0
        assert before["memory_budget_bytes"] == room.budget().whole
        assert 0 < before["memory_bytes"] < before["memory_budget_bytes"]
        cache.observations().line = Turns(longest=0)
        with cache.observations().line.turn("somebody else"):
            choose_model(page, "digits")
        assert values()['refused_total{why="busy"}'] == 1


def test_they_are_answered_on_a_port_of_their_own(monkeypatch):
    monkeypatch.setattr(counters, "READY", counters.Event())
    server = counters.serve(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{server.server_port}"

    def ask(path):
        try:
            with urllib.request.urlopen(address + path, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    try:
        assert ask("/live") == (200, "ok\n")
        assert ask("/ready") == (503, "not yet\n")
        counters.READY.set()
        assert ask("/ready") == (200, "ok\n")
        assert "attnviz_ready 1\n" in ask("/metrics")[1]
        assert ask("/") == ask("/metrics/../etc") == (404, "there is no such page\n")
    finally:
        server.shutdown()
        server.server_close()
