"""Kafka: the messages of topics, by partitions and offsets, and messages to a topic. The extra `kafka`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Literal

from spaseq.core.errors import EventError, OptionError
from spaseq.live.delivery import Delivery
from spaseq.live.payloads import ID, Decode, OnBad, events_of, json_bytes, json_lines
from spaseq.live.waiting import missing_client

try:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
except ImportError as error:
    raise missing_client("aiokafka", "kafka") from error

_WAIT: Final = 200
"""Milliseconds for which a request for messages waits."""


class KafkaSource:
    """The messages of topics, each a payload; a position is a dict of offsets: `{"topic 0": 17}`.

    One source reads all partitions that the topics have when it starts; none is shared with other members of a group.
    The events of a partition are in its order, those of several as they come, so a lateness must cover the time by
    which one partition may be behind another. With a `group`, the offsets that a saved state covers are committed for
    it. They show tools how far a consumer is behind; the state alone says where to go on. Messages without a value
    count for nothing.
    """

    def __init__(
        self,
        topics: str | Sequence[str],
        *,
        servers: str = "localhost:9092",
        group: str | None = None,
        start: Literal["earliest", "latest"] = "earliest",
        batch: int = 1_000,
        decode: Decode = json_lines,
        on_bad: OnBad | None = None,
        **options: Any,
    ) -> None:
        """`start`: the place in a partition of which the state has no offset. `batch`: the most messages that come at
        once. `options`: those of `aiokafka.AIOKafkaConsumer`, which tries to reach the servers again by itself."""
        if start not in ("earliest", "latest"):
            raise OptionError(f"start {start!r}: not a place of a partition", "'earliest' or 'latest'")
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._group = group
        self._start = start
        self._batch = batch
        self._decode = decode
        self._on_bad = on_bad
        given = {"bootstrap_servers": servers, "group_id": group, "auto_offset_reset": "none"}
        self._options = {**given, **options, "enable_auto_commit": False}
        self._offsets: dict[str, int] = {}
        self._consumer: Any = None
        self.idle: bool = False
        """True if every partition was read to its end when it was asked last."""

    async def seek(self, position: Any) -> None:
        """Begin at these offsets. `OptionError` for what is no position of Kafka."""
        if not isinstance(position, dict) or not all(type(offset) is int for offset in position.values()):
            raise OptionError(f"{position!r} is no position of Kafka", "it is a dict of offsets: {'topic 0': 17}")
        self._offsets = dict(position)

    async def commit(self, position: Any) -> None:
        """Commit the offsets for the group, if there is one."""
        if self._group is not None and self._consumer is not None:
            await self._consumer.commit({_partition(name): offset for name, offset in position.items()})

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self._deliveries()

    async def _deliveries(self) -> AsyncIterator[Delivery]:
        partitions = await self._places()
        self._consumer = consumer = AIOKafkaConsumer(**self._options)
        await consumer.start()
        try:
            consumer.assign(list(partitions))
            for partition, offset in partitions.items():
                consumer.seek(partition, offset)
            while True:
                found = await consumer.getmany(timeout_ms=_WAIT, max_records=self._batch)
                events: list[Any] = []
                for partition, messages in found.items():
                    for message in messages:
                        if message.value is not None:
                            place = f"{_name(partition)}, offset {message.offset}"
                            events += events_of(message.value, self._decode, self._on_bad, place)
                    self._offsets[_name(partition)] = messages[-1].offset + 1
                self.idle = not found and all([await _is_read(consumer, partition) for partition in partitions])
                if found:
                    yield Delivery(events, dict(self._offsets))
        finally:
            self.idle, self._consumer = False, None
            await consumer.stop()

    async def _places(self) -> dict[Any, int]:
        """The partitions, each with the offset to begin at. `EventError` for a topic that is not there, or has lost
        messages that the state does not cover."""
        options = {**self._options, "group_id": None}  # a consumer of a group is assigned once
        async with AIOKafkaConsumer(**options) as consumer:
            there = await consumer.topics()
            for topic in self._topics:
                if topic not in there:
                    raise EventError("there is no such topic", source=topic, hint="make it, with its partitions, first")
            firsts = [TopicPartition(topic, 0) for topic in self._topics]
            consumer.assign(firsts)
            await consumer.end_offsets(firsts)  # behind this the client knows the partitions of the topics
            numbers = {topic: sorted(consumer.partitions_for_topic(topic) or ()) for topic in self._topics}
            partitions = [TopicPartition(topic, number) for topic in self._topics for number in numbers[topic]]
            first = await consumer.beginning_offsets(partitions)
            last = await consumer.end_offsets(partitions)
        places = {}
        for partition in partitions:
            low, high = first[partition], last[partition]
            offset = self._offsets.setdefault(_name(partition), low if self._start == "earliest" else high)
            if not low <= offset <= high:
                raise EventError(
                    f"the state goes on at offset {offset}, and the partition has {low} to {high}",
                    source=_name(partition),
                    hint="its messages were removed, or it was made anew; without a state it is read from its start",
                )
            places[partition] = offset
        return places

    async def aclose(self) -> None:
        """Nothing: the end of the reading closes the consumer."""


def _name(partition: Any) -> str:
    return f"{partition.topic} {partition.partition}"


def _partition(name: str) -> Any:
    topic, _, number = name.rpartition(" ")
    return TopicPartition(topic, int(number))


async def _is_read(consumer: Any, partition: Any) -> bool:
    """True if no message of the partition is behind the last one read, as far as the client knows."""
    end = consumer.highwater(partition)
    return end is not None and await consumer.position(partition) >= end


class KafkaSink:
    """Each record is a message of JSON, with its id as the key of the message and as the member `match_id`.

    All replicas that are in step have it when `send` returns; the client sends a message again without doubling it.
    Connects with the first record. `options`: those of `aiokafka.AIOKafkaProducer`, whose errors are raised.
    """

    def __init__(self, topic: str, *, servers: str = "localhost:9092", **options: Any) -> None:
        self._topic = topic
        self._options = {"bootstrap_servers": servers, "acks": "all", "enable_idempotence": True, **options}
        self._producer: Any = None

    async def send(self, record: Mapping[str, Any], *, id: str | None = None) -> None:
        """Send the record, and wait until the servers have it."""
        if self._producer is None:
            producer = AIOKafkaProducer(**self._options)
            await producer.start()
            self._producer = producer
        payload = json_bytes(record if id is None else {**record, ID: id})
        await self._producer.send_and_wait(self._topic, payload, key=None if id is None else id.encode())

    async def aclose(self) -> None:
        """Close the connections."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()
