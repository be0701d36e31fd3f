"""Instants in, matches out.

`recogniser` recognises; `absence` looks after what must not occur before a match or behind it. `knowledge` loads what a
run needs beside the streams; `follow` runs as streams come.

* `opened`: The streams of a run: by name, and as they are read.
* `read_ahead`: Streams are read, and their GPMs evaluated: in one thread, or, once it is worth it, in some that work
  ahead.
* `pace`: How many rows the engine gets at once.
* `knowledge`: The background knowledge of a run: from files, graphs and tables, and what follows from it.
* `absence`: What must not occur before a match or behind it: negation at the start and at the end of a sequence.
* `recogniser`: One evaluation of a compiled query: instants in, matches out.
* `matches`: The matches of a query over streams, found as they are asked for.
* `session`: One evaluation in progress that graph events are pushed to, and its snapshots.
* `compiled`: A SPAseq query, checked and compiled: what the evaluations of it are made of.
* `follow`: The matches of a query over streams that go on: `spaseq run --follow`.
* `steps`: Which GPM took which event: found again, for a match that somebody looks at.
* `unmatched`: Why is there no match? What was read, and the parts of the query that no event fulfilled.
"""

__all__ = [
    "absence", "compiled", "follow", "knowledge", "matches", "opened", "pace", "read_ahead", "recogniser", "session",
    "steps", "unmatched",
]  # fmt: skip
