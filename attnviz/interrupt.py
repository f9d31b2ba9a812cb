"""Ctrl+C at the command line while PyTorch is still being imported: a sentence, no traceback."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

SENTENCE = "attnviz: stopped; nothing was written."
CODE = 130


def _stop(number: int, frame: FrameType | None) -> None:
    """End at once: what is half imported has nothing to put away."""
    os.write(2, f"{SENTENCE}\n".encode())
    os._exit(CODE)


def watch_imports() -> None:
    """From here to `raise_again`, where this is `python -m attnviz`; nowhere else."""
    # Python calls its argument so while it imports the package, and only then.
    if sys.argv[:1] == ["-m"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def raise_again() -> None:
    """From here Ctrl+C is a KeyboardInterrupt, as everywhere."""
    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)
