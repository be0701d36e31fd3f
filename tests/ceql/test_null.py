"""NULL as a literal: the same on every road, of the kind that is needed, as in SQL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import ceql
from ceql.cli.main import main
from spaseq.core.engine import Settings
from spaseq.core.errors import QueryError

EVENTS: list[dict[str, Any]] = [
    {"type": "A", "k": 1, "x": 1, "t": "a", "time": 1},
    {"type": "A", "k": 1, "x": None, "t": None, "time": 2},
    {"type": "B", "k": 1, "x": 3, "t": "b", "time": 3},
    {"type": "A", "k": 2, "x": 5, "t": "a", "time": 4},
    {"type": "B", "k": 2, "x": None, "t": "", "time": 5},
]
CONDITIONS = {
    "a.x = NULL": [],
    "NOT a.x = NULL": [],
    "a.x != NULL OR a.x = 1": [(0, 2), (0, 4)],
    "COALESCE(a.x, NULL) = 1": [(0, 2), (0, 4)],
    "COALESCE(NULL, a.x) < b.x": [(0, 2)],
    "a.x < b.x OR a.t = NULL": [(0, 2)],
    "NOT (a.x + b.x = NULL) OR a.x < b.x": [(0, 2)],
    "a.x + b.x = NULL": [],
    "CASE WHEN a.x > b.x THEN NULL ELSE 2 END IS NULL": [],
    "CASE WHEN a.x < b.x THEN NULL ELSE 2 END IS NULL": [(0, 2)],
    "a.x BETWEEN NULL AND 5": [],
    "NOT a.x BETWEEN NULL AND b.x - 3": [(0, 2)],
    "a.x IS NULL AND NULLIF(b.x, NULL) = 3": [(1, 2)],
    "a.t LIKE 'a' AND CONCAT(b.t, NULL) = 'b'": [(0, 2)],
    "a.x * NULL IS NULL AND b.x > a.x": [(0, 2)],
    "LEAST(a.x, NULL) IS NULL AND b.x > 2 AND a.x > 0": [(0, 2)],
    "COUNT(a) > NULL": [],
    "SUM(COALESCE(a.x, NULL)) < b.x": [(0, 2)],
}


def with_partition(text: str, tail: str = "") -> str:
    return f"SELECT * WHERE A AS a ; B AS b FILTER {text} {tail}"


COMPILED_ANEW = "NOT (a.x + b.x = NULL) OR a.x < b.x"
"""It needs kernels that no other condition here does, which takes a minute."""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [pytest.param(*each, marks=[pytest.mark.slow] if each[0] == COMPILED_ANEW else []) for each in CONDITIONS.items()],
)
def test_conditions_on_every_road(text: str, wanted: list[tuple[int, ...]]) -> None:
    query = ceql.compile(with_partition(text))
    assert sorted(m.positions for m in query.run(EVENTS)) == wanted
    assert sorted(m.positions for m in query.run(pa.Table.from_pylist(EVENTS))) == wanted
    assert query.run(EVENTS).count() == len(wanted)
    for again in (False, True):
        session, found = query.open(), []
        for event in EVENTS:
            found += session.push(event)
            if again:
                session = query.open(session.snapshot())
        assert sorted(m.positions for m in (*found, *session.close())) == wanted
    assert sorted(query.alerts().run(EVENTS)) == sorted({match[-1] for match in wanted})
    parts = ceql.compile(with_partition(text, "PARTITION BY [k]")).run(EVENTS)
    assert sorted(m.positions for m in parts) == [m for m in wanted if {*m} <= {0, 1, 2} or {*m} <= {3, 4}]
    for evaluator in ("chain", "tree", "auto"):
        try:
            lazy = ceql.compile(with_partition(text), settings=Settings(evaluator=evaluator))
        except QueryError as error:
            assert evaluator != "auto" and any(word in text for word in ("COUNT", "SUM")), error
            continue
        assert sorted(m.positions for m in lazy.run(EVENTS)) == wanted
    valuations = ceql.compile(with_partition(text)).run(EVENTS, valuations=True)
    assert sorted(m.positions for m in valuations) == wanted


LIST = {
    "COALESCE(a.x, NULL)": (pa.int64(), [1, None, 1, None, 5]),
    "COALESCE(NULL, a.t)": (pa.string(), ["a", None, "a", None, "a"]),
    "CASE WHEN a.x > 2 THEN NULL ELSE 'y' END": (pa.string(), ["y", "y", "y", "y", None]),
    "CASE WHEN a.x > 2 THEN a.x + 0.5 ELSE NULL END": (pa.float64(), [None, None, None, None, 5.5]),
    "a.x = NULL": (pa.bool_(), [None] * 5),
    "NULL IS NULL": (pa.bool_(), [True] * 5),
    "a.x + NULL": (pa.int64(), [None] * 5),
    "a.x / NULL": (pa.float64(), [None] * 5),
    "LOWER(NULL)": (pa.string(), [None] * 5),
    "CAST(NULL AS NUMBER)": (pa.float64(), [None] * 5),
    "NULLIF(a.x, NULL)": (pa.int64(), [1, None, 1, None, 5]),
    "GREATEST(a.x, NULL)": (pa.int64(), [None] * 5),
    "CONCAT(a.t, NULL)": (pa.string(), ["a", "", "a", "", "a"]),
    "SUM(CASE WHEN a.x > 2 THEN a.x ELSE NULL END)": (pa.int64(), [None, None, None, None, 5]),
    "NULL": (pa.null(), [None] * 5),
}


@pytest.mark.parametrize(("text", "wanted"), LIST.items())
def test_select_types_it_by_its_context(text: str, wanted: tuple[pa.DataType, list[Any]]) -> None:
    query = ceql.compile(f"SELECT {text} AS c, a.k, b.k AS l WHERE A AS a ; B AS b")
    table = pa.Table.from_pylist(EVENTS)
    found = query.run(table).to_arrow()
    assert found.schema.field("c").type == wanted[0]
    rows = sorted(zip(found["k"].to_pylist(), found["l"].to_pylist(), map(repr, found["c"].to_pylist()), strict=True))
    keys = [(1, 1), (1, 1), (1, 2), (1, 2), (2, 2)]
    assert rows == sorted((*key, repr(value)) for key, value in zip(keys, wanted[1], strict=True))
    session = query.open()
    pushed = [match.row for event in EVENTS for match in session.push(event)]
    assert sorted((row["k"], row["l"], repr(row["c"])) for row in pushed) == rows
    assert ceql.compile(f"SELECT {text} AS c WHERE B AS a ; A AS b FILTER a.x > 9").run(table).to_arrow().schema == (
        pa.schema([("c", wanted[0])])
    )
    if not text.startswith("SUM"):
        duckdb = pytest.importorskip("duckdb")
        said = text.replace("CAST(NULL AS NUMBER)", "CAST(NULL AS DOUBLE)")
        by_hand = duckdb.sql(f"SELECT a.k, b.k, {said} FROM 'table' a JOIN 'table' b ON a.time < b.time"
                             " WHERE a.type = 'A' AND b.type = 'B'".replace("'table'", "table_"),
                             connection=_with(duckdb, table)).fetchall()  # fmt: skip
        if not text.startswith("GREATEST"):  # DuckDB's leaves NULL out
            plain = [(*row[:2], float(row[2]) if isinstance(row[2], Decimal) else row[2]) for row in by_hand]
            assert sorted((*row[:2], repr(row[2])) for row in plain) == rows


def _with(duckdb: Any, table: pa.Table) -> Any:
    connection = duckdb.connect()
    connection.register("table_", table)
    return connection


def test_a_comparison_with_null_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    query = ceql.compile("SELECT a.x = NULL AS y WHERE A AS a FILTER NULL != a.t OR a.x > 1")
    assert query.warnings == (
        "<query>:1:8: a.x = NULL is NULL, never true: a.x IS NULL asks for missing values",
        "<query>:1:44: NULL != a.t is NULL, never true: a.t IS NOT NULL asks for missing values",
    )
    assert not ceql.compile("SELECT * WHERE A AS a FILTER a.x IS NULL AND COALESCE(a.t, NULL) = 'a'").warnings
    assert main(["check", "SELECT * WHERE A AS a FILTER CASE a.x WHEN NULL THEN 1 ELSE 2 END = 1"]) == 0
    assert "a.x = NULL is NULL, never true: a.x IS NULL asks" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "said"), [
    ("a[x IN {1, NULL}]", "hint: NULL is in no set: x.price IN {1, 2} OR x.price IS NULL"),
    ("a[NULL]", "NULL is a value, and a condition is needed here"),
    ("a.x = DATE_TRUNC(NULL, a.x)", "argument 1 of DATE_TRUNC is a constant"),
    ("COUNT(NULL) > 1", "COUNT of what is the same for every event"),
    ("COALESCE(a.x, NULL) = 'y'", "a number cannot be combined with a text"),
    ("COALESCE(NULL, a.x, 'z') = 1", "a number cannot be combined with a text"),
])  # fmt: skip
def test_where_it_does_not_stand(text: str, said: str) -> None:
    with pytest.raises(QueryError) as told:
        ceql.compile(f"SELECT * WHERE A AS a FILTER {text}").run(pa.Table.from_pylist(EVENTS)).count()
    assert said in str(told.value)


def test_attributes_of_that_name() -> None:
    query = ceql.compile("SELECT a.null AS null, a.`null` + 1 AS more WHERE A AS a FILTER a[`null` > 1]")
    assert query.run([{"type": "A", "null": 2}]).to_arrow().to_pylist() == [{"null": 2, "more": 3}]
