"""WebSocket: the messages that a server sends, and messages to a server. The extra `websocket`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from spaseq.live.payloads import ID, Decode, OnBad, events_of, json_bytes, json_lines
from spaseq.live.waiting import Attempts, missing_client

try:
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, InvalidHandshake
except ImportError as error:
    raise missing_client("websockets", "websocket") from error


class WebSocketSource:
    """The messages of a server, each a payload. It ends if the server closes the connection as it should (1000, 1001).

    A WebSocket has no positions: what the server sends while there is no connection, and what was received behind the
    latest saved state, is not delivered again. `greeting` is sent first in each connection: a text or bytes, such as a
    subscription.
    """

    def __init__(
        self,
        url: str,
        *,
        decode: Decode = json_lines,
        on_bad: OnBad | None = None,
        greeting: str | bytes | None = None,
        attempts: int = 10,
        **options: Any,
    ) -> None:
        """`attempts`: failures in a row to connect, behind which the error is raised. `options`: those of
        `websockets.connect`."""
        self._url = url
        self._decode = decode
        self._on_bad = on_bad
        self._greeting = greeting
        self._attempts = Attempts(attempts)
        self._options = options
        self.idle: bool = False
        """True while it is connected and waits."""

    def __aiter__(self) -> AsyncIterator[list[Any]]:
        return self._batches()

    async def _batches(self) -> AsyncIterator[list[Any]]:
        while True:
            try:
                async with connect(self._url, **self._options) as socket:
                    if self._greeting is not None:
                        await socket.send(self._greeting)
                    while True:
                        self.idle = True
                        payload = await socket.recv()
                        self.idle = False
                        self._attempts.succeed()
                        yield events_of(payload, self._decode, self._on_bad, self._url)
            except ConnectionClosedOK:
                return
            except (ConnectionClosed, InvalidHandshake, OSError, TimeoutError) as error:
                await self._attempts.wait(error)
            finally:
                self.idle = False


class WebSocketSink:
    """Each record is a message of JSON, with its id as the member `match_id`.

    It is sent when `send` returns, and no answer is waited for: a record may be lost with the connection. Connects
    with the first record; raises the errors of `websockets`.
    """

    def __init__(self, url: str, **options: Any) -> None:
        self._url = url
        self._options = options
        self._socket: Any = None

    async def send(self, record: Mapping[str, Any], *, id: str | None = None) -> None:
        """Send the record."""
        if self._socket is None:
            self._socket = await connect(self._url, **self._options)
        await self._socket.send(json_bytes(record if id is None else {**record, ID: id}).decode())

    async def aclose(self) -> None:
        """Close the connection."""
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()
