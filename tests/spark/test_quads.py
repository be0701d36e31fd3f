"""Rows of DataFrames of quads as events, however they are cut into batches: beside events made one by one."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from spaseq.core.errors import EventError
from spaseq.rdf import Counters, GraphEvent
from spaseq.spark.ingest import quads
from spaseq.spark.ingest.quads import QuadReader
from spaseq.spark.session.tables import QUADS, batch_of

IRIS = ("urn:one", "urn:two")
TERMS = (
    "<urn:a>",
    "<urn:b>",
    "_:x",
    "_:y",
    '"1"',
    '"h\\u00E4\\"l\\\\l"@DE',
    '"5"^^<http://www.w3.org/2001/XMLSchema#integer>',
)
WRONG = (
    ("a", "<urn:p>", "<urn:o>"),  # no term
    ("<urn:a> <urn:b>", "<urn:p>", "<urn:o>"),  # two terms
    ("# a", "<urn:p>", "<urn:o>"),  # a comment
    ("<urn:a>", "<urn:p>", '"a\nb"'),  # a line break
    ("<urn:a>", None, "<urn:o>"),
    (None, None, "it is no message"),
)


def rows_of(rng: random.Random) -> list[tuple[Any, ...]]:
    """Rows in the order that Spark sends them."""
    found = []
    for stream in range(2):
        for time in sorted(rng.sample(range(-50, 50), rng.randint(0, 6))):
            for graph in rng.sample((None, "<urn:g1>", "<urn:g2>", "_:g"), rng.randint(1, 3)):
                for _ in range(rng.randint(1, 5)):
                    subject = rng.choice(TERMS[:4])
                    found.append((stream, time, graph, subject, rng.choice(TERMS[:2]), rng.choice(TERMS)))
    return sorted(found, key=lambda row: (row[0], row[1], row[2] or "", *row[3:]))


def cut(rng: random.Random, rows: list[tuple[Any, ...]]) -> list[pa.RecordBatch]:
    places = sorted(rng.choices(range(len(rows) + 1), k=4))
    return [batch_of(QUADS, rows[a:b]) for a, b in zip([0, *places], [*places, len(rows)], strict=True)]


def shown(event: GraphEvent) -> Any:
    """An event, but for the labels of its blank nodes."""
    labels: dict[str, int] = {}

    def plain(term: Any) -> str:
        text = str(term.n3())
        return f"_:{labels.setdefault(text, len(labels))}" if text.startswith("_:") else text

    triples = Counter(tuple("_:" if t.n3().startswith("_:") else t.n3() for t in triple) for triple in event.triples)
    nodes = {plain(t) for triple in event.triples for t in triple if t.n3().startswith("_:")}
    return event.stream, event.time, event.graph is None, sorted(triples.items()), len(nodes)


def expected(rows: list[tuple[Any, ...]]) -> list[Any]:
    """The same by definition: rows of equal stream, time and graph are an event, a set of triples."""
    by_event: dict[Any, set[Any]] = {}
    for stream, time, graph, *triple in rows:
        by_event.setdefault((stream, time, graph), set()).add(tuple(map(read, triple)))
    found = []
    for (stream, time, graph), triples in by_event.items():
        counted = Counter(tuple("_:" if t.startswith("_:") else t for t in triple) for triple in triples)
        nodes = {t for triple in triples for t in triple if t.startswith("_:")}
        found.append((IRIS[stream], time, graph is None, sorted(counted.items()), len(nodes)))
    return found


def read(term: str) -> str:
    return term.replace("\\u00E4", "ä").replace("@DE", "@de")


def events(
    batches: list[pa.RecordBatch], counters: Counters, malformed: Any = "error", wanted: Any = None
) -> list[Any]:
    found = QuadReader(IRIS, malformed).events(batches, wanted, counters)
    return [each.placed.batch.event(i) for each in found for i in range(len(each.placed.batch))]


@pytest.mark.parametrize("seed", range(40))
def test_events_are_those_of_the_definition_however_rows_are_cut(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(quads, "_ROWS", rng.choice((1, 3, 7, 1 << 16)))
    rows, counters = rows_of(rng), Counters()
    found = events(cut(rng, rows), counters)
    assert list(map(shown, found)) == expected(rows)
    assert (counters.events, counters.triples, counters.malformed) == (len(found), len(rows), 0)
    labels = [{t for triple in e.triples for t in triple if t.n3().startswith("_:")} for e in found]
    assert sum(map(len, labels)) == len(set().union(*labels)), "blank nodes are of their events alone"
    again = events(cut(rng, rows), Counters())
    assert [e.triples for e in again] == [e.triples for e in found], "and have the same labels whenever they are read"
    shuffled = rng.sample(rows, len(rows))
    given = QuadReader(IRIS, "error").sorted_events(cut(rng, shuffled), None, Counters())
    ordered = [each.placed.batch.event(i) for each in given for i in range(len(each.placed.batch))]
    assert list(map(shown, ordered)) == expected(rows)


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_cannot_be_read_are_left_out_and_counted(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(quads, "_ROWS", rng.choice((1, 5, 1 << 16)))
    rows = rows_of(rng) or [(0, 1, None, "<urn:a>", "<urn:b>", "<urn:c>")]
    mixed = list(rows)
    for _ in range(count := rng.randint(1, 4)):
        near = rng.choice(rows)
        mixed.append((near[0], near[1], None if rng.random() < 0.5 else near[2], *rng.choice(WRONG)))
    mixed.append((0, None, None, "<urn:a>", "<urn:b>", "<urn:c>"))
    mixed.sort(key=lambda row: (row[0], -99 if row[1] is None else row[1], row[2] or "", *(t or "" for t in row[3:])))
    # Two terms in one column are a quad if the row names no graph, and too many for a line if it does.
    counters = Counters()
    found = events(cut(rng, mixed), counters, "drop")
    assert list(map(shown, found)) == expected(rows)
    assert counters.malformed == count + 1
    with pytest.raises(EventError):
        events(cut(rng, mixed), Counters())


@pytest.mark.parametrize("row", WRONG, ids=lambda row: str(row[0]))
def test_a_row_that_cannot_be_read_is_shown(row: tuple[Any, ...]) -> None:
    with pytest.raises(EventError) as raised:
        events([batch_of(QUADS, [(0, 1, None, "<urn:a>", "<urn:b>", "<urn:c>"), (0, 1, None, *row)])], Counters())
    said = f"{raised.value}"
    assert ("it is no message" if row[0] is None else "the row is") in said


def test_only_wanted_predicates_are_kept_and_no_event_is_lost() -> None:
    rows = [(0, 1, None, "<urn:a>", "<urn:p>", '"1"'), (0, 2, None, "<urn:a>", "<urn:q>", '"2"')]
    first, second = events([batch_of(QUADS, rows)], Counters(), wanted={"urn:p"})
    assert len(first.triples) == 1
    assert second.triples == ()
