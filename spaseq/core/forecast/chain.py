"""Markov chains learnt from the single run of a deterministic automaton.

A node of the chain is a state of the automaton with the last m letters, its *context* (fewer at the beginning of a
stream). The next letter depends on the context. If the automaton has no registers, the letter determines the next
state; if it has, a letter may lead to several states, and the counts are by state and context. For a context that was
too rare in training, its longest suffix that was frequent enough is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from spaseq.core.automata.rma import SingleRun
from spaseq.core.errors import BudgetExceeded, OptionError

Context = tuple[int, ...]
Node = tuple[int, Context]
Outcome = tuple[int, int]
"""A letter, and the state it leads to; -1 if the automaton has no registers and determines that state."""


@dataclass(frozen=True, slots=True)
class ChainLimits:
    """Limits of forecasts. Exceeding one raises `BudgetExceeded` with its name."""

    max_nodes: int = 20_000
    """Nodes of a chain: states × letters to the power of the order, as far as they can be reached."""
    max_cells: int = 50_000_000
    """Nodes × horizon: the probabilities that a forecaster computes."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps of a run in one partition, an element for each event. `states`, int32 (n,): the state after it.
    `letters`, int32 (n,): its letter. `accepted`, bool (n,): true if a match ends at it."""

    states: np.ndarray
    letters: np.ndarray
    accepted: np.ndarray

    def last(self, count: int) -> Trace:
        """The trace of the last `count` events; of all if there are fewer."""
        start = max(0, len(self.states) - count)
        return Trace(self.states[start:], self.letters[start:], self.accepted[start:])


@dataclass(frozen=True, slots=True)
class MarkovChain:
    """Transitions as arrays, ordered by source: `source`, `target` int64 (e,), `probability` float64 (e,).

    `final` bool (nodes,): true if a match ends at the event that leads to the node.
    """

    nodes: tuple[Node, ...]
    source: np.ndarray
    target: np.ndarray
    probability: np.ndarray
    final: np.ndarray


def traces(run: SingleRun, batches: Iterable[Any]) -> list[Trace]:
    """The traces of a fresh run over `batches` of events, as `SingleRun.push` takes them: one for each partition."""
    fresh = run.fresh()
    steps = [fresh.push(batch) for batch in batches]
    if not steps:
        return []
    states, letters, accepted, keys = (
        np.concatenate([getattr(s, name) for s in steps]) for name in ("states", "letters", "accepted", "keys")
    )
    return [Trace(states[at], letters[at], accepted[at]) for at in (keys == k for k in np.unique(keys[keys >= 0]))]


@dataclass(frozen=True, slots=True)
class Model:
    """A chain learnt for a run's automaton. `order` is the length of contexts; `run` has the numbers of the letters;
    `index` the number of each node."""

    run: SingleRun
    order: int
    chain: MarkovChain
    index: dict[Node, int]

    def nodes(self, trace: Trace) -> np.ndarray:
        """The node after each event: int64 (n,), -1 if the state did not occur in training.

        For a context that the chain does not have, its longest suffix that it has is used.
        """
        passed = _path(trace, self.order)
        known = {node: next((self.index[n] for n in _suffixes(*node) if n in self.index), -1) for node in set(passed)}
        return np.array([known[node] for node in passed], np.int64)


def learn(
    run: SingleRun,
    training: Iterable[Any],
    *,
    order: int = 1,
    least: int = 1,
    limits: ChainLimits = ChainLimits(),
) -> Model:
    """Learns the chain of order `order` of the run's automaton from `training` events, in batches as `SingleRun.push`
    takes them.

    `least`: how often a context must have occurred to be used. Cost: events × order, and the size of the chain.
    Raises `OptionError` without events and for a negative order or a `least` below 1, `BudgetExceeded` (`max_nodes`).
    """
    if order < 0 or least < 1:
        raise OptionError(f"order is {order} and least is {least}", "order must be 0 or more, least 1 or more")
    counts = _Counts(run, order, least)
    observed: dict[Node, None] = {(run.start, ()): None}
    for trace in traces(run, training):
        observed.update(counts.add(trace))
    if not counts.seen:
        raise OptionError("no events to learn from", "give training events")
    chain = _chain(run, counts, observed, limits)
    return Model(run, order, chain, {node: i for i, node in enumerate(chain.nodes)})


def _contexts(letters: list[int], length: int) -> list[Context]:
    """For each i >= length the `length` letters before i, in order of i."""
    if not length:
        return [()] * len(letters)
    count = max(0, len(letters) - length)
    return list(zip(*(letters[k : count + k] for k in range(length)), strict=True))


def _path(trace: Trace, order: int) -> list[Node]:
    """The node after each event; contexts are shorter at the beginning."""
    states, letters = trace.states.tolist(), trace.letters.tolist()
    begun: list[Context] = [tuple(letters[: i + 1]) for i in range(min(order - 1, len(letters)))] if order else []
    contexts = begun + (_contexts([*letters, -1], order)[: len(letters) - len(begun)] if order else [()] * len(letters))
    return list(zip(states, contexts, strict=True))


def _longer(context: Context, letter: int, order: int) -> Context:
    return (*context, letter)[-order:] if order else ()


def _suffixes(state: int, context: Context) -> Iterator[Node]:
    return ((state, context[i:]) for i in range(len(context) + 1))


class _Counts:
    """Counts of the outcomes that followed each context; by state too, if the automaton has registers."""

    def __init__(self, run: SingleRun, order: int, least: int) -> None:
        self._run = run
        self.order = order
        self._least = least
        self._of: dict[Node, Counter[Outcome]] = {}
        self.seen = 0

    def add(self, trace: Trace) -> dict[Node, None]:
        """Counts the outcomes of a trace; returns the nodes on it."""
        letters, targets = trace.letters.tolist(), trace.states.tolist()
        states = [self._run.start, *targets[:-1]]
        if not self._run.has_registers:
            states, targets = [-1] * len(letters), [-1] * len(letters)
        for length in range(min(self.order, len(letters) - 1) + 1):
            counted = Counter(
                zip(states[length:], _contexts(letters, length), letters[length:], targets[length:], strict=True)
            )
            for (state, context, letter, target), count in counted.items():
                self._of.setdefault((state, context), Counter())[letter, target] += count
        self.seen += len(letters)
        return dict.fromkeys(_path(trace, self.order))

    def _key(self, state: int) -> int:
        return state if self._run.has_registers else -1

    def following(self, node: Node) -> list[tuple[Node, float]]:
        """The nodes that may follow, with their probabilities; none if the state did not occur in training."""
        state, context = node
        for key in _suffixes(self._key(state), context):
            counted = self._of.get(key)
            if counted is None or (key[1] and counted.total() < self._least):
                continue
            total = counted.total()
            found: dict[Node, float] = {}
            for (letter, target), count in sorted(counted.items()):
                to = target if target >= 0 else self._run.next_state(state, letter)
                following = (to, _longer(context, letter, self.order))
                found[following] = found.get(following, 0.0) + count / total
            return list(found.items())
        return []


def _chain(run: SingleRun, counts: _Counts, observed: dict[Node, None], limits: ChainLimits) -> MarkovChain:
    """The chain of all nodes that can be reached from the nodes observed, and from their states with empty context."""
    index: dict[Node, int] = {}
    for node in (*observed, *((state, ()) for state, _ in observed)):
        index.setdefault(node, len(index))
    source, target, probability = [], [], []
    for node in (todo := list(index)):
        for following, p in counts.following(node):
            if following not in index:
                index[following] = len(index)
                todo.append(following)
                if len(index) > limits.max_nodes:
                    raise BudgetExceeded("max_nodes", limits.max_nodes, len(index), "nodes",
                                         "lower the order of the chain, or use fewer features")  # fmt: skip
            source.append(index[node])
            target.append(index[following])
            probability.append(p)
    order = np.argsort(np.array(source, np.int64), kind="stable")
    return MarkovChain(
        tuple(index),
        np.array(source, np.int64)[order],
        np.array(target, np.int64)[order],
        np.array(probability, np.float64)[order],
        np.array([state in run.automaton.finals for state, _ in index], bool),
    )
