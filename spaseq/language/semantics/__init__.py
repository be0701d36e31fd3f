"""From the syntax tree to a checked query.

`expand` writes a sequence with `?` and `!` as sequences without them; `clauses` compiles what a query makes of its
solutions; `check` resolves names, compiles the GPMs and refuses by name what is not run. `filters` tells the FILTERs of
one conjunction from those that concern the run.

* `expand` (`Conjunction`, `Element`, `Step`, `Variant`, `expand`): From a sequence expression with `?` and `!` to
  sequences without them.
* `clauses` (`Clauses`, `Scope`, `check_clauses`): What a query makes of its solutions: SELECT, CONSTRUCT, and the
  clauses behind WHERE, checked and compiled.
* `check` (`CheckedQuery`, `Conjunction`, `Element`, `check`): From the syntax tree to a checked query: names resolved,
  GPMs compiled, what is not run yet refused by name.
* `filters` (`conditions`, `conjunction_binds`): The FILTERs over several GPMs: which are decided inside a conjunction,
  and which where it joins with the run.
"""

__all__ = ["check", "clauses", "expand", "filters"]
