"""Results as Arrow's types and as RDF terms, from columns and from matches, beside the matches themselves."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import spaseq
from spaseq.language.results.typed import TERM
from spaseq.rdf import term_key

VALUES = {
    "whole": ["1", "-7", '"042"^^xsd:int'],
    "number": ["1", "2.50", "1e3"],
    "long": ["1", "99999999999999999999", "2"],
    "truth": ["true", "false", '"1"^^xsd:boolean'],
    "when": ['"2026-06-15T08:00:00.25Z"^^xsd:dateTime', '"2026-06-15T08:00:00+02:00"^^xsd:dateTime',
             '"2026-06-15T08:00:00"^^xsd:dateTime'],
    "day": ['"2026-06-15"^^xsd:date', '"1999-12-31"^^xsd:date', '"2000-02-29"^^xsd:date'],
    "text": ['"a\\"b"', '"\u00e4"@de', '""'],
    "name": ["<urn:a>", "<urn:b>", "<urn:a>"],
    "mixed": ["1", '"a"', "<urn:a>"],
    "odd": ['"2026-02-31"^^xsd:date', '"x"^^<urn:t>', '"2026-01-01Z"^^xsd:date'],
    "node": ["_:b", "_:c", "_:b"],
}  # fmt: skip
TYPES = {"whole": pa.int64(), "number": pa.float64(), "long": pa.float64(), "truth": pa.bool_(),
         "when": pa.timestamp("ns", "UTC"), "day": pa.date32()}  # fmt: skip
CLAUSES = {
    "columns": "",
    "clauses": "ORDER BY ?s",
    "in rdflib's order": "VALUES ?none { 1 } ORDER BY ?s",
}


def _matches(folder: Path, start: float, clause: str, select: str = "*") -> spaseq.Matches:
    lines = ["@prefix : <urn:e:> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> ."]
    for i in range(4):
        lines.append(f':g{i} <http://www.w3.org/ns/prov#generatedAtTime> "{start + i}" . :g{i} {{ :s{i} :is {i} .')
        lines += [f":s{i} :{name} {own[i]} ." for name, own in VALUES.items() if i < 3]
        lines.append("}")
    path = folder / "s.trig"
    path.write_text("\n".join(lines), "utf-8")
    optional = " ".join(f"OPTIONAL {{ ?s :{name} ?{name} }}" for name in VALUES)
    query = f"""PREFIX : <urn:e:> SELECT {select} FROM STREAM S <urn:s> WHERE {{ SEQ (A)
                DEFINE GPM A ON S {{ ?s :is ?time {optional} }} }} {clause}"""
    return spaseq.compile(query).run({"S": str(path)})


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=CLAUSES)
def test_values_have_the_type_that_all_of_them_have(clause: str, tmp_path: Path) -> None:
    matches = _matches(tmp_path, 1_780_000_000.25, clause)
    table = matches.to_arrow(typed=True)
    texts = matches.to_arrow()
    assert table.column_names == texts.column_names
    for name in VALUES:
        assert table.schema.field(name).type == TYPES.get(name, pa.string()), name
        assert table[name].null_count == texts[name].null_count == 1
    assert table.schema.field("time").type == pa.timestamp("ns", "UTC")
    assert table["time"].cast(pa.int64()).to_pylist() == [match.time for match in matches]
    rows = table.to_pylist()
    assert [row["whole"] for row in rows] == [1, -7, 42, None]
    assert [row["number"] for row in rows] == [1.0, 2.5, 1000.0, None]
    assert [row["long"] for row in rows] == [1.0, 1e20, 2.0, None]
    assert [row["truth"] for row in rows] == [True, False, True, None]
    assert [row["day"] for row in rows] == [date(2026, 6, 15), date(1999, 12, 31), date(2000, 2, 29), None]
    assert table["when"].cast(pa.int64()).to_pylist()[:2] == [1781510400250000000, 1781503200000000000]
    assert [row["text"] for row in rows] == ['a"b', "\u00e4", "", None]
    assert [row["name"] for row in rows] == ["urn:a", "urn:b", "urn:a", None]
    for name in ("mixed", "odd", "node"):
        assert table[name].to_pylist() == texts[name].to_pylist()
    assert [row["?time"] for row in rows] == [0, 1, 2, 3]
    assert matches.to_pandas(typed=True)["whole"].tolist()[:3] == [1, -7, 42]


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=CLAUSES)
def test_terms_are_kept(clause: str, tmp_path: Path) -> None:
    matches = _matches(tmp_path, 5, clause)
    table = matches.to_arrow(terms=True)
    assert table.schema.field("time").type == pa.int64()
    for match, row in zip(matches, table.to_pylist(), strict=True):
        assert (row["start"], row["end"], row["positions"], row["time"]) == (
            match.start, match.end, list(match.positions), match.time)  # fmt: skip
        for name in VALUES:
            assert table.schema.field(name).type == TERM
            assert (
                row[name] is None if name not in match.bindings else _key(row[name]) == term_key(match.bindings[name])
            )


def _key(term: dict[str, Any]) -> str:
    match term["kind"]:
        case "iri":
            return f"<{term['value']}>"
        case "bnode":
            return f"_:{term['value']}"
    end = f"@{term['language']}" if term["language"] else f"^^<{term['datatype']}>" if term["datatype"] else ""
    return f'"{term["value"]}"{end}'


def test_a_table_without_rows_has_the_columns(tmp_path: Path) -> None:
    matches = _matches(tmp_path, 0, "LIMIT 0", "?s ?whole")
    for words in ({"typed": True}, {"terms": True}):
        table = matches.to_arrow(**words)
        assert (table.num_rows, table.column_names) == (0, ["start", "end", "positions", "time", "s", "whole"])
