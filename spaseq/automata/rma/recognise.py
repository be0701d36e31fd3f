"""Does a match end here? One pass over batches of events, no match ever enumerated.

`Recogniser` determinises as it goes: it keeps the set of configurations that runs are in, each once. A configuration is
a state and, for each register that can still be read, the attributes that its readers read off it. Of all runs in one
configuration only the one whose first marked event is the latest matters, for it stays in the window longest; so one
number stands for all of them. Without registers that is one number a state; with registers there may be a configuration
for each value in the window. The loop is a kernel, but where registers are read by other conditions than comparisons.

Unlike the automaton of `determinise(…, output_agnostic=True)` nothing is built in advance, windows may be of time, and
any number of partitions run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from spaseq.automata.rma import formulas as f
from spaseq.automata.rma.automaton import RMA
from spaseq.automata.rma.epsilon import eliminate_epsilon, merge_alike, single_final
from spaseq.automata.rma.guarded_run import Bound, GuardedRun
from spaseq.automata.rma.kernel_run import KernelRun
from spaseq.automata.rma.limits import Limits
from spaseq.automata.rma.vocabulary import Vocabulary
from spaseq.errors import OptionError

__all__ = ["EventRows", "Recogniser", "Rows", "WindowLike"]


class Rows(Protocol):
    """A batch of consecutive events.

    `positions` int64 (n,), increasing over the stream; `times` int64 or float64 (n,), never decreasing; `keys` int64
    (n,), the partition of each row as a small number, -1 for none, or None where there are no partitions.
    """

    @property
    def positions(self) -> np.ndarray: ...

    @property
    def times(self) -> np.ndarray: ...

    @property
    def keys(self) -> np.ndarray | None: ...

    def __len__(self) -> int: ...

    def getter(self, name: str) -> Callable[[int], Any]:
        """A function from a row to the value of an attribute, None where it has none."""
        ...

    def event(self, row: int) -> Mapping[str, Any]:
        """A whole event; asked only for relations that read whole events."""
        ...


class WindowLike(Protocol):
    """What the engine's windows have: `kind` is none, events, span or tumbling; `size` and `origin` as there."""

    @property
    def kind(self) -> str: ...

    @property
    def size(self) -> float: ...

    @property
    def origin(self) -> float: ...


@dataclass(frozen=True, slots=True)
class EventRows:
    """Plain events as a batch; the k-th of the stream is at position `offset` + k and time the same."""

    events: Sequence[Mapping[str, Any]]
    offset: int = 0
    keys: np.ndarray | None = None
    positions: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", np.arange(self.offset, self.offset + len(self.events), dtype=np.int64))

    @property
    def times(self) -> np.ndarray:
        return self.positions

    def __len__(self) -> int:
        return len(self.events)

    def getter(self, name: str) -> Callable[[int], Any]:
        return lambda row: self.events[row].get(name)

    def event(self, row: int) -> Mapping[str, Any]:
        return self.events[row]


class Recogniser:
    """Reads batches and says of each event whether a match inside the window ends with it.

    `automaton` begins its matches anywhere or with the first event, as its start states say. `window` bounds the
    distance between the first and the last marked event; None is no bound. `Within`, `unroll` and `count_events` need
    none. Memory: a number for each state and partition, and with registers for each configuration alive.

    Raises `BudgetExceeded` at `max_configurations`, and `EventError` where a condition cannot be asked of an event.
    """

    def __init__(
        self,
        automaton: RMA,
        window: WindowLike | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        given = eliminate_epsilon(automaton) if automaton.has_epsilon else automaton
        self.automaton = merge_alike(single_final(given))
        self._coordinate = _Coordinate(window)
        self._vocabulary = Vocabulary(self.automaton)
        self._run: GuardedRun | KernelRun | _PlainRun
        if self._vocabulary.has_wide:
            compared = KernelRun.of(self.automaton, self._vocabulary, limits)
            self._run = compared or GuardedRun(self.automaton, self._vocabulary, limits)
        else:
            self._run = _PlainRun(self.automaton, self._vocabulary)
        self._position = 0

    @property
    def configurations(self) -> int:
        """How many configurations are alive."""
        return self._run.configurations

    def push(self, batch: Rows | Sequence[Mapping[str, Any]]) -> np.ndarray:
        """bool (n,): whether a match ends at each event of the batch; plain events follow those pushed before."""
        rows = rows_of(batch, self._position, self._vocabulary)
        if not len(rows):
            return np.zeros(0, bool)
        self._position = int(rows.positions[-1]) + 1
        classes = self._vocabulary.classes(rows)
        keys = np.zeros(len(rows), np.int64) if rows.keys is None else np.asarray(rows.keys, np.int64)
        coordinates = self._coordinate.of(rows)
        moving = ~self._run.inert(len(self._vocabulary.vectors))[classes] & (keys >= 0)
        return self._run.advance(rows, np.flatnonzero(moving), classes, coordinates, keys, self._bound(rows))

    def _bound(self, rows: Rows) -> Bound:
        return Bound(self._coordinate.size, rows.keys is None or not self._coordinate.counts_events)


def rows_of(batch: Rows | Sequence[Mapping[str, Any]], position: int, vocabulary: Vocabulary) -> Any:
    """`batch`, or plain events as one from `position` on; `OptionError` if conditions can be asked of batches only."""
    if hasattr(batch, "positions") and not isinstance(batch, EventRows):
        return batch
    for test in vocabulary.narrow:
        if hasattr(test.relation, "evaluate"):
            raise OptionError(
                f"the condition {test.relation.show(f.CURRENT)} cannot be asked of plain events",
                "an automaton made of a query is asked of the query's batches: query.alerts()",
            )
    return batch if isinstance(batch, EventRows) else EventRows(batch, position)


class _Coordinate:
    """Windows as distances: the number of each event that its distance to the first one of a match is measured in."""

    def __init__(self, window: WindowLike | None) -> None:
        self._kind = "none" if window is None else window.kind
        if self._kind not in ("none", "events", "span", "tumbling"):
            raise OptionError(f"no window of kind {self._kind!r}", "none, events, span or tumbling")
        self._origin = 0 if window is None else window.origin
        self._width = 0 if window is None else window.size
        self.size: float = self._width if self._kind in ("events", "span") else 0
        self.counts_events = self._kind == "events"
        self._seen: dict[int, int] = {}

    def of(self, rows: Rows) -> np.ndarray:
        """int64 or float64 (n,), never decreasing within a partition."""
        match self._kind:
            case "none":
                return np.zeros(len(rows), np.int64)
            case "span":
                return np.asarray(rows.times)
            case "tumbling":
                return np.floor_divide(np.asarray(rows.times) - self._origin, self._width)
            case "events" if rows.keys is not None:
                return self._ordinals(np.asarray(rows.keys))
        return np.asarray(rows.positions, np.int64)

    def _ordinals(self, keys: np.ndarray) -> np.ndarray:
        """How many events of its partition came before each event."""
        order = np.argsort(keys, kind="stable")
        found = np.zeros(len(keys), np.int64)
        for block in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
            key = int(keys[block[0]])
            before = self._seen.get(key, 0)
            found[block] = np.arange(before, before + len(block))
            self._seen[key] = before + len(block)
        return found


_GROWTH: Final = 2


class _PlainRun:
    """An automaton whose conditions are all about one event: a number for each state and partition, and the kernel."""

    def __init__(self, automaton: RMA, vocabulary: Vocabulary) -> None:
        self._automaton = automaton
        self._vocabulary = vocabulary
        self._edges = np.zeros((0, 4), np.int64)
        self._first = np.zeros(1, np.int64)
        self._lost = np.zeros(0, np.int64)
        self._first_lost = np.zeros(1, np.int64)
        self._inert = np.zeros(0, bool)
        self._latest = np.zeros(0, np.int64)
        self._keys = 0

    @property
    def configurations(self) -> int:
        """How many states some run is in, over all partitions."""
        return int((self._latest != _never(self._latest.dtype)).sum())

    def inert(self, classes: int) -> np.ndarray:
        """bool (classes,): the classes at which every run just waits."""
        while len(self._inert) < classes:
            kind, edges, lost = len(self._inert), [], []
            for q in range(self._automaton.states):
                leaving = self._leaving(q, kind)
                waits = (q, q, False, False)
                edges += [e for e in leaving if e != waits]
                if waits not in leaving and self._automaton.leaving[q]:
                    lost.append(q)
            self._inert = np.append(self._inert, not edges and not lost)
            self._edges = np.concatenate([self._edges, np.array(edges, np.int64).reshape(-1, 4)])
            self._first = np.append(self._first, len(self._edges))
            self._lost = np.concatenate([self._lost, np.array(lost, np.int64)])
            self._first_lost = np.append(self._first_lost, len(self._lost))
        return self._inert

    def _leaving(self, state: int, kind: int) -> list[tuple[int, int, bool, bool]]:
        known = self._vocabulary.truth(kind)
        return [
            (t.source, t.target if self._automaton.leaving[t.target] else -1, t.marks,
             t.marks and t.target in self._automaton.finals)
            for t in self._automaton.leaving[state]
            if f.restricted(t.formula, known) == f.TRUE
        ]

    def advance(
        self, rows: Rows, moving: np.ndarray, classes: np.ndarray, coordinates: np.ndarray, keys: np.ndarray,
        bound: Bound,
    ) -> np.ndarray:  # fmt: skip
        """bool (n,): the rows at which a run accepts."""
        from spaseq.automata.rma.kernels import recognise

        found = np.zeros(len(rows), bool)
        if not len(moving):
            return found
        numbers = np.ascontiguousarray(coordinates, np.float64 if coordinates.dtype.kind == "f" else np.int64)
        kind = numbers.dtype
        self._fit(int(keys.max()) + 1, kind)
        states = self._automaton.states
        never, unmarked = _never(kind), _unmarked(kind)
        distance = kind.type(min(bound.size, unmarked))
        scratch = np.zeros(int(np.diff(self._first).max(initial=1)), kind)
        recognise(moving, classes, numbers, keys * states, self._first, self._edges, self._first_lost, self._lost,
                  self._latest, scratch, never, unmarked, distance, found)  # fmt: skip
        return found

    def _fit(self, keys: int, kind: np.dtype[Any]) -> None:
        if self._keys and kind != self._latest.dtype:
            raise OptionError("the window is measured in whole numbers in one batch and in decimals in another")
        if keys > self._keys or not self._keys:
            grown = max(keys, _GROWTH * self._keys)
            latest = np.full((grown, self._automaton.states), _never(kind), kind)
            latest[:, sorted(self._automaton.starts)] = _unmarked(kind)
            latest[: self._keys] = self._latest.reshape(-1, self._automaton.states)
            self._latest, self._keys = latest.reshape(-1), grown


def _never(kind: np.dtype[Any]) -> Any:
    return kind.type(-np.inf) if kind.kind == "f" else np.int64(np.iinfo(np.int64).min)


def _unmarked(kind: np.dtype[Any]) -> Any:
    return kind.type(np.inf) if kind.kind == "f" else np.int64(np.iinfo(np.int64).max)
