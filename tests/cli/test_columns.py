"""Results as columns, beside the same results match by match, in every format."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import spaseq
from spaseq.cli.output import FoundResults, write_results
from spaseq.gpm.serialise import json_of_key, json_of_keys, nquads_of_key, nquads_of_keys
from spaseq.language.results.columns import FoundColumns, solution_blocks
from spaseq.language.results.match import Match
from spaseq.language.results.solutions import distinct_solutions, match_table
from spaseq.language.runtime.matches import Matches

PREFIX = "PREFIX : <urn:e:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
QUERIES = {
    "one": "SELECT ?s ?v FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s :v ?v } }",
    "projected": "SELECT ?w FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s :v ?v ; :w ?w } }",
    "unbound": "SELECT * FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s :v ?v OPTIONAL { ?s :w ?w } } }",
    "two": """SELECT ?s ?v ?x WITHIN 4 SECONDS SLIDING FROM STREAM S <urn:s> WHERE { SEQ (A ; B+)
              DEFINE GPM A ON S { ?s :v ?v } DEFINE GPM B ON S { ?s :w ?x } }""",
    "several ways": """SELECT ?v WITHIN 9 SECONDS SLIDING PARTITION BY (?s) FROM STREAM S <urn:s> WHERE { SEQ (A : B)
              DEFINE GPM A ON S { ?s :v ?v ; :in ?r } DEFINE GPM B ON S { ?s :w ?x ; :in ?r } }""",
    "ordered": "SELECT ?v FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s :v ?v } } ORDER BY DESC(?v)",
    "computed": "SELECT (STR(?v) AS ?t) FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s :v ?v } }",
    "grouped": """SELECT ?s (COUNT(?v) AS ?n) (SUM(?v) AS ?all) (MIN(?v) AS ?least) WITHIN 5 SECONDS FROM STREAM S
              <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s :v ?v } } GROUP BY ?s HAVING (COUNT(?v) > 1)""",
    "distinct": """SELECT DISTINCT ?s WITHIN 5 SECONDS FROM STREAM S <urn:s>
              WHERE { SEQ (A) DEFINE GPM A ON S { ?s :v ?v } }""",
    "first": """SELECT ?s ?v (STR(?v) AS ?t) WITHIN 5 SECONDS FROM STREAM S <urn:s> WHERE { SEQ (A : B)
              DEFINE GPM A ON S { ?s :v ?v } DEFINE GPM B ON S { ?s :in ?r } } ORDER BY ?t LIMIT 2""",
    "lists": """SELECT ?s (?x+ AS ?xs) WITHIN 4 SECONDS SLIDING FROM STREAM S <urn:s> WHERE { SEQ (A : B+ : C)
              DEFINE GPM A ON S { ?s :v ?v } DEFINE GPM B ON S { ?t :w ?x } DEFINE GPM C ON S { ?u :v ?y } }""",
    "nothing": "SELECT ?s FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s :none ?v } }",
    "asked": "ASK FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s :v ?v } }",
}  # fmt: skip
VALUES = ['1', '01', '"1.50"^^xsd:decimal', '"a"', '"a"^^xsd:string', '"\u00e4\\n\\"\\\\t\\t"@de', "<urn:h\u00e4us>",
          "_:b", '"x"^^<urn:t>', '"<&>"', '"2026-01-01T00:00:00Z"^^xsd:dateTime', '" "@EN']  # fmt: skip


def test_texts_of_many_terms_are_those_of_each() -> None:
    keys = ['"a"', '"a"@en-gb', '"a"@EN', "<urn:a>", "<urn:h\u00e4us>", "_:b", '"1"^^<urn:t>', '""', '"\x7f\u2028"']
    odd = ['"a\nb"', '"x"\n"y"', '"\\"', '"\t"^^<urn:t>', '"\x01"', '"a"b"', '"\r"@en', '"b"^^<urn:\\a>']
    for some in (keys, [*keys, *odd], *([key] for key in odd), [], *(["<urn:a>", key, "<urn:b>"] for key in odd)):
        assert list(nquads_of_keys(some)) == list(map(nquads_of_key, some))
        assert [json.loads(text) for text in json_of_keys(some)] == list(map(json_of_key, some))
        assert list(json_of_keys(some)) == [json.dumps(json_of_key(key), ensure_ascii=False) for key in some]


def _stream(folder: Path, start: float) -> str:
    """Two events a second, some of one time, of one or several mappings each."""
    lines = [f"@prefix : <urn:e:> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix p: <{PROV}> ."]
    for i in range(30):
        lines.append(f':g{i} p:generatedAtTime "{start + (i // 3 * 3 if i > 15 else i) * 0.5}" . :g{i} {{')
        for j in range(1 + (i % 5 == 0) * 2):
            lines.append(f":s{(i + j) % 4} :v {VALUES[(i + 5 * j) % len(VALUES)]} ; :in :r{j} .")
            if i % 3:
                lines.append(f":s{(i + j) % 4} :w {VALUES[(i * 7 + j) % len(VALUES)]} .")
        lines.append("}")
    path = folder / "s.trig"
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


DATES = 1_780_000_000.25
"""A first time that is written as a date; of those that are not, two queries are in every run."""
PROV = "http://www.w3.org/ns/prov#"


_AGAIN = {"projected", "two", "ordered", "nothing"}
"""Slow, as "several ways" is projected and has two steps, "first" is ordered, and a limit of 0 leaves nothing."""


def _written(form: str, matches: Matches | list[Match], query: spaseq.Query, limit: int | None) -> str:
    out = io.StringIO()
    write_results(form, FoundResults(matches, query, limit, False), out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "start"),
    [*(pytest.param(name, DATES, marks=[pytest.mark.slow] if name in _AGAIN else []) for name in QUERIES),
     ("one", 0), ("computed", 0),
     *(pytest.param(name, 0, marks=pytest.mark.slow) for name in QUERIES if name not in ("one", "computed"))],
)  # fmt: skip
def test_columns_are_written_as_matches_are(name: str, start: float, tmp_path: Path) -> None:
    query = spaseq.compile(f"{PREFIX} {QUERIES[name]}")
    streams = {"S": _stream(tmp_path, start)}
    one_by_one = list(query.run(streams, ties="instant"))
    for form in ("jsonl", "csv", "tsv", "json", "xml", "table"):
        for limit in (None, 0, 7):
            assert _written(form, query.run(streams), query, limit) == _written(form, one_by_one, query, limit), form
    assert query.run(streams).count() == len(one_by_one)
    table = query.run(streams).to_arrow()
    assert table.to_pylist() == match_table(one_by_one, query.variables).to_pylist()
    for limit in (None, 7):
        path = str(tmp_path / "found.parquet")
        write_results("parquet", FoundResults(query.run(streams), query, limit, False), path)
        assert pq.read_table(path).to_pylist() == table.to_pylist()[:limit]
        write_results("parquet", FoundResults(query.run(streams), query, limit, False, typed=True), path)
        whole = query.run(streams).to_arrow(typed=True)
        assert pq.read_table(path).num_rows == len(table.slice(0, limit))
        assert limit is not None or pq.read_table(path).equals(whole)


def _cut(matches: Matches, size: int) -> Iterator[FoundColumns | list[Match]]:
    for found in matches.blocks():
        if isinstance(found, FoundColumns):
            yield from (found.cut(i, min(i + size, len(found))) for i in range(0, len(found), size))
        else:
            yield list(found)


@pytest.mark.parametrize("name", ["one", "projected", "unbound", "two", "several ways", "lists"])
def test_solutions_are_the_same_however_matches_lie_in_blocks(name: str, tmp_path: Path) -> None:
    query = spaseq.compile(f"{PREFIX} {QUERIES[name]}")
    matches = list(query.run({"S": _stream(tmp_path, 0)}))
    wanted = list(distinct_solutions(matches, query.variables))
    columns = 0
    for size in (1, 2, 3, 5, 8, 13, 10_000):
        got = []
        parts = _cut(query.run({"S": _stream(tmp_path, 0)}), size)
        for block in solution_blocks(parts, query.variables):
            if isinstance(block, FoundColumns):
                columns += len(block)
                got += [(match.time, match.bindings) for match in block]
            else:
                got += distinct_solutions(block, query.variables)
        assert got == wanted, size
    assert len(wanted) < len(matches) or name != "several ways"
    assert columns or name == "unbound"


@pytest.mark.parametrize(
    "name", ["one", "projected", "two", "several ways", "computed", "grouped", "distinct", "first"]
)
def test_matches_are_not_made_where_nobody_looks_at_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = spaseq.compile(f"{PREFIX} {QUERIES[name]}")
    streams = {"S": _stream(tmp_path, 0)}
    wanted = len(list(query.run(streams)))
    monkeypatch.setattr(FoundColumns, "__iter__", lambda _: pytest.fail("a match was made"))
    monkeypatch.setattr(
        "spaseq.language.runtime.recogniser._distinct",
        lambda found, _: [pytest.fail("a match was made") for _ in found],
    )
    blocks = [found for found in query.run(streams).blocks() if isinstance(found, FoundColumns)]
    assert sum(map(len, blocks)) == wanted > 0
