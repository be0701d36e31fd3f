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

The arrays, by their names, which are the same everywhere (those of `spaseq.core.tecs.kernels` besides):

* `automaton`: `layout.Automaton`, `configurations`: `layout.Configurations`, whose fields are described there;
* `values`: int64 (columns,): the codes of one event, NOTHING where it has none; `run_guarded` takes a row for each;
* `extras`: int64 (rows, columns): the further values of events that have several; None where no event can have any;
* `held`: int64 (h, 1 + registers): the rows of configurations behind their first, linked; None likewise;
* `sets`: int64 (s, registers): scratch for sets of rows; None likewise;
* `registers`, `row`: int64 (registers,): one row of codes, NOTHING where a register holds none;
* `groups`: int64 (labels + 1, GROUP_REGISTERS + 2 * registers), `group` one row: scratch, see `layout`;
* `out`: int64 (2, registers), and one row of it in `group_arcs`: scratch; the second row is that of a run that starts;
* `path`, `levels`: int64 (LEVELS,): scratch, the way down a skip list;
* `memo`, `questions`: int64 (m, 2 + codes), (q, 2 + codes): see `operations.granted`, with `stack`, `figures`: float64
  (2, STACK), scratch; all None where no guard asks a question;
* `chains`: int64 (a power of two, 4): the lists that registers hold the numbers of, see `layout` and
  `operations.append`; None where no guard appends to one;
* `accepted`: int64 (a, 2), `answers`: int64 (b, registers): see `run_guarded`.

Scalars: `key`, a partition; `state`, the number of a set of states; `c`, a symbol class; `first`, `last`: a range.
"""

__all__: list[str] = []
