"""ANY and ALL over lists, lists of texts, and aggregates of durations and times: against DuckDB, in all forms."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ceql
from ceql.operators.own import register_function
from spaseq.core.errors import EventError, OptionError, QueryError
from spaseq.core.events import DurationColumn, ListColumn, column_of
from spaseq.core.events.mixed import array_of, flat_type, flatten

START = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
SYMBOLS = ("=", "!=", "<", "<=", ">", ">=")


@pytest.mark.parametrize("count", [80, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["DOUBLE", pytest.param("BIGINT", marks=pytest.mark.slow), "VARCHAR"])
def test_duckdb_agrees_on_any_and_all(kind: str, count: int) -> None:
    """But for a list that is NULL, of which DuckDB makes an empty one, and PostgreSQL and CEQL NULL."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: its ANY and ALL are not compared")
    draw = random.Random(kind)
    values: tuple[Any, ...] = {"DOUBLE": (0.5, 1.0, -2.0, 3.25), "BIGINT": (0, 1, -2, 2**53 + 1, 2**53, 2**62),
                               "VARCHAR": ("", "a", "B", "ä", "aa")}[kind]  # fmt: skip
    pick: Callable[[], Any] = lambda: draw.choice((None, *values))  # noqa: E731
    rows = [{"type": "A", "k": k, "v": pick(), "l": [pick() for _ in range(draw.randrange(4))]} for k in range(count)]
    table = pa.Table.from_pylist(rows, pa.schema([("type", pa.string()), ("k", pa.int64()),
        ("v", {"DOUBLE": pa.float64(), "BIGINT": pa.int64(), "VARCHAR": pa.string()}[kind]),
        ("l", pa.list_({"DOUBLE": pa.float64(), "BIGINT": pa.int64(), "VARCHAR": pa.string()}[kind]))]))  # fmt: skip
    for symbol in SYMBOLS:
        for word in ("ANY", "SOME", "ALL"):
            text = f"v {symbol} {word}(l)"
            with duckdb.connect() as connection:
                connection.register("events", table)
                wanted = [found for (found,) in connection.execute(f"SELECT {text} FROM events ORDER BY k").fetchall()]
            asked = ceql.compile(f"SELECT x.v {symbol} {word}(x.l) AS c WHERE A AS x")
            assert asked.run(table).to_arrow()["c"].to_pylist() == wanted, text
            assert [match.row["c"] for match in asked.run(rows)] == wanted, text
            with asked.open() as session:
                assert [m.row["c"] for row in rows for m in session.push(row)] == wanted, text
            held = ceql.compile(f"SELECT * WHERE A AS x FILTER x[NOT {text}]")
            false = [row["k"] for row, truth in zip(rows, wanted, strict=True) if truth is False]
            assert [match.start for match in held.run(table)] == false
            assert len(set(wanted)) == 3


def test_duckdb_agrees_on_sums_and_means_of_durations() -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: its aggregates are not compared")
    draw, rows = random.Random(5), []
    for k in range(400):
        at = START + datetime.timedelta(seconds=10 * k)
        to = None if draw.random() < 0.2 else at + datetime.timedelta(microseconds=draw.randrange(-(10**9), 10**10))
        rows.append({"type": draw.choice("AAB"), "time": at, "to": to, "k": k % 7})
    table = pa.Table.from_pylist(rows)
    query = ceql.compile(
        "SELECT k, SUM(a.to - a.time) AS total, AVG(a.to - a.time) AS mean, AVG(a.time) AS middle, MAX(a.to) AS last "
        "WHERE A:+ AS a : B PARTITION BY [k]")  # fmt: skip
    found = query.run(table).to_arrow()
    assert [str(kind) for kind in found.schema.types] == [
        "int64", "duration[ns]", "duration[ns]", "timestamp[ns, tz=UTC]", "timestamp[us, tz=UTC]"]  # fmt: skip
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("events", table)
        wanted = connection.execute("""
            WITH steps AS (SELECT *, row_number() OVER (PARTITION BY k ORDER BY time) AS n FROM events),
            runs AS (SELECT a.k, a.n AS first, b.n AS last FROM steps a JOIN steps b ON a.k = b.k AND a.n < b.n
                     WHERE b.type = 'B' AND NOT EXISTS (SELECT 1 FROM steps c WHERE c.k = a.k AND c.n >= a.n
                                                        AND c.n < b.n AND c.type = 'B'))
            SELECT r.k, sum(epoch_us(e.to) - epoch_us(e.time)), avg(epoch_us(e.to) - epoch_us(e.time)),
                   avg(epoch_us(e.time)), max(epoch_us(e.to))
            FROM runs r JOIN steps e ON e.k = r.k AND e.n >= r.first AND e.n < r.last
            GROUP BY r.k, r.first, r.last ORDER BY ALL""").fetchall()  # fmt: skip
    plain = found.set_column(1, "total", found["total"].cast(pa.int64()))
    for place, name in ((2, "mean"), (3, "middle")):
        plain = plain.set_column(place, name, plain[name].cast(pa.int64()))
    plain = plain.set_column(4, "last", plain["last"].cast(pa.int64()))
    ours = sorted(map(tuple, (row.values() for row in plain.to_pylist())), key=_order)
    theirs = sorted(((k, *(None if v is None else 1000 * v for v in (t, m, at)), last) for k, t, m, at, last in wanted),
                    key=_order)  # fmt: skip
    assert len(ours) == len(theirs) > 100 and any(row[1] is None for row in ours)
    for own, other in zip(ours, theirs, strict=True):
        assert own[:2] == other[:2] and own[4] == other[4]
        assert own[2] is other[2] or abs(own[2] - other[2]) <= 1
        assert abs(own[3] - other[3]) <= 1000  # DuckDB's mean is a double


def _order(row: tuple[Any, ...]) -> list[float]:
    return [-(2.0**70) if value is None else value for value in row]


@pytest.mark.parametrize("kind", [
    pa.list_(pa.string()), pa.large_list(pa.large_string()), pa.list_(pa.dictionary(pa.int8(), pa.string())),
    pa.list_(pa.string_view()), pa.list_(pa.string(), 2),
])  # fmt: skip
def test_lists_of_texts_of_every_type(kind: pa.DataType) -> None:
    lists = pa.array([["a", "b"], ["c", None], None, ["x", "a"]], kind)
    table = pa.table({"type": ["A"] * 4, "s": pa.array(["a", "b", "c", None]).dictionary_encode(), "w": lists})
    text = (
        "SELECT x.s = ANY(x.w) AS any, x.s IN x.w AS member, CONTAINS(x.w, 'c') AS has, LENGTH(x.w) AS n WHERE A AS x"
    )
    found = ceql.compile(text).run(table).to_arrow().to_pydict()
    assert found == {"any": [True, None, None, None], "member": [True, False, None, None],
                     "has": [False, True, None, False], "n": [2, 2, None, 2]}  # fmt: skip
    assert ceql.compile("SELECT COLLECT(x.s) AS c, x.w WHERE A:{2} AS x").run(table).to_arrow()["c"].to_pylist() == [
        ["a", "b"], ["b", "c"], ["c", None]]  # fmt: skip


def test_lists_of_texts_in_json_lines_and_files(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"type": "A", "w": ["a", null]}\n{"type": "A", "w": []}\n{"type": "A", "w": [null]}\n')
    query = ceql.compile("SELECT 'a' = ANY(x.w) AS c, COLLECT(x.w) AS all WHERE A AS x")
    found = query.run(str(path)).to_arrow()
    assert found["c"].to_pylist() == [True, False, None]
    pq.write_table(found, tmp_path / "found.parquet")
    assert pq.read_table(tmp_path / "found.parquet")["all"].to_pylist() == [[["a", None]], [[]], [[None]]]


@pytest.mark.parametrize(("text", "problem"), [
    ("SELECT x.v = ANY(x.w) AS c", "x.v = ANY(x.w): 1 = 'a': a number cannot be combined with a text"),
    ("SELECT x.v = ANY(x.v) AS c", "ANY is of lists of numbers or lists of texts, and this is a number"),
    ("SELECT CORR(x.w, x.w) AS c", "CORR is of two lists of numbers, and this is a list of texts"),
    ("SELECT x.w = x.w AS c", "a list of texts cannot be combined with a list of texts"),
    ("SELECT 1 HOUR > ALL(x.h) AS c", "1 h > 1.0: a duration cannot be combined with a number"),
    ("SELECT CONTAINS(x.h, 'a') AS c", "'a' = 1.0: a text cannot be combined with a number"),
    ("SELECT SUM(x.at) AS c", "SUM is of a number or a duration, and this is a time"),
    ("SELECT STDDEV(x.at - x.at) AS c", "STDDEV is of a number, and this is a duration"),
])  # fmt: skip
def test_values_of_wrong_kinds(text: str, problem: str) -> None:
    event = {"type": "A", "v": 1, "w": ["a"], "h": [1], "at": START}
    with pytest.raises(EventError) as caught:
        ceql.compile(f"{text} WHERE A AS x").run([event]).to_arrow()
    assert problem in str(caught.value)


@pytest.mark.parametrize(("condition", "problem"), [
    ("x.v = ANY(x.w)", "a number cannot be combined with a list of texts"),
    ("x.v IN x.w", "a number cannot be combined with a list of texts"),
    ("CONTAINS(x.w, x.v)", "a number cannot be combined with a list of texts"),
    ("x.v > ALL(x.v)", "> ALL of x.v"), ("CORR(x.w, x.w) > 0", "CORR of x.w, which is a list of texts"),
    ("SUM(x.at) > 1 HOUR", "SUM of x.at, which is a time"), ("x.v > ANY(x.l, 1)", "ANY is of one list"),
    ("ANY(x.l) > x.v", "ANY compares nothing here"), ("ALL(x.l)", "is a value, and a condition is needed"),
    ("x.v = ANY(l)", "ANY of which attribute of l?"),
])  # fmt: skip
def test_mistakes_before_the_first_event(condition: str, problem: str) -> None:
    table = pa.table({"type": ["A"], "v": [1], "w": [["a"]], "l": [[1]], "at": [START]})
    with pytest.raises(QueryError) as caught:
        ceql.compile(f"SELECT * WHERE A AS x FILTER {condition}").run(table).count()
    assert problem in str(caught.value) and caught.value.span is not None


def test_any_and_all_are_still_words_of_patterns_and_names() -> None:
    events = [{"type": "A", "v": 1, "l": [1, 2], "any": 1, "all": [1]}, {"type": "B", "v": 2, "l": [3]}]
    text = ("SELECT ALL any.v = ANY(any.l) AS c, y.v >= ALL(any.l) AS d WHERE ANY AS any ; ANY AS y "
            "FILTER any[any = ANY(all)] AND y.v < SOME(y.l)")  # fmt: skip
    assert [match.row for match in ceql.compile(text).run(events)] == [{"c": True, "d": True}]
    for name in ("ANY", "some", "All"):
        with pytest.raises(OptionError, match="is a function of CEQL"):
            register_function(name, lambda value: value)


@pytest.mark.parametrize("as_table", [False, True])
def test_durations_are_attributes(as_table: bool) -> None:
    """In tables and dicts; computed ones are read again by an expression around an aggregate, which failed."""
    took = [datetime.timedelta(seconds=s) for s in (1, 2, 4)] + [None]
    rows = [{"type": kind, "took": t} for kind, t in zip("AAAB", took, strict=True)]
    given: Any = pa.Table.from_pylist(rows) if as_table else rows
    query = ceql.compile(
        "SELECT SUM(a.took) AS total, SUM(a.took) / 1 SECOND AS seconds, MAX(a.took + 1 SECOND) / 2 AS half, "
        "AVG(a.took) > 2 SECONDS AS slow, a.took, COLLECT(a.took) AS each WHERE A:{3} AS a : B")  # fmt: skip
    second = datetime.timedelta(seconds=1)
    wanted = {"total": 7 * second, "seconds": 7.0, "half": 2.5 * second, "slow": True, "took": 4 * second,
              "each": took[:3]}  # fmt: skip
    assert query.run(given).to_arrow().to_pylist() == [wanted]
    assert [match.row for match in query.run(given)] == [wanted]
    with query.open() as session:
        assert [match.row for row in rows for match in session.push(row)] == [wanted]
    assert query.run(given).to_pandas()["total"].tolist() == [7 * second]
    assert query.run(given).to_polars()["total"].to_list() == [7 * second]
    for tail, count in (("FILTER a.took < b.took", 3), ("FILTER b.took = 2 * a.took", 2), ("PARTITION BY [took]", 0)):
        two = ceql.compile(f"SELECT * WHERE A AS a ; A AS b {tail}")
        assert two.run(given).count() == count
        with two.open() as session:
            assert sum(len(session.push(row)) for row in rows) == count
    same = [{"type": kind, "took": second * n} for kind, n in (("A", 1), ("A", 2), ("B", 2))]
    assert [m.positions for m in ceql.compile("SELECT * WHERE A ; B PARTITION BY [took]").run(same)] == [(1, 2)]
    with pytest.raises(EventError, match="a duration of more than 292 years"):
        ceql.compile("SELECT * WHERE A AS a FILTER a.took > 1 HOUR").run(
            [{"type": "A", "took": second * 10**10}]
        ).count()


def test_durations_of_aggregates_are_iso_8601_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ceql.cli.main import main

    path = tmp_path / "events.jsonl"
    times = [("A", 0, 5), ("A", 10, 20), ("B", 30, 30)]
    path.write_text("".join(
        json.dumps({"type": kind, "time": f"2026-01-05T00:00:{a:02}Z", "to": f"2026-01-05T00:00:{b:02}Z"}) + "\n"
        for kind, a, b in times), encoding="utf-8")  # fmt: skip
    query = ("SELECT SUM(TO_TIME(a.to) - TO_TIME(a.time)) AS total, AVG(TO_TIME(a.time)) AS middle "
             "WHERE A:{2} AS a : B")  # fmt: skip
    assert main(["run", query, "--events", str(path), "--format", "json"]) == 0
    assert '"total": "PT15S"' in (out := capsys.readouterr().out) and '"middle": "2026-01-05T00:00:05Z"' in out
    assert main(["run", query, "--events", str(path), "--format", "csv"]) == 0
    assert "PT15S" in capsys.readouterr().out


def test_means_of_times_are_exact() -> None:
    """Sums of nanoseconds since 1970 exceed 64 bits after six events; of two means the even one."""
    start = 1_767_571_200_000_000_001
    for count in (1, 2, 3, 10, 200):
        stamps = [start + n * n for n in range(count)]
        table = pa.table({"type": ["A"] * count + ["B"], "at": pa.array([*stamps, None], pa.timestamp("ns", "UTC"))})
        query = ceql.compile(f"SELECT AVG(a.at) AS mean WHERE A:{{{count}}} AS a : B")
        below, rest = divmod(sum(stamps), count)
        wanted = below + (2 * rest > count or (2 * rest == count and below % 2))
        assert query.run(table).to_arrow()["mean"].cast(pa.int64()).to_pylist() == [wanted]


@pytest.mark.parametrize("cut", [0, 3, 6, 9])
def test_snapshots_keep_means_of_times(cut: int) -> None:
    rows = [{"type": kind, "at": START + datetime.timedelta(minutes=n * n)} for n, kind in enumerate("AABAABABAB")]
    query = ceql.compile("SELECT * WHERE A+ AS a ; B AS b FILTER b.at - AVG(a.at) < 20 MINUTES")
    wanted = sorted(match.positions for match in query.run(rows))
    with query.open() as session:
        found = [match.positions for row in rows[:cut] for match in session.push(row)]
        state = session.snapshot()
    with query.open(state) as session:
        found += [match.positions for row in rows[cut:] for match in session.push(row)]
    assert len(wanted) > 10 and sorted(found) == wanted


def test_a_sum_beyond_64_bits_is_null() -> None:
    long = datetime.timedelta(days=100_000)
    query = ceql.compile("SELECT SUM(a.took) AS c, AVG(a.took) AS m WHERE A:{2} AS a : B")
    given = [{"type": kind, "took": long} for kind in "AAB"]
    assert query.run(given).to_arrow().to_pylist() == [{"c": None, "m": long}]
    assert [match.row for match in query.run(given)] == [{"c": None, "m": long}]


def test_elements_are_exact_and_missing_ones_none() -> None:
    column = column_of(pa.array([[1, None, 2**53 + 1], [], None], pa.list_(pa.int64())), "l")
    assert isinstance(column, ListColumn) and column.values == ((1.0, None, 2**53 + 1), (), None)
    assert column.kind == "list" and type(column.values[0][0]) is float
    nan = column_of(pa.array([[float("nan"), 0.5]]), "l")
    assert isinstance(nan, ListColumn) and nan.values == ((None, 0.5),)
    texts = column_of(pa.array([[None], ["a"]]), "l")
    assert isinstance(texts, ListColumn) and texts.kind == "texts"
    assert isinstance(column_of(pa.array([datetime.timedelta(1)]), "d"), DurationColumn)


def test_lists_of_missing_elements_alone_are_lists_of_doubles() -> None:
    """Found by random columns: Arrow's `take` of lists of type null gives arrays that are longer than their values."""
    assert array_of([[None, None], [None]]).type == pa.list_(pa.float64())
    rows = [{"type": "A", "w": [None, None]}, {"type": "A", "w": ["a"]}, {"type": "A", "w": [None, None]}]
    query = ceql.compile("SELECT COLLECT(x.w) AS c WHERE A:{2} AS x")
    wanted = [[[None, None], ["a"]], [["a"], [None, None]]]
    assert [match.row["c"] for match in query.run(rows)] == wanted
    with query.open() as session:
        assert [match.row["c"] for row in rows for match in session.push(row)] == wanted
    table = pa.table({"type": ["A", "A"], "w": pa.array([[None, None], [None]])})
    assert query.run(table).to_arrow()["c"].to_pylist() == [[[None, None], [None]]]


@pytest.mark.parametrize(("values", "kind", "flat"), [
    ([1, 2.5], pa.float64(), [1.0, 2.5]), ([1, "a"], pa.string(), ["1", "a"]),
    ([[1], "a"], pa.string(), ["[1]", "a"]), ([[1], ["a", None]], pa.list_(pa.string()), [["1"], ["a", None]]),
    ([[2**53 + 1], [0.5, 1.5], None], pa.list_(pa.string()), [["9007199254740993"], ["0.5", "1.5"], None]),
])  # fmt: skip
def test_columns_of_several_kinds_without_unions(values: list[Any], kind: pa.DataType, flat: list[Any]) -> None:
    array = array_of(values)
    found = flatten(array) if pa.types.is_union(array.type) else array
    assert (found.type, found.to_pylist()) == (kind, flat)
    if not pa.types.is_floating(array.type) and 2**53 + 1 not in (values[0] if isinstance(values[0], list) else []):
        assert flat_type(array.type) == kind


def test_no_match_of_a_column_of_several_kinds() -> None:
    """Found by random columns: Arrow makes no empty array of a union. Lists of such have to reach pandas, too."""
    rows = [{"type": "A", "v": 1}, {"type": "A", "v": 2.5}]
    none = ceql.compile("SELECT x.v, COLLECT(x.v) AS c WHERE A AS x ; B").run(rows).to_arrow()
    assert none.num_rows == 0 and none.schema.types == [pa.float64(), pa.list_(pa.float64())]
    some = ceql.compile("SELECT COLLECT(x.v) AS c WHERE A:{2} AS x").run(rows)
    assert [list(row) for row in some.to_pandas()["c"]] == [[1.0, 2.5]]
