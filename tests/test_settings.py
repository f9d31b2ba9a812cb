"""What a host may decide: each value read by hand, bad ones refused by a sentence."""

import os
import re
import socket
import sys
from dataclasses import fields
from pathlib import Path
from subprocess import run

import pytest
from page_visit import calm, stand_ins, visit

from attnviz.errors import BadOption, UnknownName
from attnviz.ui import cache, offered
from attnviz.ui.__main__ import require_place
from attnviz.ui.settings import ELSEWHERE, Settings, settings, table, unread, variable

DEPLOY = Path(__file__).parents[1] / "docs" / "deploy.md"


def test_without_variables_it_is_a_page_for_oneself():
    found = Settings.read({"HOME": "/root", "ATTNVIZ_PORT": " "})
    assert found == Settings()
    assert (found.address, found.port, found.counters, found.status) == (
        "127.0.0.1",
        8501,
        None,
        False,
    )


def test_every_value_is_read(tmp_path):
    given = {
        "address": ("0.0.0.0", "0.0.0.0"),
        "port": ("80", 80),
        "host": ("maps.example.org", "maps.example.org"),
        "models": ("digits, dinov2-small", ("digits", "dinov2-small")),
        "checkpoints": (str(tmp_path), tmp_path),
        "downloads": ("off", False),
        "upload_mb": ("8", 8),
        "memory_mb": ("4096", 4096),
        "queue": ("0", 0),
        "queue_seconds": ("30", 30),
        "pass_seconds": ("10", 10),
        "counters": ("127.0.0.1:9091", ("127.0.0.1", 9091)),
        "log": ("off", False),
        "status": ("on", True),
    }
    assert given.keys() == {each.name for each in fields(Settings)}
    environment = {f"ATTNVIZ_{name.upper()}": text for name, (text, _) in given.items()}
    assert Settings.read(environment) == Settings(
        **{name: value for name, (_, value) in given.items()}
    )


BAD = {
    "PORT": ("x", "a whole number from 1 to 65535 is expected."),
    "QUEUE": ("-1", "a whole number from 0 to 10000 is expected."),
    "UPLOAD_MB": ("65", "a whole number from 1 to 64 is expected."),
    "MEMORY_MB": ("512", "a whole number from 1024 to 100000000 is expected."),
    "HOST": (
        "https://maps.example.org",
        "a host's name in small letters, without https:// and port is expected.",
    ),
    "MODELS": ("a/b", "names of models, with commas between them is expected."),
    "CHECKPOINTS": ("/no/such/folder", "a folder that is there is expected."),
    "COUNTERS": ("9091", "an address and a port, as 127.0.0.1:9091 is expected."),
    "STATUS": ("yes", "on or off is expected."),
    "ADDRESS": ("a b", "an address to listen on, as 127.0.0.1 or 0.0.0.0 is expected."),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_refused_by_a_sentence(name):
    text, sentence = BAD[name]
    with pytest.raises(BadOption) as refused:
        Settings.read({f"ATTNVIZ_{name}": text})
    assert str(refused.value) == f"ATTNVIZ_{name}={text}: {sentence}"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ATTNVIZ_QUEU": "3"}, "Nobody reads ATTNVIZ_QUEU. Did you mean ATTNVIZ_QUEUE?"),
        ({"attnviz_port": "80"}, "Nobody reads attnviz_port. Did you mean ATTNVIZ_PORT?"),
        (
            {"ATTNVIZ_Z": "1", "ATTNVIZ_COLOUR": "red"},
            "Nobody reads ATTNVIZ_COLOUR, ATTNVIZ_Z. docs/deploy.md has all that are read.",
        ),
        ({"ATTNVIZ_QUEUE": "3", "ATTNVIZ_QUEU": " ", "QUEU": "3", "ATTNVIZ_CHROMIUM": "x"}, ""),
    ],
)
def test_a_variable_that_nobody_reads_is_named(given, said):
    assert unread(given) == said


def test_the_page_says_so_on_standard_error_and_goes_on_to_its_settings():
    given = {**os.environ, "ATTNVIZ_QUEU": "3", "ATTNVIZ_PORT": "x"}
    words = [sys.executable, "-m", "attnviz.ui"]
    ended = run(words, cwd=DEPLOY.parents[1], env=given, capture_output=True, text=True)
    queue, port = ended.stderr.splitlines()
    assert "Nobody reads ATTNVIZ_QUEU." in queue and "ATTNVIZ_PORT=x" in port
    assert ended.returncode == 2


def test_every_variable_that_is_read_elsewhere_is_known():
    root, found = DEPLOY.parents[1], set()
    places = ["Makefile", "Dockerfile", "deploy", "scripts", "tests/browser", "tests/conftest.py"]
    for place in places:
        files = (each for each in (root / place).rglob("*") if each.is_file())
        within = [each for each in files if "__pycache__" not in each.parts]
        for file in within or [root / place]:
            found |= set(re.findall(r"ATTNVIZ_[A-Z_]+[A-Z]", file.read_text(errors="replace")))
    assert found - {variable(each) for each in fields(Settings)} == ELSEWHERE


def test_no_name_at_all_offers_not_all_models():
    with pytest.raises(BadOption, match="names of models"):
        Settings.read({"ATTNVIZ_MODELS": ","})
    assert Settings.read({"ATTNVIZ_MODELS": "digits,,digits"}).models == ("digits",)


def test_numbers_in_other_scripts_are_none():
    with pytest.raises(BadOption):
        Settings.read({"ATTNVIZ_PORT": "٣٤"})


def test_they_are_read_once(monkeypatch):
    before = settings()
    monkeypatch.setitem(os.environ, "ATTNVIZ_PORT", "1234")
    assert settings() is before


def test_the_documentation_has_all_of_them():
    assert table() in DEPLOY.read_text("utf-8"), f"put this into docs/deploy.md:\n{table()}"
    assert all(f"`{variable(each)}`" in table() for each in fields(Settings))


def test_only_the_hosts_models_are_offered(monkeypatch):
    chosen = Settings(models=("digits", "vit_tiny_patch16_224"))
    monkeypatch.setattr(offered, "settings", lambda: chosen)
    monkeypatch.setattr("attnviz.ui.model_choice.settings", lambda: chosen)
    with stand_ins(monkeypatch):
        page = visit()
        box = page.selectbox(key="model")
        assert box.options == ["Handwritten digits", "vit_tiny_patch16_224 (download)"]
        assert box.value == "digits"
        assert not any(each.label.startswith("Any other") for each in page.expander)
        calm(page.pills(key="kind").set_value("other").run())
        assert not offered.is_offered("dinov2-small") and offered.is_offered("digits")
        with pytest.raises(UnknownName, match="There is no model on this page 'dinov2-small'"):
            cache.model("dinov2-small", random=True)


def test_a_host_may_have_a_line_on_the_page(monkeypatch):
    with stand_ins(monkeypatch):
        assert "For the host" not in str(visit().caption)
        monkeypatch.setattr("attnviz.ui.page.settings", lambda: Settings(status=True))
        (line,) = (each.value for each in visit().caption if each.value.startswith("For the host"))
        assert "0 waiting" in line and "refused" in line and "GB kept of passes." in line


def test_where_nothing_can_listen_the_start_ends_with_a_sentence():
    address = "192.0.2.1"  # one that documents use, and no machine
    said = f"ATTNVIZ_ADDRESS={address}, ATTNVIZ_PORT=8501: nothing can listen there"
    with pytest.raises(
        OSError, match=rf"^{re.escape(said)} \(Cannot assign requested address\)\.$"
    ):
        require_place(Settings(address=address))


def test_a_port_that_is_taken_ends_the_start_with_a_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"{port}: nothing .* \(Address already in use\)\.$"):
            require_place(Settings(port=port))
    require_place(Settings(port=port))  # free again
