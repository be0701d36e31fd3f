"""How large register match automata may grow; every limit is a setting that its error names."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.errors import BudgetExceeded

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets. Each raises `BudgetExceeded` with its name where it is reached."""

    max_states: int = 20_000
    """States of an automaton that is built: unrolling to a tree and determinisation can need exponentially many."""
    max_registers: int = 64
    """Registers of a deterministic automaton. Without a window there may be no bound at all ([RMA] Theorem 6.2)."""
    max_minterms: int = 4_096
    """Mutually exclusive conditions made for one state: 2ⁿ for n conditions that have nothing to do with each other."""
    max_configurations: int = 1_000_000
    """(State, registers) pairs that a run keeps at one time."""

    def states(self, count: int) -> None:
        """Raise if an automaton would have more than `max_states`."""
        if count > self.max_states:
            raise BudgetExceeded("max_states", self.max_states, count, "states",
                                 "narrow the window, recognise without building the automaton (Recogniser), "
                                 "or raise max_states")  # fmt: skip

    def registers(self, count: int) -> None:
        """Raise if a deterministic automaton would have more than `max_registers`."""
        if count > self.max_registers:
            raise BudgetExceeded("max_registers", self.max_registers, count, "registers",
                                 "give the expression a window (unroll): without one, no number of registers may be "
                                 "enough for a deterministic automaton")  # fmt: skip

    def minterms(self, count: int) -> None:
        """Raise if the conditions of one state have more than `max_minterms` minterms."""
        if count > self.max_minterms:
            raise BudgetExceeded("max_minterms", self.max_minterms, count, "minterms of one state",
                                 "use fewer independent conditions, or narrow the window")  # fmt: skip

    def configurations(self, count: int) -> None:
        """Raise if a run would keep more than `max_configurations`."""
        if count > self.max_configurations:
            raise BudgetExceeded("max_configurations", self.max_configurations, count, "configurations")
