"""On Spark a query has the matches it has locally, however the input and the work are divided."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.rdf import Counters

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parent.parent.parent
GRID = ROOT / "examples" / "smart-grid"
GRID_STREAMS = {"S1": "power.nq", "S2": "weather.nq", "S3": "storage.nq"}
GRID_KB = {"http://smartgrid.org/db": "kb.ttl"}

HEAD = """PREFIX : <http://example.org/>
SELECT {select} {clauses}
FROM STREAM S1 <http://example.org/one> FROM STREAM S2 <http://example.org/two>
WHERE {{ SEQ ({sequence}) {gpms} }}
"""
HOT = "DEFINE GPM {name} ON {stream} {{ ?s{name} :room ?r . ?s{name} :heat ?h{name} . {more} }}"


@dataclass(frozen=True)
class Case:
    """A query, how to read the streams, and how many partitions to use."""

    name: str
    sequence: str
    clauses: str = "WITHIN 12 SECONDS"
    select: str = "*"
    more: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    partitions: int = 2

    def query(self) -> str:
        streams = {"A": "S1", "B": "S2", "C": "S1"}
        gpms = " ".join(HOT.format(name=n, stream=s, more=self.more.get(n, "")) for n, s in streams.items())
        return HEAD.format(select=self.select, clauses=self.clauses, sequence=self.sequence, gpms=gpms)


FLOOR = "GRAPH <http://example.org/kb> { ?r :floor ?f . }"
LABEL = "GRAPH <http://example.org/kb> { ?r :label ?f . }"
LIMIT = "GRAPH <http://example.org/kb> { ?r :limit ?m . }"
BY_SUBJECT = {"time_from": "arrival", "event_by": "subject"}
CASES = [
    Case("next", "A; B", partitions=1),
    Case("any", "A: B: C", more={"B": "FILTER (?hB > ?hA)"}, clauses="WITHIN 5 SECONDS", partitions=7),
    Case("strict and iteration", "A; B+, C", more={"A": "FILTER (?hA > 20)"}, partitions=7),
    Case("conjunction or", "(A & B) | C; B", partitions=2),
    Case("keys", "A, B", clauses="WITHIN 30 SECONDS PARTITION BY (?r)", more={"A": "FILTER (?hA > 18)"}, partitions=7),
    Case("keys not selected", "A; B", select="?hA ?hB", clauses="WITHIN 9 SECONDS PARTITION BY (?r)", partitions=2),
    Case("keys without window", "A; B", clauses="PARTITION BY (?r)", more={"A": "FILTER (?hA > 25)"}, partitions=7),
    Case("sliding", "A; B", clauses="WITHIN 6 SECONDS SLIDING", partitions=7),
    Case(
        "sliding and what comes behind",
        "A; B; C!",
        clauses="WITHIN 6 SECONDS SLIDING",
        more={"C": "FILTER (?hC > 25)"},
        partitions=7,
    ),
    Case("starting", "A, B", clauses="WITHIN 7 SECONDS STARTING AT 3", partitions=7),
    Case("knowledge", "A; B", more={"A": FLOOR, "B": FLOOR.replace("?f", "?g") + " FILTER (?hB > 20 && ?g = :f0)"}),
    Case("knowledge in keys", "A; B", clauses="WITHIN 9 SECONDS PARTITION BY (?f)", more={"A": FLOOR, "B": FLOOR}),
    Case("nested knowledge", "A; B", more={"A": f"OPTIONAL {{ {LABEL} }}"}, partitions=7),
    Case(
        "two graphs",
        "A; B",
        more={"A": f"{FLOOR} {LIMIT} FILTER (?hA > <http://www.w3.org/2001/XMLSchema#integer>(?m))"},
    ),
    Case("partly bound", "A; B", more={"A": f"OPTIONAL {{ ?sA :door ?m . }} {LIMIT}"}),
    Case("own instants", "A, B", words={"ties": "arrival"}, partitions=7),
    Case("arrival", "A; B", clauses="WITHIN 4 MILLISECONDS", words=BY_SUBJECT, partitions=7),
    Case(
        "counted windows", "A, B", select="(COUNT(*) AS ?n) (MAX(?hB) AS ?m)", clauses="WITHIN 2 SECONDS", partitions=7
    ),
    Case(
        "counted windows of keys",
        "A, B",
        select="(COUNT(*) AS ?n)",
        clauses="WITHIN 2 SECONDS PARTITION BY (?f)",
        more={"A": FLOOR, "B": FLOOR},
    ),
    Case("lateness", "A; B", files={"S2": "late.nq"}, words={"lateness": "3s", "late": "drop"}, partitions=7),
]


def _streams(case: Case, folder: Path) -> dict[str, Any]:
    streams: dict[str, Any] = {"S1": [str(folder / "one-a.nq"), str(folder / "one-b.nq")], "S2": str(folder / "two.nq")}
    return streams | {name: str(folder / file) for name, file in case.files.items()}


def _rows(table: Any) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in table.to_pylist())


_AGAIN = (
    "sliding", "keys not selected", "two graphs", "partly bound", "starting", "counted windows of keys",
    "keys without window", "nested knowledge", "own instants", "conjunction or", "knowledge in keys", "next",
    "counted windows", "strict and iteration", "lateness",
)  # fmt: skip
"""Slow, as quick cases have the same plan: "any", "sliding and what comes behind", "keys", "knowledge" and the like."""
_CASES = [pytest.param(c, id=c.name, marks=[pytest.mark.slow] if c.name in _AGAIN else []) for c in CASES]
_HERE = [pytest.param(*c.values, id=c.id, marks=pytest.mark.slow if c.id == "knowledge" else c.marks) for c in _CASES]
"""Knowledge is in a quick case of `test_match_over_graphs`."""


@pytest.mark.parametrize("case", _HERE)
def test_random_streams_have_the_same_matches(case: Case, folder: Path, spark: Any) -> None:
    query = spaseq.compile(case.query())
    streams = _streams(case, folder)
    kb = {"http://example.org/kb": str(folder / "kb.ttl")}
    local = query.run(streams, kb, **case.words)
    expected = local.to_arrow()
    counters = Counters()
    frame = spaseq.spark.run(query, spark, streams, kb, partitions=case.partitions, counters=counters, **case.words)
    found = spaseq.spark.collect(frame)
    assert found.num_rows == expected.num_rows > 0
    assert found.schema.names == expected.schema.names
    assert _rows(found) == _rows(expected)
    assert counters == local.counters


CLAUSES = [
    ("SELECT ?r (COUNT(?hA) AS ?n) (MAX(?hB) AS ?most)", "WITHIN 12 SECONDS", "GROUP BY ?r ORDER BY DESC(?most) ?r"),
    ("SELECT DISTINCT ?r", "WITHIN 12 SECONDS", ""),
    ("SELECT ?hA ?hB", "WITHIN 12 SECONDS", "ORDER BY DESC(?hB) ?hA LIMIT 2"),
    ("SELECT ?r ?hB", "WITHIN 30 SECONDS PARTITION BY (?r)", "ORDER BY ?hB OFFSET 1"),
    ("SELECT (AVG(?hB) AS ?a)", "", ""),
]


_MARKED = [pytest.param(c, id=c[0], marks=[] if i == 0 else [pytest.mark.slow]) for i, c in enumerate(CLAUSES)]


@pytest.mark.parametrize("clauses", _MARKED)
def test_clauses_over_a_window(clauses: tuple[str, str, str], folder: Path, spark: Any) -> None:
    head, within, end = clauses
    case = Case("", "A; B", clauses=within, more={"A": "FILTER (?hA > 20)"})
    query = spaseq.compile(case.query().replace("SELECT *", head) + end)
    expected = query.run(_streams(case, folder)).to_arrow()
    found = spaseq.spark.collect(spaseq.spark.run(query, spark, _streams(case, folder), partitions=5))
    assert _rows(found) == _rows(expected) != []
    if "ORDER BY" in end:
        assert found.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize(
    "partitions", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(7, marks=pytest.mark.slow)]
)
def test_the_smart_grid_example(partitions: int, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GRID)
    query = spaseq.compile((GRID / "query.rq").read_text("utf-8"))
    local = query.run(GRID_STREAMS, GRID_KB, keep_events=False)
    found = list(spaseq.spark.matches(query, spark, GRID_STREAMS, GRID_KB, partitions=partitions))
    key = lambda match: (match.end, match.start, match.positions, repr(sorted(match.bindings.items())))  # noqa: E731
    assert sorted(found, key=key) == sorted(local, key=key)
    assert [match.end for match in found] == sorted(match.end for match in found)
    assert found


@pytest.mark.slow
def test_the_command_prints_what_the_local_engine_prints() -> None:
    """In processes of their own; `test_entailed` has a quick test of the command in this one."""
    script = "import sys; from spaseq.cli.main import main; sys.exit(main(sys.argv[1:]))"
    inputs = [f"--stream={name}={file}" for name, file in GRID_STREAMS.items()]
    inputs += [f"--kb={iri}={file}" for iri, file in GRID_KB.items()]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", script, "run", "query.rq", *inputs, "--format", "csv", *more]
        return subprocess.run(command, cwd=GRID, capture_output=True, text=True, timeout=300)

    local, distributed = run(), run("--engine", "spark")
    assert (local.returncode, distributed.returncode) == (0, 0), distributed.stderr
    assert sorted(distributed.stdout.splitlines()) == sorted(local.stdout.splitlines())
    assert distributed.stderr == local.stderr == ""


def test_the_frame_has_types_that_can_be_queried(folder: Path, spark: Any) -> None:
    case = Case("columns", "A; B", select="?hA ?time", more={"B": "BIND (?hB AS ?time)"})
    frame = spaseq.spark.run(case.query(), spark, _streams(case, folder), {})
    assert dict(frame.dtypes) == {
        "start": "bigint",
        "end": "bigint",
        "positions": "array<bigint>",
        "time": "bigint",
        "hA": "string",
        "?time": "string",
    }
    assert frame.where("size(positions) <> 2 or start <> positions[0]").count() == 0


def test_explain_says_where_the_work_is_cut() -> None:
    sliding = Case("sliding", "A; B", clauses="WITHIN 6 SECONDS SLIDING")
    assert "slices of time that overlap by the window" in spaseq.spark.explain(sliding.query())
    endless = Case("endless", "A; B", clauses="")
    assert "recognised in one partition" in spaseq.spark.explain(endless.query())
    keys = Case("keys", "A, B", clauses="WITHIN 6 SECONDS PARTITION BY (?r)", more={"A": FLOOR})
    text = spaseq.spark.explain(keys.query(), knowledge_rows=77)
    assert "live_runs 1,000,000" in text and "(knowledge_rows, --knowledge-rows): 77 rows" in text
    assert "partitioned by window and PARTITION BY key" in text
    assert "instants without a value are kept" in text
    assert "Spark joins its solutions" in spaseq.spark.explain(Case("", "A; B", more={"A": FLOOR}).query())
