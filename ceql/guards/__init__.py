"""Conditions over several variables, decided as events are taken.

A `Guard` is the condition; `registers` decide it for any query, on sets of values. If values can be int64 codes with
the same order (`comparisons`, `questions`), `encoding` hands these to the engine's kernels. `aggregates` need all
events of a variable; `tuple_conditions` evaluate guards on tables of events, for the lazy evaluators.

* `guard`: A guard: a condition over several variables, as a part of a pattern.
* `comparisons`: Guards that compare a value of one variable with a value of another, and the codes of these.
* `questions`: All other guards without aggregates: the kernels compute in doubles, and ask for the rest.
* `same_values`: Registers with the same value: conditions are tested against one of them, and the others are not kept.
* `encoding`: The guards of one evaluation in the form of the kernels: CEQL's
  `spaseq.core.engine.program.register_ops.Codes`.
* `aggregates`: Guards that use aggregates over the events of a variable: `AVG(b.price) < c.price`, `COUNT(b) >= 3`.
* `rounds`: Guards that read events before the one at hand: `b.price < PREV(b.price)`, `c.price > b[0].price`.
* `totals`: Guards with aggregates, in the form of the kernels: COUNT, SUM, AVG, MIN and MAX in registers.
* `tuple_conditions`: Guards evaluated on tables of events, one column a variable, for the lazy evaluators
  (`spaseq.core.engine.program.guard_conditions`).
* `registers`: Register rows that decide guards event by event.
"""
