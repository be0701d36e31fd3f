"""Server-sent events over HTTP, by their ids. The extra `sse`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from spaseq.core.errors import EventError, OptionError
from spaseq.live.delivery import Delivery
from spaseq.live.payloads import Decode, OnBad, events_of, json_lines
from spaseq.live.waiting import Attempts, missing_client

try:
    import httpx
except ImportError as error:
    raise missing_client("httpx", "sse") from error

_LONGEST: Final = 1 << 26
"""Characters of the data of an event."""


class SseSource:
    """The server-sent events of a URL; the data of each is a payload, and a position is the id of one.

    It connects again when the connection ends, with the id of the last event as `Last-Event-ID`, and ends if the server
    answers 204 (HTML Standard, 9.2). If a server gives its events no ids, or does not go on behind one, what it sends
    while there is no connection is lost.
    """

    def __init__(
        self,
        url: str,
        *,
        decode: Decode = json_lines,
        on_bad: OnBad | None = None,
        attempts: int = 10,
        **options: Any,
    ) -> None:
        """`attempts`: as of `WebSocketSource`. `options`: those of `httpx.AsyncClient`, such as `headers`."""
        self._url = url
        self._decode = decode
        self._on_bad = on_bad
        self._attempts = Attempts(attempts)
        self._options = {"timeout": httpx.Timeout(10, read=None), **options}
        self._last: str | None = None
        self.idle: bool = False
        """True while it is connected and waits."""

    async def seek(self, position: Any) -> None:
        """Begin behind an event. `OptionError` for what is no id."""
        if not isinstance(position, str):
            raise OptionError(f"{position!r} is no position of server-sent events", "it is the id of one, a text")
        self._last = position

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self._deliveries()

    async def _deliveries(self) -> AsyncIterator[Delivery]:
        async with httpx.AsyncClient(**self._options) as client:
            while True:
                headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
                if self._last is not None:
                    headers["Last-Event-ID"] = self._last
                try:
                    async with client.stream("GET", self._url, headers=headers) as response:
                        if response.status_code == 204:
                            return
                        response.raise_for_status()
                        async for delivery in self._read(response):
                            self._attempts.succeed()
                            yield delivery
                    raise httpx.RemoteProtocolError("the server ended the connection")
                except httpx.TransportError as error:
                    await self._attempts.wait(error)
                finally:
                    self.idle = False

    async def _read(self, response: Any) -> AsyncIterator[Delivery]:
        """The events of a connection. One that its end leaves unfinished is dropped, as the standard has it."""
        data: list[str] = []
        size, number = 0, self._last
        self.idle = True
        async for line in response.aiter_lines():
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
                size += len(value)
                if size > _LONGEST:
                    raise EventError("an event has more than 64 million characters", source=self._url)
            elif name == "id" and "\0" not in value:
                number = value
            elif not line:
                self._last = number
                if data:
                    self.idle = False
                    place = self._url if number is None else f"{self._url}, event {number}"
                    yield Delivery(events_of("\n".join(data), self._decode, self._on_bad, place), number)
                    self.idle = True
                data, size = [], 0
