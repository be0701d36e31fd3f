"""Instants in, matches out.

`recogniser` recognises; `absence` looks after what must not occur before a match or behind it. `knowledge` loads what a
run needs beside the streams; `follow` runs as streams come.

* `opened` (`Opened`, `named`): The streams of a run: by name, and as they are read.
* `read_ahead` (`Part`, `ReadAhead`, `thread_count`): Streams are read, and their GPMs evaluated: in one thread, or,
  once it is worth it, in some that work ahead.
* `pace` (`Pace`): How many rows the engine gets at once.
* `knowledge` (`close_under`, `knowledge_of`, `with_entailment`, `with_schema`): The background knowledge of a run: from
  files, graphs and tables, and what follows from it.
* `absence` (`Endings`, `Sightings`, `Waiting`): What must not occur before a match or behind it: negation at the start
  and at the end of a sequence.
* `recogniser` (`Found`, `Recogniser`): One evaluation of a compiled query: instants in, matches out.
* `matches` (`Matches`): The matches of a query over streams, found as they are asked for.
* `session` (`Session`): One evaluation in progress that graph events are pushed to, and its snapshots.
* `follow` (`FollowedMatches`): The matches of a query over streams that go on: `spaseq run --follow`.
* `steps` (`StepFinder`): Which GPM took which event: found again, for a match that somebody looks at.
* `unmatched` (`Input`, `why_none`): Why is there no match? What was read, and the parts of the query that no event
  fulfilled.
"""

__all__ = [
    "absence", "follow", "knowledge", "matches", "opened", "pace", "read_ahead", "recogniser", "session", "steps",
    "unmatched",
]  # fmt: skip
