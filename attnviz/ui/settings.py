"""What a host may decide: environment variables, read once and refused where they are wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from attnviz.errors import BadOption
from attnviz.images.limits import MAX_FILE

PREFIX = "ATTNVIZ_"

ELSEWHERE = frozenset(
    PREFIX + name
    for name in ("CHROMIUM", "LIMIT", "LISTEN", "PICTURES", "PUBLISH", "REPLICAS", "REQUIRE_ALL")
)
"""Variables that not the page reads, but its tests, its proxy or `deploy/compose.yaml`."""

LARGEST_UPLOAD = MAX_FILE // 2**20
"""Megabytes of the largest file that is ever opened."""

Reader = Callable[[str], Any]
"""Text → value; raises ValueError with what is expected."""


def _number(least: int, most: int) -> Reader:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return read


def _switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise ValueError("on or off")
    return text == "on"


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name for name in re.split(r"[\s,]+", text) if name))
    if not names or not all(re.fullmatch(r"[A-Za-z0-9_][\w.-]*", name) for name in names):
        raise ValueError("names of models, with commas between them")
    return names


def _host(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", text):
        raise ValueError("a host's name in small letters, without https:// and port")
    return text


def _address(text: str) -> str:
    if not re.fullmatch(r"[0-9A-Za-z.:-]+", text):
        raise ValueError("an address to listen on, as 127.0.0.1 or 0.0.0.0")
    return text


def _socket(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    try:
        return _address(address), _number(1, 65535)(port)
    except ValueError:
        raise ValueError("an address and a port, as 127.0.0.1:9091") from None


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise ValueError("a folder that is there")
    return Path(text)


def _says(read: Reader, shown: str, meaning: str) -> dict[str, Any]:
    return {"read": read, "shown": shown, "meaning": meaning}


@dataclass(frozen=True)
class Settings:
    """Each field's variable is its name in capitals, after ATTNVIZ_."""

    address: str = field(
        default="127.0.0.1", metadata=_says(_address, "127.0.0.1", "where the page listens")
    )
    port: int = field(default=8501, metadata=_says(_number(1, 65535), "8501", "and on which port"))
    host: str = field(
        default="",
        metadata=_says(
            _host,
            "any",
            "the page's public name: requests for any other are refused, but for localhost's",
        ),
    )
    models: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            _names,
            "all",
            "the models that are offered, by name and with commas between; the first is shown"
            " first",
        ),
    )
    checkpoints: Path | None = field(
        default=None,
        metadata=_says(
            _folder,
            "none",
            "a folder of safetensors files that visitors may load into models; a link names the"
            " file by its path in there",
        ),
    )
    downloads: bool = field(
        default=True,
        metadata=_says(
            _switch, "on", "whether weights may be fetched from the model hub; off in the image"
        ),
    )
    upload_mb: int = field(
        default=LARGEST_UPLOAD,
        metadata=_says(
            _number(1, LARGEST_UPLOAD), str(LARGEST_UPLOAD), "megabytes of the largest picture"
        ),
    )
    memory_mb: int | None = field(
        default=None,
        metadata=_says(
            _number(1024, 10**8),
            "0.8 of the limit",
            "megabytes that the process is to stay under; the limit is the container's, or the"
            " machine's memory",
        ),
    )
    queue: int = field(
        default=64,
        metadata=_says(
            _number(0, 10_000), "64", "how many may wait for the model; others are refused"
        ),
    )
    queue_seconds: int = field(
        default=120,
        metadata=_says(_number(1, 3600), "120", "seconds after which waiting is given up"),
    )
    pass_seconds: int = field(
        default=120,
        metadata=_says(
            _number(1, 3600), "120", "seconds after which a pass is stopped, at its next layer"
        ),
    )
    counters: tuple[str, int] | None = field(
        default=None,
        metadata=_says(
            _socket,
            "none",
            "an address and a port that answer `/metrics` (Prometheus' text), `/live` and"
            " `/ready`; never a public one",
        ),
    )
    log: bool = field(
        default=True,
        metadata=_says(
            _switch, "on", "one line of JSON a pass, on standard error: no name, no picture"
        ),
    )
    status: bool = field(
        default=False,
        metadata=_says(
            _switch, "off", "a line at the foot of the page: who waits, memory, passes so far"
        ),
    )

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        """Those of an environment; an empty variable is none.

        Raises:
            BadOption: a value is not one of those expected.
        """
        found = {}
        for each in fields(cls):
            if text := environment.get(variable(each), "").strip():
                try:
                    found[each.name] = each.metadata["read"](text)
                except ValueError as error:
                    raise BadOption(f"{variable(each)}={text}: {error} is expected.") from None
        return cls(**found)


def variable(setting: Field[Any]) -> str:
    """The environment variable of a field."""
    return PREFIX + setting.name.upper()


def unread(environment: Mapping[str, str]) -> str:
    """A sentence on the variables after ATTNVIZ_ that nobody reads; empty where there are none."""
    names = [each.name for each in fields(Settings)]
    known = ELSEWHERE | {variable(each) for each in fields(Settings)}
    lost = [
        name
        for name, text in sorted(environment.items())
        if name.upper().startswith(PREFIX) and text.strip() and name not in known
    ]
    if not lost:
        return ""
    bare = [name[len(PREFIX) :].lower() for name in lost]
    meant = [near for name in bare for near in get_close_matches(name, names, 1)]
    hint = (
        f"Did you mean {', '.join(PREFIX + name.upper() for name in meant)}?"
        if meant
        else "docs/deploy.md has all that are read."
    )
    return f"Nobody reads {', '.join(lost)}. {hint}"


@cache
def settings() -> Settings:
    """This process's; raises BadOption where one is wrong."""
    return Settings.read(os.environ)


def table() -> str:
    """All of them in Markdown, as docs/deploy.md has them."""
    rows = [
        f"| `{variable(each)}` | {each.metadata['shown']} | {each.metadata['meaning']} |"
        for each in fields(Settings)
    ]
    return "\n".join(["| variable | without it | what it is |", "| --- | --- | --- |", *rows])
