"""MQTT: the messages of topics, and messages to a topic. The extra `mqtt`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from spaseq.live.payloads import ID, Decode, OnBad, events_of, json_bytes, json_lines
from spaseq.live.waiting import Attempts, missing_client

try:
    from aiomqtt import Client, MqttError
except ImportError as error:
    raise missing_client("aiomqtt", "mqtt") from error


class MqttSource:
    """The messages of some topics, each a payload.

    MQTT has no positions. The client acknowledges a message as it receives it, so what was received behind the latest
    saved state is not delivered again.
    """

    def __init__(
        self,
        topics: str | Sequence[str],
        *,
        host: str = "localhost",
        port: int = 1883,
        qos: int = 1,
        decode: Decode = json_lines,
        on_bad: OnBad | None = None,
        attempts: int = 10,
        **options: Any,
    ) -> None:
        """`topics` may have the wildcards of MQTT. `qos`: the quality of service. `attempts`: as of `WebSocketSource`.
        `options`: those of `aiomqtt.Client`; with an
        `identifier` and `clean_session=False`, the broker keeps what comes while there is no connection, if it can."""
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._qos = qos
        self._options = {"hostname": host, "port": port, **options}
        self._decode = decode
        self._on_bad = on_bad
        self._attempts = Attempts(attempts)
        self._client: Any = None

    @property
    def idle(self) -> bool:
        """True while it is connected, and has given all messages that it received."""
        return self._client is not None and not len(self._client.messages)

    def __aiter__(self) -> AsyncIterator[list[Any]]:
        return self._batches()

    async def _batches(self) -> AsyncIterator[list[Any]]:
        while True:
            try:
                async with Client(**self._options) as client:
                    for topic in self._topics:
                        await client.subscribe(topic, qos=self._qos)
                    self._client = client
                    self._attempts.succeed()
                    async for message in client.messages:
                        place = f"{message.topic}"
                        payload = message.payload if isinstance(message.payload, bytes) else str(message.payload)
                        yield events_of(payload, self._decode, self._on_bad, place)
            except MqttError as error:
                await self._attempts.wait(error)
            finally:
                self._client = None


class MqttSink:
    """Each record is a message of JSON, with its id as the member `match_id`. The broker has it when `send` returns, if
    `qos` is 1 or 2. Connects with the first record; raises the errors of `aiomqtt`."""

    def __init__(self, topic: str, *, host: str = "localhost", port: int = 1883, qos: int = 1, **options: Any) -> None:
        self._topic = topic
        self._qos = qos
        self._options = {"hostname": host, "port": port, **options}
        self._client: Any = None

    async def send(self, record: Mapping[str, Any], *, id: str | None = None) -> None:
        """Publish the record."""
        if self._client is None:
            client = Client(**self._options)
            await client.__aenter__()
            self._client = client
        payload = json_bytes(record if id is None else {**record, ID: id})
        await self._client.publish(self._topic, payload, qos=self._qos)

    async def aclose(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            await client.__aexit__(None, None, None)
