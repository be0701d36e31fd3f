"""Batch jobs.

`job` runs SPAseq queries, `tuples` CEQL queries; `slices` is the plan without a shuffle, `cuts` says where a table of
tuples may be cut.

* `job`: A SPAseq query as a Spark batch job: the same matches as `Query.run`.
* `slices`: Streams in order of time: the local engine in each task, on a slice of time, without a shuffle.
* `form`: Matches as the rows of the frame that a batch job gives.
* `cuts`: Where a query over tuples may be cut into parts for different tasks.
* `columns`: The columns of users' DataFrames of tuples that the query reads, checked before anything runs.
* `tuples`: CEQL queries as Spark batch jobs over DataFrames of tuples.
"""
