"""Servers that a test starts in its own loop: the packages for them are in the group `servers` of pyproject.toml."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """The URL of a server of Redis' protocol."""
    pytest.importorskip("redis", reason="redis, the client of Redis, is not installed")
    fakeredis = pytest.importorskip("fakeredis", reason="fakeredis, a server of Redis' protocol, is not installed")
    port = free_port()
    server = fakeredis.TcpFakeServer(("127.0.0.1", port), server_type="redis")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"redis://127.0.0.1:{port}"
    finally:
        server.shutdown()
        server.server_close()


@contextlib.asynccontextmanager
async def mqtt_broker(port: int) -> AsyncIterator[None]:
    """A broker of MQTT at this port."""
    pytest.importorskip("aiomqtt", reason="aiomqtt, the client of MQTT, is not installed")
    broker = pytest.importorskip("amqtt.broker", reason="amqtt, a broker of MQTT, is not installed")
    config = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }
    made = broker.Broker(config)
    await made.start()
    try:
        yield
    finally:
        await made.shutdown()


class SseServer:
    """An HTTP server of server-sent events, which goes on behind `Last-Event-ID`. `asked`: the ids that it was asked
    for; a connection has `each` events and is then cut."""

    def __init__(self, payloads: Sequence[str], each: int) -> None:
        self.payloads = payloads
        self.each = each
        self.asked: list[str | None] = []
        self.url = ""

    async def __aenter__(self) -> SseServer:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        line = next((line for line in head.split("\r\n") if line.startswith("last-event-id:")), None)
        last = None if line is None else line.partition(":")[2].strip()
        self.asked.append(last)
        begin = 0 if last is None else int(last) + 1
        if begin >= len(self.payloads):
            writer.write(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: hello\n\n")
            for number in range(begin, min(begin + self.each, len(self.payloads))):
                data = "".join(f"data: {part}\n" for part in self.payloads[number].split("\n"))
                writer.write(f"event: tick\nid: {number}\n{data}\n".encode())
            writer.write(b"id: 999\ndata: unfinished")
        await writer.drain()
        writer.close()
