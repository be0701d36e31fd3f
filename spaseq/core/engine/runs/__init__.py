"""The compact structure's evaluation of a program.

`evaluator` turns batches into symbol classes and hands them to one of the runs: `deterministic`, `coded`, `maximal` or,
for all other guards, `row_sets`. The first two hand over to `row_sets` at events that are beyond them.

* `base`: The common part of the runs, and the change from one to another.
* `ending`: Absence at the end: `φ ; NOT ψ` holds for a match of φ once its window has closed without a ψ behind it.
* `deterministic`: The run of an automaton without registers: deterministic states made when first reached.
* `row_sets`: The run of an automaton with registers, whose contents are rows ([RMA] on [CORE]'s structure).
* `maximal`: Selection MAX: only matches whose positions are not a proper subset of another's with the same end.
* `coded_automaton`: Automata whose guards are operations on registers, as the arrays that `run_guarded` reads.
* `coded`: Evaluation of automata whose guards are operations on codes: configurations in arrays, moved by the kernel.
* `evaluation`: The common part of this evaluator and the lazy ones: the output of matches.
* `evaluator`: Evaluate a program over a stream, batch by batch.
* `waiting`: `Ending` for one event at a time: the same, without an array operation over all matches that wait.
* `single_event`: One event at a time: the steps of a batch, without arrays for each event.
* `ways`: The way of a match through its automaton, computed again when a match is shown.
"""
