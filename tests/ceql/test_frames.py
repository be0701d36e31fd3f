"""Frames and objects in, frames out: whatever Arrow reads, lists of objects, and the kind of frame that came in."""

from __future__ import annotations

import types
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import ceql
from ceql.runtime.evaluation import Matches

ROWS: list[dict[str, Any]] = [
    {"type": "A", "v": 1},
    {"type": "B", "v": 3},
    {"type": "B", "v": 0},
    {"type": "B", "v": 2},
]
TABLE = pa.Table.from_pylist(ROWS)
PAIRS = "SELECT * WHERE A AS x ; B AS y FILTER y.v > x.v"
RISES = "SELECT x.v AS low, y.v - x.v AS rise WHERE A AS x ; B AS y FILTER y.v > x.v"
FOUND = [{"low": 1, "rise": 2}, {"low": 1, "rise": 1}]


class Stream:
    """Another library's frame: nothing but the Arrow PyCapsule interface."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class Array:
    """The same of one batch."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.batch.__arrow_c_array__(requested_schema)


@dataclass
class A:
    v: int
    _hidden: Any = None


@dataclass(frozen=True, slots=True)
class B:
    v: int


class Plain:
    def __init__(self, kind: str, v: int) -> None:
        self.type, self.v, self._cache = kind, v, object()


class Slotted:
    __slots__ = ("later", "type", "v")

    def __init__(self, kind: str, v: int) -> None:
        self.type, self.v = kind, v


class Declaring:
    """As attrs marks its classes."""

    __attrs_attrs__ = (types.SimpleNamespace(name="type"), types.SimpleNamespace(name="v"))
    __slots__ = ("type", "v")

    def __init__(self, kind: str, v: int) -> None:
        self.type, self.v = kind, v


class Tuple(NamedTuple):
    type: str
    v: int


def _dataset(folder: Path) -> Any:
    pyarrow.parquet.write_table(TABLE, folder / "events.parquet")
    return pyarrow.dataset.dataset(folder / "events.parquet")


SOURCES: dict[str, Callable[[Path], Any]] = {
    "table": lambda _: TABLE,
    "batch": lambda _: TABLE.to_batches()[0],
    "reader": lambda _: TABLE.to_reader(),
    "dataset": _dataset,
    "polars": lambda _: polars.from_arrow(TABLE),
    "lazy polars": lambda _: polars.LazyFrame(ROWS),
    "pandas": lambda _: pandas.DataFrame(ROWS),
    "duckdb": lambda _: duckdb.from_arrow(TABLE),
    "stream": lambda _: Stream(TABLE),
    "array": lambda _: Array(TABLE.to_batches()[0]),
    "dataclasses": lambda _: [A(1), B(3), B(0), B(2)],
    "plain objects": lambda _: [Plain(*row.values()) for row in ROWS],
    "slotted objects": lambda _: [Slotted(*row.values()) for row in ROWS],
    "declared objects": lambda _: [Declaring(*row.values()) for row in ROWS],
    "namespaces": lambda _: [types.SimpleNamespace(**row) for row in ROWS],
    "named tuples": lambda _: [Tuple(*row.values()) for row in ROWS],
    "several kinds": lambda _: [A(1), ROWS[1], Plain("B", 0), Tuple("B", 2)],
    "a generator": lambda _: (event for event in [A(1), B(3), B(0), B(2)]),
}
KINDS = {
    "polars": polars.DataFrame, "lazy polars": polars.LazyFrame, "pandas": pandas.DataFrame,
    "duckdb": duckdb.DuckDBPyRelation, "reader": pa.RecordBatchReader,
    **dict.fromkeys(("table", "batch", "dataset", "stream", "array"), pa.Table),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_has_the_same_matches(name: str, tmp_path: Path) -> None:
    assert [m.positions for m in ceql.compile(PAIRS).run(SOURCES[name](tmp_path))] == [(0, 1), (0, 3)]


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_can_be_pushed(name: str, tmp_path: Path) -> None:
    assert [m.positions for m in ceql.compile(PAIRS).open().push(SOURCES[name](tmp_path))] == [(0, 1), (0, 3)]


@pytest.mark.parametrize("name", SOURCES)
def test_rows_come_as_the_events_came(name: str, tmp_path: Path) -> None:
    found = ceql.match(SOURCES[name](tmp_path), RISES)
    assert isinstance(found, KINDS.get(name, list))
    plain = found if isinstance(found, list) else _rows_of(found)
    assert plain == FOUND


def _rows_of(frame: Any) -> list[dict[str, Any]]:
    if isinstance(frame, pa.RecordBatchReader):
        return list(frame.read_all().to_pylist())
    if isinstance(frame, polars.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pandas.DataFrame):
        return list(frame.to_dict("records"))
    return list(pa.table(frame).to_pylist())


def test_files_give_a_table_and_no_match_the_columns(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(TABLE, tmp_path / "events.parquet")
    assert ceql.match(str(tmp_path / "events.parquet"), ceql.compile(RISES)).to_pylist() == FOUND
    none = ceql.match(polars.from_arrow(TABLE), RISES.replace("y.v > x.v", "y.v > 100"))
    assert none.schema == {"low": polars.Int64, "rise": polars.Int64} and none.is_empty()
    assert ceql.match([], RISES) == []


def test_an_object_is_of_the_type_of_its_class_unless_it_says_one() -> None:
    query = ceql.compile("SELECT * WHERE B")
    assert query.run([B(1), Plain("A", 1), A(1)]).count() == 1
    assert query.run([A(1)], type="B").count() == 1
    assert query.open().push(B(1))[0].last_event["v"] == 1
    assert query.open().push(A(1)) == []


class Container:
    def __init__(self) -> None:
        self.type = "B"

    def __len__(self) -> int:
        return 1


class Nothing:
    pass


ODD = [Container(), Nothing(), polars.Series([1]), pa.chunked_array([[1]]), types, print, duckdb.connect(), B]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_what_is_no_event_is_refused_by_its_kind(odd: Any) -> None:
    for source in (odd, [odd]):
        with pytest.raises((ceql.OptionError, ceql.EventError), match=r"holds no events|is not an event"):
            ceql.compile("SELECT * WHERE B").run(source).count()


def test_one_object_needs_a_list_to_run() -> None:
    with pytest.raises(ceql.OptionError, match="a B is one event"):
        ceql.compile("SELECT * WHERE B").run(B(1)).count()


# What comes out


def _matches(text: str = PAIRS, count: int = 100) -> Matches:
    events = [{"type": "AB"[i % 2], "v": i} for i in range(count)]
    return ceql.compile(text).run(pa.Table.from_pylist(events))


@pytest.mark.parametrize("text", [PAIRS, RISES])
@pytest.mark.parametrize("collected", [False, True])
def test_libraries_of_frames_read_matches(text: str, collected: bool) -> None:
    lazy = _matches(text)
    matches: Any = lazy.collect() if collected else lazy
    table = lazy.to_arrow()
    assert pa.table(matches) == table
    assert polars.DataFrame(matches).equals(polars.from_arrow(table))
    assert duckdb.table("matches").to_arrow_table().to_pylist() == table.to_pylist()
    with pytest.raises(TypeError, match=r"to_pandas\(\) gives a DataFrame"):
        pandas.DataFrame(matches)
    assert matches.to_polars().equals(polars.from_arrow(table)) and len(matches.to_pandas()) == len(table)


def test_matches_in_hand_are_a_sequence() -> None:
    lazy = _matches()
    all_of_them = list(lazy)
    found = lazy.collect()
    assert len(found) == len(all_of_them) == 1275 and list(found) == all_of_them
    for piece in (slice(3), slice(3, 7), slice(-2, None), slice(None, None, 100), slice(9, 2), slice(9, 2, -1)):
        assert list(found[piece]) == list(lazy[piece]) == all_of_them[piece], piece
        assert found[piece].to_arrow().column("end").to_pylist() == [m.end for m in all_of_them[piece]]
    for number in (0, 7, 1274, -1, -1275):
        assert found[number] == lazy[number] == all_of_them[number]
    for number in (1275, -1276):
        for some in (found, lazy):
            with pytest.raises(IndexError):
                some[number]
    assert list(lazy.head()) == list(found.head()) == all_of_them[:5] and len(lazy.head(0)) == 0
    with pytest.raises(ceql.OptionError, match="count cannot be -1"):
        lazy.head(-1)
    assert lazy and found and not found[:0]


def test_matches_in_hand_show_their_number_and_the_first() -> None:
    found = _matches(RISES).collect()
    assert repr(found).splitlines()[:3] == ["<1,275 matches, the first 10 here>", "low  rise", "0    1"]
    assert repr(found[:1]).splitlines() == ["<1 match>", "low  rise", "0    1"]
    assert repr(found[:0]) == "<0 matches>"
    assert "<td" in found._repr_html_() and "1,275 matches" in found._repr_html_()


def _counted(read: list[int], batches: int) -> Iterator[pa.RecordBatch]:
    for number in range(batches):
        read.append(number)
        yield TABLE.to_batches()[0]


def _reader(read: list[int]) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(TABLE.schema, _counted(read, 1000))


@pytest.mark.parametrize("text", [PAIRS, RISES])
def test_a_stream_of_matches_is_read_as_it_is_asked_for(text: str) -> None:
    read: list[int] = []
    rows = ceql.match(_reader(read), f"{text} WITHIN 3 EVENTS")
    assert rows.read_next_batch().num_rows and 0 < len(read) < 100
    read.clear()
    assert len(ceql.compile(text).run(_reader(read)).head(3)) == 3 and len(read) < 100


def test_valuations_and_columns_of_unknown_types_are_whole() -> None:
    events: list[dict[str, Any]]
    events = [{"type": "A", "v": None}, {"type": "B", "v": 2.5}, {"type": "A", "v": 1}, {"type": "B", "v": "x"}]
    for text in ("SELECT x[v], y[v] WHERE A AS x ; B AS y", "SELECT y.v AS v WHERE A AS x ; B AS y"):
        matches = ceql.compile(text).run(event for event in events)
        assert pa.table(ceql.compile(text).run(events)) == ceql.compile(text).run(events).to_arrow()
        assert pa.table(matches).num_rows == 3


def test_a_named_tuple_may_have_any_name() -> None:
    pair = namedtuple("pair", "type v")
    assert ceql.match([pair("A", 1), pair("B", 2)], RISES) == [{"low": 1, "rise": 1}]
