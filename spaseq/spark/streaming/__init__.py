"""Streams that go on, by Structured Streaming.

`graph_stream` and `tuple_stream` start queries. Tasks send `bucket_messages`, `knowledge_join` sends what was joined
after them; a `processor` keeps an `evaluation` for each bucket, whose time is that of the `watermark`. `starting`
begins what they plan; `checkpoint` looks at the folders first, and `retasking` divides the state for other tasks.

* `watermark`: How far the streams of a streamset have come: lateness, watermark, and the numbers of instants.
* `bucket_messages`: The message of a task of a streaming batch to a bucket: times, and the rows it needs.
* `knowledge_join`: Large background knowledge in a stream, joined with solutions by Spark.
* `evaluation`: One bucket's evaluation of a SPAseq query: parcels in, matches out, a snapshot between batches.
* `processor`: The operator with state: an evaluation for each bucket, which Spark keeps between batches.
* `checkpoint`: The folders of a stream, looked at before it starts: whether they can be used, and whose they are.
* `retasking`: Another number of tasks for a checkpoint: Spark divides the state anew, and the buckets stay.
* `starting`: A streaming query of ours, begun with its checkpoint and its sink.
* `graph_stream`: SPAseq queries over streams that go on: Spark Structured Streaming around the same engine.
* `tuple_stream`: CEQL queries over streams of tuples: the same rows as in batches, buckets and a clock as for graphs.
"""
