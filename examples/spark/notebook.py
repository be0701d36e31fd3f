"""Cells for a notebook: run it whole (`python examples/spark/notebook.py`), or paste cell by cell."""

# %% A quiet session on this machine. Any other session will do: a cluster's needs spaseq on its workers.
from pathlib import Path

import ceql
import spaseq
import spaseq.spark

EXAMPLES = Path(__file__).resolve().parent.parent
spark = spaseq.spark.local_session(2)

# %% A SPAseq query: how it is laid out, and its matches as a DataFrame.
grid = EXAMPLES / "smart-grid"
query = spaseq.compile((grid / "query.rq").read_text("utf-8"))
print(spaseq.spark.explain(query))
streams = {name: str(grid / f"{file}.nq") for name, file in (("S1", "power"), ("S2", "weather"), ("S3", "storage"))}
kb = {"http://smartgrid.org/db": str(grid / "kb.ttl")}
matches = spaseq.spark.run(query, spark, streams, kb)
matches.groupBy("city").count().orderBy("city").show(truncate=False)

# %% The same rows for pandas, in order of their ends, errors of workers as themselves.
table = spaseq.spark.collect(matches)
print(table.to_pandas()[["start", "end", "house", "fr1", "fr2"]].head())

# %% The streams themselves, as triples: any SQL over them.
spaseq.spark.register(spark)
triples = spark.read.format("spaseq").option("path", streams["S1"]).load()
triples.groupBy("predicate").count().orderBy("predicate").show(5, truncate=False)

# %% CEQL over a DataFrame of tuples. The query is cut by its key; explain says so.
trades = spark.read.option("header", True).option("inferSchema", True).csv(str(EXAMPLES / "stock" / "trades.csv"))
trades.printSchema()
rising = ceql.compile((EXAMPLES / "stock" / "query.ceql").read_text("utf-8"))
print(spaseq.spark.explain_match(rising))
found = trades.transform(spaseq.spark.match(rising, type_column="event_type"))
found.orderBy("match_end").show(5, truncate=False)
