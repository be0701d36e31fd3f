"""Background knowledge as a graph on Spark: motifs, connected components, and searches over many edges.

GRAPH clauses over knowledge that is left on Spark use these functions (`spaseq.spark.solving.paths`), and so do groups
of entities that belong together (`spaseq.spark.solving.grouping`). Terms are keys.

Joins do it in rounds of jobs. If the session has GraphFrames' Java part, GraphFrames does it: motifs, components, and
searches from one entity. `chosen_way` says how to get it. Few edges need neither (`spaseq.spark.solving.searches`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spaseq.core.errors import BudgetExceeded, OptionError
from spaseq.spark.session.connecting import is_connect
from spaseq.spark.session.keeping import checkpoint_folder, cut_off

PACKAGE: Final = "io.graphframes:graphframes-spark4_2.13"
_SMALL: Final = 100_000
"""Pairs that are broadcast to be joined with the edges, in place of sorting both."""
_PARTS: Final = 16
"""Rounds whose pairs are read one by one before they are put together, as each makes the plan of a round longer."""
Step = tuple[str, str, str]


# -- the way


def has_graphframes(spark: SparkSession) -> bool:
    """True if the session has GraphFrames' Java part, and Python its package. Not looked for through Spark Connect."""
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
    """GraphFrames if the session has it or if it is asked for, else joins. OptionError for another word, and if
    GraphFrames is asked for and is not there."""
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
    """The reason for which `chosen_way` gave joins, for people."""
    if way == "joins":
        return "joins are asked for"
    return "GraphFrames is not looked for" if is_connect(spark) else "GraphFrames is not in this session"


# -- motifs


def motif(triples: DataFrame, steps: Sequence[Step]) -> DataFrame:
    """The solutions of a basic graph pattern by GraphFrames: a column for each variable.

    `steps` are triples of term keys, or of variables (`?name`, a word in lower case) in place of subject or object.
    Constants become named vertices that are filtered.
    """
    names: dict[str, str] = {}
    for subject, _, object_ in steps:
        for term in (subject, object_):
            names.setdefault(term, term[1:] if term.startswith("?") else f"c{len(names)}")
    text = "; ".join(f"({names[s]})-[e{i}]->({names[o]})" for i, (s, _, o) in enumerate(steps))
    wanted = triples.where(F.col("predicate").isin([predicate for _, predicate, _ in steps]))
    edges = wanted.select(F.col("subject").alias("src"), F.col("object").alias("dst"), "predicate")
    found = _graph(edges).find(text)
    for i, (_, predicate, _) in enumerate(steps):
        found = found.where(F.col(f"e{i}.predicate") == predicate)
    for term, name in names.items():
        if not term.startswith("?"):
            found = found.where(F.col(f"{name}.id") == term)
    return found.select(*(F.col(f"{n}.id").alias(n) for t, n in names.items() if t.startswith("?"))).distinct()


def _graph(edges: DataFrame, more: DataFrame | None = None) -> Any:
    """Edges as a GraphFrame; `more` vertices, a column `id`."""
    from graphframes import GraphFrame

    vertices = edges.select(F.col("src").alias("id")).union(edges.select("dst"))
    return GraphFrame((vertices if more is None else vertices.union(more)).distinct(), edges)


# -- entities that belong together


def components(edges: DataFrame, way: str, most_rounds: int = 100) -> DataFrame:
    """Connected components of edges (`src`, `dst`): for each `entity` its `group`, the least of the entities in it.

    `way`: "graphframes" or "joins". Runs jobs; joins take rounds, about the logarithm of the longest path, and
    BudgetExceeded is raised after `most_rounds`.
    """
    if way == "graphframes":
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


# -- searches


def search_from(edges: DataFrame, start: str, way: str, most_rows: int) -> DataFrame:
    """The pairs (`src`, `dst`) with a path of one or more `edges` from `start`, each once. Runs jobs: with "joins" for
    each step of the longest path; with "graphframes" its shortest paths. BudgetExceeded as `search_rounds`."""
    spark = edges.sparkSession
    if way == "joins":
        return search_rounds(edges, spark.createDataFrame([(start,)], "src string"), most_rows)
    # The distances of all vertices towards `start`, along edges that are turned. Each of what `start` reaches is the
    # target of an edge whose source it reaches in no step or more.
    graph = _graph(turn_edges(edges), spark.createDataFrame([(start,)], "id string"))
    local = checkpoint_folder(spark) is None
    found = graph.shortestPaths(landmarks=[start], algorithm="graphframes", use_local_checkpoints=local)
    near = cut_off(found.where(F.size("distances") > 0).select(F.col("id").alias("src")))
    return edges.join(near, "src").select(F.lit(start).alias("src"), "dst").distinct()


def search_rounds(edges: DataFrame, seeds: DataFrame | None, most_rows: int) -> DataFrame:
    """The pairs (`src`, `dst`) with a path of one or more `edges` from one of `seeds` (a column `src`; None for all),
    each once. Raises BudgetExceeded (`solution_rows`) for more than `most_rows` pairs.

    Runs a job for each step of the longest path from seeds; without seeds, one for each doubling of the longest path.
    The pairs of a round are kept, and their plan forgotten (`cut_off`). A row of edges is read once a round.
    """
    edges = cut_off(edges.select("src", "dst").distinct())
    newest = edges if seeds is None else cut_off(edges.join(seeds.distinct(), "src", "left_semi"))
    parts, rows, more = [newest], 0, newest.count()
    while more:
        rows += more
        if rows > most_rows:
            raise BudgetExceeded("solution_rows", most_rows, rows, "rows")
        found = reduce(DataFrame.union, parts)
        if len(parts) == _PARTS:
            parts = [found := cut_off(found)]
        ahead = (found if seeds is None else newest).select("src", F.col("dst").alias("via"))
        step = (found if seeds is None else edges).select(F.col("src").alias("via"), "dst")
        ahead = (F.broadcast(ahead) if seeds is not None and more <= _SMALL else ahead).join(step, "via")
        newest = cut_off(ahead.select("src", "dst").distinct().join(found, ["src", "dst"], "left_anti"))
        parts.append(newest)
        more = newest.count()
    return reduce(DataFrame.union, parts)


def turn_edges(edges: DataFrame) -> DataFrame:
    """Each edge with source and target exchanged."""
    return edges.select(F.col("dst").alias("src"), F.col("src").alias("dst"))
