"""Triple terms and strings with a direction on Spark: the matches of the local engine, from files and from lines."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import spaseq
from spaseq.spark import collect, match, parse_lines, run
from tests.spark.conftest import NS, TIME
from tests.spark.test_lines import found

pytestmark = pytest.mark.spark
QUERY = f"""PREFIX : <{NS}>
SELECT ?t ?who ?l ?k WITHIN 9 SECONDS SLIDING FROM STREAM S1 <{NS}S1>
WHERE {{ SEQ (A ; B)
  DEFINE GPM A ON S1 {{ ?x :claims ?t . ?t2 :says <<( ?x :temp ?v )>> . FILTER (OBJECT(?t) >= ?v) }}
  DEFINE GPM B ON S1 {{ ?who :denies ?t ; :label ?l . GRAPH <{NS}kb> {{ << ?who :is ?k >> :since 1 }} }} }}"""
NODES = f"""PREFIX : <{NS}>
SELECT ?b ?v FROM STREAM S1 <{NS}S1>
WHERE {{ SEQ (A) DEFINE GPM A ON S1 {{ ?x :told <<( :s :temp ?b )>> . ?b :v ?v }} }}"""
KNOWLEDGE = (
    f"PREFIX : <{NS}> << :bob :is :kind >> :since 1 . << :cat :is :odd >> :since 1 . << :dan :is :x >> :since 2 ."
)
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


def write_claims(path: Path) -> None:
    rng = Random(3)
    with path.open("w", encoding="utf-8") as file:
        for number in range(80):
            graph = f"<{NS}g/{number}>"
            file.write(f'{graph} <{TIME}> "{number // 2}" {graph} .\n')
            term = f'<<( <{NS}s{rng.randint(0, 2)}> <{NS}temp> "{rng.randint(1, 3)}"{INTEGER} )>>'
            if rng.random() < 0.5:
                said = f'<<( <{NS}ann> <{NS}temp> "2"{INTEGER} )>>'
                file.write(f"<{NS}ann> <{NS}claims> {term} {graph} .\n")
                file.write(f"<{NS}u> <{NS}says> {said} {graph} .\n")
                file.write(f"<{NS}u> <{NS}told> <<( <{NS}s> <{NS}temp> _:b )>> {graph} .\n")
                file.write(f'_:b <{NS}v> "{number}"{INTEGER} {graph} .\n')
            else:
                who = f"<{NS}{rng.choice(('bob', 'cat', 'dan'))}>"
                file.write(f"{who} <{NS}denies> {term} {graph} .\n")
                file.write(f'{who} <{NS}label> "a \\"b\\"\\n"@en--{rng.choice(("ltr", "rtl"))} {graph} .\n')


@pytest.mark.parametrize(
    ("query", "plan"),
    [
        (QUERY, "table"),
        pytest.param(QUERY, "auto", marks=pytest.mark.slow),
        pytest.param(QUERY, "slices", marks=pytest.mark.slow),
        pytest.param(NODES, "auto", marks=pytest.mark.slow),
        pytest.param(NODES, "table", marks=pytest.mark.slow),
    ],
)
def test_files_and_lines(query: str, plan: str, spark: Any, tmp_path: Path) -> None:
    path, kb = tmp_path / "claims.nq", tmp_path / "kb.ttl"
    write_claims(path)
    kb.write_text(KNOWLEDGE, "utf-8")
    compiled = spaseq.compile(query)
    names = [name for name in compiled.variables if name != "b"]  # whose labels the engines choose
    knowledge = {f"{NS}kb": str(kb)} if "GRAPH" in query else None
    expected = found(compiled.run({"S1": str(path)}, kb=knowledge).to_arrow(), names)
    assert expected
    told = collect(run(compiled, spark, {"S1": str(path)}, knowledge, plan=plan))
    assert found(told, names) == expected
    lines = parse_lines(spark.read.text(str(path)).repartition(3))
    assert found(collect(match(compiled, kb=knowledge)({"S1": lines})), names) == expected
