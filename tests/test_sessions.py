"""How an evaluation that events are pushed to ends, and what it refuses: nothing is lost without a word."""

from __future__ import annotations

import gc
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas
import pyarrow as pa
import pytest
from rdflib import Literal, URIRef

import ceql
import spaseq
from spaseq.core.errors import BudgetExceeded, EventError, InternalError, OptionError, SpaseqError

SECOND = 10**9
HEAD = "PREFIX : <urn:e#> SELECT ?x WITHIN 100 SECONDS SLIDING FROM STREAM S <urn:s> WHERE { SEQ ("
GPMS = ") DEFINE GPM A ON S { ?x :a ?v } DEFINE GPM B ON S { ?x :b ?w } }"


def _tuple(kind: str, second: int) -> dict[str, Any]:
    return {"type": kind, "time": second}


def _graph(kind: str, second: int, *, of: str = "x") -> spaseq.GraphEvent:
    triple = URIRef(f"urn:{of}"), URIRef(f"urn:e#{kind.lower()}"), Literal(second)
    return spaseq.GraphEvent("urn:s", second * SECOND, (triple,))


@dataclass(frozen=True)
class Ending:
    """A query, its events, and the positions of the matches that pushes and then the end of the stream complete."""

    query: Any
    events: list[Any]
    pushed: list[tuple[int, ...]]
    rest: list[tuple[int, ...]]
    words: dict[str, Any]


def _ceql(text: str, events: str, pushed: list[Any], rest: list[Any], **words: Any) -> Ending:
    made = [_tuple(kind, second) for second, kind in enumerate(events, 1)]
    return Ending(ceql.compile(text), made, pushed, rest, words)


def _spaseq(text: str, events: str, pushed: list[Any], rest: list[Any], **words: Any) -> Ending:
    return Ending(spaseq.compile(text), [_graph(k, s) for s, k in enumerate(events, 1)], pushed, rest, words)


ENDINGS = {
    "absence": _ceql("SELECT * WHERE A ; NOT C WITHIN 100 SECONDS", "ABA", [], [(0,), (2,)]),
    "consumed": _ceql("SELECT * WHERE A ; B CONSUME BY ANY", "AB", [], [(0, 1)], lateness="1s"),
    "lateness": _ceql("SELECT * WHERE A ; B", "ABB", [(0, 1)], [(0, 2)], lateness="1s"),
    "limit": _ceql("SELECT * WHERE A ; B LIMIT 1", "ABB", [(0, 1)], [(0, 2)], lateness="1s"),
    "instant": _spaseq(HEAD + "A : B" + GPMS, "ABB", [(0, 1)], [(0, 2)]),
    "graphs, lateness": _spaseq(HEAD + "A : B" + GPMS, "ABB", [], [(0, 1), (0, 2)], lateness="5s"),
    "absence of graphs": _spaseq(HEAD + "A ; B!" + GPMS, "AA", [], [(0,), (1,)]),
    "groups of a window": _spaseq(
        HEAD.replace("?x W", "?x (COUNT(*) AS ?n) W").replace(" SLIDING", "") + "A : B" + GPMS + " GROUP BY ?x",
        "AB", [], [(0, 1)],
    ),
}  # fmt: skip
every_ending = pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)


@every_ending
def test_the_end_of_the_block_is_the_end_of_the_stream(ending: Ending) -> None:
    """What only the end of the stream completes was dropped without a word."""
    with ending.query.open(**ending.words) as session:
        pushed = [m.positions for event in ending.events for m in session.push(event)]
        assert session.rest == []
    assert pushed == ending.pushed
    assert [m.positions for m in session.rest] == ending.rest
    assert session.close() == [], "they were read"
    with ending.query.open(**ending.words) as session:
        session.push(ending.events)
    assert [m.positions for m in session.close()][-len(ending.rest) :] == ending.rest
    assert session.close() == []


@every_ending
def test_what_was_not_taken_is_told(ending: Ending) -> None:
    with ending.query.open(**ending.words) as session:
        session.push(ending.events)
    with pytest.warns(RuntimeWarning, match=rf"completed {len(ending.rest)} match.* not taken"):
        del session
        gc.collect()


@every_ending
@pytest.mark.parametrize("how", ["close", "rest", "snapshot", "exception"])
def test_nothing_is_told_of_what_was_taken(ending: Ending, how: str) -> None:
    """A snapshot says that the stream goes on, and an exception that there is no result."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            with ending.query.open(**ending.words) as session:
                session.push(ending.events)
                if how == "close":
                    assert [m.positions for m in session.close()] == ending.rest
                if how == "snapshot":
                    state = session.snapshot()
                if how == "exception":
                    raise KeyError
        except KeyError:
            assert how == "exception"
        assert [m.positions for m in session.rest] == (ending.rest if how == "rest" else [])
        assert session.close() == []
        if how == "snapshot":
            with ending.query.open(state, **ending.words) as session:
                pass
            assert [m.positions for m in session.rest] == ending.rest
        del session
        gc.collect()


def test_a_stream_that_went_on_behind_its_snapshot_ends_with_the_block() -> None:
    for query, event in ((ENDINGS["absence"].query, _tuple), (ENDINGS["instant"].query, _graph)):
        with query.open() as session:
            session.push(event("A", 1))
            session.snapshot()
            session.push(event("A", 2))
            session.push(event("B", 3))
        assert [m.end for m in session.rest] in ([0, 1], [2, 2])


def test_alerts_end_with_their_block() -> None:
    with ENDINGS["absence"].query.alerts().open() as alerts:
        assert alerts.push(ENDINGS["absence"].events) == []
    assert alerts.rest == [0, 2] and alerts.close() == []


def test_a_push_that_was_not_read_to_its_end_is_told() -> None:
    batches = [spaseq_batch([_graph("A", 1), _graph("B", 2), _graph("B", 3), _graph("B", 4)])]
    with pytest.warns(RuntimeWarning, match="not read to their end"), ENDINGS["instant"].query.open() as session:
        for _ in session.push_batches(batches):
            break


def spaseq_batch(events: list[spaseq.GraphEvent]) -> Any:
    from spaseq.rdf import GraphBatch

    return GraphBatch.of(events)


# -- pushes that are refused


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_push_that_is_refused_has_taken_nothing(size: int) -> None:
    """Graphs in front of a late one were gone, and the matches of tables in front of a wrong one."""
    for query, event in ((ceql.compile("SELECT * WHERE A ; B"), _tuple), (ENDINGS["instant"].query, _graph)):
        for lateness in ("0s", "1s"):
            session = query.open(lateness=lateness)
            found = list(session.push(event("A", 5)))
            refused = [*(event("B", 6 + i) for i in range(size)), event("B", 1)]
            for wrong in (refused, iter(refused), [*refused[:-1], "B"]):
                with pytest.raises(SpaseqError):
                    session.push(wrong)
            found += session.push(refused[:-1])
            found += session.close()
            assert [m.positions for m in found] == [(0, 1 + i) for i in range(size)]


def test_tables_in_front_of_a_wrong_one_are_not_taken() -> None:
    tables = [pa.table({"type": ["B"], "time": [6]}), pa.table({"type": ["B"], "time": [1]})]
    session = ceql.compile("SELECT * WHERE A ; B").open()
    session.push(_tuple("A", 5))
    with pytest.raises(EventError, match="goes back"):
        session.push(tables)
    assert [m.positions for m in session.push(tables[0])] == [(0, 1)]


def test_a_generator_that_fails_leaves_the_session_as_it_was() -> None:
    def events(event: Callable[..., Any]) -> Iterator[Any]:
        yield event("B", 6)
        raise KeyError

    for query, event in ((ceql.compile("SELECT * WHERE A ; B"), _tuple), (ENDINGS["instant"].query, _graph)):
        session = query.open()
        session.push(event("A", 5))
        with pytest.raises(KeyError):
            session.push(events(event))
        assert [m.positions for m in [*session.push([event("B", 6)]), *session.close()]] == [(0, 1)]


@pytest.mark.parametrize("form", [str, Path, lambda path: [path], lambda path: iter([path]), lambda path: [Path(path)]])
def test_a_push_opens_no_file(form: Callable[[str], Any], tmp_path: Path) -> None:
    """A text that was pushed was taken for the name of a file."""
    (tmp_path / "events.csv").write_text("type\nA\n")
    (tmp_path / "graphs.nq").write_text("")
    for query, name in ((ceql.compile("SELECT * WHERE A"), "events.csv"), (ENDINGS["instant"].query, "graphs.nq")):
        with pytest.raises(OptionError, match=r"a text or a path.*\n.*query\.run\("):
            query.open().push(form(str(tmp_path / name)))
    with pytest.raises(OptionError, match="a text or a path"):
        ceql.compile("SELECT * WHERE A").alerts().open().push(form(str(tmp_path / "events.csv")))


class Record:
    """A class, whose objects would be events."""


class Series:
    """As Polars has it: no frame, though it says `to_arrow`."""

    def to_arrow(self) -> pa.Array:
        return pa.array(["A"])


@dataclass
class Again:
    """An iterator, made again for each use."""

    made: Callable[[], Any]

    def __call__(self) -> Any:
        return self.made()


Pair = namedtuple("Pair", "type time")
NO_EVENTS = [
    5, 1.5, True, None, b"A", object(), Record, [5], [None], Again(lambda: iter([5])), {"A"},
    np.array([1, 2]), np.array(["A"]), pandas.Series(["A"], name="type"), Series(), pa.array(["A"]),
    pa.chunked_array([["A"]]), range(3), Again(lambda: (x for x in "AB")), [[["A"]]], lambda: None,
]  # fmt: skip


@pytest.mark.parametrize("wrong", NO_EVENTS, ids=lambda value: type(value).__name__)
def test_what_holds_no_events_is_refused_by_name(wrong: Any) -> None:
    kinds = (OptionError, EventError)
    query = ceql.compile("SELECT * WHERE A")
    for push in (query.open().push, query.alerts().open().push, ENDINGS["instant"].query.open().push):
        with pytest.raises(kinds):
            push(wrong() if isinstance(wrong, Again) else wrong)
    if not isinstance(wrong, Again):
        with pytest.raises(kinds):
            query.run(wrong).count()


def test_named_tuples_are_events() -> None:
    query = ceql.compile("SELECT * WHERE A ; B")
    events = [Pair("A", 1), Pair("B", 2)]
    for given in (events, iter(events), tuple(events), [events[0], {"type": "B", "time": 2}]):
        assert query.run(given).count() == 1
        assert len(query.open().push(given if not isinstance(given, Iterator) else iter(events))) == 1
    session = query.open()
    assert [len(session.push(event)) for event in events] == [0, 1]


def test_a_session_that_broke_ends_without_another_error() -> None:
    query = ceql.compile("SELECT * WHERE A+ ; B", settings=ceql.Settings(output_bytes=150))
    with query.open() as session, pytest.raises(BudgetExceeded):
        session.push([*(_tuple("A", i) for i in range(20)), _tuple("B", 30)])
    assert session.rest == []


# -- arguments


GRAPHS = "FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?x <urn:p> ?v } }"
CONSTRUCT = spaseq.compile(f"CONSTRUCT {{ ?x <urn:q> ?v }} {GRAPHS}")
TUPLES = ceql.compile("SELECT * WHERE A ; B")
WRONG: dict[str, Callable[[], Any]] = {
    "streams": lambda: TUPLES.run(streams=cast(Any, [{"type": "A"}])),
    "a name of streams": lambda: TUPLES.run(streams=cast(Any, {5: []})),
    "names of streams": lambda: TUPLES.open(streams="S"),
    "valuations": lambda: TUPLES.run([], valuations=cast(Any, [5])),
    "stream of a push": lambda: TUPLES.open().push([{"type": "A"}], cast(Any, ["S"])),
    "count": lambda: TUPLES.run([]).count(cast(Any, "1")),
    "timeline": lambda: TUPLES.run([]).timeline(-1),
    "limits of alerts": lambda: TUPLES.alerts(limits=cast(Any, 5)),
    "time_from": lambda: TUPLES.open(time_from=cast(Any, np.array([1, 2]))),
    "late": lambda: TUPLES.open(late=cast(Any, np.array([1, 2]))),
    "explain": lambda: CONSTRUCT.explain(cast(Any, np.array([1, 2]))),
    "options": lambda: CONSTRUCT.open(options=cast(Any, 5)),
    "entailment": lambda: CONSTRUCT.open(entailment=cast(Any, np.array([1, 2]))),
    "format": lambda: list(CONSTRUCT.run({"S": "s.nq"}, format=cast(Any, 5))),
    "a source": lambda: CONSTRUCT.run({"S": spaseq.StreamSource("urn:s", cast(Any, 5))}),
    "event_by": lambda: CONSTRUCT.run({"S": spaseq.StreamSource("urn:s", ("s.nq",), cast(Any, 5))}),
    "groups": lambda: spaseq.Grouped("kb.ttl", cast(Any, 5)),
    "batches": lambda: list(CONSTRUCT.open().push_batches(cast(Any, [5]))),
    "a graph of": lambda: CONSTRUCT.construct(cast(Any, 5)),
    "a graph of texts": lambda: CONSTRUCT.construct({"x": "text"}),
    "a number of a graph": lambda: CONSTRUCT.construct({}, cast(Any, "1")),
    "a name that no file has": lambda: TUPLES.run("\ud800").count(),
    "a schema that no file has": lambda: TUPLES.run([], schema="\ud800"),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_arguments_of_a_wrong_type_are_refused_by_name(call: Callable[[], Any]) -> None:
    """They were errors of Python from within."""
    with pytest.raises(SpaseqError) as caught:
        call()
    assert not isinstance(caught.value, InternalError) and str(caught.value)


def test_a_graph_is_constructed_of_a_match() -> None:
    triple = URIRef("urn:x"), URIRef("urn:p"), Literal(1)
    with CONSTRUCT.open() as session:
        session.push(spaseq.GraphEvent("urn:s", 0, (triple,)))
    (match,) = session.rest
    graph = CONSTRUCT.construct(match)
    assert graph == CONSTRUCT.construct(match.bindings) == ((triple[0], URIRef("urn:q"), triple[2]),)
