"""States of live evaluations: a snapshot and the position that it covers; nothing is lost, wherever a program stops."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rdflib import Literal, URIRef

import ceql
import spaseq
from spaseq.live import Delivery, FileSink, LogSource, Several, match_id

TUPLES = "SELECT * WHERE A AS x ; B AS y ; NOT C WITHIN 6 EVENTS"
GRAPHS = """PREFIX : <urn:e#> SELECT ?v ?w WITHIN 10 SECONDS SLIDING FROM STREAM S <urn:s> WHERE { SEQ (A; B)
  DEFINE GPM A ON S { ?x :a ?v } DEFINE GPM B ON S { ?y :b ?w } }"""


class Log:
    """A source in memory: a position is a number of events, `cut` gives the sizes of batches. `asked` and `committed`
    are what it was told."""

    def __init__(self, events: list[Any], cut: Callable[[], int] = lambda: 1) -> None:
        self.events = events
        self.cut = cut
        self.place = 0
        self.asked: list[int] = []
        self.committed: list[int] = []

    async def seek(self, position: int) -> None:
        self.asked.append(position)
        self.place = position

    async def commit(self, position: int) -> None:
        self.committed.append(position)

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        while self.place < len(self.events):
            batch = self.events[self.place : self.place + self.cut()]
            self.place += len(batch)
            yield Delivery(batch, self.place)
            await asyncio.sleep(0)


class Crash(Exception):
    """The program ends here."""


def _events(language: str, count: int, pick: random.Random) -> list[Any]:
    kinds = [pick.choice("AABBC") for _ in range(count)]
    if language != "spaseq":
        values = [None, 1, 2.5, 3]
        return [{"type": kind, "v": pick.choice(values)} for kind in kinds]
    return [
        spaseq.GraphEvent("urn:s", i * 10**9, ((URIRef("urn:t"), URIRef(f"urn:e#{kind.lower()}"), Literal(i)),))
        for i, kind in enumerate(kinds)
    ]


def _query(language: str) -> Any:
    if language == "network":
        pair = "SELECT * WHERE A AS x ; B AS y WITHIN 6 EVENTS"
        return ceql.Network({"pair": pair, "two": "SELECT * WHERE pair ; C WITHIN 20 EVENTS"})
    return ceql.compile(TUPLES) if language == "ceql" else spaseq.compile(GRAPHS)


async def _live(query: Any, source: Any, saved: list[bytes], written: list[str], stops: Callable[[], bool]) -> None:
    """Write the names of the matches, from the last state on, up to the end or a `Crash` before or behind a name."""
    async for match in query.alive(source, state=saved[-1] if saved else None, save=saved.append, every=0):
        if stops():
            raise Crash
        written.append(match_id(query, match))
        if stops():
            raise Crash


def _sometimes(pick: random.Random, chance: float) -> Callable[[], bool]:
    return lambda: pick.random() < chance


@pytest.mark.parametrize("count", [4, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("language", ["ceql", "spaseq", "network"])
def test_wherever_it_stops_no_match_is_lost_and_names_find_the_doubled(language: str, count: int) -> None:
    """The names that all runs write, each once, are those of a run that nothing stops."""
    pick = random.Random(7)
    query = _query(language)
    doubled = 0
    for _ in range(count):
        events = _events(language, pick.randrange(5, 40), pick)
        source = partial(Log, events, partial(pick.randrange, 1, 6))
        expected: list[str] = []
        asyncio.run(_live(query, source(), [], expected, lambda: False))
        written: list[str] = []
        saved: list[bytes] = []
        for life in range(12):
            try:
                last = life == 11
                asyncio.run(_live(query, source(), saved, written, _sometimes(pick, 0.0 if last else 0.1)))
                break
            except Crash:
                pass
        assert sorted({*written}) == sorted(expected)
        doubled += len(written) - len(expected)
    assert doubled > count / 3  # so names were needed


def test_the_source_hears_of_a_position_once_its_state_is_kept() -> None:
    order: list[Any] = []

    class Telling(Log):
        async def commit(self, position: int) -> None:
            order.append(("commit", position))

    async def save(state: bytes) -> None:
        order.append("begin")
        await asyncio.sleep(0)
        order.append("kept")

    async def main() -> None:
        source = Telling([{"type": kind} for kind in "ABAB"])
        query = ceql.compile("SELECT * WHERE A AS x ; B AS y WITHIN 2 EVENTS")
        async for match in query.alive(source, save=save, every=0):
            order.append(match.positions)

    asyncio.run(main())
    kept = ["begin", "kept"]
    assert order == [*kept, ("commit", 1), (0, 1), *kept, ("commit", 2), *kept, ("commit", 3), (2, 3), *kept,
                     ("commit", 4)]  # fmt: skip


def test_saves_come_every_so_often_on_a_silent_source_too(tmp_path: Path) -> None:
    state = tmp_path / "state"

    async def main() -> None:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        async with ceql.compile(TUPLES).alive(queue, save=state, every="100ms") as alive:
            task = asyncio.create_task(anext(alive))
            await queue.put({"type": "A"})
            await asyncio.sleep(0.02)
            assert not state.exists()
            await asyncio.sleep(0.3)
            first = state.stat().st_mtime_ns
            await asyncio.sleep(0.3)
            assert state.stat().st_mtime_ns == first  # nothing has come since
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_no_state_while_matches_of_a_batch_were_not_taken() -> None:
    query = ceql.compile("SELECT * WHERE A AS x ; B AS y")

    async def main() -> None:
        alive = query.alive([[{"type": kind} for kind in "AAB"]])
        await anext(alive)
        assert alive.pending == 1
        with pytest.raises(ceql.OptionError, match="1 match of the latest batch was not taken yet"):
            alive.snapshot()
        await anext(alive)
        assert alive.pending == 0 and alive.snapshot()
        await alive.aclose()

    asyncio.run(main())


def test_states_that_cannot_be_gone_on_from(tmp_path: Path) -> None:
    query, other = ceql.compile(TUPLES), ceql.compile("SELECT * WHERE A")

    async def state_of(source: Any) -> bytes:
        async with query.alive(source) as alive:
            await asyncio.wait_for(alive._step(), 5)
            return alive.snapshot()

    state = asyncio.run(state_of(Log([{"type": "A"}])))
    with pytest.raises(ceql.OptionError, match="this source cannot go there"):
        query.alive([], state=state)
    with pytest.raises(ceql.OptionError, match="query"):
        other.alive(Log([]), state=state)
    with pytest.raises(ceql.OptionError):
        query.alive(Log([]), state=query.open().snapshot())
    with pytest.raises(ceql.OptionError):
        query.open(state)
    damaged = bytearray(state)
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(ceql.OptionError, match="damaged"):
        query.alive(Log([]), state=bytes(damaged))
    wrongs: list[Any] = [7, object()]
    for wrong in wrongs:
        with pytest.raises(ceql.OptionError, match="a state cannot be"):
            query.alive(Log([]), state=wrong)
        with pytest.raises(ceql.OptionError, match="save cannot be"):
            query.alive(Log([]), save=wrong)
    with pytest.raises(ceql.OptionError, match="cannot read the state"):
        query.alive(Log([]), state=tmp_path)
    with pytest.raises(ceql.OptionError, match="every"):
        query.alive(Log([]), every="-1s")
    with pytest.raises(ceql.OptionError, match="cannot write the state"):
        asyncio.run(_names_of(query.alive(Log([{"type": "A"}]), save=tmp_path / "no" / "state", every=0)))


async def _names_of(alive: Any) -> list[Any]:
    return [match async for match in alive]


def test_a_state_of_several_sources() -> None:
    query = ceql.compile("SELECT * FROM S, T WHERE S>A AS x ; T>A AS y")
    first, second = Log([{"type": "A"}] * 3), Log([{"type": "A"}] * 2)

    async def main(state: bytes | None, sources: dict[str, Log]) -> tuple[bytes, Any]:
        saved: list[bytes] = []
        await _names_of(query.alive(Several(sources), state=state, save=saved.append, every=0))
        return (saved[-1] if saved else b""), saved

    state, _ = asyncio.run(main(None, {"S": first, "T": second}))
    assert (first.committed[-1], second.committed[-1]) == (3, 2)
    again = {"S": Log([{"type": "A"}] * 3), "T": Log([{"type": "A"}] * 3)}
    asyncio.run(main(state, again))
    assert (again["S"].asked, again["T"].asked) == ([3], [2])


# -- files


def test_a_log_goes_on_at_a_byte_and_knows_its_file(tmp_path: Path) -> None:
    log, state = tmp_path / "log.jsonl", tmp_path / "state"
    query = ceql.compile("SELECT * WHERE A AS x ; B AS y")
    log.write_text('{"type": "A"}\n' * 1000)

    async def life() -> list[Any]:
        alive = query.alive(LogSource(log, follow=False), state=state, save=state, every=0)
        return [match.positions async for match in alive]

    assert asyncio.run(life()) == []
    with log.open("a") as file:
        file.write('{"type": "B"}\n')
    assert len(asyncio.run(life())) == 1000 and asyncio.run(life()) == []
    log.write_text('{"type": "A"}\n')
    with pytest.raises(ceql.OptionError, match=r"has 14 bytes, and the state covers it up to 14014"):
        asyncio.run(life())


def test_a_log_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"type": "A"}\n{"type": "B"}\n')

    async def main() -> None:
        async with ceql.compile("SELECT * WHERE A ; B").alive(LogSource(log)) as alive:
            await anext(alive)
            log.write_text("")
            await anext(alive)

    with pytest.raises(ceql.EventError, match="became shorter"):
        asyncio.run(main())


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    query = ceql.compile(TUPLES)
    with pytest.raises(ceql.OptionError, match=r"cannot read .*log.jsonl: No such file"):
        asyncio.run(_names_of(query.alive(LogSource(tmp_path / "log.jsonl"))))


def test_lines_that_cannot_be_read(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"type": "A"}\nno\n[1]\n{"type": "B"}\n')
    query = ceql.compile("SELECT * WHERE A ; B")
    with pytest.raises(ceql.EventError, match=r"log.jsonl, from byte 0: line 2 is no JSON"):
        asyncio.run(_names_of(query.alive(LogSource(log, follow=False))))
    bad: list[Any] = []
    source = LogSource(log, follow=False, on_bad=lambda payload, error: bad.append((payload, str(error))))
    assert len(asyncio.run(_names_of(query.alive(source)))) == 1
    assert [payload for payload, _ in bad] == [b"no\n", b"[1]\n"] and "byte 14" in bad[0][1]


def test_a_file_of_records_knows_ids_and_drops_a_line_that_a_crash_cut(tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"

    async def main() -> None:
        sink = FileSink(path)
        for name in ("a", "b", "a", None, None):
            await sink.send({"of": name}, id=name)
        await sink.aclose()

    asyncio.run(main())
    whole = path.read_bytes()
    assert whole.count(b"\n") == 4
    path.write_bytes(whole + b'{"of": "c", "mat')
    asyncio.run(main())
    assert path.read_bytes() == whole + b'{"of": null}\n' * 2
