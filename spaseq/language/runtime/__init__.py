"""Instants in, matches out.

`recogniser` recognises; `absence` handles negation at the start and at the end. `knowledge` loads a run's background
knowledge; `follow` runs as streams come.

* `opened`: The streams of a run: by name, and as they are read.
* `read_ahead`: Reads streams and evaluates their GPMs in one thread or, if worth it, in some that work ahead.
* `pace`: The number of rows that the engine gets at once.
* `knowledge`: The background knowledge of a run, from files, graphs and tables, with its entailments.
* `absence`: Negation at the start and at the end of a sequence.
* `recogniser`: One evaluation of a compiled query: instants in, matches out.
* `matches`: The matches of a query over streams, found on request.
* `session`: One evaluation in progress that graph events are pushed to, and its snapshots.
* `compiled`: A SPAseq query, checked and compiled, from which its evaluations are made.
* `network`: The queries of a network over instants: graphs that some construct are events of others.
* `follow`: The matches of a query over streams that go on: `spaseq run --follow`.
* `steps`: The GPM that took each event, found again for a match whose steps are read.
* `unmatched`: Reasons for no match: the input read, and the parts of the query that no event fulfilled.
"""
