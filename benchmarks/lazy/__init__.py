"""The lazy evaluators: throughput as a suite of `python -m benchmarks`, counts and contests as scripts.

* `bars`: One-minute bars of NASDAQ stocks as the stream of `benchmarks.lazy.experiments`: real prices at real rates.
* `by_default`: The evaluator that is chosen by default, beside the compact structure.
* `choice`: Is `auto` near the best evaluator? Each workload with every evaluator, in processor time per event.
* `conjunctions`: AND of 4 to 20 parts: the size of the automaton, the time to compile, the processor time of an event.
* `counts`: The work of the lazy evaluators for a match, counted: the experiments of `benchmarks/lazy/experiments.py`.
* `experiments`: [Lazy]'s experiments (§8): sequences, conjunctions, negation, iteration and disjunction of correlated
  stocks.
* `figures`: [Lazy]'s Figures 10 and 11, throughput and peak memory over the size of the window.
* `fit`: Made-up trades in partitions, and the fit of the cost model's constants for them.
* `stream`: The input of `benchmarks.lazy.experiments`: [Lazy]'s stream, generated; its condition; and the automata it
  compares with.
"""

from benchmarks.lazy.experiments import workloads

__all__ = ["workloads"]
