"""Kernels that run an automaton over events; those of the structure that holds its runs are in
`spaseq.core.tecs.kernels`, which also describes their common arrays.

* `drivers`: automata without registers; moves that the caller worked out; how every event ends;
* `rivals`: selection MAX over automata without registers;
* `preference`: the best runs of NEXT and LAST, in lists of places;
* `registers`: configurations of automata whose guards are operations on registers;
* `sums`: aggregates over all matches of an event, in two stacks for the window;
* `windows`: first live starts;
* `keys`: numbers for keys that are integers, by a hash table.
"""
