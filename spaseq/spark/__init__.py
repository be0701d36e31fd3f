"""SPAseq queries as Spark batch jobs.

    spark = spaseq.spark.local_session()
    frame = spaseq.spark.run(query, spark, streams={"S1": "power.nq"}, kb={"http://example.org/kb": "kb.ttl"})

`run` gives a DataFrame with the rows of `Query.run(…).to_arrow()`; `collect` brings such a frame to the driver with
clear errors; `matches` gives the local engine's `Match` objects. `explain` says how a query is laid out. Any session
will do; `local_session` makes a quiet one on this machine.

Files of N-Triples and N-Quads are read by several tasks each, compressed ones and other formats by one. Matches come
from as many tasks as there are windows or PARTITION BY keys to divide among them; a query with neither is recognised
by one task.

Not here: streaming, standard input, events in matches.
"""

from __future__ import annotations

from spaseq.spark.job import collect, explain, matches, run
from spaseq.spark.progress import progress_bar
from spaseq.spark.session import local_session

__all__ = ["collect", "explain", "local_session", "matches", "progress_bar", "run"]
