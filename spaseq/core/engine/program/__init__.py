"""What is evaluated: a program, and what goes into it and comes out.

A `program` is an automaton with its `window`, `settings`, guards as `register_ops` and, where asked for, a `lazy_plan`;
`matches` are what an evaluation gives. Nothing here knows how it is evaluated.

* `settings`: What a program is told besides the pattern and its window: what is reported of the matches, and its
  budgets.
* `window` (`Kind`, `Lows`, `Window`): The arithmetic of windows, in one place and exact over the whole range of int64
  and float64; windows as positions.
* `partitions` (`Partitions`): Numbers for the partitions of one evaluation; that of one which no run can be in any more
  is given to another.
* `register_ops`: What guards do to registers, where they are evaluated in the kernels.
* `text_order` (`TextOrder`): Texts as whole numbers in their order, so that kernels compare texts as they compare
  numbers.
* `matches`: Matches as columns.
* `batch_order` (`check_order`, `last_place`): The order that evaluators need their events in.
* `guard_conditions` (`Conditions`, `HasConditions`, `Memory`): What the lazy evaluators need of guards: conditions on
  tuples of events, in any order, checked column by column.
* `needed` (`Narrows`, `Needed`): Where in a batch the predicates of an automaton may matter: at events that a run may
  meet in a state that asks for them.
* `normal_form`: A pattern as a disjunction of branches, each a conjunction that can be evaluated in any order ([Lazy]
  §5.2).
* `lazy_plan` (`LazyPlan`, `plan_of`, `planned`): What of a program lazy evaluation needs: decided once, when the
  program is compiled.
* `program`: A compiled pattern, ready to be evaluated any number of times.
* `selection`: What a `Choice` means to the kernels.
"""

__all__ = [
    "batch_order",
    "guard_conditions",
    "lazy_plan",
    "matches",
    "needed",
    "normal_form",
    "partitions",
    "program",
    "register_ops",
    "selection",
    "settings",
    "text_order",
    "window",
]
