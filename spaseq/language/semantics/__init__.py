"""From the syntax tree to a checked query.

`expand` rewrites a sequence with `?` and `!` as sequences without them. `clauses` compiles SELECT, CONSTRUCT and the
clauses behind WHERE. `check` resolves names, compiles the GPMs and refuses features that are not supported. `filters`
separates the FILTERs that are decided within one conjunction from those that need the mappings of the run. `lasting`
reads the times of absences.

* `expand`: From a sequence expression with `?` and `!` to sequences without them.
* `clauses`: Checks and compiles SELECT, CONSTRUCT, ASK and the clauses behind WHERE.
* `check`: From the syntax tree to a checked query: names are resolved, GPMs compiled, unsupported features refused.
* `filters`: The FILTERs over several GPMs: decided within a conjunction, or in the join with the run.
* `lookups`: The variables that results look up in the instants of a match, so that runs need not keep their values.
* `counting`: Queries whose solutions are counted, and not listed: `COUNT(*)` over a sequence joined by `:`.
* `lasting`: The times of absences, `B! FOR 10 SECONDS`, in front of a sequence and behind it.
* `advice`: Parts that are probably not meant, though they can be run: graph patterns that share nothing, slips.
"""
