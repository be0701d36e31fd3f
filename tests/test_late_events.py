"""The events that come too late, given to the caller: by definition, on every road of both languages.

An event is late if it is more than the lateness behind the greatest time before it, or before the time that its stream
was advanced to. What is dropped does not depend on whether it is given.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rdflib import Literal, URIRef

import ceql
import ceql.cli.main
import spaseq
import spaseq.cli.main
from spaseq.core.errors import OptionError
from spaseq.core.events import GrowingFile, LateEvent
from spaseq.rdf import GraphBatch
from tests.support.sizes import some

SECOND = 10**9
TUPLES = ceql.compile("SELECT * WHERE A AS x ; B AS y FILTER x.id < y.id WITHIN 5 SECONDS")
GRAPHS = spaseq.compile("""SELECT ?x ?y WITHIN 5 SECONDS SLIDING FROM STREAM S <urn:s> FROM STREAM T <urn:t>
WHERE { SEQ (A; B) DEFINE GPM A ON S, T { ?x <urn:a> ?v } DEFINE GPM B ON S, T { ?y <urn:b> ?w } }""")
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"

Came = list[tuple[int, int, str]]
"""(time in seconds, id, type) of events, in the order in which they come."""


def _events(rng: random.Random) -> Came:
    at, found = 0, []
    for number in range(rng.randrange(1, 40)):
        at += rng.choice((0, 0, 1, 1, 2))
        found.append((max(0, at - rng.choice((0, 0, 0, 0, 1, 2, 3, 6))), number, rng.choice("AB")))
    return found


def late_by_definition(came: Came, lateness: int) -> list[tuple[int, int]]:
    """(id, seconds behind) of the late events."""
    high, found = None, []
    for time, number, _ in came:
        if high is not None and high - time > lateness:
            found.append((number, high - time))
        high = time if high is None else max(high, time)
    return found


class _Late:
    """A function of late events that keeps them."""

    def __init__(self) -> None:
        self.events: list[LateEvent] = []

    def __call__(self, late: LateEvent) -> None:
        self.events.append(late)

    def pairs(self) -> list[tuple[int, int]]:
        return [(_id(late.event), late.behind // SECOND) for late in self.events]


def _id(event: Any) -> int:
    return int(event["id"] if isinstance(event, dict) else event.triples[0][2])


def _dicts(came: Came) -> list[dict[str, Any]]:
    return [{"type": kind, "time": time, "id": number, "unread": f"n{number}"} for time, number, kind in came]


def _csv(came: Came) -> str:
    return "type,time,id,unread\n" + "".join(f"{kind},{time},{n},n{n}\n" for time, n, kind in came)


def _cuts(rng: random.Random, events: list[Any]) -> list[list[Any]]:
    found = []
    while events:
        size = rng.choice((1, 2, 5, 40))
        found.append(events[:size])
        events = events[size:]
    return found


def test_tuples_on_every_road(tmp_path: Path) -> None:
    rng = random.Random(0)
    for _ in range(some(60)):
        came, lateness = _events(rng), rng.choice((0, 2))
        expected = late_by_definition(came, lateness)
        words: dict[str, Any] = {"lateness": f"{lateness}s"}
        path = tmp_path / "events.csv"
        path.write_text(_csv(came))
        dropping = TUPLES.run(str(path), late="drop", **words)
        whole = sorted((m.start, m.end, m.positions) for m in dropping)
        for source in (str(path), _dicts(came), pa.Table.from_pylist(_dicts(came))):
            late = _Late()
            matches = TUPLES.run(source, on_late=late, **words)
            assert sorted((m.start, m.end, m.positions) for m in matches) == whole
            assert late.pairs() == expected and matches.counters.late == len(expected)
            assert all(one.event["unread"] == f"n{one.event['id']}" for one in late.events)
            late.events.clear()
            assert matches.count() == len(whole) and late.pairs() == expected
            assert all("unread" in one.event for one in late.events)  # though a count does not read it
        late, found = _Late(), []
        session = TUPLES.open(on_late=late, **words)
        for part in _cuts(rng, _dicts(came)):
            if rng.random() < 0.2:
                session = TUPLES.open(session.snapshot(), on_late=late)
            found += session.push(part[0] if len(part) == 1 else part)
        found += session.close()
        assert sorted((m.start, m.end, m.positions) for m in found) == whole
        assert late.pairs() == expected and session.counters.late == len(expected)
        for roads in (TUPLES.alerts(), TUPLES.timed_out()):
            late = _Late()
            list(roads.run(str(path), on_late=late, **words))
            assert late.pairs() == expected
            late = _Late()
            with roads.open(on_late=late, **words) as pushed:
                for part in _cuts(rng, _dicts(came)):
                    pushed.push(part)
            assert late.pairs() == expected and pushed.rest is not None


def _graph(time: int, number: int, kind: str) -> spaseq.GraphEvent:
    triple = (URIRef(f"urn:x{number}"), URIRef(f"urn:{kind.lower()}"), Literal(number))
    return spaseq.GraphEvent("urn:s", time * SECOND, (triple, (URIRef("urn:x"), URIRef("urn:unread"), Literal(1))))


def _quads(came: Came) -> str:
    lines = []
    for time, n, kind in came:
        lines += [f'<urn:g{n}> {AT} "{time}" .', f'<urn:x{n}> <urn:{kind.lower()}> "{n}" <urn:g{n}> .']
        lines += [f'<urn:x> <urn:unread> "1" <urn:g{n}> .']
    return "\n".join(lines) + "\n"


def test_graphs_on_every_road(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    path, empty = tmp_path / "s.nq", tmp_path / "t.nq.gz"
    empty.write_bytes(gzip.compress(b""))
    for _ in range(some(25)):
        came, lateness = _events(rng), rng.choice((0, 2))
        expected = late_by_definition(came, lateness)
        path.write_text(_quads(came))
        words: dict[str, Any] = {"lateness": f"{lateness}s"}
        streams = {"S": str(path), "T": str(empty)}
        whole = sorted((m.start, m.end, m.positions) for m in GRAPHS.run(streams, late="drop", **words))
        for keep in (True, False):
            late = _Late()
            matches = GRAPHS.run(streams, on_late=late, keep_events=keep, **words)
            assert sorted((m.start, m.end, m.positions) for m in matches) == whole
            assert late.pairs() == expected and matches.counters.late == len(expected)
            assert all(len(one.event.triples) == 2 and one.stream == "urn:s" for one in late.events)
            assert [one.record for one in late.events] == [2 + 3 * number for number, _ in expected]
        late, found = _Late(), []
        session = GRAPHS.open(on_late=late, **words)
        for part in _cuts(rng, [_graph(*event) for event in came]):
            if rng.random() < 0.2:
                session = GRAPHS.open(session.snapshot(), on_late=late, **words)
            found += session.push(GraphBatch.of(part) if rng.random() < 0.3 else part)
        found += session.close()
        assert sorted((m.start, m.end, m.positions) for m in found) == whole
        assert late.pairs() == expected
        late = _Late()
        monkeypatch.setattr(sys, "stdin", _Input(path.read_bytes()))
        list(GRAPHS.follow({"S": "-", "T": str(empty)}, on_late=late, **words))
        assert late.pairs() == expected and all(len(one.event.triples) == 2 for one in late.events)


class _Input:
    def __init__(self, text: bytes) -> None:
        self._text = text

    @property
    def buffer(self) -> _Input:
        return self

    def read1(self, size: int = -1) -> bytes:
        text, self._text = self._text, b""
        return text


def test_what_is_behind_the_time_advanced_to() -> None:
    late = _Late()
    session = TUPLES.open(on_late=late)
    session.push({"type": "A", "time": 1, "id": 1})
    session.advance(10 * SECOND)
    session.push({"type": "B", "time": 2, "id": 2})
    session.push({"type": "B", "time": 10, "id": 3})
    assert late.events == [LateEvent({"type": "B", "time": 2, "id": 2}, 2 * SECOND, 8 * SECOND, "", "<events>", 2)]
    assert session.counters.late == 1
    graphs = GRAPHS.open(on_late=late)
    graphs.advance(10 * SECOND)
    graphs.push(_graph(3, 7, "A"))
    assert late.events[1].behind == 7 * SECOND and late.events[1].event.time == 3 * SECOND


def test_streams_are_named() -> None:
    query = ceql.compile("SELECT * FROM S, T WHERE S>A AS x ; T>B AS y WITHIN 5 SECONDS")
    events = {name: [{"type": kind, "time": t} for t in (5, 1)] for name, kind in (("S", "A"), ("T", "B"))}
    late = _Late()
    list(query.run(streams=events, on_late=late))
    assert sorted((one.stream, one.time // SECOND, one.behind // SECOND) for one in late.events) == [
        ("S", 1, 4), ("T", 1, 4),
    ]  # fmt: skip
    late = _Late()
    session = query.open(on_late=late)
    session.push(events["S"], "S")
    session.push(events["T"], "T")
    assert [(one.stream, one.record, sorted(one.event)) for one in late.events] == [
        ("S", 2, ["time", "type"]), ("T", 4, ["time", "type"]),
    ]  # fmt: skip


def test_a_function_that_fails_takes_nothing() -> None:
    def fail(late: LateEvent) -> None:
        raise OptionError("no room for it")

    session = TUPLES.open(on_late=fail)
    session.push({"type": "A", "time": 5, "id": 1})
    with pytest.raises(OptionError, match="no room for it"):
        session.push([{"type": "A", "time": 6, "id": 2}, {"type": "B", "time": 1, "id": 2}])
    assert len(session.push([{"type": "B", "time": 6, "id": 9}])) == 1
    assert session.counters.late == 0


@pytest.mark.parametrize("query", [TUPLES, GRAPHS], ids=["ceql", "spaseq"])
def test_wrong_functions_are_refused(query: Any) -> None:
    with pytest.raises(OptionError, match="on_late cannot be a list"):
        query.open(on_late=[])
    with pytest.raises(OptionError, match="on_late takes events that are dropped, and late is error"):
        query.open(late="error", on_late=print)
    assert query.open(late="drop", on_late=print).push([]) == []


LATE = "type,time,v\nA,2026-06-15T08:00:10Z,1\nA,2026-06-15T08:00:04Z,\nB,2026-06-15T08:00:12Z,2\n"
ROW = {
    "late_by": "PT6S", "time": "2026-06-15T08:00:04Z", "stream": None, "source": "log.csv", "record": 2,
    "event": {"type": "A", "time": "2026-06-15T08:00:04Z"},
}  # fmt: skip


@pytest.mark.parametrize(
    "words", [["run"], ["alert"], ["run", "--follow"], ["alert", "--follow"], ["plot"]], ids=" ".join
)
def test_the_command_writes_them(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LATE)
    query = "SELECT * WHERE A ; B WITHIN 10 SECONDS"
    command = [words[0], query, "--events", "log.csv", "--late", "late.jsonl", *words[1:]]
    command += ["--output", "found.svg"] if words == ["plot"] else ["--limit", "1"]
    assert ceql.cli.main.main(command) == 0
    assert "1 event came too late and was dropped" in capsys.readouterr().err or "--limit" in command
    assert [json.loads(line) for line in Path("late.jsonl").read_text().splitlines()] == [ROW]
    assert ceql.cli.main.main([*command[:5], "late.csv", *command[6:]]) == 0
    head, line = Path("late.csv").read_text().splitlines()
    assert head == "late_by,time,stream,source,record,event"
    assert line.startswith('PT6S,2026-06-15T08:00:04Z,,log.csv,2,"{""type"": ""A""')


def test_the_command_writes_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(GRAPHS.text)
    Path("s.nq").write_text(_quads([(5, 0, "A"), (1, 1, "B"), (6, 2, "B")]))
    Path("t.nq").write_text("")
    streams = ["--stream", "S=s.nq", "--stream", "T=t.nq"]
    assert spaseq.cli.main.main(["run", "q.rq", *streams, "--late", "late.jsonl"]) == 0
    assert [json.loads(line) for line in Path("late.jsonl").read_text().splitlines()] == [{
        "late_by": "PT4S", "time": 1, "stream": "urn:s", "source": "s.nq", "record": 5,
        "event": {"graph": "<urn:g1>", "triples": ['<urn:x1> <urn:b> "1"', '<urn:x> <urn:unread> "1"']},
    }]  # fmt: skip
    assert "1 event(s) dropped" in capsys.readouterr().err
    assert spaseq.cli.main.main(["run", "q.rq", *streams, "--late", "s.nq"]) == 2
    assert "s.nq is an input" in capsys.readouterr().err
    spark = ["--late", "late.jsonl", "--engine", "spark"]
    assert spaseq.cli.main.main(["run", "q.rq", *streams, *spark]) == 2
    assert "--late FILE is of the local engine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("dorp", "--late dorp: not one of error, drop"),
        ("late.parquet", "no format is called .parquet"),
        ("log.csv", "log.csv is an input"),
        ("found.csv", "--late is written to a file of its own"),
        ("none/late.csv", "cannot write none/late.csv"),
    ],
)
def test_wrong_files_are_refused(
    given: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LATE)
    words = ["run", "SELECT * WHERE A", "--events", "log.csv", "--output", "found.csv", "--late", given]
    assert ceql.cli.main.main(words) == 2
    assert said in capsys.readouterr().err
    assert Path("log.csv").read_text() == LATE


def test_the_studio_writes_none(capsys: pytest.CaptureFixture[str]) -> None:
    for main, words in ((ceql.cli.main.main, ["--events", "a.csv"]), (spaseq.cli.main.main, ["--stream", "S=s.nq"])):
        assert main(["studio", "q", *words, "--late", "late.csv"]) == 2
        assert "--late FILE is not of the studio" in capsys.readouterr().err


def test_spark_refuses_the_function() -> None:
    pytest.importorskip("pyspark")
    from spaseq.spark import match

    for query in (TUPLES, GRAPHS):
        with pytest.raises(OptionError, match="on_late is of the local engine"):
            match(query, on_late=print)


def test_what_a_growing_file_brings_too_late(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(_csv([(5, 0, "A"), (1, 1, "B"), (6, 2, "B")]))
    late = _Late()
    assert next(iter(TUPLES.run(GrowingFile(str(path)), on_late=late))).positions == (0, 1)
    assert late.pairs() == [(1, 4)] and late.events[0].source == str(path)
