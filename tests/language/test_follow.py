"""Streams that go on give what their files do: the same matches, whatever arrives together.

Standard input gives pieces of one stream, and the other is a compressed file, which ends, too. A lateness beyond the
whole span makes the order of arrival of the two immaterial. Batches are also pushed to sessions by hand, mixed with
events one by one, with snapshots in between.
"""

from __future__ import annotations

import gzip
import random
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rdflib import Literal, URIRef

import spaseq
from spaseq import GraphEvent
from spaseq.core.errors import EventError, OptionError
from spaseq.rdf import Counters, GraphBatch, StreamOptions, StreamSource
from spaseq.rdf.columns import BatchLimits, follow
from spaseq.rdf.columns.reader import read_batches
from tests.support.graph_events import open_streams

EX = "http://example.org/"
WHERE = f"""FROM STREAM S <{EX}S> FROM STREAM T <{EX}T> WHERE {{
  SEQ (A ; B) DEFINE GPM A ON S {{ ?k :a ?x }} DEFINE GPM B ON S, T {{ ?k :b ?y . FILTER (?y > ?x) }} }}"""
JOIN = f"PREFIX : <{EX}> SELECT ?k ?x ?y WITHIN 20 SECONDS SLIDING {WHERE}"
KEYS = JOIN.replace("SLIDING", "SLIDING PARTITION BY (?k)")
ABSENT = JOIN.replace("(A ; B)", "(A ; B ; C!)").replace("DEFINE GPM B", "DEFINE GPM C ON T { ?k :c ?z } DEFINE GPM B")
WINDOWS = JOIN.replace("SLIDING", "").replace("SELECT ?k ?x ?y", "SELECT ?k (COUNT(?y) AS ?n)") + " GROUP BY ?k"
TEXTS = {"join": JOIN, "keys": KEYS, "absence": ABSENT, "clauses": WINDOWS}
queries = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


def _lines(rng: random.Random, name: str, events: int) -> str:
    lines, at = [], 0
    for number in range(events):
        at += rng.choice((0, 0, 1, 1, 2))
        graph = f"<{EX}{name}/{number}>"
        lines.append(f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{at}" {rng.choice((graph, ""))} .')
        for _ in range(rng.randrange(1, 4)):
            subject = rng.choice((f"<{EX}k{rng.randrange(4)}>", "_:n"))
            value = f'"{rng.randrange(9)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
            lines.append(f"{subject} <{EX}{rng.choice('abc')}> {value} {graph} .")
    return "\n".join(lines) + "\n"


def _shown(matches: Iterable[Any], *, events: bool = True) -> list[Any]:
    """In order of ends; those of one end have none."""
    found = [
        (
            match.end, match.start, match.positions, sorted((k, v.n3()) for k, v in match.bindings.items()),
            match.times, [(event.stream, event.record, len(event.triples)) for event in match.events] if events else [],
        )
        for match in matches
    ]  # fmt: skip
    assert [match[0] for match in found] == sorted(match[0] for match in found)
    return sorted(found)


class _Pieces:
    def __init__(self, text: bytes, rng: random.Random) -> None:
        size = rng.choice((40, 400, 4_000, 40_000))
        cuts = sorted({0, len(text), *(rng.randrange(len(text)) for _ in range(len(text) // size))})
        self._pieces = [text[a:b] for a, b in pairwise(cuts)]

    @property
    def buffer(self) -> _Pieces:
        return self

    def read1(self, size: int = -1) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


_COUNT = pytest.mark.parametrize("count", [3, pytest.param(12, marks=pytest.mark.slow)])
"""Random streams of each query."""


@queries
@_COUNT
@pytest.mark.parametrize("keep_events", [True, False])
def test_what_is_followed_gives_the_matches_of_the_files(
    text: str, keep_events: bool, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, several = spaseq.compile(text), 0
    for seed in range(count):
        rng = random.Random(f"{text} {seed}")
        streams = {name: _lines(rng, name, rng.choice((5, 40, 160))) for name in "ST"}
        (tmp_path / "s.nq").write_text(streams["S"])
        (tmp_path / "t.nq.gz").write_bytes(gzip.compress(streams["T"].encode()))
        files = {"S": str(tmp_path / "s.nq"), "T": str(tmp_path / "t.nq.gz")}
        words: Any = {"lateness": "10000s", "ties": rng.choice(("instant", "arrival"))}
        expected = _shown(query.run(files, keep_events=keep_events, **words))
        monkeypatch.setattr(sys, "stdin", _Pieces(streams["S"].encode(), rng))
        monkeypatch.setattr(follow, "readable", lambda file, seconds=0.0, rng=rng: rng.random() < 0.5)
        followed = query.follow(files | {"S": "-"}, keep_events=keep_events, **words)
        assert _shown(followed) == expected
        assert followed.counters.triples == sum(text.count("\n") for text in streams.values())
        several += len(expected)
    assert several > 2.5 * count


def _batches(text: str, stream: str, path: Path, size: int, wanted: Any, options: StreamOptions) -> list[GraphBatch]:
    path.write_text(text)
    source = StreamSource(EX + stream, (str(path),))
    pieces = text.splitlines(keepends=True)
    chunks = ("".join(pieces[at : at + size]).encode() for at in range(0, len(pieces), size))
    return list(read_batches(source, options, Counters(), wanted, BatchLimits(1), lambda _: chunks))


@queries
@_COUNT
def test_batches_and_events_may_be_pushed_in_turn_with_snapshots(text: str, count: int, tmp_path: Path) -> None:
    """One stream; what an instant that is not complete holds goes from columns to objects and back."""
    query = spaseq.compile(text.replace("ON S, T", "ON S").replace("C ON T", "C ON S"))
    several = kinds = 0
    for seed in range(count):
        rng = random.Random(f"{text} {seed}")
        options = StreamOptions.parse(
            time="http://www.w3.org/ns/prov#generatedAtTime", ties=rng.choice(("instant", "arrival"))
        )
        lines = _lines(rng, "S", 120)
        batches = _batches(lines, "S", tmp_path / "s.nq", rng.choice((7, 60, 900)), None, options)
        (tmp_path / "t.nq").write_text("")
        events = list(open_streams([StreamSource(EX + "S", (str(tmp_path / "s.nq"),))], options)[0])
        assert [batch.event(i) for batch in batches for i in range(len(batch))] == events
        session = query.open(options=options)
        expected = _shown([*session.push(events), *session.close()])
        session, found = query.open(options=options), []
        for batch in batches:
            way = rng.randrange(3)
            if way == 0:
                found += session.push(batch)
            elif way == 1:
                found += session.push([batch.event(i) for i in range(len(batch))])
            else:
                found += session.push_batches([batch])
            kinds |= 1 << way
            if not rng.randrange(4):
                session = query.open(session.snapshot(), options=options)
            assert session.held().total > 0
        assert _shown([*found, *session.close()]) == expected
        assert session.counters.events == len(events)
        several += len(expected)
    assert several > 2.5 * count and kinds == 7


def test_a_batch_that_is_late_or_of_no_stream_is_told_of() -> None:
    def batch(stream: str) -> GraphBatch:
        k, a = URIRef(f"{EX}k"), URIRef(f"{EX}a")
        return GraphBatch.of([GraphEvent(stream, i * 10**9, ((k, a, Literal(i)),), None, "s", i) for i in range(40)])

    options = StreamOptions(time="urn:t")
    query = spaseq.compile(JOIN)
    session = query.open(options=options)
    session.push(batch(EX + "S"))
    with pytest.raises(EventError, match=r"s:0: .*goes back in time by 39 s"):
        session.push(batch(EX + "S"))
    dropping = query.open(options=StreamOptions(time="urn:t", late="drop"))
    dropping.push(batch(EX + "S"))
    dropping.push(batch(EX + "S"))
    assert dropping.counters.late == 39 and dropping.counters.events == 80
    with pytest.raises(EventError, match="does not read the stream"):
        session.push(batch(EX + "U"))
    assert session.push(GraphEvent(EX + "S", 50 * 10**9, (), None)) == []
    session.close()
    with pytest.raises(OptionError, match="the stream is closed"):
        session.push(batch(EX + "S"))
