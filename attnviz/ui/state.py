"""What one session remembers beside its widgets: its picture, and what widgets ought to show."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import cast

import streamlit as st
from PIL import Image
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attnviz.images import open_image
from attnviz.samples import SAMPLES, sample_path
from attnviz.ui.same_cell import leave_picture


@dataclass(frozen=True)
class Picture:
    """A picture that opened rightly."""

    name: str
    """As it stands on the page, in Markdown."""
    image: Image.Image
    digest: str
    credit: str = ""
    sample: str | None = None
    """Its name among the samples, if it is one."""

    @classmethod
    def of_bytes(
        cls,
        name: str,
        data: bytes,
        image: Image.Image,
        *,
        credit: str = "",
        sample: str | None = None,
    ) -> Picture:
        """Named by its content, so that the same file is never run twice."""
        return cls(name, image, hashlib.sha256(data).hexdigest(), credit, sample)


def visitor() -> str | None:
    """What tells this session from others; None outside of a page."""
    context = get_script_run_ctx(suppress_warning=True)
    return None if context is None else context.session_id


def picture() -> Picture | None:
    """The picture on the page."""
    return cast("Picture | None", st.session_state.get("picture"))


def show_picture(new: Picture) -> Picture:
    """Put another picture on the page; the patch that asked on the former one does on this one."""
    st.session_state.picture = new
    leave_picture()
    return new


def sample_picture(name: str) -> Picture:
    """One of the samples."""
    sample, data = SAMPLES[name], sample_path(name).read_bytes()
    credit = f"{sample.credit}, {sample.licence}."
    return Picture.of_bytes(sample.label, data, open_image(data), credit=credit, sample=name)


def show_sample(name: str) -> Picture:
    """Put a sample on the page; it comes back when what takes its place is taken away."""
    st.session_state.last_sample = name
    return show_picture(sample_picture(name))


def complain(message: str) -> None:
    """Say what is wrong with a file, until the visitor does something else."""
    _say("complaint", message)


def note(words: str) -> None:
    """Say what of a link could not be done."""
    st.session_state.setdefault("link/notes", []).append(words)


def remark(message: str) -> None:
    """Say what came of a file that was taken, as long."""
    _say("remark", message)


def _say(kind: str, message: str) -> None:
    """Of several files that came together each may have something to be said of."""
    state = st.session_state
    before = state.messages if state.get("to_say") else ()
    state.messages, state.to_say = (*before, (kind, message)), True


def keep_saying() -> None:
    """The next run is no new deed of the visitor's: what was said stands."""
    st.session_state.setdefault("messages", ())
    st.session_state.to_say = True


def show_messages() -> None:
    """What `complain` and `remark` were told since the last run."""
    state = st.session_state
    if not state.get("to_say"):
        state.messages = ()
    messages = state.messages
    wrong = [message for kind, message in messages if kind == "complaint"]
    for message in wrong:
        st.error(message, icon=":material/broken_image:")
    if done := [message for kind, message in messages if kind == "remark"]:
        st.info("  \n".join(done), icon=":material/inventory_2:")
    new = [message for message in wrong if message not in state.get("toasted", ())]
    state.toasted, state.to_say = wrong, False
    if new:  # whoever pasted it may have the sidebar closed
        more = f" And {len(new) - 1} more." if new[1:] else ""
        st.toast(new[0] + more, icon=":material/broken_image:")


def fresh_key(name: str, value: object) -> str:
    """A widget's key: a new one, hence a new widget, when it is to show another value than it does.

    Setting the value of a widget that lives on would not do: what a visitor does in the same moment
    still brings the old value along, as if they had put it back.
    """
    number, shown = st.session_state.get(f"{name}/shown", (0, value))
    st.session_state[f"{name}/shown"] = number + (shown != value), value
    return f"{name}-{st.session_state[f'{name}/shown'][0]}"


def key_number(name: str) -> int:
    """The number that a widget's key ends in."""
    return int(st.session_state[f"{name}/shown"][0])


def number_key(name: str, number: int, value: object) -> None:
    """Give a widget that shows this value the key with that number."""
    st.session_state[f"{name}/shown"] = number, value


def is_live(name: str, key: str) -> bool:
    """Whether the key is the newest one: what a removed widget said may arrive late."""
    return bool(key == f"{name}-{st.session_state[f'{name}/shown'][0]}")


def note_shown(name: str, value: object) -> None:
    """The visitor themselves brought the widget to this value: it keeps its key."""
    number, _ = st.session_state[f"{name}/shown"]
    st.session_state[f"{name}/shown"] = number, value


LONGEST = 120
"""Letters of a stranger's text that are shown."""


def verbatim(text: str) -> str:
    """A stranger's text, a file's name say, so that none of it is read as Markdown.

    On one line, since an empty one would end what is verbatim, and without signs that cannot be
    seen, which turn the order of letters about.
    """
    seen = "".join(sign if sign.isprintable() else " " for sign in text.replace("`", "'"))
    short = seen if len(seen) <= LONGEST else f"{seen[:LONGEST]}…"
    return f"`{short.strip() or ' '}`"


def plain(text: str) -> str:
    """The same within a sentence: each sign that Markdown would read is escaped."""
    return re.sub(r"([\\`*_\[\]<>~$:])", r"\\\1", text)
