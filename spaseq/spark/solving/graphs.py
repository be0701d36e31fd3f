"""Background knowledge as a graph on Spark: motifs, what is reached from where, and entities that belong together.

Knowledge is a DataFrame with the columns `subject`, `predicate`, `object`, terms in N-Triples form, each always written
alike, as the data source `spaseq` gives it, of any size. With GraphFrames' Java part in the session (`graph_frame`
says how to get it) motifs, components and searches from or to one entity are GraphFrames'; without it the same answers
come from joins of the DataFrame itself: one for each step of a motif, a few for each halving of the longest path in a
component, one for each step of a search, and for the closure of all pairs one for each doubling of the longest path.

GRAPH clauses over knowledge that is left on Spark are answered by these functions (`spaseq.spark.solving.paths`), and
groups of entities that belong together become knowledge (`spaseq.spark.solving.grouping`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, Final, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spaseq.core.errors import BudgetExceeded, OptionError
from spaseq.gpm import event_graph
from spaseq.rdf import term_from_key
from spaseq.spark.ingest.terms import keys_of_lines, lines_of_terms
from spaseq.spark.session.connecting import is_connect
from spaseq.spark.session.keeping import checkpoint_folder, cut_off

PACKAGE: Final = "io.graphframes:graphframes-spark4_2.13"
Way = Literal["auto", "graphframes", "joins"]
Step = tuple[str, str, str]


# -- who does the work


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


def chosen_way(spark: SparkSession, way: str) -> Literal["graphframes", "joins"]:
    """Who does it: GraphFrames where the session has it, or where it is asked for, else joins. OptionError for another
    word, and where GraphFrames is asked for and is not there."""
    if way not in ("auto", "graphframes", "joins"):
        raise OptionError(f"way {way}: not known", "auto, graphframes or joins")
    if way == "joins" or has_graphframes(spark):
        return "joins" if way == "joins" else "graphframes"
    if way == "auto":
        return "joins"
    raise OptionError(
        "GraphFrames is not in this Spark session",
        f"pip install graphframes-py, and start the session with spark.jars.packages={PACKAGE}:VERSION "
        "(0.10.1 or later), or put its jar into spark.jars",
    )


def why_joins(spark: SparkSession, way: str) -> str:
    """Why `chosen_way` gave joins, for people."""
    asked = "asked for" if way == "joins" else ""
    return asked or ("GraphFrames is not looked for" if is_connect(spark) else "GraphFrames is not in this session")


def graph_frame(knowledge: DataFrame) -> Any:
    """The knowledge as a GraphFrame: `id` of each resource, and edges `src`, `dst`, `predicate`; literals are vertices
    too.

    OptionError where GraphFrames is not there.
    """
    return _graph(_edges(knowledge))


# -- motifs


def motif(knowledge: DataFrame, steps: Sequence[Step], way: Way = "auto") -> DataFrame:
    """The solutions of a basic graph pattern: a column for each variable.

    `steps` are triples of terms in N-Triples form, or variables (`?name`) in place of subject or object:
    `[("?a", "<…ns#next>", "?b"), ("?b", "<…ns#next>", "?c")]`. Rows are distinct.
    """
    names = list(dict.fromkeys(t for s, _, o in steps for t in (s, o) if t.startswith("?")))
    if not steps or not names or any(p.startswith("?") for _, p, _ in steps):
        raise OptionError("a motif needs steps with variables, whose predicates are given")
    if chosen_way(knowledge.sparkSession, way) == "graphframes":
        found = _motif_frame(knowledge, steps)
    else:
        found = reduce(_joined, (_step(knowledge, step) for step in steps))
    return found.select(*map(_name, names)).distinct().toDF(*(name[1:] for name in names))


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
    found = graph_frame(_only(knowledge, {predicate for _, predicate, _ in steps})).find(text)
    for i, (_, predicate, _) in enumerate(steps):
        found = found.where(F.col(f"e{i}.predicate") == predicate)
    for term, name in names.items():
        if not term.startswith("?"):
            found = found.where(F.col(f"{name}.id") == term)
    return found.select(*(F.col(f"{n}.id").alias(n) for t, n in names.items() if t.startswith("?")))


# -- entities that belong together


def groups(
    knowledge: DataFrame, predicates: Iterable[str] = (), way: Way = "auto", most_rounds: int = 100
) -> DataFrame:
    """Connected components: for each `entity` its `group`, the least of the entities in it.

    Entities are connected by triples with one of `predicates` (all, if none is given) in either direction. Literals
    connect nothing. `most_rounds`: of joins, without GraphFrames, before BudgetExceeded is raised.
    """
    edges = _edges(_only(knowledge, predicates)).where(~F.col("dst").startswith('"'))
    return components(edges.select("src", "dst"), way, most_rounds)


def components(edges: DataFrame, way: str = "auto", most_rounds: int = 100) -> DataFrame:
    """As `groups`, of edges (`src`, `dst`)."""
    if chosen_way(edges.sparkSession, way) == "graphframes":
        local = checkpoint_folder(edges.sparkSession) is None
        parts = cut_off(_graph(edges).connectedComponents(use_local_checkpoints=local))
        least = parts.groupBy("component").agg(F.min("id").alias("group"))
        return parts.join(least, "component").select(F.col("id").alias("entity"), "group")
    both = cut_off(edges.select("src", "dst").union(edges.select("dst", "src")).distinct())
    labels = both.groupBy(F.col("src").alias("entity")).agg(F.least(F.min("dst"), F.first("src")).alias("group"))
    labels = cut_off(labels)
    for _ in range(most_rounds):
        near = both.join(labels, F.col("dst") == F.col("entity")).groupBy("src").agg(F.min("group").alias("near"))
        further = labels.join(near, F.col("entity") == F.col("src")).select(
            "entity", F.least("group", "near").alias("group"), F.col("group").alias("before")
        )
        # The group of one's group is nearer to the least: paths shrink by half in a round, not by one.
        jump = further.select(F.col("entity").alias("via"), F.col("group").alias("onto"))
        jumped = cut_off(further.join(jump, F.col("group") == F.col("via")).select("entity", "onto", "before"))
        labels = jumped.select("entity", F.col("onto").alias("group"))
        if jumped.where(F.col("onto") != F.col("before")).isEmpty():
            return labels
    raise BudgetExceeded("most_rounds", most_rounds, most_rounds + 1)


def knowledge_of_groups(found: DataFrame, predicate: str) -> Any:
    """What `groups` found as a graph of background knowledge: `entity predicate group`. It comes to the driver.

    `predicate` is an IRI in angle brackets.
    """
    rows = found.select("entity", "group").collect()
    lines = lines_of_terms(((entity, predicate, group) for entity, group in rows), "groups")
    keys = keys_of_lines(list(lines), "groups")
    return event_graph((term_from_key(s), term_from_key(p), term_from_key(o)) for s, p, o, _, _ in keys)


# -- what is reached from where


def reachable(
    knowledge: DataFrame, predicate: str, start: Iterable[str] | None = None, most_hops: int = 100, way: Way = "auto"
) -> DataFrame:
    """The pairs (`entity`, `reached`) with a path of one or more triples of `predicate` from the one to the other.

    `start`: from these entities only. BudgetExceeded where paths go on behind `most_hops`; without `start` hops are
    doubled, so that they may go on to twice as many.
    """
    edges = _edges(_only(knowledge, [predicate])).select("src", "dst")
    begin = None if start is None else edges.sparkSession.createDataFrame([(s,) for s in start], "src string")
    found = _closed(edges, begin, None, most_hops)
    return found.select(F.col("src").alias("entity"), F.col("dst").alias("reached"))


def reached(
    edges: DataFrame,
    start: str | None = None,
    end: str | None = None,
    seeds: DataFrame | None = None,
    *,
    way: str = "auto",
    most_rows: int | None = None,
) -> DataFrame:
    """The pairs (`src`, `dst`) with a path of one or more `edges` (`src`, `dst`) from the one to the other, each once.

    `start`, `end`: only pairs with this one; GraphFrames searches breadth first, away from it or towards it. `seeds`:
    a column `src`, only pairs from these. Otherwise it is the closure of all pairs, which joins do. Raises
    BudgetExceeded (`solution_rows`) for more than `most_rows` pairs. Runs jobs: one for each step of the longest path
    from a constant or seeds, else one for each doubling.
    """
    if start is None and end is not None:
        return _turned(reached(_turned(edges), end, None, way=way, most_rows=most_rows))
    spark = edges.sparkSession
    if start is not None and chosen_way(spark, way) == "graphframes":
        found = _searched(edges, start)
    elif start is not None:
        found = _closed(edges, spark.createDataFrame([(start,)], "src string"), most_rows)
    else:
        found = _closed(edges, seeds, most_rows)
    return found if end is None else found.where(F.col("dst") == end)


def _searched(edges: DataFrame, start: str) -> DataFrame:
    """From `start`, by GraphFrames: the distances of all vertices towards it, along edges that are turned. What it
    reaches by one step or more lies behind a triple whose subject it reaches by none or more."""
    turned = _turned(edges)
    alone = edges.sparkSession.createDataFrame([(start,)], "id string")
    graph = _graph(turned, alone)
    local = checkpoint_folder(edges.sparkSession) is None
    found = graph.shortestPaths(landmarks=[start], algorithm="graphframes", use_local_checkpoints=local)
    near = cut_off(found.where(F.size("distances") > 0).select(F.col("id").alias("src")))
    return edges.join(near, "src").select(F.lit(start).alias("src"), "dst").distinct()


def _closed(
    edges: DataFrame, seeds: DataFrame | None, most_rows: int | None, most_hops: int | None = None
) -> DataFrame:
    """Pairs by joins, from `seeds` or all."""
    edges = cut_off(edges.select("src", "dst").distinct())
    found = newest = edges if seeds is None else cut_off(edges.join(seeds.distinct(), "src", "left_semi"))
    rows, hops = found.count(), 1
    while True:
        step = edges if seeds is not None else found
        ahead = newest.select("src", F.col("dst").alias("via")).join(
            step.select(F.col("src").alias("via"), "dst"), "via"
        )
        newest = cut_off(ahead.select("src", "dst").distinct().join(found, ["src", "dst"], "left_anti"))
        more = newest.count()
        if not more:
            return found
        if most_hops is not None and hops >= most_hops:
            raise BudgetExceeded("most_hops", most_hops, hops + 1)
        rows, hops = rows + more, hops + 1 if seeds is not None else 2 * hops
        if most_rows is not None and rows > most_rows:
            raise BudgetExceeded("solution_rows", most_rows, rows, "rows")
        found = cut_off(found.union(newest))
        newest = newest if seeds is not None else found


def _turned(edges: DataFrame) -> DataFrame:
    return edges.select(F.col("dst").alias("src"), F.col("src").alias("dst"))


# -- pieces


def _only(knowledge: DataFrame, predicates: Iterable[str]) -> DataFrame:
    wanted = list(predicates)
    return knowledge.where(F.col("predicate").isin(wanted)) if wanted else knowledge


def _edges(knowledge: DataFrame) -> DataFrame:
    return knowledge.select(F.col("subject").alias("src"), F.col("object").alias("dst"), "predicate")


def _graph(edges: DataFrame, more: DataFrame | None = None) -> Any:
    """Edges as a GraphFrame; `more` vertices, a column `id`."""
    chosen_way(edges.sparkSession, "graphframes")
    from graphframes import GraphFrame

    vertices = edges.select(F.col("src").alias("id")).union(edges.select("dst"))
    return GraphFrame((vertices if more is None else vertices.union(more)).distinct(), edges)
