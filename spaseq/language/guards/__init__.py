"""The guards of a query's pattern, and their meaning.

`guards` are the conditions under which a run takes, meets and passes an instant. `registers` decide them on sets of
mappings; `encoding` lets the kernels join mappings, as codes.

* `guards`: The guards of a pattern: conditions on a run at an instant.
* `bound`: The variables that a run in a state of the automaton has bound, if the state determines it.
* `terms`: Numbers for the terms that runs hold.
* `round_lists`: Numbers for the lists of rounds that runs hold.
* `compared`: The FILTERs between GPMs, on the codes of runs.
* `sides`: The codes of the sides of FILTERs between GPMs: a variable, or arithmetic on one.
* `layout`: The registers of runs and the columns of instants.
* `operations`: The guards of an automaton as operations on codes.
* `encoding`: Runs as codes, so that the kernels can join mappings themselves.
* `registers`: The meaning of guards on sets of mappings: a run's contents and changes.
"""
