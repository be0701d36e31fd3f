"""Conditions over several variables, decided as events are taken.

A `guard` is the condition; `registers` decide it for any query, on sets of values. Where values can be int64 codes that
compare alike (`comparisons`, `questions`), `encoding` hands them to the engine's kernels. `aggregates` need all events
of a variable; `tuple_conditions` are the guards as lazy evaluators ask them.

* `guard` (`Guard`, `slot_of`, `slots_of`): A guard: a condition over several variables, as the pattern algebra carries
  it. Who decides it: `ceql.guards.registers`.
* `comparisons`: Guards that are comparisons, for the kernels: what they compare, and values as numbers that compare
  alike.
* `questions` (`Question`, `question_of`): Guards that are no comparison of two variables, for the kernels: questions
  about the attributes they read.
* `encoding` (`ValueCodes`, `value_codes`): The guards of one evaluation for the kernels: `spaseq.engine.Codes` of CEQL.
* `aggregates` (`AGGREGATES`, `AggregateGuard`, `named_by`): Aggregates over the events of a variable, and the guards
  that use them: `AVG(b.price) < c.price`, `COUNT(b) >= 3`.
* `tuple_conditions` (`GuardConditions`, `GuardMemory`): Guards on tuples of events in any order, for the lazy
  evaluators (`spaseq.engine.program.guard_conditions`).
* `registers` (`GuardRegisters`): Conditions over several variables, and the registers that decide them event by event.
"""

__all__ = ["aggregates", "comparisons", "encoding", "guard", "questions", "registers", "tuple_conditions"]
