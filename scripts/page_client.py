"""A visitor without a browser, over a real WebSocket: for tests of many, and of what goes wrong."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any, Self
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

PATIENCE = 300.0
"""Seconds for one answer."""

COOKIE = "_streamlit_xsrf"


@dataclass(eq=False)
class Visitor:
    """One page that is open. What it shows is `elements`, by where they lie on the page."""

    address: str
    socket: ClientConnection
    xsrf: str
    query: str = ""
    session: str = ""
    elements: dict[tuple[int, ...], Element] = field(default_factory=dict)
    fresh: dict[tuple[int, ...], Element] = field(default_factory=dict)
    """The same of the run that is going on."""
    said: list[str] = field(default_factory=list)
    """What a bar of progress said during the last run."""
    states: dict[str, WidgetState] = field(default_factory=dict)
    """What the visitor has set, by the widgets' numbers."""

    @classmethod
    async def arrive(cls, address: str, query: str = "", **headers: str) -> Self:
        """Open the page, without waiting for what is on it."""
        xsrf = await asyncio.to_thread(_cookie, address, headers)
        parts = urlsplit(address)
        scheme = {"http": "ws", "https": "wss"}[parts.scheme]
        socket = await connect(
            f"{scheme}://{parts.netloc}/_stcore/stream",
            subprotocols=[Subprotocol("streamlit"), Subprotocol(xsrf)],
            additional_headers=headers
            | {"Cookie": "; ".join(filter(None, (f"{COOKIE}={xsrf}", headers.get("Cookie"))))},
            origin=None if "Origin" in headers else f"{parts.scheme}://{parts.netloc}",  # type: ignore[arg-type]
            max_size=None,
            ping_interval=None,
            compression=None,
        )
        return cls(address, socket, xsrf, query)

    @classmethod
    async def see(cls, address: str, query: str = "") -> Self:
        """Open the page and wait until it is drawn."""
        visitor = await cls.arrive(address, query)
        await visitor.run()
        return visitor

    async def leave(self) -> None:
        """Close the page."""
        await self.socket.close()

    def vanish(self) -> None:
        """Go without a word, as a browser that is killed."""
        self.socket.transport.abort()

    async def ask(self, *states: WidgetState) -> None:
        """Set widgets, and have the page run; a trigger is forgotten at once, as in a browser."""
        message = BackMsg()
        client = message.rerun_script
        client.query_string = self.query
        client.context_info.url = self.address
        for state in states:
            self.states[state.id] = state
        client.widget_states.widgets.extend(self.states.values())
        for state in states:
            if state.WhichOneof("value") in ("trigger_value", "json_trigger_value"):
                del self.states[state.id]
        await self.socket.send(message.SerializeToString())

    async def run(self, *states: WidgetState) -> None:
        """The same, and wait until the page is drawn."""
        await self.ask(*states)
        await self.drawn()

    async def drawn(self) -> None:
        """Wait until the page is drawn."""
        while not self._hear(await self._next()):
            pass

    def _hear(self, message: ForwardMsg) -> bool:
        """Whether that was the last message of a run."""
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.session = message.new_session.initialize.session_id
            self.fresh, self.said = {}, []
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            element = message.delta.new_element
            if element.WhichOneof("type") == "progress":
                self.said.append(element.progress.text)
            self.fresh[tuple(message.metadata.delta_path)] = element
        # Cut off by a later run: what was drawn until then is not the answer.
        early = message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
        if kind == "script_finished" and not early:
            self.elements = self.fresh
            return True
        return False

    async def until(self, there: Callable[[ForwardMsg], bool]) -> ForwardMsg:
        """The next message that is of a kind."""
        while not there(message := await self._next()):
            self._hear(message)
        self._hear(message)
        return message

    async def _next(self) -> ForwardMsg:
        data = await asyncio.wait_for(self.socket.recv(), PATIENCE)
        assert isinstance(data, bytes)
        message = ForwardMsg()
        message.ParseFromString(data)
        assert message.WhichOneof("type") != "ref_hash", "nothing is kept here"
        return message

    def find(self, kind: str, key: str) -> Any:
        """The widget of that kind with that key; a component, or a widget's element."""
        for element in self.elements.values():
            if element.WhichOneof("type") == kind:
                found = getattr(element, kind)
                if found.id.endswith(f"-{key}"):
                    return found
        raise KeyError(f"there is no {kind} {key}")

    def texts(self, kind: str) -> list[str]:
        """What all elements of a kind say: `alert`, `markdown`."""
        every = (e for e in self.elements.values() if e.WhichOneof("type") == kind)
        return [getattr(element, kind).body for element in every]

    def component(self, key: str) -> dict[str, Any]:
        """What a picker, say, was given."""
        given: dict[str, Any] = json.loads(self.find("bidi_component", key).json)
        return given

    async def pick(self, key: str, cell: tuple[int, int]) -> None:
        """Click on a cell of a picker."""
        number = self.find("bidi_component", key).id
        event = json.dumps([{"event": "picked", "value": cell}])
        name = f"$$STREAMLIT_INTERNAL_KEY_{number}__events"
        await self.run(WidgetState(id=name, json_trigger_value=event))

    def slid(self, key: str, value: float) -> WidgetState:
        """A slider moved to a place."""
        state = WidgetState(id=self.find("slider", key).id)
        state.double_array_value.data.append(value)
        return state

    async def upload(self, name: str, data: bytes) -> None:
        """Drop a file on the page's uploader."""
        widget = self.find("file_uploader", "upload")
        message = BackMsg()
        message.file_urls_request.request_id = str(uuid.uuid4())
        message.file_urls_request.file_names.append(name)
        message.file_urls_request.session_id = self.session
        await self.socket.send(message.SerializeToString())
        got = await self.until(lambda each: each.WhichOneof("type") == "file_urls_response")
        (urls,) = got.file_urls_response.file_urls
        await asyncio.to_thread(self._put, urls.upload_url, name, data)
        state = self.states.get(widget.id) or WidgetState(id=widget.id)
        info = state.file_uploader_state_value.uploaded_file_info.add()
        info.file_id, info.name, info.size = urls.file_id, name, len(data)
        info.file_urls.CopyFrom(urls)
        await self.run(state)

    def _put(self, url: str, name: str, data: bytes) -> None:
        mark = uuid.uuid4().hex
        head = (
            f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: image/png\r\n\r\n"
        )
        request = urllib.request.Request(
            f"{self.address.rstrip('/')}/{url.lstrip('/')}",
            head.encode() + data + f"\r\n--{mark}--\r\n".encode(),
            {
                "Content-Type": f"multipart/form-data; boundary={mark}",
                "Cookie": f"{COOKIE}={self.xsrf}",
                "X-Xsrftoken": self.xsrf,
            },
            method="PUT",
        )
        urllib.request.urlopen(request, timeout=PATIENCE).close()

    async def download(self, label: str) -> bytes:
        """Press a download button, and get the file that is made then."""
        button = next(
            element.download_button
            for element in self.elements.values()
            if element.WhichOneof("type") == "download_button"
            and element.download_button.label == label
        )
        message = BackMsg()
        request = message.backend_operation_request
        request.request_id, request.session_id = str(uuid.uuid4()), self.session
        request.deferred_file.file_id = button.deferred_file_id
        await self.socket.send(message.SerializeToString())
        got = await self.until(lambda each: each.WhichOneof("type") == "backend_operation_response")
        answer = got.backend_operation_response
        assert not answer.error_msg, answer.error_msg
        url = f"{self.address.rstrip('/')}{answer.deferred_file.url}"

        def fetch() -> bytes:
            with urllib.request.urlopen(url, timeout=PATIENCE) as file:
                data: bytes = file.read()
            return data

        return await asyncio.to_thread(fetch)


def _cookie(address: str, headers: dict[str, str]) -> str:
    request = urllib.request.Request(f"{address.rstrip('/')}/_stcore/health", headers=headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        cookies = SimpleCookie(", ".join(answer.headers.get_all("Set-Cookie") or ()))
    return cookies[COOKIE].value if COOKIE in cookies else "none"
