"""A process that serves strangers' files keeps what Pillow mutters about them out of its log."""

from __future__ import annotations

import logging
import warnings


def hush() -> None:
    """No more warnings and log lines of Pillow's, in the whole process: for the two front ends.

    They speak of metadata that are damaged, and of sizes that `limits` refuses anyway. Warnings can
    only be turned off for all threads, so a library must not.
    """
    warnings.filterwarnings("ignore", module=r"PIL\.")
    logging.getLogger("PIL").setLevel(logging.CRITICAL)
