"""Complex event automata: a pattern compiled to states and transitions ([CORE] §3, [CEL] §6).

A run may start at any position; it reads events one after another, and each transition marks its event or not. Final
states are not represented, because in the construction of Theorem 2 no transition leaves a final state. The constant
`ACCEPT` stands for all of them as a target, and the sets of states that determinisation builds contain none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from spaseq.core.drawing import text_html
from spaseq.core.pattern import Predicate

ACCEPT = -1
"""Target of a transition that completes the pattern."""

INITIAL = 0
"""The state a run starts in; no transition enters it."""

_SHOWN: Final = 20_000
"""Characters that a notebook shows."""


@dataclass(frozen=True, slots=True)
class Take:
    """A run takes the event for `variables` under `guard`; the guard may reject it."""

    guard: Hashable
    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Avoid:
    """The run passes over the event only if `guard` would not let it take the event for `variables` (negation)."""

    guard: Hashable
    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Leave:
    """The run leaves the scope of `guard`, the part of the pattern that it filters; the guard may still reject it."""

    guard: Hashable


@dataclass(frozen=True, slots=True)
class Again:
    """The run begins another round of an iteration."""

    action: Hashable


Action = Take | Avoid | Leave | Again


@dataclass(frozen=True, slots=True)
class Transition:
    """`source --predicates/marks--> target`; `actions` are its register actions, in order.

    `predicates` are indices into `CEA.predicates` and must all hold. A transition fires only if no transition of its
    source with a lower `rank` does. Skip-till-next ([SPAseq] Definition 11) passes over an event with the last rank,
    and a run that prefers one of several ways has a rank for each. `label` is an index into `CEA.labels`, for the set
    of variables that take the event; 0 if matches are not valuations.
    """

    source: int
    predicates: frozenset[int]
    marks: bool
    target: int
    actions: tuple[Action, ...] = ()
    rank: int = 0
    label: int = 0


@dataclass(frozen=True, slots=True)
class CEA:
    """A complex event automaton over the events of one substream.

    `states` is their number (0 is initial); `transitions[q]` are those that leave q; `predicates` are the distinct
    predicates that the front end evaluates. `labels` are the sets of variables that may take an event together, if
    matches are valuations ([CEL]'s semantics); None if a match is a set of positions.
    """

    states: int
    transitions: tuple[tuple[Transition, ...], ...]
    predicates: tuple[Predicate, ...]
    labels: tuple[frozenset[str], ...] | None = None

    @property
    def has_registers(self) -> bool:
        """True if some transition reads or writes registers."""
        return any(t.actions for out in self.transitions for t in out)

    def __repr__(self) -> str:
        return f"<CEA of {self.states} states and {sum(map(len, self.transitions))} transitions; describe() lists them>"

    def _repr_html_(self) -> str:
        """For a notebook; `query.picture()` draws it."""
        told = self.describe()
        return text_html(told[:_SHOWN] + ("…" if len(told) > _SHOWN else ""))

    def describe(self, say: Callable[[Action], str] | None = None) -> str:
        """The automaton as text, one transition a line. `say` words the actions (`show_action`)."""
        say = show_action if say is None else say
        lines = [f"{self.states} states, {sum(map(len, self.transitions))} transitions"]
        for out in self.transitions:
            for t in out:
                condition = " & ".join(str(self.predicates[p]) for p in sorted(t.predicates)) or "true"
                if t.rank:
                    condition = "otherwise" if condition == "true" else f"otherwise {condition}"
                target = "accept" if t.target == ACCEPT else str(t.target)
                actions = "".join(f"  [{say(a)}]" for a in t.actions)
                marks = "skip" if not t.marks else "mark"
                if t.marks and self.labels:
                    marks += f" {', '.join(sorted(self.labels[t.label]))}"
                lines.append(f"  {t.source} --{condition} | {marks}--> {target}{actions}")
        return "\n".join(lines)


def say_action(action: Action) -> str:
    """An action in the words of the query, for pictures and `explain`. Guards may have a text for it (`said`)."""
    match action:
        case Take(guard, variables):
            names = ", ".join(sorted({name.partition("#")[0] for name in variables} - {""}))
            return f"{names}: {_guard_text(guard, variables)}" if names else _guard_text(guard, variables)
        case Avoid(guard, variables):
            return f"unless {_guard_text(guard, variables)}"
        case Leave(guard):
            return f"decided: {_guard_text(guard)}"
        case Again(what):
            return f"another round{_guard_text(what)}"


def _guard_text(guard: Hashable, own: frozenset[str] = frozenset()) -> str:
    """A guard without the names that the compiler gave to events. `own`: those of the transition's event."""
    text = str(getattr(guard, "said", guard))
    text = re.sub(r"`([^`#]+)#\d+`", r"\1", text)
    text = re.sub(r"`(#\d+)`\.", lambda mark: "its " if mark[1] in own else "another's ", text)
    return re.sub(r"`#\d+`", "it", text)


def show_action(action: Action) -> str:
    """An action as text that tells it from all others: snapshots compare it."""
    match action:
        case Take(guard, variables):
            return f"{', '.join(sorted(variables))} under {guard}"
        case Avoid(guard, variables):
            return f"not {', '.join(sorted(variables))} under {guard}"
        case Leave(guard):
            return f"forget {guard}"
        case Again(what):
            return f"again {what}"
