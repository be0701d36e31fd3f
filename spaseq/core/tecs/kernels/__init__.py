"""Kernels of the compact structure tECS ([CORE] §4).

* `layout`: the columns and constants of the arrays, without numba;
* `structure`: nodes and union lists, and enumeration in depth;
* `shared`: the nodes below roots, each visited once: how many matches they have, or their list for aggregates;
* `heaps`: union lists of two entries at most, for nodes in any order of their starts;
* `pools`: the runs that differ in one value only, found by a range of it;
* `boxes`: the same for a few values, and what enters and leaves pools of either kind;
* `kept`: pools with several steps, for runs that go on and keep their values: suffixes, and products of runs and them;
* `kept_ranges`: ranges of values in them;
* `moves`: the changes of one event;
* `roots`: enumeration of the matches that start in a range, for matches that wait for their windows to close;
* `choices`: choices by start instead of unions, of which a window asks for one run (NEXT and LAST);
* `after_match`: the runs and matches that a match discards, and the best run of each start;
* `frontiers`: single runs instead of the structure of all (NEXT, LAST), and enumeration of the most recent first.

Kernels take arrays and scalars; they return a status of `layout` and never raise. `spaseq.core.tecs.arena` owns the
arrays, and enlarges them if a status asks for it. The arguments have the same names everywhere. Arrays:

* `structure`, `output`, `recent`: the named tuples `Structure`, `Output` and `Recent` of `layout`, whose fields are the
  arrays of the same names here, `write`, `order` and `limit`; `recent` is None if there is no limit;
* `pools`: the named tuple `Pools` of `layout`; None if there are none;
* `after`: the named tuple `After` of `layout`; None if no match discards others by a rule;
* `nodes`: int64 (capacity, 4), capacity a power of two: the ring of nodes, see `structure`;
* `cells`: int64 (cells, 5): the union list of each cell, or its frontier; NIL in HEAD if it is empty;
* `entries`: int64 (entries, 3): the linked entries of all lists; free entries are chained from `st[FREE]`;
* `st`: int64 (SLOTS,): the state of the evaluation, slots of `layout` and of `engine.kernels.registers.layout`;
* `checks`: int64 (CHECKPOINTS, 2): the ring of checkpoints, ascending: (position, the next handle at that position);
* `moves`: int64 (m, MOVE_COLUMNS), `move` one row of it: the transitions that fire at the event;
* `outs`: int64 (2 * m at least, 2): roots of the runs that the event accepts, and their tags;
* `runs`: int64 (r, 2): scratch, node and start of single runs; None unless the selection is one of FRONTIERS;
* `stack`: int64 (s, 3), `path`: int64 (p,): scratch of `enumerate_outs`: nodes with depths, and the positions of the
  current path;
* `below`: int64 (c, BELOW_COLUMNS), c = capacity once it is needed: see `shared`; None in `enumerate_outs` if it only
  writes;
* `reach`: int64 (capacity, 3), `todo`: int64 (t,), `progress`: int64 (PROGRESS_SLOTS,), `roots`: int64 (r,
  ROOT_COLUMNS): see `roots`; `reach` is None in `enumerate_outs` if all starts in the window count;
* `heap`: int64 (h, 4), `links`: int64 (l, 2): scratch of `enumerate_recent`; None if there is no limit;
* `matches`: int64 (4, m + 1), `places`: int64 (p,): the matches that were enumerated, see `enumerate_outs`.

Scalars:

* `low`: the first live start; `position`: that of the event;
* `max_start` or `start`: the maximum start of a node; `pos`: a position that is marked;
* `count`: of moves; `cell`: a row of `cells`; `node`: a handle;
* `write`: True if matches are written, False if only counted;
* `order`: the runs that cells keep (KEEP_ALL, KEEP_OPEN, one of FRONTIERS, ENDS);
* `limit`: of matches per event, 0 for none; `consume`: one of CONSUME_NONE and so on;
* `dead_before`: the position before which no node is read again.
"""
