"""What every command says to words that it does not understand, and while it is at work."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from io import TextIOWrapper
from typing import NoReturn

MODEL, METHOD = "dinov2-small", "attention"
"""What a command takes where no other is named."""

NAMES = f"a timm name, digits, digits-fused-qkv, or {MODEL}"
"""How a model is named, in words: by timm, or as one that comes along."""


class CommandParser(ArgumentParser):
    """Reads a command's words; `prog` is the command as it is typed."""

    def error(self, message: str) -> NoReturn:
        """One sentence, which points to that command's own help; exit code 2."""
        self.exit(2, printable(f"attnviz: {message}. See {self.prog} --help\n"))


def escape_output() -> None:
    """From here what the terminal cannot print, as a file's name that is no text, is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """The same with what a terminal would obey escaped, as others' names and manifests may hold."""
    return _CONTROLS.sub(lambda sign: f"\\x{ord(sign[0]):02x}", text)


def say_loading(name: str) -> None:
    """That a model is loaded, where somebody is watching."""
    if sys.stderr.isatty():
        print(f"loading {name} …", file=sys.stderr)


def counted(what: str) -> Callable[[int, int], None] | None:
    """A line that counts layers, tokens or pictures, where somebody is watching."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{what} {done} of {total}", end=end, file=sys.stderr, flush=True)

    return show
