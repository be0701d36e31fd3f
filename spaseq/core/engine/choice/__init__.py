"""Which evaluator suits a stream, and changing it while the stream runs.

`statistics` counts what a stream is like, with `samples` of tuples; `cost` says what each evaluator would cost on that,
from the `shape` of the pattern; `auto` compares, and changes between two batches where `reach` says that it may.

* `samples` (`TUPLES`, `Join`, `Kind`, `Pool`): Samples of a stream that selectivities are estimated from: some events
  of each kind, and tuples of them.
* `statistics` (`Statistics`): What a stream is like, as far as the choice of an evaluator depends on it: rates, window
  sizes, selectivities.
* `shape` (`SUBSETS`, `Shape`, `bits`): What the cost of a branch depends on apart from the stream: its subsets of
  leaves, as bit masks.
* `cost` (`Costs`, `Estimate`, `estimate`): What each evaluator would cost on a stream with given statistics:
  microseconds per event, roughly.
* `reach` (`HISTORY`, `Reach`): How far back the window of the next event reaches, as far as the choice of an evaluator
  must know it.
* `auto` (`AutoEvaluator`): The choice of an evaluator while the stream runs, and the change from one to another.
"""

__all__ = ["auto", "cost", "reach", "samples", "shape", "statistics"]
