"""Groups of entities that belong together (`spaseq.rdf.Grouped`), of knowledge that is on Spark.

A few triples that connect come to the driver; of more, GraphFrames or joins find the components.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spaseq.rdf import GROUP, group_labels
from spaseq.spark.session.tables import KNOWLEDGE, spark_schema
from spaseq.spark.solving.graphs import chosen_way, components, why_joins


def with_group_triples(triples: DataFrame, by: Sequence[str], rows: int, way: str) -> tuple[DataFrame, str]:
    """`triples` (term keys) with those that say groups, and how these were found, for people. `rows`: the most that
    come to the driver; `way`: who finds them where there are more (`chosen_way`). Runs jobs."""
    spark = triples.sparkSession
    wanted = F.col("predicate").isin([f"<{name}>" for name in by]) & ~F.col("object").startswith('"')
    links = triples.where(wanted).select(F.col("subject").alias("src"), F.col("object").alias("dst"))
    few = links.limit(rows + 1).toArrow()
    if few.num_rows <= rows:
        labels = group_labels(zip(*(column.to_pylist() for column in few.columns), strict=True))
        columns = [list(labels), [f"<{GROUP}>"] * len(labels), list(labels.values())]
        table = pa.table([pa.array(column, pa.string()) for column in columns], schema=KNOWLEDGE)
        found, how = spark.createDataFrame(table, spark_schema(KNOWLEDGE)), "on the driver"
    else:
        chosen = chosen_way(spark, way)
        how = "by GraphFrames" if chosen == "graphframes" else f"by joins: {why_joins(spark, way)}"
        subject, predicate, object_ = KNOWLEDGE.names
        found = components(links, chosen).select(
            F.col("entity").alias(subject), F.lit(f"<{GROUP}>").alias(predicate), F.col("group").alias(object_)
        )
    return triples.unionByName(found), f"groups by {', '.join(f'<{name}>' for name in by)}, found {how}"
