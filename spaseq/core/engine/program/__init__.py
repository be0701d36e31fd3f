"""Programs: their parts, their input and their output.

A `program` is an automaton with its `window`, `settings`, guards as `register_ops` and, on request, a `lazy_plan`;
`matches` are the results of an evaluation. No module here depends on the way of evaluation.

* `settings`: The settings of a program besides the pattern and its window: the matches reported, and its budgets.
* `window`: The arithmetic of windows, exact over the whole range of int64 and float64.
* `recent`: The last events of each partition, for windows that count them.
* `around`: The events that must not come around a match, in front of it or behind it.
* `partitions`: Numbers for the partitions of one evaluation, reused once no run can be in one any more.
* `register_ops`: The operations of guards on registers, for guards evaluated in the kernels.
* `text_order`: Texts as whole numbers in their order, so that kernels compare texts as they compare numbers.
* `matches`: Matches as columns.
* `sums`: Aggregates over all matches that end at an event, in place of the matches.
* `marks`: The borders of matches, by marks: labels of their first and last events.
* `open_matches`: Matches that wait one by one for their windows to close, of both languages.
* `batch_order`: The order that evaluators need their events in.
* `guard_conditions`: The guards that lazy evaluators accept: conditions on tuples of events, in any order.
* `needed`: The rows of a batch at which the predicates of an automaton may matter.
* `normal_form`: A pattern as a disjunction of branches, conjunctions to be evaluated in any order ([Lazy] §5.2).
* `lazy_plan`: The parts of a program that lazy evaluation needs, decided once, when the program is compiled.
* `program`: A compiled pattern, ready to be evaluated any number of times.
* `simpler`: A choice among matches that costs less than the one asked for and gives the same matches.
* `selection`: The meaning of a `Choice` for the kernels.
"""
