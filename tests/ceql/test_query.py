"""The library: compile, run over every kind of source, open and push, snapshot."""

from __future__ import annotations

import doctest
import pathlib
import subprocess
import sys
from typing import Any

import pandas
import pyarrow as pa
import pytest

import ceql
import ceql.query
from spaseq.core.errors import EventError, OptionError

EVENTS: list[dict[str, Any]] = [
    {"type": "A", "price": 1, "name": "x", "time": 10},
    {"type": "B", "price": 3, "name": "y", "time": 11},
    {"type": "A", "price": 2, "name": "y", "time": 11.5},
    {"type": "B", "price": None, "name": "x", "time": 12},
    {"type": "B", "price": 9, "name": "y", "time": 13},
]
PAIRS = "SELECT * WHERE A AS a ; B AS b FILTER b.price > a.price"


def positions(query: str, events: Any = EVENTS, **options: Any) -> list[tuple[int, ...]]:
    return sorted(m.positions for m in ceql.compile(query).run(events, **options))


class Polars:
    """Just enough of a Polars frame."""

    def to_arrow(self) -> pa.Table:
        return pa.Table.from_pylist(EVENTS)


@pytest.mark.parametrize(
    "events",
    [
        EVENTS,
        pa.Table.from_pylist(EVENTS),
        pa.Table.from_pylist(EVENTS).to_batches()[0],
        pa.Table.from_pylist(EVENTS).to_reader(),
        pandas.DataFrame(EVENTS),
        Polars(),
        [EVENTS[:2], EVENTS[2:]],
        iter(EVENTS),
    ],
    ids=["dicts", "table", "batch", "reader", "pandas", "polars", "parts", "iterator"],
)
def test_sources(events: Any) -> None:
    assert positions(PAIRS, events) == [(0, 1), (0, 4), (2, 4)]


def test_a_match_knows_its_events_and_times() -> None:
    match = next(iter(ceql.compile(PAIRS).run(EVENTS)))
    assert (match.start, match.end, match.positions, match.bindings) == (0, 1, (0, 1), {})
    assert match.events == [{"type": "A", "price": 1, "name": "x", "time": 10.0},
                            {"type": "B", "price": 3, "name": "y", "time": 11.0}]  # fmt: skip
    assert match.times == (10 * 10**9, 11 * 10**9) and match.time == 11 * 10**9


def test_columns() -> None:
    matches = ceql.compile(PAIRS).run(EVENTS)
    table = matches.to_arrow()
    assert table.sort_by([("end", "ascending"), ("start", "ascending")]).to_pydict() == {
        "start": [0, 0, 2], "end": [1, 4, 4], "positions": [[0, 1], [0, 4], [2, 4]],
        "start_time": [10**10, 10**10, 115 * 10**8], "end_time": [11 * 10**9, 13 * 10**9, 13 * 10**9],
    }  # fmt: skip
    assert matches.count() == 3 and list(matches.to_pandas()["end"]) == [1, 4, 4]
    none = ceql.compile("SELECT * WHERE Z").run(EVENTS)
    assert none.to_arrow().schema.names == table.schema.names and none.count() == 0


def test_windows_partitions_selection() -> None:
    assert positions(PAIRS + " WITHIN 1 EVENT") == [(0, 1)]
    assert positions(PAIRS + " WITHIN 1.5 SECONDS") == [(0, 1), (2, 4)]
    assert positions(PAIRS + " WITHIN 1 [price]", [{"type": "A", "price": 1}, {"type": "B", "price": 2}]) == [(0, 1)]
    assert positions(PAIRS + " PARTITION BY [name]") == [(2, 4)]
    assert positions("SELECT STRICT * WHERE A ; B") == [(0, 1), (2, 3)]
    assert positions("SELECT b WHERE A ; B AS b WITHIN 2 EVENTS") == [(1,), (3,), (4,)]
    assert positions("SELECT NONE WHERE A : B") == [(), ()]


def test_each_bracket_gives_the_attribute_by_event_type() -> None:
    events = [
        {"type": "A", "buyer": "x", "day": 1},
        {"type": "B", "seller": "x", "day": 1},
        {"type": "B", "seller": "x", "day": 2},
        {"type": "B", "day": 1},
    ]
    assert positions("SELECT * WHERE A ; B PARTITION BY [buyer, seller], [day]", events) == [(0, 1)]


def test_several_streams() -> None:
    one = [{"type": "A", "time": t} for t in (1, 3)]
    two = [{"type": "B", "time": t} for t in (1, 2, 4)]
    query = ceql.compile("SELECT * FROM S1, S2 WHERE S1>A ; S2>B")
    found = sorted(m.positions for m in query.run(streams={"S2": two, "S1": one}))
    assert found == [(0, 1), (0, 2), (0, 4), (3, 4)]  # equal times keep the order of FROM
    with pytest.raises(OptionError, match="several streams: S1, S2"):
        query.run(one)
    with pytest.raises(OptionError, match="no events for stream S2"):
        query.run(streams={"S1": one})
    with pytest.raises(OptionError, match="did you mean S2"):
        query.run(streams={"S1": one, "S22": two, "S2": two})
    with pytest.raises(OptionError, match="no events"):
        query.run()
    with query.open() as stream:
        assert stream.push(one[:1], "S1") == [] and len(stream.push(two[:2], "S2")) == 2
        with pytest.raises(OptionError, match="which stream"):
            stream.push(one)


@pytest.mark.parametrize("cuts", [[1, 2, 3, 4], [2], [3, 3]])
@pytest.mark.parametrize("tail", ["", " WITHIN 2 EVENTS", " WITHIN 2 SECONDS", " PARTITION BY [name] WITHIN 3 EVENTS"])
def test_pushing_gives_what_running_gives(cuts: list[int], tail: str) -> None:
    query = ceql.compile(PAIRS + tail)
    found = []
    with query.open() as stream:
        for start, end in zip([0, *cuts], [*cuts, len(EVENTS)], strict=True):
            found += stream.push(EVENTS[start:end])
            stream = query.open(stream.snapshot())
        found += stream.close()
    assert sorted(m.positions for m in found) == positions(PAIRS + tail)
    assert all(len(m.events) == 2 for m in found)


def test_lateness() -> None:
    late = [EVENTS[1], EVENTS[0], *EVENTS[2:]]
    with pytest.raises(EventError, match="goes back in time by 1 s"):
        positions(PAIRS, late)
    assert positions(PAIRS, late, lateness="1s") == positions(PAIRS)
    matches = ceql.compile(PAIRS).run(late, late="drop")
    assert [m.positions for m in matches] == [(1, 3)] and matches.counters.dropped == {"<events>": 1}
    with ceql.compile(PAIRS).open(lateness="1s") as stream:
        found = stream.push(late[:2])
        found += stream.push(late[2:]) + stream.close()
    assert sorted(m.positions for m in found) == positions(PAIRS)


def test_wrong_uses() -> None:
    query = ceql.compile(PAIRS)
    stream = query.open()
    stream.close()
    with pytest.raises(OptionError, match="closed"):
        stream.push(EVENTS)
    with pytest.raises(OptionError, match="no snapshot"):
        query.open(b"what is this")
    with pytest.raises(OptionError, match="another query"):
        ceql.compile("SELECT * WHERE A").open(query.open().snapshot())
    with pytest.raises(OptionError, match="only once"):
        matches = query.run(iter(EVENTS))
        assert matches.count() == matches.count()
    with pytest.raises(EventError, match="no column 'type'"):
        query.run([{"kind": "A"}]).count()


@pytest.mark.parametrize(("sign", "word"), [(";", ";"), ("\t", "tab")])
def test_a_csv_with_other_signs_between_its_fields(sign: str, word: str, tmp_path: pathlib.Path) -> None:
    """It is read, if its lines have as many; else the error says what reads it."""
    (tmp_path / "e.csv").write_text(f"type{sign}v\nA{sign}1\n")
    assert ceql.compile("SELECT * WHERE A").run(str(tmp_path / "e.csv")).count() == 1
    with pytest.raises(EventError, match="no column 'type'") as caught:
        ceql.compile("SELECT * WHERE A").run(str(tmp_path / "e.csv"), delimiter=",").count()
    assert caught.value.hint.startswith("this is one column")
    assert caught.value.hint.endswith(f'delimiter="{word}" separates the fields there')


def test_operands_that_do_not_go_together_are_an_error_with_its_place() -> None:
    events = [{"type": "A"}, {"type": "A", "name": "x", "p": 1}, {"type": "B", "name": "y", "p": 2}]
    with pytest.raises(EventError) as caught:
        ceql.compile("SELECT * WHERE A FILTER A[name > 3]").run(events).count()
    assert str(caught.value).splitlines()[0] == (
        "<events>, event 2: name > 3: a text cannot be combined with a number: name is 'x' here"
    )
    with pytest.raises(EventError) as caught:
        ceql.compile("SELECT * FROM S WHERE A AS a ; B AS b FILTER b.name > a.p").run(events).count()
    assert (caught.value.source, caught.value.record) == ("S", 3)
    assert "b.name > a.p" in str(caught.value)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([{"type": "A", "t": 2}, {"type": "A", "t": 1}], "t goes back from 2 to 1"),
        ([{"type": "A", "t": 2}, {"type": "A"}], "this event has no t"),
        ([{"type": "A", "t": "x"}], "t holds no numbers"),
        ([{"type": "A", "t": None}], "this event has no t"),
    ],
)
def test_a_window_over_an_attribute_needs_it(events: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(EventError, match=message) as caught:
        ceql.compile("SELECT * WHERE A WITHIN 5 [t]").run(events).count()
    assert caught.value.record == len(events)


def test_explain_and_parts() -> None:
    query = ceql.compile("SELECT STRICT * WHERE A PARTITION BY [a, b] WITHIN 5 [t]")
    text = query.explain()
    assert "window over: t" in text and "partition by: a or b" in text and "STRICT" in text and "type = A" in text
    assert query.pattern is not None and query.program().window.size == 5


def test_explain_says_which_events_are_passed_over() -> None:
    text = ceql.compile("SELECT * WHERE A -> B->+? UNTIL X -> NOT Y -> C? : D").explain()
    said = text[text.index("steps:\n") : text.index("automaton:")]
    assert said.splitlines()[1:] == [
        "  1:21 before B->+? UNTIL X: the next event that fits is taken, others are passed over",
        "  1:21 rounds of B->+? UNTIL X: the next event that fits is taken, others are passed over; if an event also "
        "fits what follows, it is taken there; X ends it",
        "  1:47 before C?: the next event that fits is taken, others are passed over; none may be Y",
        "  1:47 C?: C may be missing; between steps with ->, an event that also fits what follows is taken here",
        "  1:52 before D: the very next event must fit",
    ]


def test_examples_in_docstrings() -> None:
    for module in (ceql, ceql.query):
        assert doctest.testmod(module).failed == 0


def test_import_is_light() -> None:
    """Importing, and compiling a query, loads neither kernels nor pandas nor Spark."""
    code = (
        "import sys, ceql; ceql.compile('SELECT * WHERE A ; B');"
        "print([m for m in ('numba', 'pandas', 'pyspark', 'rdflib', 'polars') if m in sys.modules])"
    )
    root = pathlib.Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_window_over_an_attribute_nobody_has() -> None:
    with pytest.raises(EventError, match=r"(?s)no attribute stock_tim.*did you mean stock_time"):
        ceql.compile("SELECT * WHERE A WITHIN 5 [stock_tim]").run([{"type": "A", "stock_time": 1}]).count()


@pytest.mark.parametrize("tail", ["", " WITHIN 3 EVENTS", " WITHIN 3 SECONDS", " WITHIN 3 [price]"])
def test_old_matches_still_know_their_events(tail: str) -> None:
    """Events are let go of once no match to come can name them; matches that were given out keep theirs."""
    query = ceql.compile("SELECT * WHERE A AS x : A AS y" + tail)
    stream = query.open()
    found = []
    for k in range(300):
        found += stream.push([{"type": "A", "price": k, "time": k}])
    assert [[e["price"] for e in m.events] for m in found] == [[k, k + 1] for k in range(299)]
    assert [m.times for m in found] == [(k * 10**9, (k + 1) * 10**9) for k in range(299)]
    assert not tail or len(stream._run.past.blocks) < 20


def test_matches_that_waited_for_their_window_know_their_events() -> None:
    """`NOT` at the end: a match is reported with later events, or at the end, also through a snapshot."""
    query = ceql.compile("SELECT * WHERE A AS a ; NOT B WITHIN 3 EVENTS")
    assert "at the end: none of (type = B)" in query.explain()
    events = [{"type": t, "n": n} for n, t in enumerate("AXXXXAXXXBAXBXA")]
    found = []
    stream = query.open()
    for event in events:
        found += [(m.positions, [e["n"] for e in m.events]) for m in stream.push([event])]
        stream = query.open(stream.snapshot())
    assert found == [((0,), [0]), ((5,), [5])]
    assert [(m.positions, [e["n"] for e in m.events]) for m in stream.close()] == [((14,), [14])]
    assert [(m.positions, m.events[0]["n"]) for m in query.run(events)] == [((n,), n) for n in (0, 5, 14)]
    assert query.run(events).count() == 3


def test_a_query_is_text() -> None:
    for text in (None, 3, b"SELECT"):
        with pytest.raises(OptionError, match="a query is text"):
            ceql.compile(text)  # type: ignore[arg-type]
