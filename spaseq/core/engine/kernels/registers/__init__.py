"""The register machine: automata whose guards are operations on registers.

* `layout`: columns and constants of its arrays, without numba;
* `operations`: tests, questions and what is kept of a value, on one row of registers;
* `groups`: what a configuration does at an event, by label; of one row, or of a set of them;
* `index`: where configurations are found: by their contents, by their set of states, by the value a test looks up;
* `machine`: the moves of an event, and the loop over events.

A *configuration* is a set of states of the automaton (a run is in all of them at once) and the values of registers,
of one partition; each has a cell, and the runs that agree on it hang off that cell. Registers hold codes: int64 that
compare like the values they stand for. Of a side of a comparison one code is kept where many values were taken, since
one decides: the greatest or the smallest for an order, and for `=` two different ones are as good as NULL. The states
of one configuration share their registers; where two ways to take an event leave registers that differ although both
are still needed, one configuration is not enough, and NEED_SETS says so.

What the registers hold is a *row*. Where an event has several values at once (the mappings of a graph pattern), a
configuration holds a set of rows, and a transition leads from the set to that of all rows that its tests let pass,
for any row before and any value; it fires if there is one. The first row, in lexicographic order, stands in `confs`,
the others are a list in `held`. Usually there is one, and `group_arcs` looks no further.

The arguments, by their names, which are the same everywhere (those of `spaseq.core.tecs.kernels` besides):

* `automaton`, `configurations`, `several`, `asking`, `effects`: the named tuples of `layout`, which describes their
  arrays (`memo`, `questions` and so on); `several` and `asking` may be None;
* `values`: int64 (columns,): the codes of one event, NOTHING where it has none; `run_guarded` takes a row for each;
* `extras`: int64 (rows, columns): the further values of events that have several; None if no event can have any;
* `registers`, `row`: int64 (registers,): one row of codes, NOTHING where a register holds none;
* `group`: one row of `groups`;
* `mover`: one row of `movers`;
* `chains`: int64 (a power of two, 4): the lists that registers hold the numbers of, see `layout` and
  `operations.append`; None if no guard appends to one.

Scalars: `key`, a partition; `state`, the number of a set of states; `c`, a symbol class; `first`, `last`: a range.
"""

__all__: list[str] = []
