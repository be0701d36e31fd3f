"""Background knowledge as a graph: motifs, groups, reachability; with GraphFrames where its jar is there."""

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
from spaseq.spark.solving.graphs import (
    PACKAGE,
    graph_frame,
    groups,
    has_graphframes,
    knowledge_of_groups,
    motif,
    reachable,
)
from spaseq.spark.solving.knowledge import known_of
from tests.support.graph_frames import installed

pytestmark = pytest.mark.spark
NEXT = "<http://example.org/next>"


def _ways(spark: Any) -> list[Any]:
    """GraphFrames' too where its jar is; `test_paths` has it by a stand-in."""
    return ["joins", "graphframes"] if has_graphframes(spark) else ["joins"]


def _node(number: int) -> str:
    return f"<http://example.org/n{number:03}>"


def _random_graph(spark: Any, seed: int, nodes: int, edges: int) -> tuple[Any, set[tuple[str, str]]]:
    rng = random.Random(seed)
    pairs = {(_node(rng.randrange(nodes)), _node(rng.randrange(nodes))) for _ in range(edges)}
    rows = [(s, NEXT, o) for s, o in pairs] + [(_node(0), "<http://example.org/label>", '"first"')]
    return spark.createDataFrame(rows, "subject string, predicate string, object string"), pairs


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
def test_groups_are_connected_components(spark: Any) -> None:
    frame, pairs = _random_graph(spark, 1, 60, 45)
    for way in _ways(spark):
        found = {row.entity: row.group for row in groups(frame, [NEXT], way).collect()}
        assert found == _components(pairs)
    with pytest.raises(BudgetExceeded, match="most_rounds"):
        groups(frame, [NEXT], "joins", most_rounds=1)


def test_motifs_are_basic_graph_patterns(spark: Any) -> None:
    frame, pairs = _random_graph(spark, 2, 12, 30)
    steps = [("?a", NEXT, "?b"), ("?b", NEXT, "?c"), ("?c", NEXT, _node(3))]
    expected = {(a, b, c) for a, b in pairs for b2, c in pairs if b == b2 and (c, _node(3)) in pairs}
    loops = {(a,) for a, b in pairs if a == b}
    for way in _ways(spark):
        assert {tuple(row) for row in motif(frame, steps, way).collect()} == expected != set()
        assert {tuple(row) for row in motif(frame, [("?a", NEXT, "?a")], way).collect()} == loops
        cased = motif(frame, [("?a", NEXT, "?A"), ("?A", NEXT, "?_a"), ("?_a", NEXT, _node(3))], way)
        assert {tuple(row) for row in cased.collect()} == expected
        assert cased.columns == ["a", "A", "_a"]


@pytest.mark.slow
def test_reachability(spark: Any) -> None:
    frame, pairs = _random_graph(spark, 3, 14, 16)
    closed = set(pairs)
    while more := {(a, d) for a, b in closed for c, d in pairs if b == c} - closed:
        closed |= more
    assert {tuple(row) for row in reachable(frame, NEXT).collect()} == closed
    start = min(pairs)[0]
    from_one = {tuple(row) for row in reachable(frame, NEXT, [start]).collect()}
    assert from_one == {pair for pair in closed if pair[0] == start}
    with pytest.raises(BudgetExceeded, match="most_hops"):
        reachable(frame, NEXT, most_hops=1)


@pytest.mark.slow
def test_groups_as_partitions(spark: Any, tmp_path: Path) -> None:
    roads = "".join(f"{_node(i)} {NEXT} {_node(i + 1)} .\n" for i in range(0, 12) if i % 4 != 3)
    (tmp_path / "roads.nt").write_text(roads)
    spaseq.spark.register(spark)
    frame = spark.read.format("spaseq").option("path", str(tmp_path / "roads.nt")).load()
    graph = knowledge_of_groups(groups(frame), "<http://example.org/group>")
    rng = random.Random(4)
    lines = []
    for number in range(80):
        name = f"<http://example.org/e{number}>"
        lines.append(f'{name} <http://www.w3.org/ns/prov#generatedAtTime> "{number}" {name} .')
        speed = f'"{rng.randint(0, 99)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        lines.append(f"{_node(rng.randrange(12))} <http://example.org/speed> {speed} {name} .")
    (tmp_path / "cars.nq").write_text("\n".join(lines) + "\n")
    text = """PREFIX : <http://example.org/> SELECT ?g ?a ?b WITHIN 20 SECONDS PARTITION BY (?g)
    FROM STREAM S <http://example.org/s> WHERE { SEQ (A, B)
    DEFINE GPM A ON S { ?a :speed ?x . GRAPH :roads { ?a :group ?g } FILTER (?x < 50) }
    DEFINE GPM B ON S { ?b :speed ?y . GRAPH :roads { ?b :group ?g } FILTER (?y < 50) } }"""
    query, kb = spaseq.compile(text), {"http://example.org/roads": graph}
    streams = {"S": str(tmp_path / "cars.nq")}
    expected = {(m.start, m.end, m.bindings["g"].n3()) for m in query.run(streams, kb)}
    found = spaseq.spark.collect(spaseq.spark.run(query, spark, streams, kb, partitions=3)).to_pylist()
    assert {(row["start"], row["end"], row["g"]) for row in found} == expected != set()
    assert len({row["g"] for row in found}) > 1


@pytest.mark.parametrize("way", ["driver", "joins", "graphframes"])
def test_groups_are_knowledge(way: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the local engine's, with nothing but the triples that the query asks for."""
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
    said = {"driver": "on the driver", "joins": "by joins: asked for", "graphframes": "by GraphFrames"}[way]
    assert f"groups by <http://example.org/next>, found {said}, read by tasks" in known.lines[0]


def test_the_calls_of_graphframes_are_those_it_has() -> None:
    """Its jar may not be there; its Python package says what can be called."""
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
    if not has_graphframes(spark):
        pytest.skip(f"GraphFrames' Java part is not installed: spark.jars.packages={PACKAGE}:VERSION brings it")
    frame, _ = _random_graph(spark, 5, 20, 30)
    steps = [("?a", NEXT, "?b"), ("?b", NEXT, "?c")]
    by_way = [sorted(map(tuple, motif(frame, steps, way).collect())) for way in ("joins", "graphframes")]
    assert by_way[0] == by_way[1] != []
    parts = [sorted(map(tuple, groups(frame, [NEXT], way).collect())) for way in ("joins", "graphframes")]
    assert parts[0] == parts[1] != []


def test_without_graphframes_the_error_says_what_to_install(spark: Any) -> None:
    if has_graphframes(spark):
        pytest.skip("GraphFrames' Java part is installed: its absence cannot be shown")
    frame, _ = _random_graph(spark, 1, 4, 4)
    for call in (lambda: graph_frame(frame), lambda: groups(frame, way="graphframes")):
        with pytest.raises(OptionError, match=r"graphframes-spark4_2\.13:VERSION"):
            call()
    with pytest.raises(OptionError, match="not known"):
        groups(frame, way="magic")  # type: ignore[arg-type]
