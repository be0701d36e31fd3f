"""Graph patterns over whole batches of events: tables of numbered terms instead of a mapping at a time.

`uncovered_pattern` gives the reason why a pattern is left to rdflib; `read_by` and `read_predicates` give the
predicates whose triples a pattern can use. They only look at the algebra. The evaluation is
`spaseq.gpm.columnar.evaluate.BatchEvaluator`, which loads numba: it is not imported here, so that compiling and
explaining a query stays light.

The way of a pattern: `coverage` decides whether the plan covers it. `plan` evaluates the algebra bottom up; each step
gives a `table`: `basic` patterns matched over `lists`, `joins`, conditions (`truth`) and `groups`. `evaluate` does so
for all GPMs of a stream.

Modules:

* `kernels`: The inner loops of the columnar plan, over flat arrays.
* `table`: Solutions as columns, and the terms they are made of.
* `lists`: The triples of a batch of events, listed by predicate, and pairs of terms taken from them.
* `joins`: Joins of tables, event by event: two rows are compatible if they bind no shared variable to different terms.
* `paths`: Property paths over a batch of events, as pairs (SPARQL 1.1 §18.4).
* `basic`: Matches basic graph patterns on a batch of events.
* `coverage`: The patterns that the columnar plan covers, and the triples of an event that a pattern can use.
* `keys`: The partitions of one evaluation, numbered as they occur, over all batches and streams.
* `rewrites`: Rewrites patterns for the plan: GRAPH and EXISTS, and FILTERs that can come early.
* `order`: The order of terms and of solution rows (SPARQL 1.1 §15.1).
* `truth`: Conditions over columns, with SPARQL's three truth values (SPARQL 1.1 §17.2).
* `amounts`: Arithmetic over columns of numbers, exact as SPARQL 1.1 §17.4.1 has it, and comparisons.
* `texts`: The keys of terms in columns, for functions of keys, and new terms in columns.
* `groups`: Groups and aggregates of a subquery, per event (SPARQL 1.1 §18.5.1).
* `plan`: The columnar plan of a graph pattern: the algebra evaluated bottom up over all events of a batch at once.
* `knowledge`: The solutions of background knowledge as columns, joined with a batch or looked up for its terms.
* `pushed`: Lists for events that are pushed one by one; their terms keep their numbers from one push to the next.
* `alone`: One small graph by itself: the plan's results on a batch of one event, without arrays.
* `evaluate`: Evaluates compiled GPMs on batches of events, and on a few that are pushed.
"""

from __future__ import annotations

from spaseq.gpm.columnar.coverage import names_apart, read_by, read_predicates, uncovered, uncovered_pattern, unsteady

__all__ = ["names_apart", "read_by", "read_predicates", "uncovered", "uncovered_pattern", "unsteady"]
