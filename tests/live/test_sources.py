"""WebSocket, MQTT and server-sent events, against servers that the tests start; and messages that are graphs."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

import ceql
import spaseq
from spaseq.live import graphs, json_lines
from tests.live.servers import SseServer, free_port, mqtt_broker

PAIRS = "SELECT x.v AS v WHERE A AS x ; B AS y WITHIN 2 EVENTS"
EVENTS: list[dict[str, Any]] = [{"type": "AB"[i % 2], "v": i} for i in range(8)]


async def _rows(alive: Any, count: int) -> list[int]:
    async with alive:
        return [(await asyncio.wait_for(anext(alive), 20)).row["v"] for _ in range(count)]


# -- payloads


def test_json_lines() -> None:
    assert json_lines(b'{"a": 1}\n\n{"a": "\xc3\xa9"}') == [{"a": 1}, {"a": "é"}] and json_lines(b"") == []
    for wrong in (b"{", b'{"a": 1}\n7', b'{"a": "\xff"}'):
        with pytest.raises(ceql.EventError, match=r"line [12] is no"):
            json_lines(wrong)


TURTLE = b'@prefix : <urn:e#> . :x :a 1 ; :at "1970-01-01T00:00:05Z" .'
QUADS = b'<urn:x> <urn:e#a> "1" <urn:g> .\n<urn:g> <urn:e#at> "5" .\n'


def test_graphs() -> None:
    (event,) = graphs("urn:s", time="urn:e#at")(TURTLE)
    assert (event.stream, event.time, len(event.triples), event.graph) == ("urn:s", 5 * 10**9, 2, None)
    (event,) = graphs("urn:s", time="urn:e#at", format="nquads", time_unit="ms")(QUADS)
    assert (event.time, len(event.triples), str(event.graph)) == (5 * 10**6, 1, "urn:g")
    (event,) = graphs("urn:s")(TURTLE)
    assert abs(event.time - time.time_ns()) < 60 * 10**9


@pytest.mark.parametrize(
    ("decode", "payload", "problem"),
    [
        (graphs("urn:s"), b"<urn:x> <urn:y>", "is no turtle"),
        (graphs("urn:s", time="urn:t"), TURTLE, "has no time: no literal behind <urn:t>"),
        (graphs("urn:s", time="urn:e#at"), TURTLE.replace(b"1970-", b"noon"), "is not a time"),
        (graphs("urn:s", format="nquads"), QUADS + QUADS.replace(b":g", b":h"), "several named graphs"),
    ],
)
def test_graphs_that_cannot_be_read(decode: Callable[[bytes], list[Any]], payload: bytes, problem: str) -> None:
    with pytest.raises(spaseq.EventError, match=problem):
        decode(payload)


def test_a_format_that_is_none() -> None:
    with pytest.raises(spaseq.OptionError, match="is none of RDF"):
        graphs("urn:s", format="xml")


@pytest.mark.parametrize(
    ("extra", "package"),
    [("kafka", "aiokafka"), ("mqtt", "aiomqtt"), ("redis", "redis.asyncio"), ("sse", "httpx"),
     ("websocket", "websockets.asyncio.client")],
)  # fmt: skip
def test_a_client_that_is_not_installed(extra: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"spaseq.live.{extra}", raising=False)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'spaseq\[{extra}\]'"):
        importlib.import_module(f"spaseq.live.{extra}")


# -- WebSocket


def test_websocket_source_and_sink() -> None:
    pytest.importorskip("websockets", reason="websockets is not installed")
    from websockets.asyncio.server import serve

    from spaseq.live.websocket import WebSocketSink, WebSocketSource

    got: list[Any] = []
    connections = 0

    async def answer(socket: Any) -> None:
        nonlocal connections
        if socket.request.path == "/alerts":
            async for message in socket:
                got.append(json.loads(message))
            return
        connections += 1
        got.append(await socket.recv())
        half = EVENTS[:4] if connections == 1 else EVENTS[4:]
        for event in half:
            await socket.send(json.dumps(event) if event["v"] % 3 else json.dumps(event).encode())
        if connections == 1:
            await socket.close(1011)  # an error of the server: the source connects again

    async def main() -> list[int]:
        async with serve(answer, "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            sink = WebSocketSink(f"{url}/alerts")
            await sink.send({"v": 1}, id="name")
            await sink.aclose()
            source = WebSocketSource(url, greeting="subscribe")
            return [match.row["v"] async for match in ceql.compile(PAIRS).alive(source)]

    assert asyncio.run(main()) == [0, 2, 4, 6]
    assert got == [{"v": 1, "match_id": "name"}, "subscribe", "subscribe"] and connections == 2


def test_a_websocket_that_nobody_serves() -> None:
    pytest.importorskip("websockets", reason="websockets is not installed")
    from spaseq.live.websocket import WebSocketSource

    with pytest.raises(OSError):
        asyncio.run(_rows(ceql.compile(PAIRS).alive(WebSocketSource("ws://127.0.0.1:1", attempts=1)), 1))


# -- server-sent events


def test_server_sent_events_go_on_behind_the_last() -> None:
    pytest.importorskip("httpx", reason="httpx is not installed")
    from spaseq.live.sse import SseSource

    async def main() -> None:
        payloads = [json.dumps(event, indent=None) for event in EVENTS]
        payloads[3] = payloads[3] + "\n" + json.dumps({"type": "C"})  # two lines of data
        saved: list[bytes] = []
        query = ceql.compile(PAIRS)
        async with SseServer(payloads, each=3) as server:
            found = [match.row["v"] async for match in query.alive(SseSource(server.url), save=saved.append, every=0)]
            assert found == [0, 2, 4, 6] and server.asked == [None, "2", "5", "7"]
        async with SseServer(payloads, each=3) as server:
            again = query.alive(SseSource(server.url), state=saved[4])
            assert [match.row["v"] async for match in again] == [4, 6] and server.asked[0] == "4"

    asyncio.run(main())


# -- MQTT


def test_mqtt_source_and_sink() -> None:
    port = free_port()

    async def main() -> None:
        async with mqtt_broker(port):
            from spaseq.live.mqtt import MqttSink, MqttSource

            source = MqttSource("plant/+/events", port=port, host="127.0.0.1")
            sink = MqttSink("plant/1/events", port=port, host="127.0.0.1")
            task = asyncio.create_task(_rows(ceql.compile(PAIRS).alive(source), 4))
            while not source.idle:
                await asyncio.sleep(0.02)
            for event in EVENTS:
                await sink.send(event, id=str(event["v"]))
            assert await task == [0, 2, 4, 6]
            await sink.aclose()

    asyncio.run(main())


def test_a_broker_that_ends_and_comes_again() -> None:
    pytest.importorskip("aiomqtt", reason="aiomqtt, the client of MQTT, is not installed")
    from spaseq.live.mqtt import MqttSink, MqttSource

    port = free_port()

    async def main() -> None:
        source = MqttSource("again", port=port, host="127.0.0.1")
        task = asyncio.create_task(_rows(ceql.compile(PAIRS).alive(source), 2))
        for half in (EVENTS[:2], EVENTS[2:4]):
            async with mqtt_broker(port):
                sink = MqttSink("again", port=port, host="127.0.0.1")
                while not source.idle:
                    await asyncio.sleep(0.02)
                for event in half:
                    await sink.send(event)
                await sink.aclose()
                await asyncio.sleep(0.2)
            while source.idle and not task.done():
                await asyncio.sleep(0.02)
        assert await task == [0, 2]

    asyncio.run(asyncio.wait_for(main(), 60))


def test_mqtt_messages_that_are_graphs() -> None:
    port = free_port()
    query = spaseq.compile(
        "PREFIX : <urn:e#> SELECT ?v FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?x :a ?v } }"
    )

    async def main() -> None:
        async with mqtt_broker(port):
            from aiomqtt import Client

            from spaseq.live.mqtt import MqttSource

            source = MqttSource("g", port=port, host="127.0.0.1", decode=graphs("urn:s", time="urn:e#at"))
            async with query.alive(source) as alive, Client("127.0.0.1", port) as client:
                task = asyncio.create_task(anext(alive))
                while not source.idle:
                    await asyncio.sleep(0.02)
                await client.publish("g", TURTLE, qos=1)
                await client.publish("g", TURTLE.replace(b":05Z", b":06Z"), qos=1)
                assert str((await asyncio.wait_for(task, 30)).bindings["v"]) == "1"

    asyncio.run(main())
