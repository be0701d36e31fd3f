"""Every road into graph patterns on Spark has the answers of SPARQL 1.1: files, with a quarantine, and DataFrames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import spaseq

pytestmark = pytest.mark.spark

NS = "http://example.org/"
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
QUADS = "stream string, time long, graph string, subject string, predicate string, object string"

Pattern = tuple[str, list[tuple[str, str, str]], bool]
SUBSELECT: Pattern = (  # a group that the FILTER leaves empty is none
    "?room# :seen# ?w# . { SELECT ?s# (AVG(?x#) AS ?v#) { ?s# :value# ?x# . FILTER (?x# > 100) } GROUP BY ?s# }",
    [("r1", "seen#", '"x"'), ("s1", "value#", f'"5"^^{INTEGER}')],
    False,
)
SUM_OF_AN_IRI: Pattern = (
    "{ SELECT ?s# (SUM(?x#) AS ?v#) { ?s# :value# ?x# } GROUP BY ?s# } FILTER (!BOUND(?v#))",
    [("s1", "value#", f"<{NS}iri>")],
    True,
)
AVERAGE_OF_A_TEXT: Pattern = (  # W3C agg-err-01
    "{ SELECT ?s# (AVG(?x#) AS ?v#) { ?s# :value# ?x# } GROUP BY ?s# } FILTER (!BOUND(?v#))",
    [("s1", "value#", f'"1"^^{INTEGER}'), ("s1", "value#", '"abc"')],
    True,
)
SUM_DISTINCT: Pattern = (
    "?s# :seen# ?w# . { SELECT ?s# (SUM(DISTINCT ?x#) AS ?v#) { ?s# :seen# ?u# OPTIONAL { ?s# :value# ?x# } } "
    "GROUP BY ?s# }",
    [("s1", "seen#", '"x"')],
    True,
)
MINUS_IN_OPTIONAL: Pattern = (
    "?s# :seen# ?w# . OPTIONAL { MINUS { ?b# :r# ?b# } ?s# :q# ?v# } FILTER (BOUND(?v#))",
    [("s1", "seen#", '"x"'), ("s1", "q#", '"y"'), ("s2", "r#", f"<{NS}s2>")],
    True,
)
PATTERNS = [SUBSELECT, SUM_OF_AN_IRI, AVERAGE_OF_A_TEXT, SUM_DISTINCT, MINUS_IN_OPTIONAL]


@pytest.mark.parametrize("aside", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_graph_patterns_of_frames_and_with_a_quarantine(aside: bool, tmp_path: Path, spark: Any) -> None:
    """One query of several GPMs, which each have an event of their own: `#` stands for its number. With a
    quarantine it is slow: `test_failures` has one."""
    gpms = " ".join(f"DEFINE GPM G{k} ON S {{ {p.replace('#', str(k))} }}" for k, (p, _, _) in enumerate(PATTERNS))
    sequence = " | ".join(f"G{k}" for k in range(len(PATTERNS)))
    text = f"PREFIX : <{NS}> SELECT * FROM STREAM S <{NS}one> WHERE {{ SEQ ({sequence}) {gpms} }}"
    rows, lines = [], []
    for k, (_, triples, _) in enumerate(PATTERNS):
        graph = f"<{NS}g{k}>"
        terms = [(f"<{NS}{s}>", f"<{NS}{p}>".replace("#", str(k)), o) for s, p, o in triples]
        rows += [(f"{NS}one", k, graph, *term) for term in terms]
        lines += [f'{graph} {TIME} "{k}" {graph} .', *(f"{' '.join(term)} {graph} ." for term in terms)]
    (tmp_path / "one.nq").write_text("\n".join(lines) + "\n", encoding="utf-8")
    streams = {"S": str(tmp_path / "one.nq")}
    frame = spark.createDataFrame(rows, QUADS)
    expected = [k for k, (_, _, matches) in enumerate(PATTERNS) if matches]
    assert [match.end for match in spaseq.compile(text).run(streams)] == expected
    words = {"streams": streams, "quarantine": str(tmp_path / "aside")} if aside else {"streams": frame}
    found = spaseq.spark.collect(spaseq.spark.run(text, spark, partitions=2, **words))
    assert found.column("end").to_pylist() == expected
