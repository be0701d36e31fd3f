"""`query.alive`: the matches of a stream that goes on, in both languages and of networks; ends, errors, clocks."""

from __future__ import annotations

import asyncio
import gc
import time
import warnings
from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa
import pytest
from rdflib import Graph, Literal, URIRef

import ceql
import spaseq
from spaseq.live import Alive, Delivery, LogSource, Several, match_id

SECOND = 10**9
PAIRS = "SELECT * WHERE A AS x ; B AS y WITHIN 10 EVENTS"
ABSENT = "SELECT * WHERE A AS x ; NOT B WITHIN 1 SECOND"
GRAPHS = """PREFIX : <urn:e#> SELECT ?x WITHIN 10 SECONDS SLIDING FROM STREAM S <urn:s> WHERE { SEQ (A; B)
  DEFINE GPM A ON S { ?x :a ?v } DEFINE GPM B ON S { ?y :b ?w } }"""
GRAPHS_ABSENT = GRAPHS.replace("SEQ (A; B)", "SEQ (A, B!)").replace("10 SECONDS", "1 SECONDS")


def graph(kind: str, when: float) -> spaseq.GraphEvent:
    triple = (URIRef(f"urn:t{when}"), URIRef(f"urn:e#{kind.lower()}"), Literal(1))
    return spaseq.GraphEvent("urn:s", int(when * SECOND), (triple,))


def kinds(text: str) -> list[dict[str, Any]]:
    return [{"type": kind} for kind in text]


async def given(*batches: Any) -> AsyncIterator[Any]:
    for batch in batches:
        await asyncio.sleep(0)
        yield batch


async def positions(alive: Alive[Any]) -> list[tuple[int, ...]]:
    return [match.positions async for match in alive]


# -- the same matches


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 100])
def test_matches_are_those_of_a_run(cut: int) -> None:
    query = ceql.compile("SELECT * WHERE A AS x ; B AS y ; NOT C WITHIN 4 EVENTS")
    events = kinds("AABCBAABBCABBBACB")
    batches = [events[i : i + cut] for i in range(0, len(events), cut)]
    found = asyncio.run(positions(query.alive(given(*batches))))
    assert sorted(found) == sorted(match.positions for match in query.run(events)) and found


def test_all_kinds_of_batches() -> None:
    table = pa.table({"type": ["A", "B"]})
    found = asyncio.run(positions(ceql.compile(PAIRS).alive(given({"type": "A"}, kinds("B"), table, Delivery(table)))))
    assert len(found) == 6


def test_graphs() -> None:
    query = spaseq.compile(GRAPHS)
    found = asyncio.run(positions(query.alive(given(graph("A", 1), [graph("B", 2)], Delivery([graph("A", 3)])))))
    assert found == [(0, 1)]


def test_graphs_of_rdflib_and_texts() -> None:
    one = Graph().add((URIRef("urn:x"), URIRef("urn:e#a"), Literal(1)))
    batches = [
        Delivery(one, time=1 * SECOND, stream="S"),
        Delivery("<urn:x> <urn:e#b> 1 .", time="1970-01-01T00:00:02Z"),
        graph("C", 3),
    ]
    assert asyncio.run(positions(spaseq.compile(GRAPHS).alive(batches))) == [(0, 1)]


def test_an_ask_ends_with_its_first_match() -> None:
    query = spaseq.compile(GRAPHS.replace("SELECT ?x", "ASK"))
    batches = [graph("A", 1), graph("B", 2), graph("B", 3), graph("B", 4)]
    assert asyncio.run(positions(query.alive(batches))) == [(0, 1)]


def test_a_network() -> None:
    network = ceql.Network({"pair": PAIRS, "two": "SELECT * WHERE pair AS p ; pair AS q"})

    async def names() -> list[str]:
        return [name async for name, _ in network.alive(given(kinds("AB"), kinds("AB")))]

    assert asyncio.run(names()) == [name for name, _ in network.run(kinds("ABAB"))]


def test_streams_and_types() -> None:
    streams = ceql.compile("SELECT * FROM S, T WHERE S>A AS x ; T>A AS y")
    batches = [Delivery(kinds("A"), stream="S"), Delivery(kinds("A"), stream="T")]
    assert asyncio.run(positions(streams.alive(batches))) == [(0, 1)]
    types = ceql.compile(PAIRS)
    of_types = [Delivery({"v": 1}, type="A"), Delivery([{"v": 1}], type="B")]
    assert asyncio.run(positions(types.alive(of_types, types=["A", "B"]))) == [(0, 1)]
    with pytest.raises(ceql.OptionError, match="names a type, and this evaluation takes none"):
        asyncio.run(positions(spaseq.compile(GRAPHS).alive([Delivery(graph("A", 1), type="A")])))


def test_several_sources() -> None:
    async def main() -> list[tuple[int, ...]]:
        first: asyncio.Queue[Any] = asyncio.Queue()
        second: asyncio.Queue[Any] = asyncio.Queue()
        query = ceql.compile("SELECT * FROM S, T WHERE S>A AS x ; T>A AS y ; S>A AS z")
        found = []

        async def take() -> None:
            async for match in query.alive(Several({"S": first, "T": second})):
                found.append(match.positions)

        task = asyncio.create_task(take())
        for queue in (first, second, first):
            await queue.put(kinds("A"))
            await asyncio.sleep(0.02)
        for queue in (first, second):
            await queue.put(None)
        await task
        return found

    assert asyncio.run(main()) == [(0, 1, 2)]


# -- sources


@pytest.mark.parametrize("wrong", [None, 7, "log.jsonl", b"", {"type": "A"}, pa.table({"type": ["A"]})])
def test_what_is_no_source(wrong: Any) -> None:
    with pytest.raises(ceql.OptionError, match="is no source of batches"):
        ceql.compile(PAIRS).alive(wrong)


def test_a_queue_and_back_pressure() -> None:
    """The source is asked for the next batch when the matches of the one before were taken."""
    asked = []

    async def source() -> AsyncIterator[Any]:
        for number in range(4):
            asked.append(number)
            yield kinds("AB")

    async def main() -> None:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        for item in (kinds("A"), kinds("BB"), None):
            queue.put_nowait(item)
        assert await positions(ceql.compile(PAIRS).alive(queue)) == [(0, 1), (0, 2)]
        alive = ceql.compile("SELECT * WHERE A AS x ; B AS y WITHIN 2 EVENTS").alive(source())
        async for _ in alive:
            seen = list(asked)
            await asyncio.sleep(0.01)
            assert asked == seen == list(range(len(seen)))
        assert asked == [0, 1, 2, 3]

    asyncio.run(main())


def test_another_task_runs_between_the_batches_of_an_iterable() -> None:
    async def main() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(tick())
        await positions(ceql.compile(PAIRS).alive(kinds("C") for _ in range(50)))
        task.cancel()
        return ticks

    assert asyncio.run(main()) > 40


# -- ends


def test_the_end_of_the_source_completes_matches_and_later_calls_give_none() -> None:
    async def main() -> None:
        alive = ceql.compile("SELECT * WHERE A ; NOT B WITHIN 5 EVENTS").alive([kinds("A")])
        assert await positions(alive) == [(0,)] and await positions(alive) == []
        with pytest.raises(ceql.OptionError, match="closed"):
            alive.snapshot()

    asyncio.run(main())


class _Watched:
    """A source of batches that tells when it is closed."""

    def __init__(self, *batches: Any, error: Exception | None = None) -> None:
        self.batches, self.error, self.closed = list(batches), error, 0

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            for batch in self.batches:
                yield batch
            if self.error is not None:
                raise self.error
            await asyncio.sleep(60)
        finally:
            self.closed += 1


@pytest.mark.parametrize("words", [{}, {"clock": "1m", "time": "time"}, {"save": lambda state: None}])
def test_cancellation_ends_it_and_closes_the_source(words: dict[str, Any]) -> None:
    source = _Watched([{"type": "A", "time": time.time()}])

    async def main() -> None:
        alive = ceql.compile(PAIRS).alive(source, **words)
        task = asyncio.create_task(positions(alive))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert source.closed == 1
        assert await positions(alive) == []
        assert len(alive.snapshot()) > 100  # the stream goes on where this is opened
        assert len(asyncio.all_tasks()) == 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
        gc.collect()


@pytest.mark.parametrize("words", [{}, {"clock": "1m", "time": "time"}])
def test_leaving_the_block_ends_it_and_closes_the_source(words: dict[str, Any]) -> None:
    now = time.time()
    source = _Watched([{"type": kind, "time": now} for kind in "AB"])

    async def main() -> None:
        async with ceql.compile(PAIRS).alive(source, **words) as alive:
            async for _ in alive:
                break
        assert source.closed == 1 and len(asyncio.all_tasks()) == 1

    asyncio.run(main())


@pytest.mark.parametrize("words", [{}, {"save": lambda state: None}])
def test_an_error_of_the_source_is_raised_behind_the_matches_before_it(words: dict[str, Any]) -> None:
    source = _Watched(kinds("AB"), error=RuntimeError("the line is cut"))
    found = []

    async def main() -> None:
        async for match in ceql.compile(PAIRS).alive(source, **words):
            found.append(match.positions)

    with pytest.raises(RuntimeError, match="the line is cut"):
        asyncio.run(main())
    assert found == [(0, 1)] and source.closed == 1


def test_a_late_event_is_an_error_and_the_state_before_it_is_there() -> None:
    query = ceql.compile(PAIRS)
    events = [{"type": "A", "time": 5}, {"type": "B", "time": 3}]

    async def main() -> bytes:
        alive = query.alive([[event] for event in events], time="time")
        with pytest.raises(ceql.EventError, match="goes back in time"):
            await positions(alive)
        return alive.snapshot()

    state = asyncio.run(main())
    assert asyncio.run(positions(query.alive([{"type": "B", "time": 6}], state=state))) == [(0, 1)]


def test_one_evaluation_is_not_run_twice_at_a_time() -> None:
    async def main() -> None:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        alive = ceql.compile(PAIRS).alive(queue)
        task = asyncio.create_task(anext(alive))
        await asyncio.sleep(0)
        with pytest.raises(ceql.OptionError, match="another task waits for its next match"):
            await anext(alive)
        await queue.put(kinds("AB"))
        assert (await task).positions == (0, 1)

    asyncio.run(main())


# -- the clock


def _lag(query: Any, event: Any, words: dict[str, Any]) -> float:
    async def main() -> float:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        begun = time.time()
        await queue.put(event(begun))
        async with query.alive(queue, clock="50ms", **words) as alive:
            await anext(alive)
            return time.time() - begun - 1.05

    return asyncio.run(main())


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_an_absence_on_a_silent_source_is_told_by_the_clock(language: str) -> None:
    if language == "ceql":
        lag = _lag(ceql.compile(ABSENT), lambda now: {"type": "A", "time": now}, {"time": "time"})
    else:
        lag = _lag(spaseq.compile(GRAPHS_ABSENT), lambda now: graph("A", now), {})
    assert 0 <= lag < 10  # 50 ms on a machine that does nothing else; the source is silent for much longer


def test_the_clock_waits_while_a_source_is_not_idle() -> None:
    """Events that a source has, and has not given, would be late."""
    now = time.time()

    class Behind:
        idle = False

        async def __aiter__(self) -> AsyncIterator[Any]:
            yield {"type": "A", "time": now - 100}
            await asyncio.sleep(0.1)
            yield {"type": "B", "time": now - 99.5}
            self.idle = True
            await asyncio.sleep(60)

    async def main() -> list[tuple[int, ...]]:
        found = []
        query = ceql.compile("SELECT * WHERE B AS x ; NOT C WITHIN 1 SECOND")
        async with query.alive(Behind(), clock="50ms", time="time") as alive:
            async for match in alive:
                found.append(match.positions)
                break
        return found

    assert asyncio.run(main()) == [(1,)]


def test_a_clock_of_times_that_are_none() -> None:
    async def main() -> None:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        await queue.put({"type": "A", "time": 3})
        async with ceql.compile(ABSENT).alive(queue, clock="1s", time="time") as alive:
            await anext(alive)

    with pytest.raises(ceql.OptionError, match="the clock goes on, and time is not of it"):
        asyncio.run(main())
    with pytest.raises(ceql.OptionError, match="would be late as they come"):
        ceql.compile(ABSENT).alive([], clock="1ms")


# -- names


def test_a_name_is_of_the_query_and_the_match() -> None:
    query, other = ceql.compile(PAIRS), ceql.compile(PAIRS.replace("10", "11"))
    found = list(query.run(kinds("ABAB")))
    names = [match_id(query, match) for match in found]
    assert len(set(names)) == len(names) == 3 and names == [
        match_id(query, match) for match in query.run(kinds("ABAB"))
    ]
    assert match_id(other, found[0]) not in names
    one, two = (next(iter(query.run([{"type": "A", "v": v}, {"type": "B"}]))) for v in (1, 2))
    assert match_id(query, one) != match_id(query, two)
    network = ceql.Network({"a": PAIRS, "b": PAIRS})
    assert len({match_id(network, pair) for pair in network.run(kinds("AB"))}) == 2


def test_a_name_of_a_match_of_graphs() -> None:
    query = spaseq.compile(GRAPHS)

    def names() -> list[str]:
        async def main() -> list[str]:
            batches = [graph("A", 1), graph("A", 2), graph("B", 3), graph("C", 4)]
            return [match_id(query, match) async for match in query.alive(batches)]

        return asyncio.run(main())

    assert names() == names() and len(set(names())) == 2


def test_log(tmp_path: Any) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"type": "A"}\n{"type": "B"}\n{"type"')

    async def main() -> None:
        async with ceql.compile(PAIRS).alive(LogSource(log)) as alive:
            assert (await anext(alive)).positions == (0, 1)
            with log.open("a") as file:
                file.write(': "B"}\n')
            assert (await anext(alive)).positions == (0, 2)
            assert alive.position == log.stat().st_size

    asyncio.run(main())
