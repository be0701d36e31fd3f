"""NOT around the whole formula: what must not come before a match, and behind it, inside its window or for a time."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ceql.lowering.absences import Absences, none_of
from ceql.lowering.parts import Alternative, Part, takes_one_event
from ceql.semantics.scopes import Bordered, absences
from ceql.syntax import ast
from spaseq.core import pattern as algebra
from spaseq.core.after import AfterText
from spaseq.core.engine import Quiet, Window
from spaseq.core.errors import Span
from spaseq.core.pattern import Absent, NoneOf, Pattern, Skip, all_shown, told_by_positions
from spaseq.core.trees import walk

_IN_FRONT: Final = "NOT … FOR 10 MINUTES in front goes with every choice among matches, and so does NOT without WITHIN"


_ENDS: Final = "NOT … FOR in an AND with no part behind it"
_ALL: Final = (
    "the time runs from the end of the part in front, and what follows comes later: A ; AND(B, NOT C FOR 5 SECONDS) ; D"
)
_TIMED: Final = "WITHIN a time, as the FOR is"


@dataclass(frozen=True, slots=True)
class AtBorder:
    """The NOTs inside of a formula that are about one border of the whole. `none` is the predicate of the events that
    may come there, `timed` of those that may come for `duration` (ns); None if all may."""

    none: NoneOf | None = None
    timed: NoneOf | None = None
    duration: int | None = None


class Borders(Absences):
    """Lowers the NOTs at the borders of a query's formula."""

    def at_the_borders(self, part: Part, bordered: Bordered, query: ast.Query) -> tuple[AtBorder, AtBorder]:
        """The events that must not come before a match of the whole formula, and behind it, because of NOTs inside.
        `bordered` has the NOTs in front of the formula and behind it."""
        if not self.places:
            return AtBorder(), AtBorder()
        found = self.borders(part.pattern)
        before, behind = self.one_border(found.before, "start"), self.one_border(found.behind, "end")
        in_front, after = self.at_one(before, "in front"), self.at_one(behind, "behind")
        if in_front.none is not None and query.within is not None:
            self.refuse_choice("NOT at the start", self.places[before[0]], query, _IN_FRONT)
        for node in bordered.before:
            if in_front.duration is not None and node.duration not in (None, in_front.duration):
                raise self.unsupported("several NOTs in front, for different times", node.span, "give one the longest")
        if behind:
            span, ending = self.places[behind[0]], bordered.behind
            self.refuse_choice("NOT at the end", span, query, "its matches wait for their windows")
            if ending is not None and ending.duration != after.duration:
                one = None in (ending.duration, after.duration)
                times = "once for a time and once for the window" if one else "for different times"
                raise self.unsupported(f"NOT at the end, {times}", ending.span)
            if after.duration is not None and isinstance(query.within, ast.WithinEvents):
                raise self.unsupported("NOT … FOR at the end with WITHIN … EVENTS", span, _TIMED)
        return in_front, after

    def at_one(self, absences: list[Absent], where: str) -> AtBorder:
        """The absences at a border of the whole formula, as one."""
        plain = none_of(absent for absent in absences if absent.lasting is None)
        lasting = [absent for absent in absences if absent.lasting is not None]
        times = {self.times[absent]: absent for absent in lasting}
        for absent in lasting:
            if absent.lasting is not None and not (absent.lasting.opens and absent.lasting.closes):
                what = f"NOT … FOR in an AND with no part {where} of it" if where == "in front" else _ENDS
                raise self.unsupported(what, self.places[absent], _ALL)
        if where == "behind" and times and (len(times) > 1 or plain is not None):
            span = self.places[lasting[-1]]
            raise self.unsupported("several NOTs at the end, for different times", span, "give them one time")
        if len(times) > 1:
            span = self.places[lasting[-1]]
            raise self.unsupported("several NOTs in front, for different times", span, "give one the longest")
        return AtBorder(plain, none_of(lasting), next(iter(times), None))

    def absent_at_the_end(self, node: ast.Without, part: Part, query: ast.Query) -> tuple[NoneOf, Pattern | None]:
        """The absence behind a match, for `φ ; NOT ψ` as the whole formula: the predicate of the events of ψ, and a
        pattern. The pattern is `φ ; ψ` of those alternatives of ψ that have conditions on φ; None if none has."""
        alternatives, number = self.alternatives(node.child, part.defined)
        related = [alternative for alternative in alternatives if alternative.conditions]
        for alternative in related:
            self.refuse_untold(alternative, part.pattern, query)
        self.refuse_choice("NOT at the end", node.span, query, "its matches wait for their windows")
        plain = NoneOf(frozenset(a.predicates for a in alternatives if not a.conditions))
        return plain, self.with_event_behind(part.pattern, related, f"#{number}") if related else None

    def absent_at_the_start(self, bordered: Bordered, query: ast.Query) -> tuple[NoneOf | None, Quiet | None]:
        """The absence in front of a match, for `NOT ψ ; φ` as the whole formula. If the window decides, the predicate
        of the other events; if a time does, that of first events."""
        if not bordered.before:
            return None, None
        node = bordered.before[0]
        alternatives = [a for absent in bordered.before for a in self.alternatives(absent.child, None)[0]]
        for leaf in (leaf for alternative in alternatives for leaf in alternative.conditions):
            hint = "PARTITION BY [id] is for the events with the same id"
            raise self.unsupported("a condition on later events in a NOT at the start", leaf.span, hint)
        none = NoneOf(frozenset(a.predicates for a in alternatives))
        within, duration = query.within, node.duration
        if duration is None and isinstance(within, ast.WithinTime) and takes_one_event(bordered.formula):
            duration = within.nanoseconds  # the match has one event, with which its window ends
        if duration is not None:
            return None, Quiet(none, Window("span", duration))
        if within is not None:
            self.refuse_choice("NOT at the start", node.span, query, _IN_FRONT)
        return none, None

    def before_a_match(
        self, absent: NoneOf | None, quiet: Quiet | None, query: ast.Query
    ) -> tuple[NoneOf | None, Quiet | None]:
        """Without a window, what came once stays in front of all later matches. So it is silence without end, if a
        choice among matches asks for it: the lazy evaluators know no silence."""
        if query.within is not None or absent is None or _choice(query) is None:
            return absent, quiet
        if quiet is not None:
            self.refuse_choice("NOT at the start, with and without FOR,", query.where.span, query, _IN_FRONT)
            return absent, quiet
        return None, Quiet(absent, Window("none"))

    def refuse_choice(self, what: str, span: Span, query: ast.Query, hint: str) -> None:
        """Refuse a choice among matches, by its name: with NOT at a border all are reported."""
        if (choice := _choice(query, hint)) is not None:
            raise self.unsupported(f"{what} with {choice[0]}", span, choice[1])

    def refuse_lasting(self, bordered: Bordered, query: ast.Query) -> None:
        """Refuse the times of NOTs that this version does not run."""
        beside = {id(no) for node in walk(bordered.formula) for no in absences(node)}
        for node in walk(bordered.formula):
            if not isinstance(node, ast.Without) or node.duration is None:
                continue
            if id(node) not in beside:
                hint = "the event that it begins with: beat ; NOT beat FOR 10 SECONDS"
                raise self.refused("NOT … FOR with no part in front of it or behind it", hint, node.span)
            if isinstance(query.within, ast.WithinAttribute):
                raise self.unsupported("NOT … FOR in a window over an attribute", node.span, "its time is not known")
        around = [*bordered.before, *([] if bordered.behind is None else [bordered.behind])]
        lasting = [node for node in around if node.duration is not None]
        for node in bordered.before[1:]:
            if node.duration != bordered.before[0].duration:
                raise self.unsupported("several NOTs in front, for different times", node.span, "give one the longest")
        for node in lasting:
            if isinstance(query.within, ast.WithinAttribute):
                raise self.unsupported("NOT … FOR in a window over an attribute", node.span, "its time is not known")
            if isinstance(query.within, ast.WithinEvents) and node is bordered.behind:
                raise self.unsupported("NOT … FOR at the end with WITHIN … EVENTS", node.span, _TIMED)

    def with_event_behind(self, pattern: Pattern, related: Iterable[Alternative], mark: str) -> Pattern:
        """`pattern`, and the first event behind it, of each of the alternatives, that the condition holds with: later
        ones call off nothing that is not off."""
        found: list[Pattern] = []
        for alternative in related:
            guard = self.guard_of(alternative, mark, pattern)
            assert guard is not None
            event = algebra.Atom(alternative.predicates, frozenset((mark,)))
            both = algebra.Sequence(pattern, event, Skip.NEXT)
            found.append(algebra.Correlate(both, guard.variables, guard))
        return functools.reduce(algebra.Or, found)

    def refuse_untold(self, alternative: Alternative, pattern: Pattern, query: ast.Query) -> None:
        """Refuse a query if the positions of a match do not determine the events of the condition's variables, or if
        SELECT leaves one of them out. The reason: a match is compared with the events behind it by its positions."""
        leaf = alternative.conditions[0]
        names = frozenset(name for one in alternative.conditions for name in one.variables) - alternative.names
        items = query.selection.items
        if not told_by_positions(pattern, names):
            raise self.unsupported(
                "a condition that relates a NOT at the end to a part with OR, AND or two repetitions",
                leaf.span,
                "PARTITION BY keeps to events of one key",
            )
        if items is not None and not all_shown(pattern, frozenset(item.variable for item in items)):
            raise self.unsupported(
                "a condition that relates a NOT at the end to other events, with a SELECT that leaves out some events",
                leaf.span,
                "SELECT * shows all of them, as does a SELECT that names each",
            )


def _choice(query: ast.Query, hint: str = "") -> tuple[str, str] | None:
    """The clause that chooses among the matches of a query, and `hint` for it; None if there is none."""
    if query.selection.strategy not in (None, ast.Strategy.ALL, ast.Strategy.STRICT):
        return f"the selection strategy {query.selection.strategy.value}", f"leave the strategy out for ALL; {hint}"
    if query.consume is not None and query.consume.policy is not ast.Consume.NONE:
        return f"CONSUME BY {query.consume.policy.value}", hint
    if query.after is not None and query.after.rule is not AfterText.NO_SKIP:
        return "AFTER MATCH", hint
    if query.limit is not None:
        return "LIMIT", "--limit N stops after N matches in all"
    return None
