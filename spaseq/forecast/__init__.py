"""When will the pattern complete? Forecasts from a Markov chain over the automaton of an alert.

The single run of a deterministic automaton (`spaseq.automata.rma.SingleRun`) is a Markov chain if the events are one:
`learn` counts, over training events, which letter follows which last few (an order-m chain), and makes the chain of the
automaton's states with those letters. `Forecaster` gives for each state the distribution of the number of events until
the next match, and the shortest interval that holds it with a given probability; `evaluate` compares with what came.

This is what [RMA] §6 wants its output-agnostic deterministic automata for; the constructions are those of the
pattern Markov chains it cites [2, 25]. Time is counted in events.

Modules:

* `chain`: Markov chains learnt from the single run of a deterministic automaton.
* `waiting` (`shortest_interval`, `waiting_times`): Waiting times of a Markov chain, and the intervals that hold them.
* `forecaster` (`Evaluation`, `Forecaster`, `Forecasts`, `evaluate`, `unconditional`): Forecasts event by event, and how
  good they were.
"""

from __future__ import annotations

from spaseq.forecast.chain import ChainLimits, MarkovChain, Model, Trace, learn, traces
from spaseq.forecast.forecaster import Evaluation, Forecaster, Forecasts, evaluate, unconditional
from spaseq.forecast.waiting import shortest_interval, waiting_times

__all__ = [
    "ChainLimits",
    "Evaluation",
    "Forecaster",
    "Forecasts",
    "MarkovChain",
    "Model",
    "Trace",
    "evaluate",
    "learn",
    "shortest_interval",
    "traces",
    "unconditional",
    "waiting_times",
]
