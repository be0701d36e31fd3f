"""Redis Streams as a source and a sink, against a server that the test starts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

import ceql
from spaseq.live import match_id
from tests.live.servers import redis_server

PAIRS = "SELECT x.v AS v WHERE A AS x ; B AS y WITHIN 2 EVENTS"


@pytest.fixture
def url() -> Iterator[str]:
    with redis_server() as found:
        yield found


async def _fill(url: str, stream: str, events: list[dict[str, Any]]) -> None:
    from redis.asyncio import Redis

    async with Redis.from_url(url) as client:
        for event in events:
            await client.xadd(stream, {"data": json.dumps(event)})


async def _entries(url: str, stream: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
    from redis.asyncio import Redis

    async with Redis.from_url(url) as client:
        found: list[tuple[bytes, dict[bytes, bytes]]] = await client.xrange(stream)
        return found


def _events(count: int) -> list[dict[str, Any]]:
    return [{"type": "AB"[i % 2], "v": i} for i in range(count)]


def test_from_a_stream_to_a_stream_without_a_doubled_alert(url: str) -> None:
    """The second life begins at an old state, and finds matches again that the sink has."""
    from spaseq.live.redis import RedisSink, RedisSource

    query = ceql.compile(PAIRS)

    async def life(state: bytes | None, stop_behind: int) -> list[bytes]:
        sink, written = RedisSink("alerts", url=url), 0
        saved: list[bytes] = []
        source = RedisSource("events", url=url, batch=3)
        async with query.alive(source, state=state, save=saved.append, every=0) as alive:
            async for match in alive:
                await sink.send({"v": match.row["v"]}, id=match_id(query, match))
                written += 1
                if written == stop_behind:
                    break
        await sink.aclose()
        return saved

    async def main() -> None:
        await _fill(url, "events", _events(20))
        saved = await life(None, 4)
        assert saved
        await life(saved[0], 9)
        alerts = await _entries(url, "alerts")
        assert [json.loads(fields[b"data"])["v"] for _, fields in alerts] == list(range(0, 20, 2))
        assert len({fields[b"match_id"] for _, fields in alerts}) == 10

    asyncio.run(main())


def test_trim_removes_what_a_kept_state_covers_and_no_more(url: str) -> None:
    from spaseq.live.redis import RedisSource

    async def main() -> None:
        await _fill(url, "events", _events(10))
        source = RedisSource("events", url=url, batch=4, trim=True)
        seen = []
        async with ceql.compile(PAIRS).alive(source, save=lambda state: None, every=0) as alive:
            async for match in alive:
                seen.append(match.row["v"])
                left = [json.loads(fields[b"data"])["v"] for _, fields in await _entries(url, "events")]
                assert left[-1] == 9 and len(left) >= 10 - match.end - 3
                if len(seen) == 5:
                    break
        assert seen == [0, 2, 4, 6, 8] and len(left) < 10

    asyncio.run(main())


def test_fields_as_events_and_what_comes_from_now_on(url: str) -> None:
    from redis.asyncio import Redis

    from spaseq.live.redis import RedisSource

    async def main() -> None:
        async with Redis.from_url(url) as client:
            await client.xadd("s", {"type": "A", "v": "old"})
            source = RedisSource("s", url=url, field=None, start="$")
            async with ceql.compile(PAIRS).alive(source) as alive:
                task = asyncio.create_task(anext(alive))
                await asyncio.sleep(0.3)
                await client.xadd("s", {"type": "A", "v": "new"})
                await client.xadd("s", {"type": "B"})
                assert (await asyncio.wait_for(task, 10)).row == {"v": "new"}

    asyncio.run(main())


def test_an_entry_that_cannot_be_read(url: str) -> None:
    from spaseq.live.redis import RedisSource

    async def main(**words: Any) -> None:
        from redis.asyncio import Redis

        async with Redis.from_url(url) as client:
            await client.delete("s")
            await client.xadd("s", {"data": '{"type": "A", "v": 1}'})
            await client.xadd("s", {"data": "{no"})
            await client.xadd("s", {"data": '{"type": "B"}'})
        async with ceql.compile(PAIRS).alive(RedisSource("s", url=url, **words)) as alive:
            assert (await asyncio.wait_for(anext(alive), 10)).row == {"v": 1}

    with pytest.raises(ceql.EventError, match=r"s, entry \d+-\d: line 1 is no JSON"):
        asyncio.run(main())
    bad: list[bytes] = []
    asyncio.run(main(on_bad=lambda payload, error: bad.append(payload)))
    assert bad == [b"{no"]


def test_a_server_that_is_not_there() -> None:
    pytest.importorskip("redis")
    from redis.exceptions import ConnectionError

    from spaseq.live.redis import RedisSource

    async def main() -> None:
        async with ceql.compile(PAIRS).alive(RedisSource("s", url="redis://127.0.0.1:1", attempts=2)) as alive:
            await anext(alive)

    with pytest.raises(ConnectionError):
        asyncio.run(main())


def test_the_clock_goes_on_when_the_server_has_no_more(url: str) -> None:
    import time

    from spaseq.live.redis import RedisSource

    query = ceql.compile("SELECT * WHERE A AS x ; NOT B WITHIN 1 SECOND")

    async def main(stream: str) -> float:
        begun = time.time()
        await _fill(url, stream, [{"type": "A", "time": begun}])
        async with query.alive(RedisSource(stream, url=url), clock="100ms", time="time") as alive:
            await asyncio.wait_for(anext(alive), 20)
            return time.time() - begun - 1.1

    lag = min(asyncio.run(main(name)) for name in "ab")
    assert 0 <= lag < 30  # the server is asked anew twice a second
