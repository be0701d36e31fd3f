"""Forecasts event by event, and their evaluation.

The forecast after an event is an interval: the next match comes `first` to `last` events later, with at least the
threshold's probability, if the chain is right. It depends on the chain's node after the event. There is no forecast if
no interval within the horizon is probable enough, or if the state did not occur in training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spaseq.core.errors import OptionError
from spaseq.core.forecast.chain import ChainLimits, Model, Trace, traces
from spaseq.core.forecast.waiting import shortest_interval, waiting_times


@dataclass(frozen=True, slots=True)
class Forecasts:
    """For each event of a trace: int64 (n,) `first` and `last`, in events from now, 0 if there is no forecast.

    `probability` float64 (n,): that the next match comes in the interval; `accepted` bool (n,): true if a match ends at
    the event itself.
    """

    first: np.ndarray
    last: np.ndarray
    probability: np.ndarray
    accepted: np.ndarray

    def __len__(self) -> int:
        return len(self.first)


class Forecaster:
    """The forecasts of a model, computed once for each node of its chain.

    `threshold`: the probability an interval must have; `horizon`: how many events ahead to look at most.
    """

    def __init__(
        self, model: Model, *, threshold: float = 0.5, horizon: int = 100,
        limits: ChainLimits = ChainLimits(),  # noqa: B008 - frozen
    ) -> None:  # fmt: skip
        self.model = model
        self.threshold = threshold
        self.distribution: np.ndarray = waiting_times(model.chain, horizon, limits)
        rows = [shortest_interval(row, threshold) or (0, 0, 0.0) for row in self.distribution]
        rows.append((0, 0, 0.0))  # read as row -1: no forecast for a state that did not occur in training
        self._first = np.array([first for first, _, _ in rows], np.int64)
        self._last = np.array([last for _, last, _ in rows], np.int64)
        self._probability = np.array([p for _, _, p in rows])

    def run(self, batches: Iterable[Any]) -> list[Forecasts]:
        """The forecasts over events, in batches as `SingleRun.push` takes them; one for each partition."""
        return [self.of(trace) for trace in traces(self.model.run, batches)]

    def of(self, trace: Trace) -> Forecasts:
        """The forecasts along a trace."""
        nodes = self.model.nodes(trace)
        return Forecasts(self._first[nodes], self._last[nodes], self._probability[nodes], trace.accepted)

    def follow(self, batches: Iterable[Any]) -> Iterator[Forecasts]:
        """The forecasts over events, batch by batch; a batch may have rows of any partitions.

        Keeps only the last letters of each partition. A row of no partition has no forecast.
        """
        run, order = self.model.run.fresh(), self.model.order
        before: dict[int, Trace] = {}
        for batch in batches:
            steps = run.push(batch)
            nodes = np.full(len(steps.keys), -1, np.int64)
            for key in np.unique(steps.keys[steps.keys >= 0]).tolist():
                at = steps.keys == key
                trace = Trace(steps.states[at], steps.letters[at], steps.accepted[at])
                if key in before:
                    trace = _join(before[key], trace)
                nodes[at] = self.model.nodes(trace)[len(trace.states) - int(at.sum()) :]
                before[key] = trace.last(order)
            yield Forecasts(self._first[nodes], self._last[nodes], self._probability[nodes], steps.accepted)

    def interval(self, state: int, letters: Sequence[int] = ()) -> tuple[int, int, float] | None:
        """The forecast (first, last, probability) in a state after some letters; None if there is none. Raises
        `OptionError` if the chain has no such node."""
        node = (state, tuple(letters))
        if node not in self.model.index:
            raise OptionError(f"the chain has no state {state} behind {list(letters)}", "Model.index has those it has")
        at = self.model.index[node]
        first = int(self._first[at])
        return (first, int(self._last[at]), float(self._probability[at])) if first else None


def _join(before: Trace, after: Trace) -> Trace:
    names = ("states", "letters", "accepted")
    return Trace(*(np.concatenate([getattr(before, name), getattr(after, name)]) for name in names))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The quality of forecasts on events with known matches.

    * `events`, `matches`: their numbers.
    * `forecasts`: the number that could be judged; the others reach beyond the end of the stream.
    * `precision`: the share of these whose next match came in the interval.
    * `spread`: the mean of last - first. `distance`: the mean of first.
    * `recall`: the share of the matches that some forecast predicted.

    NaN for a share or mean of nothing.
    """

    events: int
    matches: int
    forecasts: int
    precision: float
    spread: float
    distance: float
    recall: float

    def __str__(self) -> str:
        return (
            f"{self.forecasts:,} forecasts over {self.events:,} events, precision {self.precision:.2f}, "
            f"spread {self.spread:.1f}, distance {self.distance:.1f}; "
            f"{self.matches:,} matches, recall {self.recall:.2f}"
        )


def waits(accepted: np.ndarray) -> np.ndarray:
    """The number of events from each event to the end of the next match: int64 (n,), 0 if none ends."""
    count = len(accepted)
    ends = np.flatnonzero(accepted)
    at = np.searchsorted(ends, np.arange(count), "right")
    known = at < len(ends)
    return np.where(known, np.append(ends, 0)[np.where(known, at, len(ends))] - np.arange(count), 0)


def evaluate(forecasts: Iterable[Forecasts]) -> Evaluation:
    """Precision, spread, distance and recall over all `forecasts`; counts are summed before they are divided."""
    events = matches = decided = correct = foreseen = 0
    spread = distance = 0.0
    for f in forecasts:
        wait, count = waits(f.accepted), len(f)
        made = (f.first > 0) & ((wait > 0) | (np.arange(count) + f.last < count))
        right = made & (wait >= f.first) & (wait <= f.last)
        events, matches = events + count, matches + int(f.accepted.sum())
        decided, correct = decided + int(made.sum()), correct + int(right.sum())
        spread += float((f.last - f.first)[made].sum())
        distance += float(f.first[made].sum())
        foreseen += len(np.unique((np.arange(count) + wait)[right]))
    return Evaluation(
        events, matches, decided, _part(correct, decided), _part(spread, decided), _part(distance, decided),
        _part(foreseen, matches),
    )  # fmt: skip


def _part(amount: float, of: int) -> float:
    return amount / of if of else float("nan")


def unconditional(training: Iterable[Trace], threshold: float, horizon: int) -> tuple[int, int, float] | None:
    """The interval (first, last, probability) that ignores the state: the shortest for the waiting times of all
    training events; None if none is probable enough.

    The baseline for a forecaster, which should have a smaller spread at the same precision.
    """
    counts, total = np.zeros(horizon), 0
    for trace in training:
        wait = waits(trace.accepted)
        known = wait[wait > 0]
        total += len(known)
        counts += np.bincount(known[known <= horizon] - 1, minlength=horizon)
    return shortest_interval(counts / total, threshold) if total else None
