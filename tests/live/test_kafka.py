"""Kafka as a source and a sink, against a broker that the test starts (Java, and Maven, which fetches it)."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

import ceql
from spaseq.live import match_id

pytest.importorskip("aiokafka", reason="aiokafka, the client of Kafka, is not installed")
if shutil.which("java") is None:
    pytest.skip("no Java, which runs Kafka", allow_module_level=True)

from tests.spark.kafka.broker import Broker

PAIRS = "SELECT x.v AS v, x.k AS k WHERE A AS x ; B AS y PARTITION BY [k] WITHIN 2 EVENTS"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("broker"))
    made.start()
    yield made
    made.kill()


async def _send(broker: Broker, topic: str, messages: list[tuple[int, Any]]) -> None:
    """Messages of (partition, event); None and bytes are sent as they are."""
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers=broker.servers) as producer:
        for partition, event in messages:
            raw = event if event is None or isinstance(event, bytes) else json.dumps(event).encode()
            await producer.send_and_wait(topic, raw, key=b"" if raw is None else None, partition=partition)


async def _received(broker: Broker, topic: str) -> list[dict[str, Any]]:
    from aiokafka import AIOKafkaConsumer

    found: list[dict[str, Any]] = []
    async with AIOKafkaConsumer(topic, bootstrap_servers=broker.servers, auto_offset_reset="earliest") as consumer:
        while batch := await consumer.getmany(timeout_ms=3_000):
            found += [{"key": m.key, **json.loads(m.value)} for messages in batch.values() for m in messages]
    return found


def _messages(count: int) -> list[tuple[int, Any]]:
    """Pairs of A and B, whose two events are in one partition; the partitions take turns."""
    return [(i // 2 % 2, {"type": "AB"[i % 2], "v": i, "k": i // 2 % 2}) for i in range(count)]


def test_from_a_topic_to_a_topic_with_a_crash_between(broker: Broker) -> None:
    from spaseq.live.kafka import KafkaSink, KafkaSource

    query = ceql.compile("SELECT x.v AS v WHERE A AS x ; B AS y FILTER y.v = x.v + 1 PARTITION BY [k]")

    seen: set[int] = set()

    async def life(state: bytes | None, enough: int) -> list[bytes]:
        sink = KafkaSink("alerts", servers=broker.servers)
        saved: list[bytes] = []
        source = KafkaSource("events", servers=broker.servers, batch=4, group="live")
        async with query.alive(source, state=state, save=saved.append, every=0) as alive:
            async for match in alive:
                await sink.send({"v": match.row["v"]}, id=match_id(query, match))
                seen.add(match.row["v"])
                if len(seen) == enough:
                    break
        await sink.aclose()
        return saved

    async def main() -> None:
        await _send(broker, "events", [*_messages(40), (0, None), (1, b"")])
        saved = await asyncio.wait_for(life(None, 12), 60)
        assert len(saved) > 2
        await asyncio.wait_for(life(saved[1], 20), 60)
        alerts = await _received(broker, "alerts")
        assert {alert["v"] for alert in alerts} == set(range(0, 40, 2))
        assert all(alert["key"].decode() == alert["match_id"] for alert in alerts)
        assert len({alert["match_id"] for alert in alerts}) >= 20

    asyncio.run(main())


def test_offsets_of_kept_states_are_committed_for_the_group(broker: Broker) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    from spaseq.live.kafka import KafkaSource

    async def main() -> None:
        await _send(broker, "counted", _messages(8))
        source = KafkaSource("counted", servers=broker.servers, group="counting")
        async with ceql.compile(PAIRS).alive(source, save=lambda state: None, every=0) as alive:
            for _ in range(4):
                await asyncio.wait_for(anext(alive), 30)
            await alive.save()
            position = alive.position
        assert position == {"counted 0": 4, "counted 1": 4}
        async with AIOKafkaConsumer(bootstrap_servers=broker.servers, group_id="counting") as consumer:
            assert [await consumer.committed(TopicPartition("counted", n)) for n in (0, 1)] == [4, 4]

    asyncio.run(main())


def test_topics_that_are_not_there_and_offsets_that_are_gone(broker: Broker) -> None:
    from spaseq.live.kafka import KafkaSource

    async def take(source: Any, state: bytes | None = None) -> Any:
        async with ceql.compile(PAIRS).alive(source, state=state) as alive:
            return await asyncio.wait_for(anext(alive), 30)

    async def main() -> None:
        await _send(broker, "short", _messages(2))
        source = KafkaSource("short", servers=broker.servers)
        await source.seek({"short 0": 99})
        with pytest.raises(ceql.EventError, match="the state goes on at offset 99, and the partition has 0 to 2"):
            await take(source)
        with pytest.raises(ceql.OptionError, match="is no position of Kafka"):
            await source.seek(7)

    asyncio.run(main())
    with pytest.raises(ceql.OptionError, match="not a place of a partition"):
        KafkaSource("short", start="newest")  # type: ignore[arg-type]


def test_the_clock_goes_on_when_all_partitions_are_read(broker: Broker) -> None:
    from spaseq.live.kafka import KafkaSource

    query = ceql.compile("SELECT * WHERE A AS x ; NOT B WITHIN 1 SECOND")

    async def main(topic: str) -> float:
        begun = time.time()
        await _send(broker, topic, [(0, {"type": "A", "time": begun})])
        source = KafkaSource(topic, servers=broker.servers)
        async with query.alive(source, clock="100ms", time="time") as alive:
            await asyncio.wait_for(anext(alive), 30)
            return time.time() - begun - 1.1

    assert 0 <= min(asyncio.run(main(topic)) for topic in ("still", "silent")) < 30


def test_a_broker_that_is_killed_and_comes_again(broker: Broker) -> None:
    from spaseq.live.kafka import KafkaSource

    async def main() -> list[int]:
        await _send(broker, "again", _messages(4))
        found = []
        async with ceql.compile(PAIRS).alive(KafkaSource("again", servers=broker.servers)) as alive:
            found += [(await asyncio.wait_for(anext(alive), 30)).row["v"] for _ in range(2)]
            broker.kill()
            await asyncio.sleep(1)
            await asyncio.to_thread(broker.start)
            await _send(broker, "again", _messages(8)[4:])
            found += [(await asyncio.wait_for(anext(alive), 90)).row["v"] for _ in range(2)]
        return sorted(found)

    assert asyncio.run(main()) == [0, 2, 4, 6]
