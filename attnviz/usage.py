"""What every command says to words that it does not understand."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import NoReturn


class CommandParser(ArgumentParser):
    """Reads a command's words; `prog` is the command as it is typed."""

    def error(self, message: str) -> NoReturn:
        """One sentence, which points to that command's own help; exit code 2."""
        self.exit(2, f"attnviz: {message}. See {self.prog} --help\n")
