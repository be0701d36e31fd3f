"""Instants in, matches and results out.

`run` recognises; `history` keeps the instants that a `match` may show; `absence` looks after what must not occur before
a match or behind it; `results` makes of matches what the result clauses ask for. `knowledge` loads what a run needs
beside the streams; `follow` runs as streams come.

* `history` (`Events`, `History`, `Made`, `Pool`): The instants that a match to come may hold: their times, and their
  events where matches show them.
* `match` (`Match`): A match, as a query's user sees it.
* `columns` (`CodedLists`, `CodedTerms`, `FoundColumns`, `Kept`, `Texts`, `again`, `columns_of`,
  `list_ranks`, `rounds_text`, `solution_blocks`, `taken`, `text_ranks`): Matches as columns: what many results are,
  until somebody looks at one.
* `gathered` (`Gathered`, `GatheredLists`, `Rows`, `SpaceTerms`, `with_lists`): Matches gathered as columns, over
  terms of their own: what result clauses are computed from.
* `computing` (`Computation`): Result clauses as operations on columns: the plan of graph patterns evaluated over
  solutions in place of events.
* `absence` (`Endings`, `Sightings`, `Waiting`): What must not occur before a match or behind it: negation at the start
  and at the end of a sequence.
* `results` (`Results`, `finish`, `term_order`): From matches to results: SELECT expressions, DISTINCT, GROUP BY,
  HAVING, ORDER BY, LIMIT and OFFSET.
* `pace` (`Pace`): How many rows the engine gets at once.
* `solutions` (`distinct_solutions`, `match_table`): Solutions, pairs of a time and a mapping, of matches; matches as
  a table.
* `unmatched` (`Input`, `why_none`): Why is there no match? What was read, and the parts of the query that no event
  fulfilled.
* `opened` (`Opened`, `named`): The streams of a run: by name, and as they are read.
* `read_ahead` (`Part`, `ReadAhead`, `thread_count`): Streams are read, and their GPMs evaluated: in one thread, or,
  once it is worth it, in some that work ahead.
* `steps` (`StepFinder`): Which GPM took which event: found again, for a match that somebody looks at.
* `timelines` (`drawn_matches`, `listed_matches`, `prefixes_of`): Matches to look at: on a time axis, and as the table
  of a notebook.
* `typed` (`TERM`, `typed_table`): Results as a table of Arrow's types, or of RDF terms as they are.
* `run` (`Match`, `Matches`, `Recogniser`, `match_table`): Run a compiled query: instants in, matches out.
* `session` (`Session`): One evaluation in progress that graph events are pushed to, and its snapshots.
* `knowledge` (`close_under`, `knowledge_of`, `with_entailment`, `with_schema`): The background knowledge of a run: from
  files, graphs and tables, and what follows from it.
* `follow` (`FollowedMatches`): The matches of a query over streams that go on: `spaseq run --follow`.
"""

__all__ = [
    "absence",
    "follow",
    "history",
    "knowledge",
    "match",
    "opened",
    "pace",
    "read_ahead",
    "results",
    "run",
    "session",
    "solutions",
    "steps",
    "timelines",
    "unmatched",
]
