"""Background knowledge as a graph: components, groups, and what GraphFrames does if its jar is there."""

from __future__ import annotations

import inspect
import random
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.core.errors import BudgetExceeded, OptionError
from spaseq.rdf import group_labels
from spaseq.spark.session.layout import lay_out
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.solving.graphs import PACKAGE, chosen_way, components, has_graphframes, search_from
from spaseq.spark.solving.knowledge import known_of
from tests.support.graph_frames import installed

pytestmark = pytest.mark.spark
NEXT = "<http://example.org/next>"


def _node(number: int) -> str:
    return f"<http://example.org/n{number:03}>"


def _random_edges(spark: Any, seed: int, nodes: int, edges: int) -> tuple[Any, set[tuple[str, str]]]:
    rng = random.Random(seed)
    pairs = {(_node(rng.randrange(nodes)), _node(rng.randrange(nodes))) for _ in range(edges)}
    return spark.createDataFrame(sorted(pairs), "src string, dst string"), pairs


def _components(pairs: set[tuple[str, str]]) -> dict[str, str]:
    label = {node: node for pair in pairs for node in pair}
    changed = True
    while changed:
        changed = False
        for s, o in pairs:
            low = min(label[s], label[o])
            changed |= label[s] != low or label[o] != low
            label[s] = label[o] = low
    return label


@pytest.mark.slow
def test_components(spark: Any) -> None:
    edges, pairs = _random_edges(spark, 1, 60, 45)
    for way in ["joins", "graphframes"] if has_graphframes(spark) else ["joins"]:
        assert {row.entity: row.group for row in components(edges, way).collect()} == _components(pairs)
    with pytest.raises(BudgetExceeded, match="most_rounds"):
        components(edges, "joins", most_rounds=1)


@pytest.mark.slow
def test_groups_as_partitions(spark: Any, tmp_path: Path) -> None:
    roads = "".join(f"{_node(i)} {NEXT} {_node(i + 1)} .\n" for i in range(0, 12) if i % 4 != 3)
    (tmp_path / "roads.nt").write_text(roads)
    rng = random.Random(4)
    lines = []
    for number in range(80):
        name = f"<http://example.org/e{number}>"
        lines.append(f'{name} <http://www.w3.org/ns/prov#generatedAtTime> "{number}" {name} .')
        speed = f'"{rng.randint(0, 99)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        lines.append(f"{_node(rng.randrange(12))} <http://example.org/speed> {speed} {name} .")
    (tmp_path / "cars.nq").write_text("\n".join(lines) + "\n")
    text = """PREFIX : <http://example.org/> SELECT ?g ?a ?b WITHIN 20 SECONDS PARTITION BY (?g)
    FROM STREAM S <http://example.org/s> WHERE { SEQ (A; B)
    DEFINE GPM A ON S { ?a :speed ?x . GRAPH :roads { ?a <urn:spaseq:group> ?g } FILTER (?x < 50) }
    DEFINE GPM B ON S { ?b :speed ?y . GRAPH :roads { ?b <urn:spaseq:group> ?g } FILTER (?y < 50) } }"""
    query = spaseq.compile(text)
    kb = {"http://example.org/roads": spaseq.Grouped(str(tmp_path / "roads.nt"), "http://example.org/next")}
    streams = {"S": str(tmp_path / "cars.nq")}
    expected = {(m.start, m.end, m.bindings["g"].n3()) for m in query.run(streams, kb)}
    frame = spaseq.spark.run(query, spark, streams, kb, partitions=3, knowledge_rows=2)
    found = spaseq.spark.collect(frame).to_pylist()
    assert {(row["start"], row["end"], row["g"]) for row in found} == expected != set()
    assert len({row["g"] for row in found}) > 1


@pytest.mark.parametrize("way", ["driver", pytest.param("joins", marks=pytest.mark.slow), "graphframes"])
def test_groups_are_knowledge(way: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the local engine's, with nothing but the triples that the query asks for. By joins is slow, as are the other
    tests of components by joins: they take a job for each round."""
    if way == "graphframes" and not has_graphframes(spark):
        installed(monkeypatch)
    roads = [(_node(i), NEXT, _node(i + 1)) for i in range(9) if i % 4 != 3] + [(_node(1), NEXT, '"end"')]
    frame = spark.createDataFrame(
        [*roads, (_node(20), NEXT, '"end"')], "subject string, predicate string, object string"
    )
    query = spaseq.compile("""PREFIX : <http://example.org/> SELECT ?g WITHIN 20 SECONDS PARTITION BY (?g)
    FROM STREAM S <http://example.org/s> WHERE { SEQ (A)
    DEFINE GPM A ON S { ?a :speed ?x . GRAPH :roads { ?a <urn:spaseq:group> ?g } } }""")
    kb = {"http://example.org/roads": spaseq.Grouped(frame, "http://example.org/next")}
    rows = 100 if way == "driver" else 1
    known = known_of(
        spark, kb, QueryText.of(query), lay_out(query.compiled), rows=rows, way="auto" if rows > 1 else way
    )
    found = {tuple(row) for row in known.frames["http://example.org/roads"].collect()}
    labels = group_labels((s, o) for s, _, o in roads if not o.startswith('"'))
    assert found == {(entity, "<urn:spaseq:group>", group) for entity, group in labels.items()}
    assert len(set(labels.values())) == 3
    said = {"driver": "on the driver", "joins": "by joins: joins are asked for", "graphframes": "by GraphFrames"}[way]
    assert f"groups by <http://example.org/next>, found {said}, read by tasks" in known.lines[0]


def test_the_calls_of_graphframes_are_those_it_has() -> None:
    """Its jar may not be there; its Python package names the calls and their arguments."""
    graphframes = pytest.importorskip(
        "graphframes",
        reason="graphframes-py, the Python part of GraphFrames, is not installed",
    )
    whole = graphframes.GraphFrame
    for call, positional, named in (
        (whole.__init__, ("self", "vertices", "edges"), {}),
        (whole.find, ("self", "(a)-[e]->(b)"), {}),
        (whole.connectedComponents, ("self",), {"use_local_checkpoints": True}),
        (whole.shortestPaths, ("self",), {"landmarks": [], "algorithm": "graphframes", "use_local_checkpoints": True}),
    ):
        inspect.signature(call).bind(*positional, **named)
    assert (whole.ID, whole.SRC, whole.DST) == ("id", "src", "dst")


@pytest.mark.slow
def test_graphframes_gives_what_joins_give(spark: Any) -> None:
    """With the real jar, which `GRAPHFRAMES_JAR` names for the whole test run; `test_paths` and the tests above use it
    then, too."""
    if not has_graphframes(spark):
        pytest.skip(f"GraphFrames' Java part is not in the session: GRAPHFRAMES_JAR=FILE brings it ({PACKAGE})")
    edges, _ = _random_edges(spark, 5, 20, 30)
    for call in (components, lambda edges, way: search_from(edges, _node(1), way, 1000)):
        by_way = [sorted(map(tuple, call(edges, way).collect())) for way in ("joins", "graphframes")]
        assert by_way[0] == by_way[1] != []


def test_without_graphframes_the_error_says_what_to_install(spark: Any) -> None:
    if has_graphframes(spark):
        pytest.skip("GraphFrames' Java part is installed: its absence cannot be shown")
    with pytest.raises(OptionError, match=r"graphframes-spark4_2\.13:VERSION"):
        chosen_way(spark, "graphframes")
    with pytest.raises(OptionError, match="not known"):
        chosen_way(spark, "magic")
