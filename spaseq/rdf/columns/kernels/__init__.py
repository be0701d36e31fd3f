"""Kernels that read bytes as rows of numbered terms, cut rows into events, and read literals.

* `layout`: constants that they share, without numba;
* `memory`: bytes and words of a text;
* `scanning`: lines to rows of terms;
* `literals`: times, and the values by which literals are compared;
* `assembly`: rows to events; `names`: the names that ended last;
* `gathering`: events in their order; `closure`: the nodes reached from numbered nodes.
"""
