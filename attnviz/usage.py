"""What every command says to words that it does not understand, and while it is at work."""

from __future__ import annotations

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
        self.exit(2, f"attnviz: {message}. See {self.prog} --help\n")


def escape_output() -> None:
    """From here what the terminal cannot print, as a file's name that is no text, is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


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
