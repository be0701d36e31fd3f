"""The one run of an output-agnostic deterministic automaton over batches ([RMA] Definition 6.1).

`Recogniser` follows the configurations of any automaton; this follows the single run of an automaton made by
`determinise(…, output_agnostic=True, complete=True)`, and reports its state after each event. `spaseq.core.forecast`
learns a Markov chain from these states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.automaton import RMA, is_deterministic
from spaseq.core.automata.rma.determinise import is_complete, told_apart
from spaseq.core.automata.rma.formulas import Test
from spaseq.core.automata.rma.layout import Kept
from spaseq.core.automata.rma.recognise import Move, Moves, Rows, at_event, rows_of
from spaseq.core.errors import EventError, InternalError, OptionError


@dataclass(frozen=True, slots=True)
class Steps:
    """The step of the run at each event of a batch.

    `states` int32 (n,): the state after the event, -1 for an event of no partition. `letters` int32 (n,): the event's
    symbol class. `accepted` bool (n,): True if a match ends at it. `keys` int64 (n,): its partition, 0 if there are
    none.
    """

    states: np.ndarray
    letters: np.ndarray
    accepted: np.ndarray
    keys: np.ndarray


class SingleRun:
    """One run for each partition. `start` is the state before the first event.

    The attribute `automaton` is the one given, after `told_apart`: a run accepts whenever it is in a final state.

    `features` are further conditions on the event at hand (formulas of one test of `CURRENT`): events that differ in
    them get different letters. Raises `OptionError` unless the automaton is complete and output-agnostic deterministic.
    Cost of an event: at worst all conditions on transitions that leave the state.
    """

    def __init__(self, automaton: RMA, features: Sequence[f.Formula] = ()) -> None:
        if not is_deterministic(automaton, output_agnostic=True) or not is_complete(automaton):
            raise OptionError("this automaton may have several runs, or get stuck",
                              "determinise(automaton, output_agnostic=True, complete=True) first")  # fmt: skip
        if not all(isinstance(feature, Test) and feature.arguments == (f.CURRENT,) for feature in features):
            raise OptionError("a feature is a condition on one event", 'as in compare("~.speed", ">", 10)')
        automaton = told_apart(automaton)
        self.automaton = automaton
        (start,) = automaton.starts
        self.start: int = start
        self._moves = Moves(automaton, tuple(t for feature in features for t in f.tests(feature)))
        self._vocabulary = self._moves.vocabulary
        self._known: dict[tuple[int, int], tuple[Move, ...]] = {}
        self._at: dict[int, tuple[int, Kept]] = {}
        self._position = 0

    def fresh(self) -> SingleRun:
        """A run that has read nothing yet, with the same numbers for letters as this one."""
        run = object.__new__(SingleRun)
        run.__dict__.update(self.__dict__)
        run._at, run._position = {}, 0
        return run

    @property
    def letters(self) -> int:
        """The number of letters that have occurred."""
        return len(self._vocabulary.vectors)

    @property
    def has_registers(self) -> bool:
        """True if the next state depends on registers too, not on the letter alone."""
        return self._vocabulary.has_wide

    def next_state(self, state: int, letter: int) -> int:
        """The next state from `state` at an event of a letter that has occurred; for automata without registers."""
        (move,) = self._leaving(state, letter)
        return move.target

    def push(self, batch: Rows | Sequence[Mapping[str, Any]]) -> Steps:
        """The steps of the run over a batch. Plain events follow those of earlier calls. Raises `EventError` if a
        condition cannot be evaluated on an event."""
        rows = rows_of(batch, self._position, self._vocabulary)
        count = len(rows)
        keys = np.zeros(count, np.int64) if rows.keys is None else np.asarray(rows.keys, np.int64)
        states, accepted = np.full(count, -1, np.int32), np.zeros(count, bool)
        if not count:
            return Steps(states, np.zeros(0, np.int32), accepted, keys)
        self._position = int(rows.positions[-1]) + 1
        letters = self._vocabulary.classes(rows)
        if not self.has_registers:
            return self._walk(letters, keys)
        layout = self._moves.layout
        read = layout.reader(rows)
        for row, (letter, key) in enumerate(zip(letters.tolist(), keys.tolist(), strict=True)):
            if key >= 0:
                state, kept = self._at.get(key) or (self.start, self._moves.empty)
                try:
                    move, event = self._take(state, letter, kept, read, row)
                except EventError as error:
                    raise at_event(error, int(rows.positions[row])) from None
                if move.writes:
                    kept = layout.after(kept, event, move.writes, ())
                self._at[key] = (move.target, kept)
                states[row], accepted[row] = move.target, move.accepts
        return Steps(states, letters, accepted, keys)

    def _walk(self, letters: np.ndarray, keys: np.ndarray) -> Steps:
        """The steps of an automaton without registers, in which the letter determines the next state."""
        finals, moves = self.automaton.finals, self._known
        states = []
        for letter, key in zip(letters.tolist(), keys.tolist(), strict=True):
            if key < 0:
                states.append(-1)
                continue
            held = self._at.get(key)
            state = self.start if held is None else held[0]
            (move,) = moves.get((state, letter)) or self._leaving(state, letter)
            self._at[key] = (move.target, self._moves.empty)
            states.append(move.target)
        found = np.array(states, np.int32)
        return Steps(found, letters, np.isin(found, sorted(finals)), keys)

    def _take(self, state: int, letter: int, kept: Kept, read: Any, row: int) -> tuple[Move, Kept]:
        """The move, and the values read of the event (none if the move neither tests nor writes registers)."""
        moves = self._leaving(state, letter)
        if len(moves) == 1 and moves[0].test is None and not moves[0].writes:
            return moves[0], ()
        event = read(row)
        for move in moves:
            if move.test is None or move.test(event, kept):
                return move, event
        raise InternalError(f"a complete automaton is stuck in {self.automaton.names[state]}")

    def _leaving(self, state: int, letter: int) -> tuple[Move, ...]:
        found = self._known.get((state, letter))
        if found is None:
            found = self._known[state, letter] = tuple(move for move, _ in self._moves.leaving(state, letter))
        return found
