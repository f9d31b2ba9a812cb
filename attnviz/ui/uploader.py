"""The ways in for the visitor's own pictures: dropped, browsed for, pasted, or a photo just taken.

The widget goes on listing each file, so that none can get lost between two lists; a file is taken
into the tray once, by its number, and is left to the tray alone from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from attnviz.errors import BadImage
from attnviz.images.limits import too_long
from attnviz.ui.paste import largest, watch_uploader
from attnviz.ui.state import complain, keep_saying, verbatim
from attnviz.ui.tray import MOST, hold, tray

KEY = "upload"

FORGOTTEN = (
    "The server was started again and has your pictures no longer: drop them here once more."
)


def show_uploader() -> None:
    """The widget. Any kind of file: `open_image` says what is wrong with one, it would not."""
    listed = st.file_uploader(
        "Or your own, several at once",
        accept_multiple_files=True,
        key=KEY,
        help="Drop files here, browse for them, or press Ctrl+V anywhere on the page. "
        "They are kept for this visit only.",
    )
    watch_uploader(_refuse, most=MOST)
    take([(file, file.name) for file in listed])


def take(
    files: Sequence[tuple[UploadedFile, str]], done: Callable[[], None] = lambda: None
) -> None:
    """Put those of the (file, name) that are new into the tray; the last that opens is shown.

    A run that is cut off in between has marked what it was done with: the next one does the rest.
    `done` is called after each is kept, before its file is given up.
    """
    taken: set[str] = st.session_state.setdefault("taken", set())
    new = [(file, name) for file, name in files if file.file_id not in taken]
    if new and st.session_state.pop("coming", False):
        keep_saying()
    place = st.empty()
    for number, (file, name) in enumerate(new):
        if len(new) > 1:
            place.progress(number / len(new), f"Opening {number + 1} of {len(new)} pictures")
        _take(file, verbatim(name))
        done()
        taken.add(file.file_id)
        _release(file.file_id)
    place.empty()


def _take(file: UploadedFile, name: str) -> None:
    try:
        hold(name, file.getvalue())
    except BadImage as error:
        complain(str(error).replace("This file", name, 1))


def _refuse(names: Sequence[str], left_out: int, coming: int) -> None:
    """Say what the browser has not even sent, and let it stand while the others come in."""
    st.session_state.coming = coming > 0
    for name in names:
        complain(str(too_long(verbatim(name), largest())))
    if left_out:
        complain(f"{left_out} more were left out: at most {MOST} pictures come in at once.")


def _release(number: str) -> None:
    """Streamlit would keep the file beside the tray, until the visit ends."""
    context = get_script_run_ctx()
    if context is not None and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        context.uploaded_file_mgr.remove_file(context.session_id, number)


def is_odd() -> bool:
    """Whether the widget lists files and the tray is empty, or the other way round."""
    return bool(tray()) != bool(_listed())


def find_forgotten(*, odd: bool) -> None:
    """In a session's first run, say so where a server before this one had pictures.

    `odd`: whether there was one of the two alone, by `is_odd`.
    """
    gone = [number for number in _listed() if number not in st.session_state.taken]
    if bool(gone) != odd:
        complain(FORGOTTEN)
    st.session_state.taken.update(gone)


def _listed() -> list[str]:
    """The numbers of the files that the browser lists, be they still there or not."""
    listed = st.session_state.get(KEY) or []
    with suppress(TypeError):
        return [file.file_id for file in listed]
    return []
