"""SELECT computes columns: rows of matches, against their definition, on every road."""

from __future__ import annotations

import datetime
import json
import math
import random
import re
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ceql
from ceql.expressions.scalar import compile_condition, compile_value
from ceql.operators.functions import FUNCTIONS
from ceql.results.segments import aggregate, extreme, one_by_one
from ceql.syntax import ast
from ceql.syntax.parse import parse
from spaseq.core.errors import EventError
from spaseq.core.events import EventBatch, EventOptions, EventStream, column_of
from spaseq.core.events.mixed import array_of
from tests.support import drawn_functions
from tests.support import oracle_select as o

WHERE = {
    "A AS a ; B AS b": ("a", "b"),
    "A AS a+ ; B AS b": ("a", "b"),
    "A AS a? ; B AS b": ("a", "b"),
    "(A OR B) AS c+ ; B AS b": ("b", "c"),
    "A AS a ; A AS b ; B": ("A", "B", "a", "b"),
    "A AS a->+ -> B AS b": ("a", "b"),
}
TAILS = ("", "PARTITION BY [u]", "WITHIN 6 EVENTS", "PARTITION BY [u] WITHIN 5 SECONDS")


def events(rng: random.Random, count: int) -> list[dict[str, Any]]:
    def draw(values: list[Any]) -> Any:
        return rng.choice(values)

    lists = draw([[[1, 2], [0, None, -3], [10**17 + 1, 10**17]], [[1, 2], [0, None, -3], [1.5], [2.0, 1.5]]])
    zone = draw([None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=5, minutes=30))])
    start = datetime.datetime(2026, 3, 28, 22, 59, 59, 999_999, zone)
    found = []
    for place in range(count):
        event = {
            "type": draw(["A", "A", "B", "C"]), "time": place, "u": draw(["k", "l"]),
            "n": draw([None, 0, 1, 2, -3, 10**17]), "x": draw([None, 0.0, 1.5, -2.25, 1e100]),
            "s": draw([None, "", "a", "B", "ä", "aa"]),
            "at": draw([None, start, start + datetime.timedelta(microseconds=rng.randrange(10**10))]),
            "to": draw([None, start + datetime.timedelta(days=rng.randrange(-70_000, 80_000), microseconds=place)]),
            "d": draw([None, datetime.timedelta(microseconds=rng.randrange(-(10**7), 10**12)),
                       datetime.timedelta(0), datetime.timedelta(days=100_000, microseconds=place)]),
            "h": draw([None, [], [None], *lists]),
            "w": draw([None, [], ["a"], ["", "B", None], ["ä", "aa"], [None, None]]),
        }  # fmt: skip
        found.append({name: value for name, value in event.items() if value is not None})
    return found


def rows_by_definition(query: str, drawn: list[o.Drawn], given: list[dict[str, Any]]) -> list[list[Any]]:
    """The rows by definition, of the valuations that differ in the variables that columns read."""
    used = frozenset().union(*(d.variables for d in drawn))
    seen, found = set(), []
    for match in ceql.compile(query).run(given, valuations=True):
        by = {v: match.bindings.get(v, []) for v in sorted(used)}
        key = (match.start, match.end, match.positions, repr(by))
        if key in seen:
            continue
        seen.add(key)
        by_name = {v: [given[p] for p in places] for v, places in by.items()}
        every = [given[p] for p in match.positions]
        taken = o.Taken(by_name, every, given[match.start]["time"], given[match.end]["time"])
        found.append([d.of(taken) for d in drawn])
    return found


def same(one: Any, two: Any) -> bool:
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, o.Time | o.Span) or isinstance(two, o.Time | o.Span):
        return type(one) is type(two) and one == two
    if isinstance(one, float) and isinstance(two, float | int):
        return one == two or math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-9)
    return one == two and (one is None) == (two is None)


def assert_rows(found: list[dict[str, Any]], wanted: list[list[Any]], text: str) -> None:
    rows = [[o.plain(value) for value in row.values()] for row in found]
    assert len(rows) == len(wanted), text
    left = [repr(row) for row in wanted]
    if all(map(same, rows, wanted)):
        return
    rows.sort(key=repr)
    wanted = sorted(wanted, key=repr)
    for row, want in zip(rows, wanted, strict=True):
        assert same(row, want), (text, row, want, left)


def check(seed: int) -> None:
    rng = random.Random(seed)
    where, variables = rng.choice(list(WHERE.items()))
    tail = rng.choice(TAILS)
    drawn = [o.column(rng, variables) for _ in range(rng.randint(1, 4))]
    if "PARTITION" not in tail:
        drawn = [
            d for d in drawn if not any(word == "u" for word in d.text.replace("(", " ").replace(")", " ").split())
        ]
    if not drawn:
        return
    given = events(rng, rng.randint(0, 9))
    columns = ", ".join(f"{d.text} AS c{i}" for i, d in enumerate(drawn))
    text = f"SELECT {columns} WHERE {where} {tail}"
    query = ceql.compile(text)
    wanted = rows_by_definition(f"SELECT {', '.join(variables)} WHERE {where} {tail}" if "A" in variables
                      else f"SELECT * WHERE {where} {tail}", drawn, given)  # fmt: skip
    assert_rows([match.row for match in query.run(given)], wanted, text)
    assert_rows(query.run(given).to_arrow().to_pylist(), wanted, text)
    parts = [given[:4], given[4:5], given[5:]]
    assert_rows([match.row for match in query.run(part for part in parts if part)], wanted, text)
    with query.open() as session:
        rows = [match.row for event in given for match in session.push(event)]
        state = session.snapshot()
    assert_rows(rows + [match.row for match in session.rest], wanted, text)
    middle = len(given) // 2
    with query.open() as session:
        rows = [match.row for match in session.push(given[:middle])]
        state = session.snapshot()
    with query.open(state) as session:
        rows += [match.row for match in session.push(given[middle:])]
    assert_rows(rows + [match.row for match in session.rest], wanted, text)


@pytest.mark.parametrize(
    "first", [pytest.param(n, marks=[] if n < 40 else [pytest.mark.slow]) for n in range(0, 200, 20)]
)
def test_random_columns_are_as_defined_on_every_road(first: int) -> None:
    for seed in range(first, first + 20):
        check(seed)


@pytest.mark.parametrize("values", [
    [1, 2, None, -5, 3, 3, 1 << 60, None], [0.5, None, -0.0, 1e300, 2.0, 2.0, 0.0, 7.25],
    [1, 2.5, None, 3, 3.0, 0, -1, 2], ["a", None, "", "ä", "B", "a", "b", "a"],
], ids=["whole", "doubles", "both", "texts"])  # fmt: skip
def test_aggregates_of_segments_are_those_of_single_values(values: list[Any]) -> None:
    """To the last bit, short and long segments alike."""
    rng = random.Random(7)
    for _ in range(20):
        lengths = [rng.choice((0, 1, 2, 5, 200)) for _ in range(6)]
        offsets = np.cumsum([0, *lengths])
        drawn = [rng.choice(values) for _ in range(int(offsets[-1]))]
        column = column_of(array_of(drawn), "v") if drawn else None
        for name, function in FUNCTIONS.items():
            if function.add is None or (isinstance(values[0], str) and name in ("SUM", "AVG", "STDDEV")):
                continue
            wanted = one_by_one(name, column, offsets)
            if name in ("MIN", "MAX"):
                best = extreme(name, column, offsets)
                found = None if best is None else [None if i < 0 else drawn[i] for i in best.tolist()]
            else:
                array = aggregate(name, column, offsets)
                found = None if array is None else array.to_pylist()
            if found is not None:
                assert list(map(repr, found)) == list(map(repr, wanted)), (name, drawn)


def in_python(array: pa.ChunkedArray) -> list[Any]:
    """The values of a column; times and durations as numbers of ns."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        in_ns = pa.duration("ns") if pa.types.is_duration(kind) else pa.timestamp("ns", kind.tz)
        array = array.cast(in_ns).cast(pa.int64())
    return list(array.to_pylist())


def values_of_pairs(text: str, batch: EventBatch, pairs: list[tuple[int, int]]) -> list[Any] | None:
    """The values of an expression over pairs of events, by the evaluation of single values; None for an error."""
    (column,) = parse(f"SELECT {text} AS c WHERE A AS x ; B AS y").selection.columns
    build: Any = compile_condition if isinstance(column.expression, ast.Condition) else compile_value
    compute = build(column.expression, partial(of_pair, batch))
    try:
        return [compute(pair) for pair in pairs]
    except EventError:
        return None


def of_pair(batch: EventBatch, attribute: ast.Attribute) -> Any:
    get, place = batch.getter(attribute.name), "xy".index(attribute.variable or "")
    return lambda pair: get(pair[place])


def check_functions(seed: int) -> int:
    """On columns of matches, typed before the first one; the expressions are those of conditions. The number of values
    that are not NULL."""
    draw = random.Random(seed)
    text = drawn_functions.expression(draw.choice("ntbdsc"), draw, draw.randrange(1, 3), ("x", "y"))
    if not re.search(r"\b[xy]\.", text):
        return 0
    rows = [{"type": kind, **drawn_functions.event(draw, False)} for kind in "AABAB"]
    for row in rows:
        row["m"] = row.get("m", 0) if abs(row.get("m", 0)) <= 1 << 53 else 2  # else a column of texts
    pairs = [(i, j) for j in range(5) for i in range(j) if (rows[i]["type"], rows[j]["type"]) == ("A", "B")]
    (batch,) = EventStream({"": rows}, EventOptions(from_arrival=True))
    wanted = values_of_pairs(text, batch, pairs)
    query = ceql.compile(f"SELECT {text} AS c WHERE A AS x ; B AS y")
    if wanted is None:
        with pytest.raises(EventError):
            query.run(rows).to_arrow()
        return 0
    column = query.run(rows).to_arrow()["c"]
    found = in_python(column)
    if pa.types.is_string(column.type) and not any(isinstance(one, str) for one in wanted):
        found = [None if text is None else json.loads(text) for text in found]  # no type has all these numbers
    plain = [list(one) if isinstance(one, tuple) else one for one in wanted]
    assert sorted(map(repr, map(rounded, found))) == sorted(map(repr, map(rounded, plain))), text
    return sum(one is not None for one in found)


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (100, 200, 300))])
def test_random_functions_in_select_are_those_of_single_values(first: int) -> None:
    assert sum(map(check_functions, range(first, first + 100))) > 150


def rounded(value: Any) -> Any:
    """A number to twelve digits, as a double: the type of a column may be wider than that of one of its values."""
    if isinstance(value, bool | str | list) or value is None:
        return value
    return float(f"{float(value):.12g}")


def test_each_value_keeps_its_kind_in_a_row_however_events_come() -> None:
    """Found by a newcomer: a batch of both made texts of whole numbers."""
    given = [{"type": "A", "v": 1}, {"type": "B"}, {"type": "A", "v": "x"}, {"type": "B"}]
    query = ceql.compile("SELECT a.v AS v, COLLECT(a.v) AS vs WHERE A AS a : B")
    wanted = [{"v": 1, "vs": [1]}, {"v": "x", "vs": ["x"]}]
    with query.open() as session:
        assert [match.row for event in given for match in session.push(event)] == wanted
    assert [match.row for match in query.run(given)] == wanted
    assert query.run(given).to_arrow()["v"].to_pylist() == ["1", "x"]  # a column has one type


def test_nan_is_null_in_every_column() -> None:
    table = pa.table({"type": ["A", "A"], "d": [math.nan, 1.0]})
    query = ceql.compile("SELECT x.d, FIRST(x.d) AS f, COLLECT(x.d) AS c, x.d IS NULL AS n WHERE A AS x")
    first, second = query.run(table).to_arrow().to_pylist()
    assert first == {"d": None, "f": None, "c": [None], "n": True} and second["d"] == second["f"] == 1.0


def test_no_match_gives_the_columns_of_matches() -> None:
    table = pa.table({"type": ["A", "B"], "name": ["x", "y"], "v": pa.array([1, 2], pa.int32())})
    text = "SELECT a.name, a.v, a.v / 2 AS half, COUNT(b) AS n, COLLECT(a.name) AS names WHERE {} AS a ; {} AS b"
    none, some = (ceql.compile(text.format(*types)).run(table).to_arrow() for types in ("BA", "AB"))
    assert (none.num_rows, some.num_rows) == (0, 1) and none.schema == some.schema


def test_arrow_streams_and_a_row_in_the_repr() -> None:
    matches = ceql.compile("SELECT a.v WHERE A AS a").run([{"type": "A", "v": 3}])
    assert pa.table(matches).to_pylist() == [{"v": 3}]
    assert "row={'v': 3}" in repr(next(iter(matches)))


def test_keys_of_two_kinds_are_noted() -> None:
    given = [{"type": "A", "k": 1}, {"type": "B", "k": "1"}]
    for tail in ("PARTITION BY [k]", "FILTER a.k = b.k"):
        matches = ceql.compile(f"SELECT * WHERE A AS a ; B AS b {tail}").run(given)
        assert matches.count() == 0
        assert any("the key k is" in note and "never equal" in note for note in matches.notes), matches.notes


START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(("column", "value"), [
    ("FIRST(x.at + 1 HOUR)", START + datetime.timedelta(hours=1)), ("LAST(x.to - x.at)", datetime.timedelta(hours=3)),
    ("MAX(x.to - x.at)", datetime.timedelta(hours=3)), ("MIN(x.to - x.at)", datetime.timedelta(hours=2)),
    ("COLLECT(x.at + 1 HOUR)", [START + datetime.timedelta(hours=1)] * 2), ("COUNT(DISTINCT x.to - x.at)", 2),
    ("COLLECT(x.to - x.at)", [datetime.timedelta(hours=2), datetime.timedelta(hours=3)]), ("COLLECT(x.v * 2)", [2, 6]),
    ("1 HOUR", datetime.timedelta(hours=1)), ("TO_TIME('2026-01-01T00:00:00Z')", START),
])  # fmt: skip
def test_times_and_durations_in_aggregates_and_constants(column: str, value: Any) -> None:
    """In rows, which are not cast to the types of columns, as in columns."""
    given = [{"type": "A", "at": START, "to": START + datetime.timedelta(hours=2 + n), "v": 1 + 2 * n} for n in (0, 1)]
    query = ceql.compile(f"SELECT x.v, {column} AS c WHERE A:{{2}} AS x")
    (match,) = query.run(given)
    assert match.row["c"] == value
    assert query.run(given).to_arrow()["c"].to_pylist() == [value]


@pytest.mark.parametrize(("text", "batches", "wanted"), [
    ("SELECT a.v AS c WHERE A AS a : B", [{"v": 1}, {"v": "x"}, {"v": 2.5}], ["1", "x", "2.5"]),
    ("SELECT v AS c WHERE A : B PARTITION BY [v]", [{"v": 1}, {"v": "x"}], ["1", "x"]),
    ("SELECT MATCH_START AS c WHERE A : B", [{"time": 1}, {"time": 2.5}], [1.0, 2.5]),
])  # fmt: skip
def test_a_column_whose_batches_have_several_kinds(text: str, batches: list[dict[str, Any]], wanted: list[Any]) -> None:
    """As of one batch: Arrow joins no tables of texts and numbers by itself."""
    given = [[{"type": kind, **event} for kind in "AB"] for event in batches]
    query = ceql.compile(text)
    assert query.run(iter(given)).to_arrow()["c"].to_pylist() == wanted
    assert query.run([event for part in given for event in part]).to_arrow()["c"].to_pylist() == wanted


@pytest.mark.parametrize("evaluator", ["chain", "tree", "auto"])
def test_every_evaluator_computes_if_types_tell_the_variables(evaluator: str) -> None:
    given = [{"type": kind, "v": n, "k": n % 2} for n, kind in enumerate("ABABBA")]
    text = "SELECT k, a.v, b.v AS w, COUNT(a) AS n WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 4 EVENTS"
    compact, other = (ceql.compile(text, settings=ceql.Settings(evaluator=name)) for name in ("compact", evaluator))
    rows = sorted(repr(match.row) for match in compact.run(given))
    assert rows and sorted(repr(match.row) for match in other.run(given)) == rows
    assert other.picture(list(other.run(given))).dot == compact.picture(list(compact.run(given))).dot


@pytest.mark.parametrize("dated", ["datetimes", "naive", "texts", "numbers"])
def test_times_of_matches_have_the_form_of_the_events_on_every_road(dated: str) -> None:
    """Found in review: events that were pushed singly had numbers for MATCH_END, beside dates of their own."""
    moments = [START + datetime.timedelta(seconds=n) for n in range(4)]
    form: Any = {"datetimes": lambda at: at, "naive": lambda at: at.replace(tzinfo=None),
                 "texts": lambda at: at.isoformat(), "numbers": lambda at: int(at.timestamp())}[dated]  # fmt: skip
    given = [{"type": kind, "time": form(at)} for kind, at in zip("ABAB", moments, strict=True)]
    took = "a.v AS took" if dated == "texts" else "MATCH_END - FIRST(a.time) AS took"
    query = ceql.compile(f"SELECT MATCH_START AS since, MATCH_END AS until, {took} WHERE A AS a : B")
    wanted = query.run(given).to_arrow().to_pylist()
    assert [row["since"] for row in wanted] == [moments[n] if dated != "numbers" else given[n]["time"] for n in (0, 2)]
    with query.open() as session:
        assert [match.row for event in given for match in session.push(event)] == wanted
    found, state = [], None
    for event in given:
        session = query.open(state)
        found += [match.row for match in session.push(event)]
        state = session.snapshot()
        session.close()
    assert found == wanted
