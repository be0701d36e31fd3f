"""Matches of streams that go on, asynchronously: `async for match in query.alive(source)`.

A *source* is an asynchronous iterator of batches of events. One with positions can begin at any of them. A
snapshot of the evaluation and a position, together, are a place to go on from, after a crash too. A *sink* takes what a
program makes of matches. docs/live.md is the guide.

* `evaluation`: `Alive`, the matches of a query over a source, for both languages.
* `delivery`: The protocols: `Delivery`, `Source`, `Sink`.
* `given`: What is taken as a source besides: generators, queues, iterables.
* `states`: States of evaluations: bytes with a snapshot and a position, saved in files or by functions.
* `several`: Several sources as one.
* `names`: Stable names of matches, by which a sink knows those that it has.
* `payloads`: The events of messages: JSON Lines.
* `documents`: The graphs of messages: Turtle, N-Quads and the other syntaxes of RDF.
* `files`: A log in a file as a source, a file of JSON Lines as a sink.
* `waiting`: Attempts to reach a server again, and the error for a client that is not installed.

Each of the others belongs to an extra of this package, whose client it imports: `websocket`, `redis`, `mqtt`, `kafka`,
`sse`.
"""

from typing import TYPE_CHECKING

from spaseq.core.lazy_names import loader

if TYPE_CHECKING:
    from spaseq.live.delivery import Delivery, Sink, Source
    from spaseq.live.documents import graphs
    from spaseq.live.evaluation import Alive
    from spaseq.live.files import FileSink, LogSource
    from spaseq.live.names import match_id
    from spaseq.live.payloads import json_lines
    from spaseq.live.several import Several

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
        "spaseq.live.documents": ("graphs",),
        "spaseq.live.names": ("match_id",),
        "spaseq.live.payloads": ("json_lines",),
        "spaseq.live.several": ("Several",),
    },
)
