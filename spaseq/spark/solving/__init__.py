"""From events to solutions: GPMs evaluated in tasks, knowledge joined by Spark.

A batch job goes from `read_and_solve` by `table` to `solutions`, a stream by `bucket_rows`. `knowledge` decides what
stays on Spark; `graph_clauses` and `join_side` join it.

* `bucket_rows`: What the GPMs find on a batch of events, as rows for buckets: Python objects for solutions only, none
  for events.
* `knowledge`: Background knowledge of a query on Spark: left on Spark where it can be joined, held on the driver where
  it must be.
* `graphs`: Background knowledge as a graph on Spark: motifs, what is reached from where, and entities that belong
  together; by GraphFrames, or by joins.
* `paths`: Property paths over knowledge that is left on Spark, as DataFrames of pairs.
* `grouping`: Groups of entities that belong together, of knowledge that is on Spark.
* `graph_clauses`: GRAPH clauses over knowledge that stays on Spark, as DataFrames of solutions.
* `join_side`: What a query asks of its knowledge, as the other side of a join with the solutions of events, in a batch
  and in a stream.
* `solutions`: The table of solutions: what the GPMs of a query are at each instant, one mapping a row.
* `read_and_solve`: The events of streams with what the GPMs find on them, for a batch: evaluated as columns, many
  events at once.
* `table`: From streams to the table of solutions: what a batch job does before the engine runs.
"""
