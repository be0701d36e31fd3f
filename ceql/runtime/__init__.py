"""A query, compiled and evaluated.

A `compiled` query never changes. Its evaluations share `run`, which gives the engine its `batch`es. `evaluation` is
over events that are there, `session` over events that are pushed; those that come one by one take the short way of
`single_events`. `alerts` needs only the ends of matches.

* `batch` (`Coordinate`, `EngineBatch`, `Partition`): Event batches as the engine takes them: events with partition keys
  and the window's coordinate.
* `run` (`Run`): One evaluation of a query over event batches: the engine's input besides the pattern.
* `compiled` (`CompiledQuery`): A query, checked and compiled: the common part of its evaluations. It never changes.
* `ways` (`are_valuations`, `ways_of`): The ways of matches through the automaton of their query, for pictures of it.
* `unmatched` (`unknown_attributes`, `why_none`): The reasons why there is no match: the input read, and the parts of
  the query that no event fulfilled.
* `evaluation` (`Matches`, `matches_of`): The matches of a query over events that are there: read, checked and evaluated
  lazily.
* `single_events` (`Singles`): Pushes of one event each, a dict, without columns: the work of `Run.advance` for a batch
  of one row, some hundred times faster.
* `session` (`Session`, `identity`, `open_session`, `opened`, `restore`): One evaluation in progress that events are
  pushed to, and its snapshots.
* `alerts` (`AlertStream`, `Alerts`, `QueryRows`): Does the query match now? ASK and alerts: answered event by event, in
  one pass, without enumerating matches.
"""

__all__ = ["alerts", "batch", "compiled", "evaluation", "run", "session", "single_events", "unmatched", "ways"]
