"""The register machine: automata whose guards are operations on registers.

* `layout`: columns and constants of its arrays, without numba;
* `operations`: tests, questions and stores of values, on one row of registers;
* `totals`: counts, sums and extremes, of typed codes of numbers;
* `groups`: the moves of a configuration at an event, by label, for one row or a set of them;
* `index`: the look-up of configurations: by contents, by set of states, by the value that a test looks up;
* `pooling`: which values an event treats alike in a pool, and the change from configurations to pools and back;
* `keeping`: the same change for pools with several steps, which families of sets of states share;
* `machine`: the moves of an event, and the loop over events.

A *configuration* is a set of states of the automaton (a run is in all of them at once) and the values of registers, of
one partition. Each has a cell, from which the runs that agree on it hang. Registers hold codes: int64 that compare like
the values they stand for. Of many values of a side of a comparison one code is kept, since one decides. For an order it
is the greatest or the smallest; for `=`, two different ones become NULL. The states of one configuration share their
registers. Two ways to take an event may leave different registers, both still needed. One configuration is then too
few: NEED_SETS.

The contents of the registers are a *row*. If an event has several values at once (the mappings of a graph pattern), a
configuration holds a set of rows. A transition leads from a set to all rows that its tests let pass, for any row before
and any value; it fires if there is one. The first row, in lexicographic order, stands in `confs`, the others are a list
in `held`. Usually there is one, and `group_arcs` looks no further.

The arguments have the same names everywhere (as have those of `spaseq.core.tecs.kernels`):

* `automaton`, `configurations`, `several`, `asking`, `effects`: the named tuples of `layout`, which describes their
  arrays (`memo`, `questions` and so on); `several` and `asking` may be None;
* `values`: int64 (columns,): the codes of one event, NOTHING for none; `run_guarded` takes a row for each;
* `extras`: int64 (rows, columns): the further values of events that have several; None if no event can have any;
* `registers`, `row`: int64 (registers,): one row of codes, NOTHING for an empty register;
* `group`: one row of `groups`;
* `mover`: one row of `movers`;
* `chains`: int64 (a power of two, 4): the lists that registers hold the numbers of, see `layout` and
  `operations.append`; None if no guard appends to one.

Scalars: `key`, a partition; `state`, the number of a set of states; `c`, a symbol class; `first`, `last`: a range.
"""
