"""Background knowledge as a graph on Spark: motifs over it, and entities that belong together.

Knowledge is a DataFrame with the columns `subject`, `predicate`, `object`, terms in N-Triples form, each always written
alike, as the data source `spaseq` gives it, of any size. With GraphFrames' Java part in the session (`graph_frame`
says how to get it) motifs and components are GraphFrames'; without it the same answers come from joins of the DataFrame
itself: one for each step of a motif, a few for each halving of the longest path in a component.

Entities that belong together may be a partition: with `knowledge_of_groups` a query reads the group of an entity as
background knowledge and says PARTITION BY (?group), so what happens in different groups is matched by different tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, Final, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spaseq.errors import BudgetExceeded, OptionError
from spaseq.gpm import event_graph
from spaseq.rdf import term_from_key
from spaseq.spark.ingest.terms import keys_of_lines, lines_of_terms
from spaseq.spark.session.connecting import is_connect

__all__ = ["PACKAGE", "graph_frame", "groups", "has_graphframes", "knowledge_of_groups", "motif", "reachable"]

PACKAGE: Final = "io.graphframes:graphframes-spark4_2.13"
Way = Literal["auto", "graphframes", "joins"]
Step = tuple[str, str, str]


def has_graphframes(spark: SparkSession) -> bool:
    """Whether the session has GraphFrames' Java part, and Python its package. Not looked for through Spark Connect."""
    if is_connect(spark):
        return False
    try:
        import graphframes  # noqa: F401
    except ImportError:
        return False
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()
    from py4j.protocol import Py4JJavaError

    try:
        loader.loadClass("org.graphframes.GraphFrame")
    except Py4JJavaError:
        return False
    return True


def graph_frame(knowledge: DataFrame) -> Any:
    """The knowledge as a GraphFrame: `id` of each resource, and edges `src`, `dst`, `predicate`; literals are vertices
    too.

    OptionError where GraphFrames is not there.
    """
    if not has_graphframes(knowledge.sparkSession):
        raise OptionError(
            "GraphFrames is not in this Spark session",
            f"pip install graphframes-py, and start the session with spark.jars.packages={PACKAGE}:VERSION "
            "(0.10.1 or later), or put its jar into spark.jars",
        )
    from graphframes import GraphFrame

    edges = _edges(knowledge)
    vertices = edges.select(F.col("src").alias("id")).union(edges.select("dst")).distinct()
    return GraphFrame(vertices, edges)


def motif(knowledge: DataFrame, steps: Sequence[Step], way: Way = "auto") -> DataFrame:
    """The solutions of a basic graph pattern: a column for each variable.

    `steps` are triples of terms in N-Triples form, or variables (`?name`) in place of subject or object:
    `[("?a", "<…ns#next>", "?b"), ("?b", "<…ns#next>", "?c")]`. Rows are distinct.
    """
    names = list(dict.fromkeys(t for s, _, o in steps for t in (s, o) if t.startswith("?")))
    if not steps or not names or any(p.startswith("?") for _, p, _ in steps):
        raise OptionError("a motif needs steps with variables, whose predicates are given")
    if _with_graphframes(knowledge, way):
        found = _motif_frame(knowledge, steps)
    else:
        found = reduce(_joined, (_step(knowledge, step) for step in steps))
    return found.select(*map(_name, names)).distinct().toDF(*(name[1:] for name in names))


def groups(
    knowledge: DataFrame, predicates: Iterable[str] = (), way: Way = "auto", most_rounds: int = 100
) -> DataFrame:
    """Connected components: for each `entity` its `group`, the least of the entities in it.

    Entities are connected by triples with one of `predicates` (all, if none is given) in either direction. Literals
    connect nothing. `most_rounds`: of joins, without GraphFrames, before BudgetExceeded is raised.
    """
    edges = _edges(_only(knowledge, predicates)).where(~F.col("dst").startswith('"'))
    both = edges.select("src", "dst").union(edges.select("dst", "src")).distinct()
    if _with_graphframes(knowledge, way):
        graph = graph_frame(_only(knowledge, predicates).where(~F.col("object").startswith('"')))
        parts = graph.connectedComponents(use_local_checkpoints=True)
        least = parts.groupBy("component").agg(F.min("id").alias("group"))
        return parts.join(least, "component").select(F.col("id").alias("entity"), "group")
    labels = both.groupBy(F.col("src").alias("entity")).agg(F.least(F.min("dst"), F.first("src")).alias("group"))
    labels = labels.localCheckpoint()
    for _ in range(most_rounds):
        near = both.join(labels, F.col("dst") == F.col("entity")).groupBy("src").agg(F.min("group").alias("near"))
        further = labels.join(near, F.col("entity") == F.col("src")).select(
            "entity", F.least("group", "near").alias("group"), F.col("group").alias("before")
        )
        # The group of one's group is nearer to the least: paths shrink by half in a round, not by one.
        jump = further.select(F.col("entity").alias("via"), F.col("group").alias("onto"))
        jumped = further.join(jump, F.col("group") == F.col("via")).select("entity", "onto", "before").localCheckpoint()
        labels = jumped.select("entity", F.col("onto").alias("group"))
        if jumped.where(F.col("onto") != F.col("before")).isEmpty():
            return labels
    raise BudgetExceeded("most_rounds", most_rounds, most_rounds + 1)


def reachable(
    knowledge: DataFrame, predicate: str, start: Iterable[str] | None = None, most_hops: int = 100
) -> DataFrame:
    """The pairs (`entity`, `reached`) with a path of one or more triples of `predicate` from the one to the other.

    `start`: from these entities only. BudgetExceeded where paths go on behind `most_hops`. A join for each hop.
    """
    edges = _edges(_only(knowledge, [predicate])).select("src", "dst").distinct().localCheckpoint()
    newest = edges if start is None else edges.where(F.col("src").isin(list(start)))
    found = newest = newest.localCheckpoint()
    for _ in range(most_hops):
        ahead = newest.select("src", F.col("dst").alias("via")).join(edges.withColumnRenamed("src", "via"), "via")
        newest = ahead.select("src", "dst").distinct().exceptAll(found).localCheckpoint()
        if newest.isEmpty():
            return found.select(F.col("src").alias("entity"), F.col("dst").alias("reached"))
        found = found.union(newest).distinct().localCheckpoint()
    raise BudgetExceeded("most_hops", most_hops, most_hops + 1)


def knowledge_of_groups(found: DataFrame, predicate: str) -> Any:
    """What `groups` found as a graph of background knowledge: `entity predicate group`. It comes to the driver.

    `predicate` is an IRI in angle brackets.
    """
    rows = found.select("entity", "group").collect()
    lines = lines_of_terms(((entity, predicate, group) for entity, group in rows), "groups")
    keys = keys_of_lines(list(lines), "groups")
    return event_graph((term_from_key(s), term_from_key(p), term_from_key(o)) for s, p, o, _, _ in keys)


# -- its pieces


def _with_graphframes(knowledge: DataFrame, way: Way) -> bool:
    if way not in ("auto", "graphframes", "joins"):
        raise OptionError(f"way {way}: not known", "auto, graphframes or joins")
    if way == "graphframes":
        return graph_frame(knowledge) is not None
    return way == "auto" and has_graphframes(knowledge.sparkSession)


def _only(knowledge: DataFrame, predicates: Iterable[str]) -> DataFrame:
    wanted = list(predicates)
    return knowledge.where(F.col("predicate").isin(wanted)) if wanted else knowledge


def _edges(knowledge: DataFrame) -> DataFrame:
    return knowledge.select(F.col("subject").alias("src"), F.col("object").alias("dst"), "predicate")


def _name(variable: str) -> str:
    """The column of a variable: a word for GraphFrames. Spark compares columns without case, ?a and ?A are two."""
    return "v_" + "".join(c if c != "_" and c == c.casefold() else "_" + c for c in variable[1:])


def _step(knowledge: DataFrame, step: Step) -> DataFrame:
    """The triples of one step, a column for each variable."""
    subject, predicate, object_ = step
    found = knowledge.where(F.col("predicate") == predicate)
    columns: list[Column] = []
    for term, column in ((subject, F.col("subject")), (object_, F.col("object"))):
        if not term.startswith("?"):
            found = found.where(column == term)
        elif term == object_ == subject:
            found = found.where(F.col("subject") == F.col("object"))
            return found.select(column.alias(_name(term)))
        else:
            columns.append(column.alias(_name(term)))
    return found.select(*columns)


def _joined(left: DataFrame, right: DataFrame) -> DataFrame:
    shared = [name for name in left.columns if name in right.columns]
    return left.join(right, shared) if shared else left.crossJoin(right)


def _motif_frame(knowledge: DataFrame, steps: Sequence[Step]) -> DataFrame:
    """By GraphFrames: constants become named vertices that are filtered."""
    names: dict[str, str] = {}
    for subject, _, object_ in steps:
        for term in (subject, object_):
            names.setdefault(term, _name(term) if term.startswith("?") else f"c{len(names)}")
    text = "; ".join(f"({names[s]})-[e{i}]->({names[o]})" for i, (s, _, o) in enumerate(steps))
    found = graph_frame(knowledge).find(text)
    for i, (_, predicate, _) in enumerate(steps):
        found = found.where(F.col(f"e{i}.predicate") == predicate)
    for term, name in names.items():
        if not term.startswith("?"):
            found = found.where(F.col(f"{name}.id") == term)
    return found.select(*(F.col(f"{n}.id").alias(n) for t, n in names.items() if t.startswith("?")))
