"""The guards of one evaluation in the form of the kernels: CEQL's `spaseq.core.engine.program.register_ops.Codes`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ceql.guards.comparisons import Comparison, Texts, comparison_of
from ceql.guards.guard import Guard
from ceql.guards.questions import Question, question_of
from ceql.guards.rounds import RoundComparison, rounds_of
from ceql.guards.same_values import share
from ceql.guards.totals import Threshold, Totals, totals_of
from spaseq.core.automata import CEA, Action, Again, Transition
from spaseq.core.engine.program.register_ops import NOTHING, UNKNOWN, Op
from spaseq.core.errors import EventError, InternalError
from spaseq.core.events import EventBatch
from spaseq.core.snapshot import expect

_TEXTS: Final = 1 << 16
Form = Comparison | Question | RoundComparison | Threshold | Totals


def value_codes(guards: Sequence[Guard], cea: CEA) -> ValueCodes | None:
    """The codes of a new evaluation of an automaton; None if some guard has CORR, or an aggregate that registers do not
    keep."""
    found = [
        rounds_of(guard, number) or comparison_of(guard) or question_of(guard, number) or totals_of(guard, number)
        for number, guard in enumerate(guards)
    ]
    forms: list[Form] = [form for form in found if form is not None]
    return ValueCodes(guards, forms, cea) if len(forms) == len(guards) else None


class ValueCodes:
    """Each guard has its own registers and columns; those of guard g begin at `_first[g]`. A test may read a register
    of another guard that has the same value."""

    outputs: tuple[int, ...] = ()
    chains: None = None

    def __init__(self, guards: Sequence[Guard], forms: Sequence[Form], cea: CEA) -> None:
        self._guards = tuple(guards)
        self._forms = tuple(forms)
        self._first = [0, *itertools.accumulate(form.width for form in forms)]
        self._texts = Texts()
        self._events: EventBatch | None = None
        self._full = _TEXTS
        self.registers: int = self._first[-1]
        self.asked: int = max((form.asked for form in forms), default=0)
        columns = (form.columns if isinstance(form, Comparison) else (None,) * form.width for form in forms)
        own = (self._own_ops(t) for out in cea.transitions for t in out)
        self._sharing = share(cea, tuple(own), tuple(columns))

    def ops(self, transition: Transition) -> tuple[Op, ...]:
        """The register operations of a transition's actions."""
        return self._own_ops(transition) if self._sharing is None else self._sharing.ops[transition]

    def _own_ops(self, transition: Transition) -> tuple[Op, ...]:
        return tuple(op for action in transition.actions for op in self._ops(action))

    def _ops(self, action: Action) -> tuple[Op, ...]:
        if isinstance(action, Again):
            raise InternalError("a register action between rounds, in CEQL")
        g = self._guards.index(action.guard)
        return self._forms[g].ops(action, self._first[g])

    @property
    def terms(self) -> Texts:
        """The texts that codes stand for."""
        return self._texts

    @property
    def extras(self) -> np.ndarray:
        """No rows: in CEQL an event has one value for each column."""
        return np.zeros((0, self.registers), np.int64)

    def load(self, batch: Any, rows: np.ndarray) -> np.ndarray | None:
        """The codes of a batch: int64 (n, registers); None if not comparable with earlier batches (`Codes.load`)."""
        self._events = batch.events
        out = np.full((len(batch), self.registers), UNKNOWN, np.int64)
        for form, (a, b) in zip(self._forms, itertools.pairwise(self._first), strict=True):
            if not form.load(batch.events, rows, self._texts, out[:, a:b]):
                return None
        return out

    def answer(self, number: int, codes: list[int], row: int) -> bool:
        """True if guard `number`, a `Question` or `Totals`, holds of these codes at a row of the batch loaded last.
        Raises `EventError` if its condition cannot be computed."""
        form = self._forms[number]
        assert isinstance(form, Question | Totals)
        try:
            return form.answer(codes, self._texts.names)
        except EventError as error:
            events = self._events
            assert events is not None
            raise EventError(f"{self._guards[number].query_text}: {error.problem}", source=events.source,
                             record=int(events.positions[row]) + 1, counted="event",
                             hint=error.hint) from None  # fmt: skip

    @property
    def full(self) -> bool:
        """True if `evict` should be called: texts have more than doubled since the last call, or their order is
        full."""
        return len(self._texts.numbers) > self._full or self._texts.order.full

    def full_before(self, batch: Any) -> bool:
        """As of `Codes.full_before`: no batch has the texts of another."""
        return self.full

    def evict(self, held: np.ndarray) -> np.ndarray | None:
        """Drops the texts whose numbers are in none of these registers: int64 (runs, registers). See `Codes.evict`."""
        self._texts.evict(set(np.unique(held[:, self._columns(lambda form: form.texts())]).tolist()))
        self._full = 2 * len(self._texts.numbers) + _TEXTS
        columns = self._columns(lambda form: form.labels())
        if not columns:
            return None
        held = held.copy()
        held[:, columns] = self._texts.order.keep(held[:, columns])
        return held

    def _columns(self, of: Callable[[Form], tuple[int, ...]]) -> list[int]:
        """The columns of all forms; `of` gives those of one form."""
        return [a + i for form, a in zip(self._forms, self._first, strict=False) for i in of(form)]

    def row(self, codes: list[list[int]], state: int) -> Any:
        """The row of `GuardRegisters` for a run with these codes: pairs of a guard's number and the values of its
        variables, in order of their names."""
        (held,) = codes  # an event has one value
        held = held if self._sharing is None else self._sharing.own_registers(held, state)
        bounds = itertools.pairwise(self._first)
        found = [form.values(held[a:b], self._texts) for form, (a, b) in zip(self._forms, bounds, strict=True)]
        return tuple((g, values) for g, values in enumerate(found) if any(values))

    def twin(self, row: Any, number: int) -> Any:
        """As of `Codes.twin`: 3 and 3.0 have two codes and are one value. The last entry is of a guard there is not."""
        return (*row, (len(self._guards), number))

    def snapshot(self) -> Any:
        """The kinds of values so far, and the texts with their numbers, as plain values."""
        return [form.snapshot() for form in self._forms], self._texts.snapshot()

    def restore(self, state: Any, held: np.ndarray) -> None:
        """The opposite of `snapshot`. `held`: the registers of all runs, int64 (runs, registers); `OptionError` for the
        number of a text that `state` does not have."""
        states, texts = state
        self._texts.restore(texts)
        for form, kept in zip(self._forms, states, strict=True):
            form.restore(kept)
        alike = [(frozenset(f.columns), f.snapshot()) for f in self._forms if isinstance(f, Comparison)]
        kinds = {values: kind for values, kind in alike if None not in values}
        expect(all(kinds.get(values, kind) == kind for values, kind in alike), "one kind for the same values")
        named = set(np.unique(held[:, self._columns(lambda form: form.texts())]).tolist()) - {NOTHING, UNKNOWN}
        expect(named <= self._texts.names.keys(), "a text for each number of one")
        labels = np.unique(held[:, self._columns(lambda form: form.labels())])
        expect(self._texts.order.has(labels[labels > UNKNOWN]), "a text for each label of one")
