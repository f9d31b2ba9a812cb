"""A process that serves strangers' files keeps what decoders mutter about them out of its log."""

from __future__ import annotations

import ctypes
import logging
import warnings
from functools import cache
from pathlib import Path

import PIL


def hush() -> None:
    """No more warnings and log lines of Pillow's, in the whole process: for the two front ends.

    They speak of metadata that are damaged, and of sizes that `limits` refuses anyway. Warnings can
    only be turned off for all threads, so a library must not.
    """
    warnings.filterwarnings("ignore", module=r"PIL\.")
    logging.getLogger("PIL").setLevel(logging.CRITICAL)
    _hush_libtiff()


@cache
def _hush_libtiff() -> None:
    """It writes to stderr itself, a line for each strip that is damaged; Pillow raises as well."""
    packages = Path(PIL.__file__).parents[1]
    for library in (*packages.glob("pillow.libs/libtiff*"), *packages.glob("PIL/.dylibs/libtiff*")):
        ctypes.CDLL(str(library)).TIFFSetErrorHandler(None)
