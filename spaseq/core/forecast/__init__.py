"""Forecasts of when a pattern will match next, from a Markov chain over the automaton of an alert.

If the events are a Markov chain, so is the single run of a deterministic automaton
(`spaseq.core.automata.rma.SingleRun`). `learn` counts in training events how often each letter follows each sequence of
m letters (a chain of order m). The nodes of its chain are the automaton's states with the last m letters. `Forecaster`
computes for each node the distribution of the number of events until the next match. It also computes the shortest
interval that contains this number with a given probability. `evaluate` compares forecasts with the matches that came.

This is the purpose for which [RMA] §6 introduces output-agnostic deterministic automata; the constructions are those of
the pattern Markov chains that it cites as [2, 25]. Time is counted in events.

Modules:

* `chain`: Markov chains learnt from the single run of a deterministic automaton.
* `waiting`: Waiting times of a Markov chain, and intervals that contain them.
* `forecaster`: Forecasts event by event, and their evaluation.
"""

from __future__ import annotations

from spaseq.core.forecast.chain import ChainLimits, Model, learn, traces
from spaseq.core.forecast.forecaster import Evaluation, Forecaster, Forecasts, evaluate, unconditional
from spaseq.core.forecast.waiting import shortest_interval, waiting_times

__all__ = [
    "ChainLimits",
    "Evaluation",
    "Forecaster",
    "Forecasts",
    "Model",
    "evaluate",
    "learn",
    "shortest_interval",
    "traces",
    "unconditional",
    "waiting_times",
]
