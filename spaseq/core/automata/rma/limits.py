"""Limits on the size of register match automata. Errors name the limit that was reached."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.core.errors import BudgetExceeded


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for constructions and runs. Exceeding one raises `BudgetExceeded` with its name."""

    max_states: int = 20_000
    """States of an automaton that is built: unrolling to a tree and determinisation can need exponentially many."""
    max_registers: int = 64
    """Registers of a deterministic automaton. Without a window there may be no bound at all ([RMA] Theorem 6.2)."""
    max_minterms: int = 4_096
    """Minterms of the transitions of one state: 2ⁿ for n independent conditions."""
    max_moves: int = 200_000
    """Threads that the transitions of a determinisation move, in all: its work, some 35 µs each."""
    max_configurations: int = 1_000_000
    """Pairs of a state and register contents that are kept at one time."""

    def states(self, count: int) -> None:
        """Raises `BudgetExceeded` if an automaton would have more than `max_states`."""
        if count > self.max_states:
            raise BudgetExceeded("max_states", self.max_states, count, "states",
                                 "narrow the window, recognise without building the automaton (Recogniser), "
                                 "or raise max_states")  # fmt: skip

    def registers(self, count: int) -> None:
        """Raises `BudgetExceeded` if a deterministic automaton would have more than `max_registers`."""
        if count > self.max_registers:
            raise BudgetExceeded("max_registers", self.max_registers, count, "registers",
                                 "give the expression a window (unroll): without one, no number of registers may be "
                                 "enough for a deterministic automaton")  # fmt: skip

    def moves(self, count: int) -> None:
        """Raises `BudgetExceeded` if determinisation has moved more than `max_moves` threads."""
        if count > self.max_moves:
            hint = "narrow the window, or raise it: query.alerts(limits=rma.Limits(max_moves=1_000_000))"
            raise BudgetExceeded("max_moves", self.max_moves, count, "moves of threads", hint)

    def minterms(self, count: int) -> None:
        """Raises `BudgetExceeded` if the conditions of one state have more than `max_minterms` minterms."""
        if count > self.max_minterms:
            raise BudgetExceeded("max_minterms", self.max_minterms, count, "minterms of one state",
                                 "use fewer independent conditions, or narrow the window")  # fmt: skip

    def configurations(self, count: int) -> None:
        """Raises `BudgetExceeded` if more than `max_configurations` would be kept."""
        if count > self.max_configurations:
            raise BudgetExceeded("max_configurations", self.max_configurations, count, "configurations")
