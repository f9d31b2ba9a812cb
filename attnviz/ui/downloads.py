"""Files that a button made stay until they are fetched, however many visitors there are."""

from __future__ import annotations

from time import monotonic

from streamlit.runtime.media_file_manager import MediaFileMetadata

KEPT = 60.0
"""Seconds that a file stays at least."""


def keep_downloads() -> None:
    """From now on, in this process.

    Streamlit drops a file that a download button made at the second run after it, whoever's run
    that is. Among many visitors both come before the browser asks for the file: not found.
    """
    first_marked = MediaFileMetadata.mark_for_delete

    def mark(file: MediaFileMetadata) -> None:
        if not hasattr(file, "marked"):
            file.marked = monotonic()  # type: ignore[attr-defined]
        if monotonic() - file.marked >= KEPT:  # type: ignore[attr-defined]
            first_marked(file)

    MediaFileMetadata.mark_for_delete = mark  # type: ignore[assignment,method-assign]
