"""Windows: automata whose runs take at most w events from the first marked one on ([RMA] §6, Lemma 6.5).

`unroll` is the paper's tree (Algorithms 6 to 8): every walk gets its own states and registers, so there are
exponentially many. `count_events` has the same matches with a counter in the state: |Q|·w states and the same
registers. The paper asks for such a construction in its last remark on Lemma 6.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.automaton import RMA, Transition, numbered, trim
from spaseq.core.automata.rma.limits import Limits
from spaseq.core.errors import InternalError, OptionError


@dataclass(frozen=True, slots=True)
class _Node:
    """A state of the tree: `of` is the automaton's state; `copies` has, for each of its registers, the register of the
    tree that holds its latest event."""

    state: int
    of: int
    copies: dict[str, str]


def unroll(automaton: RMA, window: int, *, limits: Limits = Limits(), loop: bool = True) -> RMA:  # noqa: B008 - frozen
    """The walks of at most `window` transitions as a tree, with a TRUE/∘ loop on its root (unless `loop` is False).

    The automaton must have one start state and no ε-transitions. Branches without a final state are left out. With the
    loop, matches begin anywhere. If the automaton itself may wait before a match (a loop on its start), the walks that
    wait are in the tree as well, as in the paper.

    Raises `BudgetExceeded` at `max_states`. Cost: the number of walks, up to dᵂ for d transitions leaving a state.
    """
    root = _only_start(automaton, window)
    nodes = [_Node(0, root, {})]
    names, finals = [automaton.names[root]], {0} if root in automaton.finals else set()
    transitions: list[Transition] = []
    front, registers = [nodes[0]], 0
    useful = _distances(automaton)
    for depth in range(window):
        grown = []
        for node in front:
            for t in automaton.leaving[node.of]:
                distance = useful[t.target]
                if distance is None or depth + 1 + distance > window:
                    continue  # no final state within the window
                child, copies = len(names), dict(node.copies)
                limits.states(child + 1)
                written = ""
                if t.writes:
                    registers += 1
                    written = f"r{registers}"
                    copies.update(dict.fromkeys(t.writes, written))
                names.append(f"{names[node.state]}·{automaton.names[t.target]}")
                if t.target in automaton.finals:
                    finals.add(child)
                transitions.append(
                    replace(t, source=node.state, target=child, formula=f.rename(t.formula, node.copies),
                            writes=frozenset({written} if written else ()))
                )  # fmt: skip
                grown.append(_Node(child, t.target, copies))
        front = grown
    if loop:
        transitions.insert(0, Transition(0, f.TRUE, 0))
    used = numbered(r for t in transitions for r in t.writes)
    return trim(RMA(tuple(names), frozenset({0}), frozenset(finals), used, tuple(transitions)))


def count_events(automaton: RMA, window: int, *, limits: Limits = Limits()) -> RMA:  # noqa: B008 - frozen
    """The matches within a window, by a counter in the state, for any automaton without ε-transitions.

    State (q, k) is q after k events, counted from the first marked one; k is 0 before it. The matches are exactly those
    M of the automaton with max(M) - min(M) < `window` (Definition 6.4). There are at most |Q|·(window + 1) states, and
    loops only while nothing is marked. Raises `BudgetExceeded` (`max_states`).
    """
    _check(automaton, window)
    number: dict[tuple[int, int], int] = {}
    transitions: list[Transition] = []

    def state(q: int, age: int) -> int:
        if (q, age) not in number:
            number[q, age] = len(number)
            limits.states(len(number))
            todo.append((q, age))
        return number[q, age]

    todo: list[tuple[int, int]] = []
    starts = frozenset(state(q, 0) for q in sorted(automaton.starts))
    for q, age in todo:
        for t in automaton.leaving[q]:
            older = age + 1 if age or t.marks else 0
            if older <= window:
                transitions.append(replace(t, source=number[q, age], target=state(t.target, older)))
    names = tuple(f"{automaton.names[q]}·{age}" if age else automaton.names[q] for q, age in number)
    finals = frozenset(i for (q, _), i in number.items() if q in automaton.finals)
    return trim(RMA(names, starts, finals, automaton.registers, tuple(transitions)))


def _check(automaton: RMA, window: int) -> None:
    if window < 1:
        raise OptionError(f"a window of {window} events", "WINDOW w needs w > 0")
    if automaton.has_epsilon:
        raise InternalError("unrolling an automaton with ε-transitions: eliminate_epsilon first")


def _only_start(automaton: RMA, window: int) -> int:
    _check(automaton, window)
    if len(automaton.starts) != 1:
        raise OptionError(f"unrolling an automaton with {len(automaton.starts)} start states",
                          "count_events takes it")  # fmt: skip
    return next(iter(automaton.starts))


def _distances(automaton: RMA) -> list[int | None]:
    """For each state the fewest transitions to a final state; None if there is no path."""
    found: list[int | None] = [0 if q in automaton.finals else None for q in range(automaton.states)]
    changed = True
    while changed:
        changed = False
        for t in automaton.transitions:
            ahead, here = found[t.target], found[t.source]
            if ahead is not None and (here is None or ahead + 1 < here):
                found[t.source], changed = ahead + 1, True
    return found
