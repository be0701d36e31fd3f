"""The compact structure's evaluation of a program.

`evaluator` turns batches into symbol classes and hands them to one of the runs:

* `deterministic` for automata without registers;
* `preferred` for NEXT and LAST without registers;
* `coded` for guards that are operations on codes; its kernel reads the automaton as `coded_automaton`;
* `row_sets` for all other guards;
* `summing` for aggregates over all matches, without registers;
* `shaped` for MAX without registers, `maximal` for MAX with them.

`deterministic` and `coded` hand over to `row_sets` at events that are beyond them, and `shaped` to `maximal`. `base`
has the hand-over and the parts common to all. `single_event`, with `waiting`, is the short way of events that come one
by one.

* `base`: The common part of the runs, and the change from one to another.
* `beginning`: Absence at the start: `NOT ψ ; φ` holds for a match of φ if no ψ lies in front of it in its window.
* `ending`: Absence around a match: `φ ; NOT ψ` holds for a match of φ once its window has closed without a ψ behind it.
* `chosen`: The choice among matches that events around them decide about: selection, consumption, LIMIT, AFTER MATCH.
* `deterministic`: The run of an automaton without registers: deterministic states made when first reached.
* `preferred`: The run of NEXT and LAST over lists of places, for automata without registers.
* `row_sets`: The run of an automaton with registers, whose contents are rows ([RMA] on [CORE]'s structure).
* `rivals`: Runs beside the runs that are better, for selection MAX: the construction of [CEL], with windows.
* `maximal`: Selection MAX, live set by live set.
* `shape_tables`: The shapes of selection MAX and their steps, made when first needed.
* `shaped`: The run of selection MAX over an automaton without registers: shapes, and one kernel.
* `coded_automaton`: Automata whose guards are operations on registers, as the arrays that `run_guarded` reads.
* `coded`: Evaluation of automata whose guards are operations on codes: configurations in arrays, moved by the kernel.
* `pooled`: The pools of `coded`: the rows of their trees, how they grow, and how they become configurations.
* `evaluation`: The common part of this evaluator and the lazy ones: the output of matches.
* `evaluator`: Evaluate a program over a stream, batch by batch.
* `waiting`: `Ending` for one event at a time: the same, without an array operation over all matches that wait.
* `single_event`: One event at a time: the steps of a batch, without arrays for each event.
* `summing`: The run that aggregates over all matches of an event, without finding them.
"""
