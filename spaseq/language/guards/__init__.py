"""The guards of a query's pattern, and their meaning.

`guards` say what a run takes, meets and passes. `registers` decide them on sets of mappings; `encoding` lets the
kernels join mappings, as codes.

* `guards`: The guards of a query's pattern: what a run is asked at an instant. Who decides them:
  `spaseq.language.guards.registers`.
* `bound`: What a run in a state of the automaton has bound, as far as the states tell.
* `terms`: Numbers for the terms that runs hold.
* `round_lists`: Numbers for the lists of rounds that runs hold.
* `compared`: The FILTERs between GPMs, as the codes of runs are asked about them.
* `sides`: The codes of what FILTERs between GPMs compare: a variable, or arithmetic on one.
* `layout`: The registers of runs and the columns of instants.
* `operations`: The guards of an automaton as operations on codes.
* `encoding`: Runs as codes: what the kernels need to join mappings themselves.
* `registers`: The meaning of guards on sets of mappings: what a run holds, and what becomes of it at an instant.
"""

__all__ = ["bound", "compared", "encoding", "guards", "layout", "operations", "registers", "round_lists", "sides",
           "terms"]  # fmt: skip
