"""Kernels that read bytes as rows of numbered terms, cut rows into events, and read literals.

* `layout`: constants that they share, without numba;
* `memory`: bytes and words of a text;
* `scanning`: lines to rows of terms;
* `literals`: times, and what literals are compared as;
* `assembly`: rows to events; `names`: the names that ended last;
* `gathering`: events in their order; `closure`: what is reached from numbered nodes.
"""

__all__: list[str] = []
