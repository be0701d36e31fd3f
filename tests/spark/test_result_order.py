"""Which matches stand for solutions, and what LIMIT, OFFSET, DISTINCT and ORDER BY take of them, is the same on every
road: the least by (start, positions), whoever found it first (docs/semantics.md)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import spaseq
import spaseq.spark
from spaseq.spark.batch import slices
from tests.spark.conftest import NS, TIME
from tests.spark.test_slices import _in_slices, _job
from tests.support.micro_batches import in_micro_batches

QUERY = """PREFIX : <http://example.org/>
{select} WITHIN {window} SECONDS FROM STREAM S1 <http://example.org/one> FROM STREAM S2 <http://example.org/two>
WHERE {{ SEQ ({sequence})
  DEFINE GPM A ON S1 {{ ?s :p ?x }} DEFINE GPM B ON S2 {{ ?s :p ?y }} DEFINE GPM C ON S1 {{ ?s :q ?z }} }} {tail}
"""
FORMS = [
    ("SELECT *", "LIMIT 3"),
    ("SELECT *", "LIMIT 4 OFFSET 2"),
    ("SELECT ?s ?x", "ORDER BY ?s LIMIT 3"),
    ("SELECT ?s", "ORDER BY DESC(?x) LIMIT 4 OFFSET 1"),
    ("SELECT DISTINCT ?s ?x", ""),
    ("SELECT DISTINCT ?x", "LIMIT 2"),
    ("SELECT ?s (COUNT(*) AS ?n)", "GROUP BY ?s ORDER BY ?n LIMIT 2"),
    ("SELECT ?x ?y", "ORDER BY ?x ?y"),
]
SEQUENCES = ("A ; B", "A : B", "A+ ; B", "A : B : C", "(A | C) : B", "A ; B?")


def _streams(rng: random.Random, folder: Path, events: int) -> dict[str, Any]:
    """Few values, so that many matches have one mapping; the first stream is in two files."""
    folder.mkdir()
    now = 0
    for name, count in (("one-a", events), ("one-b", events // 2), ("two", 2 * events)):
        now, lines = now if name == "one-b" else 0, []
        for number in range(count):
            now += rng.choice((0, 1, 1, 2))
            graph = f"<{NS}{name}/{number}>"
            lines.append(f'{graph} <{TIME}> "{now}" {graph} .\n')
            for _ in range(rng.choice((1, 1, 2))):
                subject, predicate, value = rng.choice("ab"), rng.choice("ppq"), rng.randrange(3)
                lines.append(f'<{NS}{subject}> <{NS}{predicate}> "{value}" {graph} .\n')
        (folder / f"{name}.nq").write_text("".join(lines), "utf-8")
    return {"S1": [str(folder / "one-a.nq"), str(folder / "one-b.nq")], "S2": str(folder / "two.nq")}


def _drawn(seed: int, folder: Path, events: int = 25) -> tuple[Any, dict[str, Any]]:
    rng = random.Random(seed)
    select, tail = FORMS[seed % len(FORMS)]
    window = rng.choice((5, 8, 13))
    query = spaseq.compile(QUERY.format(select=select, tail=tail, window=window, sequence=rng.choice(SEQUENCES)))
    return query, _streams(rng, folder / str(seed), events)


def _places(rows: list[dict[str, Any]], query: Any) -> list[tuple[str, ...]]:
    """Rows with all that is shown of them but their rank."""
    names = ("start", "end", "positions", *query.variables)
    return sorted(tuple(str(row[name]) for name in names) for row in rows)


def _in_tasks(query: Any, streams: dict[str, Any], tasks: int) -> list[dict[str, Any]]:
    plan = slices.planned_slices(_job(query, tasks), streams, "", forced=True)
    assert isinstance(plan, slices.Slices) and len(plan) > 1
    rows, _, whys = _in_slices(_job(query, tasks), plan)
    assert not whys
    return rows


@pytest.mark.parametrize("seed", [pytest.param(n, marks=[] if 0 < n < 3 else [pytest.mark.slow]) for n in range(64)])
def test_slices_and_micro_batches_take_what_the_local_engine_takes(seed: int, tmp_path: Path) -> None:
    query, streams = _drawn(seed, tmp_path)
    local = query.run(streams).to_arrow().to_pylist()
    expected = _places(local, query)
    assert expected and len(local) == len(expected)
    assert _places(_in_tasks(query, streams, 3), query) == expected
    names = ("start", "end", "positions", "times", *query.variables)
    for buckets in (1, 3):
        # In slices positions are shifted, and here streams come in pieces: neither may change what is taken.
        found, _ = in_micro_batches(query, streams, {}, seed, buckets)
        rows = [dict(zip(names, row, strict=True)) for row in found]
        assert _places(rows, query) == expected


@pytest.mark.spark
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=[] if n == 3 else [pytest.mark.slow]) for n in range(100, 100 + len(FORMS))] + [3]
)
def test_batches_take_what_the_local_engine_takes(seed: int, tmp_path: Path, spark: Any) -> None:
    query, streams = _drawn(seed, tmp_path)
    local = query.run(streams).to_arrow()
    for partitions in (1, 3, 8) if seed >= 100 else (3,):
        found = spaseq.spark.collect(spaseq.spark.run(query, spark, streams, partitions=partitions, plan="table"))
        assert _places(found.to_pylist(), query) == _places(local.to_pylist(), query) != []
        if "ORDER BY" in query.text:
            assert found.select(list(query.variables)).to_pylist() == local.select(list(query.variables)).to_pylist()
