"""The events at which matches end: all runs of an automaton over batches of events.

`Recogniser` determinises on the fly: it keeps the set of configurations of its runs. A configuration is a state and,
for each register that can still be read, the attributes that conditions read there. Of all runs in one configuration,
only the one whose first marked event is the latest matters, because it stays in the window longest. So the position of
that event stands for all of them. This is a loop in Python, for automata as objects. Alerts of queries come from the
engine (`spaseq.core.engine.Selection.ENDS`), whose kernels keep the same number.

Unlike with `determinise(…, output_agnostic=True)` no automaton is built in advance, windows may be of time, and there
may be any number of partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.automaton import RMA, Transition, live_registers
from spaseq.core.automata.rma.epsilon import eliminate_epsilon, merge_alike, single_final
from spaseq.core.automata.rma.formulas import Formula
from spaseq.core.automata.rma.layout import Kept, Layout, WideTest
from spaseq.core.automata.rma.limits import Limits
from spaseq.core.automata.rma.vocabulary import Vocabulary
from spaseq.core.errors import EventError, OptionError
from spaseq.core.pattern import Batch

_UNMARKED: Final = 1 << 62
"""The start of a run that has marked nothing yet, later than any position."""


class Rows(Batch, Protocol):
    """A batch whose events can be read; positions increase."""

    def getter(self, name: str) -> Callable[[int], Any]:
        """A function from a row to the value of an attribute, None if it has none."""
        ...

    def event(self, row: int) -> Mapping[str, Any]:
        """A whole event; called only for relations that read whole events."""
        ...


class LowsLike(Protocol):
    """The first live start of each row of a stream, batch by batch: `spaseq.core.engine.program.window.Lows`."""

    def of(
        self, positions: np.ndarray, places: np.ndarray, keys: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]: ...


class WindowLike(Protocol):
    """The part of the engine's `Window` that is used here."""

    @property
    def per_partition(self) -> bool: ...

    def places(self, batch: Any) -> np.ndarray: ...

    def lows(self, partitioned: bool) -> LowsLike: ...


@dataclass(frozen=True, slots=True)
class EventRows:
    """Plain events as a batch; the k-th event has position and time `offset` + k."""

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


@dataclass(frozen=True, slots=True)
class Move:
    """A transition at events of one symbol class: the test of the registers that is left of its formula (None if it
    applies in any case), and its effects."""

    test: WideTest | None
    target: int
    writes: tuple[int, ...]
    marks: bool
    accepts: bool
    forgets: tuple[int, ...]
    """Registers that no transition behind it can read."""


class Moves:
    """The transitions of an automaton at the events of batches. `features`: as of `Vocabulary`."""

    def __init__(self, automaton: RMA, features: tuple[f.Test, ...] = ()) -> None:
        self.automaton: RMA = automaton
        self.vocabulary: Vocabulary = Vocabulary(automaton, features)
        self.empty: Kept = (None,) * len(automaton.registers)
        """The contents of the registers before the first event."""
        self._place = {register: i for i, register in enumerate(automaton.registers)}
        self._live = live_registers(automaton)
        self.layout: Layout = Layout(automaton, self.vocabulary.wide, self._place)

    def leaving(self, state: int, kind: int) -> list[tuple[Move, bool]]:
        """The moves that may leave a state at events of a symbol class, each with True if it is to pass over the event
        and stay in the state, unchanged."""
        found = ((t, self.vocabulary.left(t.formula, kind)) for t in self.automaton.leaving[state])
        return [
            (self._move(t, left), left == f.TRUE and t.target == state and not t.writes and not t.marks)
            for t, left in found
            if left != f.FALSE
        ]

    def _move(self, t: Transition, formula: Formula) -> Move:
        live = self._live[t.target]
        return Move(
            None if formula == f.TRUE else self.layout.compiled(formula),
            t.target,
            tuple(sorted(self._place[r] for r in t.writes & live)),
            t.marks,
            t.marks and t.target in self.automaton.finals,
            tuple(sorted(i for r, i in self._place.items() if r not in live)),
        )


_Ways = tuple[bool, tuple[Move, ...]]
"""True if runs may pass over an event and stay in a state, unchanged; and the other moves from the state."""
_Alive = list[dict[Kept, int]]
"""For each state, a dict from register contents to the latest position at which a run with them marked first."""


class Recogniser:
    """Reads batches and reports for each event if a match inside the window ends with it.

    `window` bounds the distance between the first and the last marked event; None is no bound. Automata with a window
    of their own (`Within`, `unroll`, `count_events`) need none. Memory: a number for each live configuration. Cost of
    an event: the configurations whose state has a transition for its symbol class.

    Raises `BudgetExceeded` (`max_configurations`), and `EventError` if a condition cannot be evaluated on an event.
    """

    def __init__(
        self,
        automaton: RMA,
        window: WindowLike | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        given = eliminate_epsilon(automaton) if automaton.has_epsilon else automaton
        self.automaton: RMA = merge_alike(single_final(given))
        self.configurations: int = 0
        """The number of live configurations."""
        self._window = window
        self._limits = limits
        self._lows: LowsLike | None = None
        self._moves = Moves(self.automaton)
        self._of_kind: list[list[_Ways]] = []
        self._inert: list[bool] = []
        self._alive: dict[int, _Alive] = {}
        self._position = 0

    def push(self, batch: Rows | Sequence[Mapping[str, Any]]) -> np.ndarray:
        """True at each event at which a match ends: bool (n,). Plain events follow those of earlier calls."""
        vocabulary = self._moves.vocabulary
        rows = rows_of(batch, self._position, vocabulary)
        found = np.zeros(len(rows), bool)
        if not len(rows):
            return found
        self._position = int(rows.positions[-1]) + 1
        kinds = vocabulary.classes(rows).tolist()
        self._compile()
        keys = [0] * len(rows) if rows.keys is None else np.asarray(rows.keys).tolist()
        window_starts, read = self._window_starts_of(rows), self._moves.layout.reader(rows)
        for row, (kind, key, low, position) in enumerate(
            zip(kinds, keys, window_starts, rows.positions.tolist(), strict=True)
        ):
            if key < 0 or self._inert[kind]:
                continue
            alive = self._alive.get(key)
            if alive is None:
                alive = self._alive[key] = self._begun()
            try:
                found[row] = self._step(alive, self._of_kind[kind], read(row), position, low)
            except EventError as error:
                raise at_event(error, position) from None
            if self.configurations > self._limits.max_configurations:
                self._evict(alive, low, rows.keys is not None)
        return found

    def _window_starts_of(self, rows: Any) -> list[int]:
        """The first live start of each row."""
        if self._window is None:
            return [0] * len(rows)
        if self._lows is None:
            self._lows = self._window.lows(rows.keys is not None)
        keys = None if rows.keys is None else np.asarray(rows.keys, np.int64)
        positions, places = np.asarray(rows.positions, np.int64), self._window.places(rows)
        lows: list[int] = self._lows.of(positions, places, keys)[0].tolist()
        return lows

    def _compile(self) -> None:
        """Compiles the transitions of all states for new symbol classes, and which of these classes are inert."""
        for kind in range(len(self._of_kind), len(self._moves.vocabulary.vectors)):
            leaving = [self._moves.leaving(q, kind) for q in range(self.automaton.states)]
            states = [(any(stays for _, stays in ways), tuple(move for move, stays in ways if not stays))
                      for ways in leaving]  # fmt: skip
            self._of_kind.append(states)
            self._inert.append(all(stays and not moves for q, (stays, moves) in enumerate(states)
                                   if self.automaton.leaving[q]))  # fmt: skip

    def _begun(self) -> _Alive:
        alive: _Alive = [{} for _ in range(self.automaton.states)]
        for q in self.automaton.starts:
            alive[q][self._moves.empty] = _UNMARKED
        self.configurations += len(self.automaton.starts)
        return alive

    def _step(self, alive: _Alive, ways: list[_Ways], row: Kept, position: int, low: int) -> bool:
        """Moves the runs of a partition by one event; True if one of them accepts. `low` is the first live start."""
        accepted, arriving = False, []
        for runs, (stays, moves) in zip(alive, ways, strict=True):
            if not runs or (stays and not moves):
                continue
            late = []
            for kept, start in runs.items():
                if start < low:
                    late.append(kept)
                    continue
                for move in moves:
                    if move.test is None or move.test(row, kept):
                        begun = position if move.marks and start == _UNMARKED else start
                        accepted |= move.accepts
                        if self.automaton.leaving[move.target]:
                            after = self._moves.layout.after(kept, row, move.writes, move.forgets)
                            arriving.append((move.target, after, begun))
            self._leave(runs, late if stays else list(runs))
        for q, kept, start in arriving:
            before = alive[q].get(kept)
            self.configurations += before is None
            if before is None or start > before:
                alive[q][kept] = start
        return accepted

    def _leave(self, runs: dict[Kept, int], gone: list[Kept]) -> None:
        self.configurations -= len(gone)
        for kept in gone:
            del runs[kept]

    def _evict(self, here: _Alive, low: int, partitioned: bool) -> None:
        """Drops the runs that have left the window, in all partitions if they have the same window; `BudgetExceeded` if
        more than `max_configurations` are left."""
        alone = partitioned and self._window is not None and self._window.per_partition
        for alive in (here,) if alone else self._alive.values():
            for runs in alive:
                self._leave(runs, [kept for kept, start in runs.items() if start < low])
        self._limits.configurations(self.configurations)


def at_event(error: EventError, position: int) -> EventError:
    """The error of a condition, with the position of the event that it was evaluated on."""
    return EventError(error.problem, source=error.source, record=position + 1, counted="event", hint=error.hint)


def rows_of(batch: Rows | Sequence[Mapping[str, Any]], position: int, vocabulary: Vocabulary) -> Any:
    """`batch` itself, or plain events as a batch from `position` on; `OptionError` for plain events if a condition can
    be evaluated on batches only."""
    if hasattr(batch, "positions") and not isinstance(batch, EventRows):
        return batch
    for test in vocabulary.narrow:
        if hasattr(test.relation, "evaluate"):
            raise OptionError(
                f"the condition {test.relation.show(f.CURRENT)} cannot be evaluated on plain events",
                "an automaton made of a query reads the query's batches: query.alerts().rows(events)",
            )
    return batch if isinstance(batch, EventRows) else EventRows(batch, position)
