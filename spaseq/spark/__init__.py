"""Queries on Spark: batch jobs over files and DataFrames, and streams that go on.

    spark = spaseq.spark.local_session()
    frame = spaseq.spark.run(query, spark, streams={"S1": "power.nq"}, kb={"http://example.org/kb": "kb.ttl"})

`run` gives a DataFrame with the rows of `Query.run(…).to_arrow()`; `collect` brings such a frame to the driver with
clear errors; `matches` gives the local engine's `Match` objects. `explain` says how a query is laid out. Any session
will do; `local_session` makes a quiet one on this machine. `ship` sends the package to workers that lack it.

Streams are files, or DataFrames of quads; knowledge is files, graphs or DataFrames of triples of any size.
Tasks share the files: a task reads several small ones, and a large file of lines, not compressed, is cut for several
tasks. Matches come from as many tasks as there are windows, slices of time or PARTITION BY keys to divide among them; a
query with none of these is recognised by one task.

    running = spaseq.spark.start(query, spark, {"S1": "power/*.nq"}, checkpoint="state", output="matches")
    spaseq.spark.wait(running)

    rows = events.transform(spaseq.spark.match("SELECT user, COUNT(f) AS n WHERE fail AS f{3,} ; login", time="at"))

`match` makes a transformation of DataFrames of tuples, also of streaming ones, of a CEQL query; `explain_match` says
how the work is divided. `start` runs a query over files that keep coming (`Reading` says how), `start_tuples` one over
streams of tuples; `progress` tells what it has seen, `wait` raises its errors. `stream_matches` is the streaming
DataFrame alone.
`parse_lines` makes quads of lines of N-Quads or N-Triples, which Spark's own readers read.
`parse_rdf` takes messages (of Kafka, say) apart into quads, `parse_json` into tuples, which a query reads as
DataFrames; `dead_letters` gives those that cannot be read.
`register` makes known to a session the table function `ceql` (`SELECT * FROM ceql(TABLE(events), 'SELECT …')`) and the
data source `spaseq` (`spark.read.format("spaseq")`, `spark.readStream.format("spaseq")`).

Not here: standard input, events in matches.

What is public is loaded when it is first asked for: Spark starts a Python process for every small thing, and one that
only parses needs neither the languages nor the engine.

Rooms, each of which imports only from those before it:

* `session`: What every job needs: a session, progress, errors from workers, queries that travel.
* `ingest`: From files, feeds, DataFrames and messages to events, in tasks.
* `tuples`: Queries over tables of tuples: events in, a row for each match out.
* `solving`: From events to solutions: GPMs evaluated in tasks, knowledge joined by Spark.
* `batch`: Batch jobs.
* `streaming`: Streams that go on, by Structured Streaming.
* `front`: The front door for tables: a query becomes a transformation of DataFrames.
* `sql`: The same for SQL: the table function `ceql`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spaseq.core.lazy_names import loader
from spaseq.spark.session.versions import check_pyspark

if TYPE_CHECKING:
    from spaseq.spark.batch.job import explain as explain
    from spaseq.spark.batch.job import matches as matches
    from spaseq.spark.batch.job import run as run
    from spaseq.spark.front import explain_match as explain_match
    from spaseq.spark.front import match as match
    from spaseq.spark.ingest.files import Reading as Reading
    from spaseq.spark.ingest.lines import parse_lines as parse_lines
    from spaseq.spark.ingest.messages import dead_letters as dead_letters
    from spaseq.spark.ingest.messages import parse_json as parse_json
    from spaseq.spark.ingest.messages import parse_rdf as parse_rdf
    from spaseq.spark.session.bar import progress_bar as progress_bar
    from spaseq.spark.session.collecting import collect as collect
    from spaseq.spark.session.failures import clear_errors as clear_errors
    from spaseq.spark.session.session import local_session as local_session
    from spaseq.spark.session.shipping import ship as ship
    from spaseq.spark.sql import register as register
    from spaseq.spark.streaming.graph_stream import start as start
    from spaseq.spark.streaming.graph_stream import stream_matches as stream_matches
    from spaseq.spark.streaming.starting import progress as progress
    from spaseq.spark.streaming.starting import wait as wait
    from spaseq.spark.streaming.tuple_stream import start_tuples as start_tuples

_PUBLIC: Final = {
    "spaseq.spark.batch.job": ("explain", "matches", "run"),
    "spaseq.spark.front": ("explain_match", "match"),
    "spaseq.spark.ingest.files": ("Reading",),
    "spaseq.spark.ingest.lines": ("parse_lines",),
    "spaseq.spark.ingest.messages": ("dead_letters", "parse_json", "parse_rdf"),
    "spaseq.spark.session.bar": ("progress_bar",),
    "spaseq.spark.session.collecting": ("collect",),
    "spaseq.spark.session.failures": ("clear_errors",),
    "spaseq.spark.session.session": ("local_session",),
    "spaseq.spark.session.shipping": ("ship",),
    "spaseq.spark.sql": ("register",),
    "spaseq.spark.streaming.graph_stream": ("start", "stream_matches"),
    "spaseq.spark.streaming.starting": ("progress", "wait"),
    "spaseq.spark.streaming.tuple_stream": ("start_tuples",),
}
__all__ = sorted(name for names in _PUBLIC.values() for name in names)
__getattr__, __dir__ = loader(__name__, _PUBLIC, check_pyspark)
