"""What every job needs: a session, progress, errors from workers, queries that travel.

`layout` says how a query is divided among tasks; nothing here reads or evaluates.

* `session`: A quiet Spark session on this machine, for the command line, the examples and the tests.
* `bar`: A progress bar of Spark's tasks on stderr, for people at a terminal.
* `collecting`: The rows of a frame on the driver, with clear errors.
* `connecting`: What a session is asked beyond DataFrames, also through Spark Connect.
* `failures`: Errors across the process boundary: raised in a worker, caught on the driver as the same object.
* `garbage`: Collections of garbage in Spark's workers.
* `keeping`: Results of a job that later jobs read again, kept by the cluster.
* `storage`: Files on any file system that Spark reads, read by Python.
* `spreading`: Numbers that Spark's hash puts into different tasks, known without a job.
* `shipping`: This package, sent to the workers of a running session.
* `query_text`: A query as it travels to the workers.
* `layout`: The parts of a query that Spark joins, and the cuts at which the engine runs on separately.
* `steps`: What tasks do, under names that Spark shows: in `explain()`, and on the pages of its jobs.
* `options`: The options of a SPAseq query on Spark, in a batch as in a stream.
* `tables`: The tables that flow between Spark's tasks: each is an Arrow schema, from which Spark's own follows.
* `versions`: The versions of PySpark that this package works with.
"""
