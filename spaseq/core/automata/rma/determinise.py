"""Determinisation by minterms ([RMA] Theorem 5.5 and Algorithm 5; §6, Corollary 6.7), with registers renamed.

A state of the deterministic automaton is a set of *threads*. A thread is a state of the given automaton and a map of
registers. The map gives, for each register that can still be read from that state, the register of the deterministic
automaton that holds its event. For each minterm of the formulas of the threads' transitions there is one transition.
The event is written to at most one register, the first that no thread needs any more. If outputs do not matter, a
thread is left out if another one with the same registers can do everything that it can (`simulation`). For example, of
the runs that wait in one state of a windowed sequence only the youngest stays. Transitions with the same effect are
joined before minterms are made, so n runs that wait for the same event make 2 of them, not 2ⁿ.

Why registers are renamed. Algorithm 5 keeps the registers as they are: a transition writes every register that one of
its threads writes. But one thread may write a register that another thread in the set still has to read. The windowed
automaton for `T AS x ; H AS y FILTER x.id = y.id` is an example, with the stream T(1) T(2) H(1) and w = 3. The loop on
its start state begins another run at the second T, which overwrites the first T.

The automaton for `(T)+ ; T AS x ; (T)+ ; H AS y FILTER x.id = y.id` without a window is another. No number of registers
makes that one deterministic, even if transitions with different outputs may apply to one event. So Theorem 5.5 holds
for determinisation only if this construction terminates. With a window it always does, as Corollary 6.7 states: a
thread lives for at most w events. Two threads of one state that began at the same event and took the same transitions
have the same registers. `tests/core/automata/test_rma_paper.py` has both examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.automaton import RMA, Transition, is_deterministic, live_registers, numbered, trim
from spaseq.core.automata.rma.epsilon import eliminate_epsilon, merge_alike, single_final
from spaseq.core.automata.rma.formulas import Formula
from spaseq.core.automata.rma.limits import Limits
from spaseq.core.automata.rma.simulation import simulators
from spaseq.core.errors import OptionError
from spaseq.core.watch import check

_Thread = tuple[int, tuple[tuple[str, int], ...]]
"""A state of the given automaton, and for each register that is live there, in order: (register, number of the
deterministic automaton's register that holds its event)."""


@dataclass(frozen=True, slots=True)
class _Option:
    """A transition that a thread may take; `formula` is over the deterministic automaton's registers, `held` are the
    thread's registers."""

    taken: Transition
    formula: Formula
    held: tuple[tuple[str, int], ...]


def determinise(
    automaton: RMA,
    *,
    output_agnostic: bool = False,
    complete: bool = False,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> RMA:
    """An automaton with the same matches, in which no event allows two transitions of one state with the same output.

    With `output_agnostic` (Definition 6.1) no event allows two transitions of one state at all. There is a single run,
    which accepts at an event if and only if some match ends there. It marks the events that some run of `automaton`
    marks. With `complete`, which needs `output_agnostic`, every event allows a transition.

    Raises `BudgetExceeded` (`max_registers`, `max_states`, `max_moves` or `max_minterms`); without a window there may
    be no bound on registers and states. Cost: states × minterms; both may be exponential.
    """
    if complete and not output_agnostic:
        raise OptionError("a complete automaton must be output-agnostic", "determinise(…, output_agnostic=True)")
    given = single_final(eliminate_epsilon(automaton) if automaton.has_epsilon else automaton)
    made = _Determiniser(given, output_agnostic, complete, limits).run()
    return merge_alike(made if complete else trim(made))


class _Determiniser:
    def __init__(self, automaton: RMA, agnostic: bool, complete: bool, limits: Limits) -> None:
        self._given = automaton
        self._live = [tuple(sorted(r)) for r in live_registers(automaton)]
        self._agnostic = agnostic
        self._complete = complete
        self._limits = limits
        self._numbers: dict[frozenset[_Thread], int] = {}
        self._todo: list[frozenset[_Thread]] = []
        self._moves = 0
        self._minterms: dict[tuple[Formula, ...], list[tuple[Formula, frozenset[int]]]] = {}
        self._simulators = simulators(automaton) if agnostic else None

    def run(self) -> RMA:
        """The automaton of all sets of threads that can be reached."""
        self._number(frozenset((q, ()) for q in self._given.starts))
        transitions = [t for threads in self._todo for t in self._leaving(threads)]  # _todo grows meanwhile
        finals = frozenset(
            i for threads, i in self._numbers.items() if any(q in self._given.finals for q, _ in threads)
        )
        registers = numbered(r for t in transitions for r in (*t.writes, *t.reads))
        names = tuple(self._name(threads) for threads in self._numbers)
        return RMA(names, frozenset({0}), finals, registers, tuple(transitions))

    def _number(self, threads: frozenset[_Thread]) -> int:
        found = self._numbers.get(threads)
        if found is None:
            found = self._numbers[threads] = len(self._numbers)
            self._limits.states(len(self._numbers))
            self._todo.append(threads)
        return found

    def _name(self, threads: frozenset[_Thread]) -> str:
        def one(thread: _Thread) -> str:
            q, held = thread
            where = ",".join(f"{r}=r{n + 1}" for r, n in held if r != f"r{n + 1}")
            return self._given.names[q] + (f"[{where}]" if where else "")

        return "{" + ", ".join(one(t) for t in sorted(threads)) + "}"

    def _leaving(self, threads: frozenset[_Thread]) -> list[Transition]:
        options = [_Option(t, _over(t.formula, dict(held)), held) for q, held in sorted(threads)
                   for t in self._given.leaving[q]]  # fmt: skip
        if self._agnostic:
            return self._transitions(threads, options)
        return [t for marks in (True, False)
                for t in self._transitions(threads, [o for o in options if o.taken.marks == marks])]  # fmt: skip

    def _transitions(self, threads: frozenset[_Thread], options: list[_Option]) -> list[Transition]:
        """A transition for each minterm of the options' formulas under which some thread moves; with `complete` for
        every minterm."""
        options = self._one_for_each_effect(options)
        formulas = tuple(dict.fromkeys(o.formula for o in options))
        terms = self._minterms.get(formulas)
        if terms is None:
            terms = self._minterms[formulas] = f.minterms(formulas, self._limits)
        place = {formula: i for i, formula in enumerate(formulas)}
        found = []
        for term, chosen in terms:
            check()
            moved = [o for o in options if place[o.formula] in chosen]
            self._moves += len(moved)
            self._limits.moves(self._moves)
            if moved or self._complete:
                target, written = self._move(moved)
                found.append(
                    Transition(
                        self._numbers[threads], term, self._number(target), written,
                        any(o.taken.marks for o in moved),
                        variables=frozenset[str]().union(*(o.taken.variables for o in moved)),
                    )
                )  # fmt: skip
        return found

    def _effect(self, o: _Option) -> tuple[tuple[str, int], ...]:
        """For each register that is live behind the transition: (register, number of the deterministic automaton's
        register that holds its event), -1 if the transition writes it."""
        where = dict(o.held)
        return tuple((r, -1 if r in o.taken.writes else where[r]) for r in self._live[o.taken.target])

    def _one_for_each_effect(self, options: list[_Option]) -> list[_Option]:
        """The options, with those that lead to the same thread with the same output joined by an OR of their formulas.

        Runs that wait for the same event with different events in their registers have such options: n of them would
        make 2ⁿ minterms.
        """
        groups: dict[tuple[int, bool, tuple[tuple[str, int], ...]], list[_Option]] = {}
        for o in options:
            groups.setdefault((o.taken.target, o.taken.marks, self._effect(o)), []).append(o)
        return [
            replace(group[0], formula=f.disjunction(*(o.formula for o in group))) if len(group) > 1 else group[0]
            for group in groups.values()
        ]

    def _move(self, options: list[_Option]) -> tuple[frozenset[_Thread], frozenset[str]]:
        """The threads after these transitions, and the register that the event is written to, or none."""
        options = self._drop_simulated(options)
        kept = [dict(o.held) for o in options]
        live = [self._live[o.taken.target] for o in options]
        needed = {where[r] for where, o, names in zip(kept, options, live, strict=True)
                  for r in names if r not in o.taken.writes}  # fmt: skip
        fresh = next(n for n in range(len(needed) + 1) if n not in needed)
        threads, writes = set(), False
        for where, o, names in zip(kept, options, live, strict=True):
            writes |= any(r in o.taken.writes for r in names)
            held = tuple((r, fresh if r in o.taken.writes else where[r]) for r in names)
            threads.add((o.taken.target, held))
        if writes:
            self._limits.registers(len(needed) + 1)
        return frozenset(threads), frozenset({f"r{fresh + 1}"} if writes else ())

    def _drop_simulated(self, options: list[_Option]) -> list[_Option]:
        """The options without those to threads that another thread, with the same registers, simulates."""
        if self._simulators is None:
            return options
        groups: dict[tuple[tuple[str, int], ...], dict[int, _Option]] = {}
        for o in options:
            groups.setdefault(self._effect(o), {})[o.taken.target] = o
        return [o for group in groups.values() for q, o in group.items() if not self._is_covered(q, group)]

    def _is_covered(self, state: int, group: Iterable[int]) -> bool:
        assert self._simulators is not None
        by = self._simulators[state]
        # Of states that simulate each other, the first is kept.
        return any(p != state and by >> p & 1 and (p < state or not self._simulators[p] >> state & 1) for p in group)


def _over(formula: Formula, held: Mapping[str, int]) -> Formula:
    return f.rename(formula, {register: f"r{number + 1}" for register, number in held.items()})


def complement(automaton: RMA) -> RMA:
    """An automaton that accepts at exactly the events at which `automaton` does not.

    RMA are not closed under complement (Theorem 5.5), but an output-agnostic deterministic one has a single run, so the
    events at which it does not accept can be recognised. The marks of the result have no meaning.

    Raises `OptionError` unless `automaton` is complete and output-agnostic deterministic:
    `determinise(…, output_agnostic=True, complete=True)`.
    """
    if not is_deterministic(automaton, output_agnostic=True) or not is_complete(automaton):
        raise OptionError("complement of an automaton that is not complete and output-agnostic deterministic",
                          "determinise(automaton, output_agnostic=True, complete=True) first")  # fmt: skip
    given = told_apart(automaton)
    finals = frozenset(range(given.states)) - given.finals
    transitions = tuple(replace(t, marks=True) for t in given.transitions)
    return RMA(given.names, given.starts, finals, given.registers, transitions)


def is_complete(automaton: RMA) -> bool:
    """True if every event allows a transition of every state, by the formulas alone (`formulas.satisfiable`)."""
    return all(not f.satisfiable(f.negation(f.disjunction(*(t.formula for t in out)))) for out in automaton.leaving)


def told_apart(automaton: RMA) -> RMA:
    """The automaton with a split of each final state that unmarked transitions enter, or that is a start. One half, for
    marking transitions, is final and the other is not. Then a run accepts whenever it is in a final state."""
    doubled = {t.target for t in automaton.transitions if t.target in automaton.finals and not t.marks}
    doubled |= automaton.starts & automaton.finals
    twin = {q: automaton.states + i for i, q in enumerate(sorted(doubled))}
    transitions = [replace(t, target=twin[t.target]) if not t.marks and t.target in twin else t
                   for t in automaton.transitions]  # fmt: skip
    transitions += [replace(t, source=twin[t.source]) for t in transitions if t.source in twin]
    names = (*automaton.names, *(f"{automaton.names[q]}∘" for q in twin))
    starts = frozenset(twin.get(q, q) for q in automaton.starts)
    return RMA(names, starts, automaton.finals, automaton.registers, tuple(transitions))
