"""Matches of streams that go on, asynchronously: `async for match in query.alive(source)`.

A *source* is an asynchronous iterator of batches of events. One with positions can begin at any of them, so that a
snapshot of the evaluation and a position together are a place to go on from, after a crash too. A *sink* takes what a
program makes of matches. docs/live.md is the guide.

* `evaluation`: `Alive`, the matches of a query over a source, for both languages.
* `delivery`: The protocols: `Delivery`, `Source`, `Sink`.
* `given`: What is taken as a source besides: generators, queues, iterables.
* `states`: States of evaluations: bytes with a snapshot and a position, saved in files or by functions.
* `several`: Several sources as one.
* `names`: Stable names of matches, by which a sink knows those that it has.
* `payloads`: The events of messages: JSON Lines.
* `graphs`: The graphs of messages: Turtle, N-Quads and the other syntaxes of RDF.
* `files`: A log in a file as a source, a file of JSON Lines as a sink.
* `waiting`: Times between attempts, for the sources of servers.

Each of the others belongs to an extra of this package, whose client it imports: `websocket`, `redis`, `mqtt`, `kafka`,
`sse`.
"""

from spaseq.core.lazy_names import loader

__all__ = [
    "Alive",
    "Delivery",
    "FileSink",
    "LogSource",
    "Several",
    "Sink",
    "Source",
    "graphs",
    "json_lines",
    "match_id",
]

__getattr__, __dir__ = loader(
    __name__,
    {
        "spaseq.live.delivery": ("Delivery", "Sink", "Source"),
        "spaseq.live.evaluation": ("Alive",),
        "spaseq.live.files": ("FileSink", "LogSource"),
        "spaseq.live.graphs": ("graphs",),
        "spaseq.live.names": ("match_id",),
        "spaseq.live.payloads": ("json_lines",),
        "spaseq.live.several": ("Several",),
    },
)
