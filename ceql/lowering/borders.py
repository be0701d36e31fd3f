"""NOT around the whole formula: what must not come before a match, and behind it, inside its window or for a time."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ceql.lowering.absences import Absences, either_of, none_of
from ceql.lowering.parts import Alternative, Part, takes_one_event
from ceql.semantics.scopes import Bordered, absences
from ceql.syntax import ast
from spaseq.core import pattern as algebra
from spaseq.core.after import AfterText
from spaseq.core.engine import Around, Marked, Quiet, Window
from spaseq.core.pattern import Absent, Border, NoneOf, Pattern, Skip, all_shown, told_by_positions
from spaseq.core.trees import walk

_MARKS: Final = 30
_ALL: Final = (
    "the time runs from the end of the part in front, and what follows comes later: A ; AND(B, NOT C FOR 5 SECONDS) ; D"
)
_TIMED: Final = "WITHIN a time, as the FOR is"


@dataclass(frozen=True, slots=True)
class AtBorder:
    """The predicate of the events that may come at a border for `duration` (ns); None if all may."""

    none: NoneOf | None = None
    duration: int | None = None


class Borders(Absences):
    """Lowers the NOTs at the borders of a query's formula."""

    def at_the_borders(self, part: Part, ending: ast.Without | None, query: ast.Query) -> Around:
        """The events that must not come around a match of the whole formula, because of NOTs inside; by marks if
        alternatives differ. `ending`: the NOT at the end."""
        if not self.places:
            return Around()
        found = self.borders(part.pattern)
        before, behind = self.of_the_whole(found.before, "start"), self.of_the_whole(found.behind, "end")
        marked = [*self.marks_of(found.before, behind=False), *self.marks_of(found.behind, behind=True)]
        if marked and query.selection.items is not None and query.selection.strategy is ast.Strategy.STRICT:
            what = "NOT at the border of some alternatives, with SELECT STRICT of some of the events"
            raise self.unsupported(what, self.places[(before or behind)[0]], "SELECT STRICT * shows all events")
        both = len(found.behind) == 1 and behind and ending is not None and ending.duration is not None
        if both and (none := none_of(behind)) is not None:
            marked.append(Marked(none, True))
        return Around(
            None if both or len(found.behind) > 1 else none_of(behind),
            None,
            none_of(before) if len(found.before) == 1 else None,
            None,
            tuple(marked),
        )

    def marks_of(self, ways: frozenset[Border], *, behind: bool) -> Iterator[Marked]:
        """The borders of alternatives, if they differ."""
        some = sorted((way for way in ways if way), key=lambda way: [self.places[a].start for a in self.in_order(way)])
        if len(ways) == 1:
            return
        if len(some) > _MARKS:
            span = self.places[self.in_order(some[0])[0]]
            raise self.refused(f"more than {_MARKS} different borders of alternatives", "write several queries", span)
        for number, way in enumerate(some, 1):
            none = none_of(way)
            assert none is not None
            yield Marked(none, behind, way, f"#{'behind' if behind else 'before'} {number}")

    def times_at_the_borders(self, part: Part, bordered: Bordered, query: ast.Query) -> tuple[AtBorder, AtBorder]:
        """The absences for a time at the borders of the whole formula, in front and behind, because of NOTs inside.
        `bordered` has the NOTs in front of the formula and behind it."""
        found = self.borders(part.pattern)
        in_front, after = self.times_at(found.before, "start"), self.times_at(found.behind, "end")
        ending = bordered.behind
        for node in bordered.before:
            if in_front.duration is not None and node.duration not in (None, in_front.duration):
                raise self.unsupported("several NOTs in front, for different times", node.span, "give one the longest")
        if after.duration is not None:
            if ending is not None and ending.duration != after.duration:
                one = ending.duration is None
                times = "once for a time and once for the window" if one else "for different times"
                raise self.unsupported(f"NOT at the end, {times}", ending.span)
            if isinstance(query.within, ast.WithinEvents):
                span = next(self.places[a] for way in found.behind for a in way)
                raise self.unsupported("NOT … FOR at the end with WITHIN … EVENTS", span, _TIMED)
        return in_front, after

    def times_at(self, ways: frozenset[Border], where: str) -> AtBorder:
        """The absences for a time at a border of the whole formula, as one. They are the same for all alternatives."""
        every = self.in_order(frozenset[Absent]().union(*ways))
        lasting = [absent for absent in every if absent.lasting is not None]
        if not lasting:
            return AtBorder()
        span = self.places[lasting[-1]]
        if len(ways) > 1:
            what = f"NOT at the {where} of some alternatives of the whole formula"
            raise self.refused(what, "write a query for each alternative", span)
        for absent in lasting:
            if absent.lasting is not None and not (absent.lasting.opens and absent.lasting.closes):
                what = f"NOT … FOR in an AND with no part {'in front of' if where == 'start' else 'behind'} it"
                raise self.unsupported(what, self.places[absent], _ALL)
        if len({self.times[absent] for absent in lasting}) > 1 or (where == "end" and len(lasting) < len(every)):
            raise self.unsupported(f"several NOTs at the {where}, for different times", span, "give them one time")
        return AtBorder(
            NoneOf(frozenset(a.pattern.predicates for a in lasting if isinstance(a.pattern, algebra.Atom))),
            self.times[lasting[0]],
        )

    def with_times(self, around: Around, in_front: AtBorder, after: AtBorder, query: ast.Query) -> Around:
        """`around` with the absences of `times_at_the_borders`."""
        quiet, patience = around.quiet, around.patience
        if in_front.duration is not None:
            window = Window("span", in_front.duration)
            if quiet is not None and quiet.duration != window:
                raise self.unsupported("NOT at the start, with and without FOR", query.where.span, "give it FOR alone")
            none = either_of(in_front.none, None if quiet is None else quiet.none)
            quiet = None if none is None else Quiet(none, window)
        if after.duration is not None:
            patience = Window("span", after.duration)
        return dataclasses.replace(around, absent=either_of(around.absent, after.none), patience=patience, quiet=quiet)

    def absent_at_the_end(self, node: ast.Without, part: Part, query: ast.Query) -> tuple[NoneOf, Pattern | None]:
        """The absence behind a match, for `φ ; NOT ψ` as the whole formula: the predicate of the events of ψ, and a
        pattern. The pattern is `φ ; ψ` of those alternatives of ψ that have conditions on φ; None if none has."""
        alternatives, number = self.alternatives(node.child, part.defined)
        related = [alternative for alternative in alternatives if alternative.conditions]
        for alternative in related:
            self.refuse_untold(alternative, part.pattern, query)
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
        return none, None

    def before_a_match(
        self, absent: NoneOf | None, quiet: Quiet | None, query: ast.Query
    ) -> tuple[NoneOf | None, Quiet | None]:
        """Without a window, what came once stays in front of all later matches. So it is silence without end, if a
        choice among matches asks for it: the lazy evaluators know no silence."""
        if query.within is not None or absent is None or quiet is not None or not _chooses(query):
            return absent, quiet
        return None, Quiet(absent, Window("none"))

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


def _chooses(query: ast.Query) -> bool:
    """True if a clause chooses among the matches of a query."""
    strategy = query.selection.strategy not in (None, ast.Strategy.ALL, ast.Strategy.STRICT)
    consumes = query.consume is not None and query.consume.policy is not ast.Consume.NONE
    skips = query.after is not None and query.after.rule is not AfterText.NO_SKIP
    return strategy or consumes or skips or query.limit is not None
