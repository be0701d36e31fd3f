"""From files, feeds, DataFrames and messages to events, in tasks.

Files are cut at `boundaries` into `parts`, which a `feed` hands out and `reading` and `columns` read; `datasource` is
Spark's face of that. DataFrames become quads in `frames` and events in `quads`, messages quads in `messages`;
`time_ranges` divides events among tasks; `quarantine` puts aside what cannot be read.

* `terms`: RDF terms in DataFrames: N-Triples outside, keys of terms inside.
* `boundaries`: Where a file of N-Triples or N-Quads may be cut without cutting an event in two.
* `feed`: What a stream of RDF files has given so far, as an offset, and what comes next, as parts for tasks.
* `parts`: The bytes of a part of a file, for a task.
* `reading`: A part of a feed as statements, and as batches of its events.
* `told`: What a part of a stream held, as it travels beside its events.
* `quarantine`: Lines that cannot be read, put aside: they are left out, counted, and written to a file.
* `datasource`: The Spark data source `spaseq`: RDF files as triples or as graph events, in batch and as a stream.
* `files`: Streams of files that keep coming, as streaming DataFrames of parts to be read.
* `time_ranges`: Events in ranges of time, one range a task, so that their instants can be numbered.
* `clock`: The times of events, as Spark computes them of columns.
* `frames`: Streams from DataFrames of quads, in batch and as streams that go on.
* `quads`: In a task: the quads of DataFrames as batches of graph events.
* `lines`: Lines of N-Quads and N-Triples, read by Spark's own readers, as quads with times.
* `messages`: Messages, as Kafka and other queues bring them, taken apart for a query: RDF into quads, JSON into tuples.
* `columns`: Parts of a feed as batches of graph events in columns, with the places of the events in the source.
* `inputs`: What the tasks of a batch read of files: about as much each, however many files there are and however large.
* `seeking`: Files whose events are in order of time: where in the bytes a time begins, found by looking at a few.
* `knowledge_files`: Files of background knowledge as a DataFrame of triples, which tasks read.
"""
