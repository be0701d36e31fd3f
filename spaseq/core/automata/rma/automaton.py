"""Register match automata ([RMA] §4).

A run reads events from some index on. A transition applies if its formula holds for the event at hand and the events in
the registers that it selects. It may write the event to registers, and it marks the event (output •) or not (∘). A run
accepts when it is in a final state and has just marked an event (Definition 4.4); the marked indices are its match.

In the automata that this package constructs, every register that a transition reads is written on every path to that
transition. That is the structural property at the end of §4; `check_registers` tests it on walks instead of trails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.formulas import Formula
from spaseq.core.automata.states import closure
from spaseq.core.errors import OptionError


@dataclass(frozen=True, slots=True)
class Transition:
    """`(source, formula, selection) → (target, writes, output)`; with `epsilon` it reads no event and does nothing.

    `variables` are the variables of the expression that take the event (δx in Appendix A.1); they are informative only.
    """

    source: int
    formula: Formula
    target: int
    writes: frozenset[str] = frozenset()
    marks: bool = False
    epsilon: bool = False
    variables: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def selection(self) -> tuple[str, ...]:
        """The register selection: `CURRENT` and registers, in the order in which the formula names them."""
        return f.arguments(self.formula)

    @property
    def reads(self) -> frozenset[str]:
        """The registers in the selection."""
        return frozenset(self.selection) - {f.CURRENT}

    def label(self) -> str:
        """`formula / selection / writes / output` as in the paper's figures; ε for an ε-transition."""
        if self.epsilon:
            return "ε"
        selection = ", ".join(self.selection) or f.CURRENT
        return f"{f.show(self.formula)} / ({selection}) / {_set(self.writes)} / {'•' if self.marks else '∘'}"


def _set(names: Iterable[str]) -> str:
    ordered = sorted(names, key=register_order)
    return "{" + ", ".join(ordered) + "}" if ordered else "∅"


def register_order(name: str) -> tuple[int, str]:
    """r2 before r10."""
    return (len(name), name)


@dataclass(frozen=True, slots=True)
class RMA:
    """A register match automaton (Definition 4.1). States are numbers from 0; `names` are for people.

    `leaving[q]` are the transitions that leave q. Raises `OptionError` for a transition with an unknown state or
    register.
    """

    names: tuple[str, ...]
    starts: frozenset[int]
    finals: frozenset[int]
    registers: tuple[str, ...]
    transitions: tuple[Transition, ...]
    leaving: tuple[tuple[Transition, ...], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        out: list[list[Transition]] = [[] for _ in self.names]
        for t in self.transitions:
            if not (0 <= t.source < len(out) and 0 <= t.target < len(out)):
                raise OptionError(f"a transition from state {t.source} to {t.target} of {len(out)} states")
            unknown = sorted((t.reads | t.writes) - set(self.registers))
            if unknown:
                raise OptionError(f"a transition names the register {unknown[0]}, which the automaton does not have",
                                  f"registers: {', '.join(self.registers) or 'none'}")  # fmt: skip
            out[t.source].append(t)
        object.__setattr__(self, "leaving", tuple(map(tuple, out)))

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.names)

    @property
    def has_epsilon(self) -> bool:
        """True if some transition is an ε-transition."""
        return any(t.epsilon for t in self.transitions)

    def describe(self) -> str:
        """The automaton as text, one transition a line."""
        kinds = {q: "start " * (q in self.starts) + "final" * (q in self.finals) for q in range(self.states)}
        registers = ", ".join(self.registers) or "none"
        lines = [f"{self.states} states, {len(self.transitions)} transitions, registers: {registers}"]
        for q, out in enumerate(self.leaving):
            kind = f" ({kinds[q].strip()})" if kinds[q].strip() else ""
            lines.append(f"  {self.names[q]}{kind}")
            lines += [f"    {t.label()} → {self.names[t.target]}" for t in out]
        return "\n".join(lines)


def numbered(registers: Iterable[str]) -> tuple[str, ...]:
    """Registers in the order of their numbers, each once."""
    return tuple(sorted(set(registers), key=register_order))


def trim(automaton: RMA) -> RMA:
    """The automaton without states and transitions that are on no path from a start to a final state, and without
    registers that no transition reads.

    All start states stay, so that an automaton without matches is still valid.
    """
    forward = closure(automaton.starts, ((t.source, t.target) for t in automaton.transitions))
    backward = closure(automaton.finals, ((t.target, t.source) for t in automaton.transitions))
    kept = [q for q in range(automaton.states) if q in automaton.starts or q in forward & backward]
    number = {q: i for i, q in enumerate(kept)}
    transitions = [t for t in automaton.transitions if t.source in number and t.target in number
                   and t.target in backward and t.source in forward]  # fmt: skip
    return without_unread(
        RMA(
            tuple(automaton.names[q] for q in kept),
            frozenset(number[q] for q in automaton.starts),
            frozenset(number[q] for q in automaton.finals if q in number),
            automaton.registers,
            tuple(replace(t, source=number[t.source], target=number[t.target]) for t in transitions),
        )
    )


def without_unread(automaton: RMA) -> RMA:
    """The automaton without the registers that no transition reads."""
    read = frozenset().union(*(t.reads for t in automaton.transitions))
    transitions = tuple(replace(t, writes=t.writes & read) for t in automaton.transitions)
    return replace(automaton, registers=tuple(r for r in automaton.registers if r in read),
                         transitions=transitions)  # fmt: skip


def on_every_way(
    states: int, starts: Iterable[int], edges: Iterable[tuple[int, int, frozenset[str]]]
) -> list[frozenset[str] | None]:
    """For each state the names that are on every walk to it from `starts`, an edge being (source, target, names); None
    for a state that no walk reaches."""
    known: list[frozenset[str] | None] = [None] * states
    for q in starts:
        known[q] = frozenset()
    listed, changed = list(edges), True
    while changed:
        changed = False
        for source, target, carried in listed:
            before = known[source]
            if before is None:
                continue
            arriving, old = before | carried, known[target]
            new = arriving if old is None else old & arriving
            if new != old:
                known[target], changed = new, True
    return known


def written_registers(automaton: RMA) -> list[frozenset[str] | None]:
    """For each state the registers written on every walk to it from a start; None for a state that is not reached."""
    return on_every_way(
        automaton.states, automaton.starts, ((t.source, t.target, t.writes) for t in automaton.transitions)
    )


def check_registers(automaton: RMA) -> None:
    """Raises `OptionError` if a transition may read a register that was not written (§4)."""
    written = written_registers(automaton)
    for t in automaton.transitions:
        known = written[t.source]
        if known is not None and not t.reads <= known:
            missing = ", ".join(sorted(t.reads - known))
            raise OptionError(
                f"{automaton.names[t.source]} → {automaton.names[t.target]} reads {missing}, which may be empty there",
                "write a register on every way to a transition that reads it",
            )


def live_registers(automaton: RMA) -> list[frozenset[str]]:
    """For each state the registers that some walk from it reads before it writes them."""
    live = [frozenset[str]()] * automaton.states
    changed = True
    while changed:
        changed = False
        for t in automaton.transitions:
            new = live[t.source] | t.reads | (live[t.target] - t.writes)
            if new != live[t.source]:
                live[t.source], changed = new, True
    return live


def is_deterministic(automaton: RMA, *, output_agnostic: bool = False) -> bool:
    """True if no event allows two transitions of one state (with `output_agnostic`), or two with one output.

    Definitions 6.1 and 5.3, with a single start state and no ε-transition. Formulas are compared by their tests alone,
    so False may be returned for an automaton that is deterministic for other reasons.
    """
    if len(automaton.starts) != 1 or automaton.has_epsilon:
        return False
    for out in automaton.leaving:
        for i, a in enumerate(out):
            for b in out[i + 1 :]:
                if (output_agnostic or a.marks == b.marks) and f.satisfiable(f.conjunction(a.formula, b.formula)):
                    return False
    return True


def with_registers_renamed(automaton: RMA, names: Mapping[str, str]) -> RMA:
    """The automaton with its registers renamed by `names`."""
    transitions = tuple(
        replace(t, formula=f.rename(t.formula, names), writes=frozenset(names.get(r, r) for r in t.writes))
        for t in automaton.transitions
    )
    registers = tuple(names.get(r, r) for r in automaton.registers)
    return replace(automaton, registers=registers, transitions=transitions)
