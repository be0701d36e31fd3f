"""From events to solutions: GPMs evaluated in tasks, knowledge joined by Spark.

A batch job goes from `read_and_solve` by `table` to `solutions`, a stream by `bucket_rows`. `knowledge` decides what
stays on Spark; `graph_clauses` and `join_side` join it.

* `bucket_rows`: The solutions of the GPMs on a batch of events, as rows for buckets.
* `knowledge`: Background knowledge on Spark where it can be joined, on the driver where it must be held.
* `graphs`: Background knowledge as a graph on Spark: motifs, reachability and components, by rounds or by GraphFrames.
* `searches`: Searches over few edges: each task is sent all of them, and searches from its own sources.
* `paths`: Property paths over knowledge that is left on Spark, as DataFrames of pairs.
* `grouping`: Groups of entities that belong together, of knowledge that is on Spark.
* `graph_clauses`: GRAPH clauses over knowledge that stays on Spark, as DataFrames of solutions.
* `join_side`: The answers of the knowledge as the other side of a join with the solutions of events.
* `solutions`: The table of solutions: what the GPMs of a query are at each instant, one mapping a row.
* `read_and_solve`: The events of streams with the solutions of the GPMs, as columns, for a batch.
* `table`: From streams to the table of solutions: what a batch job does before the engine runs.
"""
