"""Functions of the user by IRI reach Spark's tasks: in GPMs, between them and in SELECT, in batches and streams."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.spark import start, wait
from tests.spark.test_micro_batches import _local, _rows

pytestmark = pytest.mark.spark

E = "http://example.org/"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
QUERY = """PREFIX : <http://example.org/>
SELECT ?x ?y (:scaled(?y) AS ?z) WITHIN 5 SECONDS FROM STREAM S <http://example.org/S>
WHERE { SEQ (A; B)
  DEFINE GPM A ON S { ?a :p ?x FILTER (:scaled(?x) < 9) }
  DEFINE GPM B ON S { ?a :q ?y BIND (:scaled(?y) AS ?w) FILTER (:above(?y, ?x)) } }"""


@pytest.fixture
def streams(tmp_path: Path) -> dict[str, str]:
    """A stream, and the functions, which tasks can have only from the query."""
    factor, draw = 3, random.Random(5)
    spaseq.register_function(f"{E}scaled", lambda term: term.toPython() * factor)
    spaseq.register_function(f"{E}above", lambda a, b: a.toPython() > b.toPython())
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    lines = []
    for time in range(40):
        graph = f"<{E}g{time}>"
        lines.append(f'{graph} <{TIME}> "{time}" {graph} .\n')
        lines += [f'<{E}a{draw.randrange(2)}> <{E}{draw.choice("pq")}> "{draw.randrange(6)}"{integer} {graph} .\n'
                  for _ in range(2)]  # fmt: skip
    (tmp_path / "s.nq").write_text("".join(lines))
    return {"S": str(tmp_path / "s.nq")}


def test_batches(spark: Any, streams: dict[str, str]) -> None:
    query = spaseq.compile(QUERY)
    local = query.run(streams).to_arrow().select(query.variables)
    found = spaseq.spark.collect(spaseq.spark.run(query, spark, streams, partitions=2)).select(query.variables)
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, local.to_pylist()))
    assert local.num_rows > 5


@pytest.mark.slow
def test_streams(spark: Any, streams: dict[str, str], tmp_path: Path) -> None:
    query = spaseq.compile(QUERY)
    running = start(query, spark, streams, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"),
                    available_now=True, tasks=2)  # fmt: skip
    assert wait(running)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    found = [(r.start, r.end, list(r.positions), list(r.times), *(r[v] for v in query.variables)) for r in rows]
    expected = _rows(_local(query, streams, {}))
    # the stream goes on, so what its last window completes has not come
    assert found and {str(row) for row in _rows(found)} <= {str(row) for row in expected}
