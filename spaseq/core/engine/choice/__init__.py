"""The choice of the evaluator that suits a stream, and its change while the stream runs.

`statistics` measures a stream, with `samples` of tuples. `cost` estimates each evaluator's cost on that stream, from
the `shape` of the pattern. `auto` compares these costs, and changes the evaluator between two batches if `reach` allows
it.

* `samples`: Samples of a stream from which selectivities are estimated: some events of each kind, and tuples of them.
* `statistics`: The statistics of a stream that the choice depends on: rates, window sizes, selectivities.
* `shape`: The parts of a branch's cost that do not depend on the stream: its subsets of leaves, as bit masks.
* `cost`: The cost of each evaluator on a stream with given statistics: microseconds per event, roughly.
* `reach`: The reach of the next event's window into the past, as far as the choice must know it.
* `auto`: The choice of an evaluator while the stream runs, and the change from one to another.
"""
