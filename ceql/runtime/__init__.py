"""A query, compiled and evaluated.

A `compiled` query never changes. Its evaluations share `run`, which gives the engine its `batch`es. `evaluation` is
over events that are there, `session` over events that are pushed; those that come one by one take the short way of
`single_events`. `alerts` needs only the ends of matches.

* `batch`: Event batches as the engine takes them: events with partition keys and the window's coordinate.
* `run`: One evaluation of a query over event batches: the engine's input other than the pattern.
* `compiled`: A query, checked and compiled: the common part of its evaluations.
* `ways`: The ways of matches through the automaton of their query, for pictures of it.
* `unmatched`: The reasons why there is no match: the input read, and the parts of the query that no event fulfilled.
* `evaluation`: The matches of a query over given events: read, checked and evaluated lazily.
* `follow`: The matches over a stream that goes on.
* `ordered`: The matches over events that come in order, in columns, with rows that stand for themselves.
* `single_events`: Pushes of one event each, a dict, without columns: some hundred times faster.
* `session`: One evaluation in progress that events are pushed to, and its snapshots.
* `network_evaluation`: The queries of a network, one after another for each batch of events.
* `network_tables`: A network over events that come in order, with rows in one table for all queries.
* `ordered_steps`: The partial matches that time out over events that come in order, as `ordered` has matches.
* `timed_out`: The partial matches that time out, as rows: of events that are there, or pushed.
* `alerts`: ASK and alerts, answered event by event, in one pass, without enumerating matches.
* `thresholds`: Thresholds of alerts: enough of a key in a time, and none again too soon.
"""
