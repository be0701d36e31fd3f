"""Windows of both languages where int64 ends: before 1677, after 2262, at zero; sizes of nothing and of all there is.

What is expected is worked out with Python's numbers, pair by pair. Whatever way in: a batch, events pushed one by one,
any cut; every evaluator.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import Literal, URIRef

import ceql
import spaseq
from spaseq.core.engine import Settings
from spaseq.core.errors import EventError, QueryError
from spaseq.rdf import GraphEvent
from tests.support.sizes import some

MOST = (1 << 63) - 1
DAY = 86_400 * 10**9
Pairs = list[tuple[int, int]]

# What is said of the ends of int64 holds of times from -(2^63 - 1) to 2^63 - 1 ns.
times = st.one_of(
    st.sampled_from([-MOST, -MOST + 1, -(10**18), -DAY, -1, 0, 1, DAY, 10**18, MOST - 1, MOST]),
    st.integers(-MOST, MOST),
    st.integers(-4, 4),
    st.integers(MOST - 4, MOST),
    st.integers(-MOST, -MOST + 4),
)
sizes = st.one_of(st.sampled_from([0, 1, DAY, 36_500 * DAY, 9 * 10**18, MOST - 1, MOST]), st.integers(0, 5))
types = st.sampled_from("ABC")


# ---------------------------------------------------------------------------------------------------------------- CEQL

FORMS = {
    "pairs": "SELECT * WHERE A ; B",
    "codes": "SELECT * WHERE A AS a ; B AS b FILTER a.v <= b.v",
    "rows": "SELECT * WHERE A AS a ; B AS b FILTER AVG(a.v) <= b.v",
    "max": "SELECT MAX * WHERE A ; B",
    "next": "SELECT NEXT * WHERE A ; B",
    "last": "SELECT LAST * WHERE A ; B",
    "absent": "SELECT * WHERE A ; NOT C",
    "keys": "SELECT * WHERE A ; B PARTITION BY [k]",
}
LAZY = ("pairs", "codes", "rows", "absent", "keys")
EVALUATORS = [("compact", form) for form in FORMS] + [(e, form) for e in ("chain", "tree", "auto") for form in LAZY]


def expected_pairs(form: str, events: Sequence[dict[str, Any]], places: Sequence[Any], size: Any) -> Pairs:
    """The definition: who begins and ends what, and whether the window holds both."""

    def fits(i: int, j: int) -> bool:
        return exact(places[j]) - exact(places[i]) <= exact(size)

    starts = [i for i, e in enumerate(events) if e["type"] == "A"]
    if form == "absent":
        gone = {i for i in starts for j in range(i + 1, len(events)) if events[j]["type"] == "C" and fits(i, j)}
        return [(i, i) for i in starts if i not in gone]
    found = [(i, j) for i in starts for j in range(i + 1, len(events)) if events[j]["type"] == "B" and fits(i, j)]
    if form in ("codes", "rows"):
        found = [(i, j) for i, j in found if events[i]["v"] <= events[j]["v"]]
    if form == "keys":
        found = [(i, j) for i, j in found if events[i]["k"] == events[j]["k"]]
    if form in ("next", "last"):
        choose = min if form == "next" else max
        found = [(choose(i for i, k in found if k == end), end) for end in {j for _, j in found}]
    return sorted(found)


def exact(number: int | float) -> Fraction:
    """A number as it is written."""
    return Fraction(Decimal(repr(number)))


def every_way(query: Any, events: Sequence[dict[str, Any]], cuts: Sequence[int], **words: Any) -> list[Pairs]:
    """What the query finds in a batch, in events pushed one by one, and in pieces."""
    bounds = [0, *sorted(cut % (len(events) + 1) for cut in cuts), len(events)]
    pieces = [list(events[a:b]) for a, b in pairwise(bounds) if b > a]
    found = [[(m.start, m.end) for m in query.run(list(events), **words)]]
    for parts in ([[event] for event in events], pieces):
        with query.open(**words) as stream:
            matches = [m for part in parts for m in stream.push(part[0] if len(part) == 1 else part)]
            found.append([(m.start, m.end) for m in matches + stream.close()])
    return [sorted(pairs) for pairs in found]


def rows(kinds: Sequence[str], values: Sequence[Any], attribute: str) -> list[dict[str, Any]]:
    both = enumerate(zip(kinds, values, strict=True))
    return [{"type": t, attribute: x, "v": n % 3, "k": n % 2} for n, (t, x) in both]


@pytest.mark.parametrize(("evaluator", "form"), EVALUATORS)
@settings(max_examples=some(15), deadline=None)
@given(st.data())
def test_ceql_at_the_edges(evaluator: str, form: str, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 9))
    kinds = data.draw(st.lists(types, min_size=count, max_size=count))
    size: float = data.draw(sizes)
    measure = data.draw(st.sampled_from(["time", "whole", "decimal", "events"]))
    cuts = data.draw(st.lists(st.integers(0, 9), max_size=3))
    window = f"{size} [n]"
    words: dict[str, Any] = {}
    if measure == "time":
        places: Sequence[Any] = sorted(data.draw(st.lists(times, min_size=count, max_size=count)))
        events, window, words = rows(kinds, places, "time"), f"{size} NANOSECONDS", {"time_unit": "ns"}
    elif measure == "whole":
        least = st.one_of(times, st.just(-MOST - 1))
        places = sorted(data.draw(st.lists(least, min_size=count, max_size=count)))
        events = rows(kinds, places, "n")
    elif measure == "decimal":
        tenths = st.integers(-30, 30).map(lambda n: n / 10)
        places = sorted(data.draw(st.lists(tenths | st.floats(-1e18, 1e18), min_size=count, max_size=count)))
        events, size = rows(kinds, places, "n"), data.draw(st.integers(0, 30)) / 10
        window = f"{size} [n]"
    else:
        places = range(count)
        if form == "keys":
            places = [n // 2 for n in range(count)]  # k alternates
        events, window = rows(kinds, [0] * count, "n"), f"{size} EVENTS"
    query = ceql.compile(f"{FORMS[form]} WITHIN {window}", settings=Settings(evaluator=evaluator))
    for found in every_way(query, events, cuts, **words):
        assert found == expected_pairs(form, events, places, size)


YEARS = [
    ("WITHIN 36500 DAYS", 1750, 1),
    ("WITHIN 100000 DAYS", 1700, 1),
    ("WITHIN 876000 HOURS", 1750, 1),
    ("WITHIN 100000 DAYS", 2200, 1),
    ("WITHIN 36500 DAYS", 1970, 1),
    ("WITHIN 0 DAYS", 1750, 0),
]


def at(*years: int) -> list[str]:
    return [f"{year}-01-01T00:00:00Z" for year in years]


@pytest.mark.parametrize(("window", "year", "count"), YEARS)
def test_ceql_in_all_years(window: str, year: int, count: int) -> None:
    events = [{"type": t, "time": time} for t, time in zip("AB", at(year, year + 1), strict=True)]
    for found in every_way(ceql.compile(f"SELECT * WHERE A ; B {window}"), events, []):
        assert len(found) == count


def test_a_window_of_nine_quintillions() -> None:
    events = [{"type": "A", "t": -(10**18)}, {"type": "B", "t": 0}, {"type": "B", "t": 8 * 10**18 + 1}]
    for found in every_way(ceql.compile("SELECT * WHERE A ; B WITHIN 9000000000000000000 [t]"), events, []):
        assert found == [(0, 1)]


@pytest.mark.parametrize(
    "window", ["WITHIN 9223372036854775808 NANOSECONDS", "WITHIN 106752 DAYS", "WITHIN 9223372036854775808 EVENTS",
               "WITHIN 99999999999999999999999 EVENTS", "WITHIN 1e400 [t]"]
)  # fmt: skip
def test_a_window_that_int64_does_not_hold_is_an_error_of_the_query(window: str) -> None:
    with pytest.raises(QueryError):
        ceql.compile(f"SELECT * WHERE A ; B {window}")


NO_TIMES = ["NaN", "nan", "inf", "-inf", "Infinity", "", float("nan"), float("inf"), -float("inf"), None, 10**19,
            1e300, -(1 << 63), "1677-01-01T00:00:00Z", "2263-01-01T00:00:00Z", "1600-01-01",
            "9999-12-31T23:59:59Z"]  # fmt: skip


@pytest.mark.parametrize("bad", NO_TIMES, ids=repr)
def test_what_is_no_time_is_an_error(bad: Any, tmp_path: Path) -> None:
    """NaN was time 0, the least int64 in seconds too."""
    query = ceql.compile("SELECT * WHERE A ; A WITHIN 10 SECONDS")
    good = [{"type": "A", "time": "-2" if isinstance(bad, str) else -2} for _ in range(2)]
    for events in ([*good, {"type": "A", "time": bad}], [{"type": "A", "time": bad}]):
        with pytest.raises(EventError):
            query.run(events).count()
        with query.open() as stream, pytest.raises(EventError, match=rf"event {len(events)}|record 1"):
            for event in events:
                stream.push(event)
    path = tmp_path / "s.csv"
    path.write_text(f"type,time\nA,-2\nA,{'' if bad is None else bad}\n")
    with pytest.raises(EventError, match=r"event 2|csv:3"):
        query.run(str(path)).count()
    if isinstance(bad, float):
        for numbers in ([-2.0, bad], [-2.5, bad]):
            for kind in (np.float64, np.float32):
                with np.errstate(over="ignore"):
                    table = pa.table({"type": ["A", "A"], "time": np.array(numbers, kind)})
                with pytest.raises(EventError, match="event 2"):
                    query.run(table).count()


@pytest.mark.parametrize("bad", ["NaN", float("nan"), float("inf"), -float("inf"), None, True], ids=repr)
def test_what_no_window_can_be_measured_in_is_an_error(bad: Any) -> None:
    query = ceql.compile("SELECT * WHERE A ; A WITHIN 10 [n]")
    for first in ([], [{"type": "A", "n": -1}], [{"type": "A", "n": -1.5}]):
        with pytest.raises(EventError), query.open() as stream:
            for event in [*first, {"type": "A", "n": bad}]:
                stream.push(event)
        if bad is not True or not first:  # a column that holds -1 and true holds numbers
            with pytest.raises(EventError):
                query.run([*first, {"type": "A", "n": bad}]).count()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_lateness_of_any_two_times(unit: str) -> None:
    """From 2262 back to 1677 is further than int64 says."""
    scale = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    events = [{"type": "A", "time": MOST // scale}, {"type": "B", "time": -(MOST // scale)}]
    query = ceql.compile("SELECT * WHERE A ; B")
    with pytest.raises(EventError, match=r"goes back in time by 1844674407[23]"):
        query.run(events, time_unit=unit).count()
    with pytest.raises(EventError, match=r"goes back in time by 1844674407[23]"), query.open(time_unit=unit) as stream:
        stream.push(events)


# -------------------------------------------------------------------------------------------------------------- SPAseq

E = "http://example.org/"
SEQUENCES = {"pairs": "A; B", "next": "A, B", "absent after": "A; C!", "absent before": "C!; A"}


def graph(kind: str, time: int, number: int) -> GraphEvent:
    triple = (URIRef(f"{E}s{number}"), URIRef(E + kind), Literal(number))
    return GraphEvent(E + "S", time, (triple,), None, "test", number + 1)


def spaseq_query(sequence: str, within: str) -> Any:
    gpms = " ".join(f"DEFINE GPM {t} ON S {{ ?{t.lower()} :{t} ?x{t} }}" for t in "ABC" if t in sequence)
    return spaseq.compile(f"PREFIX : <{E}> SELECT * {within} FROM STREAM S <{E}S> WHERE {{ SEQ ({sequence}) {gpms} }}")


def seconds(nanoseconds: int) -> str:
    return format(Decimal(nanoseconds) / 10**9, "f")


@pytest.mark.parametrize("form", SEQUENCES)
@settings(max_examples=some(30), deadline=None)
@given(st.data())
def test_spaseq_at_the_edges(form: str, data: st.DataObject) -> None:
    stamps = sorted(data.draw(st.sets(times, min_size=1, max_size=8)))
    kinds = [data.draw(types) for _ in stamps]
    size, sliding = max(1, data.draw(sizes)), data.draw(st.booleans()) and form != "absent before"
    origin = 0 if sliding else data.draw(times)
    within = f"WITHIN {seconds(size)} SECONDS" + (" SLIDING" if sliding else f' STARTING AT "{seconds(origin)}"')
    query = spaseq_query(SEQUENCES[form], within)

    def fits(i: int, j: int) -> bool:
        if sliding:
            return stamps[j] - stamps[i] <= size
        return (stamps[i] - origin) // size == (stamps[j] - origin) // size

    later = [(i, j) for i in range(len(stamps)) for j in range(i + 1, len(stamps)) if fits(i, j)]
    inside = [(i, j) for i, j in later if (kinds[i], kinds[j]) == ("A", "B")]
    match form:
        case "pairs":  # skip till the next B
            expected = [(i, j) for i, j in inside if "B" not in kinds[i + 1 : j]]
        case "next":
            expected = [(i, j) for i, j in inside if j == i + 1]
        case "absent after":
            gone = {i for i, j in later if kinds[j] == "C"}
            expected = [(i, i) for i, kind in enumerate(kinds) if kind == "A" and i not in gone]
        case _:
            gone = {j for i, j in later if kinds[i] == "C"}
            expected = [(j, j) for j, kind in enumerate(kinds) if kind == "A" and j not in gone]
    events = [graph(kind, time, n) for n, (kind, time) in enumerate(zip(kinds, stamps, strict=True))]
    cut = data.draw(st.integers(0, len(events)))
    for parts in ([events], [[event] for event in events], [events[:cut], events[cut:]]):
        with query.open() as session:
            found = [m for part in parts for m in session.push(part)] + session.close()
        assert sorted((m.start, m.end) for m in found) == sorted(expected)


@pytest.mark.parametrize("sliding", ["", " SLIDING"])
@pytest.mark.parametrize(("window", "year", "count"), YEARS[:5])
def test_spaseq_in_all_years(window: str, year: int, count: int, sliding: str, tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    said = '<{0}g{1}> <http://www.w3.org/ns/prov#generatedAtTime> "{2}" .\n<{0}s> <{0}{3}> "x" <{0}g{1}> .\n'
    path.write_text("".join(said.format(E, n, t, "AB"[n]) for n, t in enumerate(at(year, year + 1))))
    start = "" if sliding else f' STARTING AT "{at(year)[0]}"'
    query = spaseq_query("A; B", window + sliding + start)
    assert query.run({"S": str(path)}).count() == count


@pytest.mark.parametrize("time", ["1677-01-01T00:00:00Z", "2263-01-01T00:00:00Z", "NaN", "INF", "-INF", "1e300"])
@pytest.mark.parametrize("form", ["nq", "trig"])
def test_a_graph_with_what_is_no_time_is_an_error(time: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"s.{form}"
    said = f'<{E}g> <http://www.w3.org/ns/prov#generatedAtTime> "{time}" .\n'
    triple = f'<{E}s> <{E}A> "1"'
    path.write_text(said + (f"{triple} <{E}g> .\n" if form == "nq" else f"<{E}g> {{ {triple} }}\n"))
    with pytest.raises(EventError, match=rf"s\.{form}:1"):
        spaseq_query("A", "WITHIN 1 DAYS").run({"S": str(path)}).count()


@pytest.mark.parametrize("window", ["WITHIN 106752 DAYS", "WITHIN 0 DAYS", "WITHIN 9223372037 SECONDS SLIDING"])
def test_spaseq_refuses_windows_that_are_none(window: str) -> None:
    with pytest.raises(QueryError, match="window"):
        spaseq_query("A; B", window)


def test_the_ends_of_time() -> None:
    """A match of the first and the last instant that there are, in a window of all time less one."""
    events = [graph("A", -MOST, 0), graph("B", -1, 1), graph("B", 0, 2)]
    for window, count in ((MOST, 1), (MOST - 1, 1), (MOST - 2, 0)):
        query = spaseq_query("A; B", f"WITHIN {seconds(window)} SECONDS SLIDING")
        with query.open() as session:
            assert len(session.push(events) + session.close()) == count
