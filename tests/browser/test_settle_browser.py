"""When a page rests: what the tests of the page wait for, told from Streamlit's own messages."""

import pytest

pytest.importorskip("playwright.sync_api")

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from scripts.page_server import LISTEN, MESSAGES

pytest_plugins = ["visits"]  # for its browser

SOCKET = """() => {
  window.WebSocket = class extends EventTarget { send() {} };  // nothing is at the other end
  window.socket = new WebSocket();
}"""
SEND = "bytes => window.socket.send(Uint8Array.from(bytes))"
HEAR = """bytes => window.socket.dispatchEvent(
  new MessageEvent("message", { data: Uint8Array.from(bytes).buffer }))"""


def rerun():
    message = BackMsg()
    message.rerun_script.query_string = "view=heads" * 40  # its length takes two bytes
    return message


def said(kind, value=None):
    """What the server says of a run, as it is with a hash and what is said of it in front."""
    message = ForwardMsg(hash="h" * 200)
    message.metadata.delta_path.extend([0, 300])
    if value is None:
        getattr(message, kind).SetInParent()
    else:
        setattr(message, kind, value)
    return message


def test_a_run_that_was_asked_for_is_waited_for_before_the_server_says_anything(browser):
    page = browser.new_page()
    page.evaluate(SOCKET)
    page.evaluate(LISTEN, MESSAGES)
    story = [
        (None, None, (False, False)),
        (SEND, BackMsg(load_git_info=True), (False, False)),
        (SEND, rerun(), (True, False)),
        (HEAR, said("session_status_changed"), (True, False)),
        (HEAR, said("script_finished", ForwardMsg.FINISHED_SUCCESSFULLY), (True, False)),
        (HEAR, said("new_session"), (False, True)),
        (HEAR, said("delta"), (False, True)),
        (HEAR, said("script_finished", ForwardMsg.FINISHED_EARLY_FOR_RERUN), (False, True)),
        (HEAR, said("new_session"), (False, True)),
        (SEND, rerun(), (True, True)),
        (HEAR, said("new_session"), (False, True)),
        (HEAR, said("script_finished", ForwardMsg.FINISHED_SUCCESSFULLY), (False, False)),
        (HEAR, said("delta"), (False, False)),
    ]
    for how, message, rest in story:
        if how:
            page.evaluate(how, [*message.SerializeToString()])
        asked = page.evaluate("window.asked")
        assert (asked["waiting"], asked["running"]) == rest, message
    page.close()
