"""A query, compiled and evaluated.

A `compiled` query never changes. Its evaluations share `run`, which gives the engine its `batch`es: `evaluation` over
events that are there, `session` over events that are pushed, those that come one by one by the short way of
`single_events`. `alerts` asks only where matches end.

* `batch` (`Coordinate`, `EngineBatch`, `Partition`): Event batches as the engine takes them: events with partition keys
  and the window's coordinate.
* `run` (`Run`): One evaluation of a query over event batches: what the engine needs besides the pattern.
* `compiled` (`CompiledQuery`): A query, checked and compiled: what the evaluations of it are made of. It never changes.
* `ways` (`are_valuations`, `ways_of`): The ways of matches through the automaton of their query, for pictures of it.
* `unmatched` (`unknown_attributes`, `why_none`): Why is there no match? What was read, and the parts of the query that
  no event fulfilled.
* `evaluation` (`Matches`, `matches_of`): The matches of a query over events that are there: read, checked and evaluated
  as matches are asked for.
* `single_events` (`Singles`): Pushes of one event each, a dict, without columns: what `Run.advance` does to a batch of
  one row, some hundred times faster.
* `session` (`Session`, `identity`, `open_session`, `opened`, `restored`): One evaluation in progress that events are
  pushed to, and its snapshots.
* `alerts` (`AlertStream`, `Alerts`, `QueryRows`): Does the query match now? ASK and alerts: answered event by event, in
  one pass, without enumerating matches.
"""

__all__ = ["alerts", "batch", "compiled", "evaluation", "run", "session", "single_events", "unmatched", "ways"]
