"""Batch jobs.

`job` runs queries over files, and numbers their instants; `quads` makes rows of DataFrames, when they are asked for.

* `form`: Matches as rows: their columns, and the forms of terms.
* `slices`: Streams in order of time: the local engine in each task, on a slice of time, without a shuffle.
* `parts`: The table of solutions in parts that the layout allows, and the engine's matches in each.
* `job`: A SPAseq query as a Spark batch job: the same matches as `Query.run`.
* `quads`: The rows of the matches over DataFrames of quads: analysed at once, computed by an action.
"""
