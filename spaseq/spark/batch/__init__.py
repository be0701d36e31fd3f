"""Batch jobs.

`job` runs SPAseq queries, `tuples` CEQL queries; `cuts` says where a table of tuples may be cut.

* `job` (`collect`, `explain`, `matches`, `prepared`, `run`): A SPAseq query as a Spark batch job: the same matches as
  `Query.run`.
* `cuts`: Where a query over tuples may be cut into parts for different tasks.
* `tuples` (`check_columns`, `explain_tuples`, `run_tuples`): CEQL queries as Spark batch jobs over DataFrames of
  tuples.
"""

__all__ = ["cuts", "job", "tuples"]
