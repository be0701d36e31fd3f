"""NOT around the whole formula: what must not come before a match, and behind it, inside its window or for a time."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Final

from ceql.lowering.absences import Absences, either_of
from ceql.lowering.parts import Alternative, Part, takes_one_event
from ceql.semantics.scopes import Bordered, absences
from ceql.syntax import ast
from spaseq.core import pattern as algebra
from spaseq.core.after import AfterText
from spaseq.core.engine import Around, Marked, Quiet, Repeated, Silent, Window
from spaseq.core.pattern import Absent, Border, NoneOf, Pattern, Predicate, Skip, all_shown, told_by_positions
from spaseq.core.trees import children, walk

_MARKS: Final = 30
_TIMED: Final = "WITHIN a time, as the FOR is"


_Groups = dict[tuple[int | None, str], NoneOf]
"""The predicates of the events that may come at a border, by a time (ns) and a variable. The time is None for the
window of the match. The variable takes the event with which the time begins; it is empty for the border itself."""


class Borders(Absences):
    """Lowers the NOTs at the borders of a query's formula."""

    def around(self, part: Part, bordered: Bordered, absent: NoneOf | None, query: ast.Query) -> Around:
        """The events that must not come around a match of the whole formula. If its alternatives differ, each has marks
        and silences of its own. `absent`: the predicate of the other events than those of the NOT at the end, None if
        there is none, or if it asks for conditions alone."""
        found = self.borders(part.pattern)
        before, behind = self.of_the_whole(found.before, "start"), self.of_the_whole(found.behind, "end")
        self.refuse_by_events(behind, query)
        in_front, silences, marked = self.in_front(found.before, bordered, query)
        none, patience, others = self.at_the_end(found.behind, bordered.behind, absent)
        if marked or others:
            self.refuse_hidden((*before, *behind), query)
        if bordered.behind is None or not bordered.behind.every:
            return Around(none, patience, in_front, silences, (*marked, *others))
        if behind:
            what = "NOT … FOR EVERY beside another NOT at the end of the query"
            raise self.refused(what, "one NOT says what ends the silence: NOT (B OR C) FOR EVERY 10 SECONDS",
                               bordered.behind.span)  # fmt: skip
        assert none is not None and patience is not None
        return Around(before=in_front, silences=silences, marked=(*marked,), repeated=Repeated(none, patience))

    def in_front(
        self, ways: frozenset[Border], bordered: Bordered, query: ast.Query
    ) -> tuple[NoneOf | None, tuple[Silent, ...], list[Marked]]:
        """The events that must not come before a match: inside its window, for times, and before some alternatives."""
        groups = self.absent_at_the_start(bordered, query)
        if len(ways) == 1:
            groups = _union([groups, *map(self.groups_of, ways)])
        before = groups.pop((None, ""), None)
        silences = [Silent(Quiet(none, Window("span", time))) for (time, _), none in groups.items() if time is not None]
        if before is not None and query.within is None and _chooses(query):
            # Without a window, what came once stays in front of all later matches: silence without end. The lazy
            # evaluators know no silence, and a choice among matches asks for it.
            silences, before = [*silences, Silent(Quiet(before, Window("none")))], None
        marked = []
        for way, name in self.names_of(ways, "before") if len(ways) > 1 else ():
            for (time, _), none in self.groups_of(way).items():
                if time is None:
                    marked.append(Marked(none, False, way, name))
                else:
                    silences.append(Silent(Quiet(none, Window("span", time)), way))
        return before, tuple(silences), marked

    def at_the_end(
        self, ways: frozenset[Border], ending: ast.Without | None, absent: NoneOf | None
    ) -> tuple[NoneOf | None, Window | None, list[Marked]]:
        """The events that must not come behind a match: the predicate, its time, and the others, behind some matches
        or all. The first two are those of the NOT at the end, or of the only NOTs that there are."""
        groups = self.groups_of(next(iter(ways))) if len(ways) == 1 else {}
        time = None if ending is None else ending.duration
        if ending is None and len(groups) == 1:
            ((time, since),) = groups
            if not since:
                absent = groups.pop((time, since))
        elif ending is not None:
            absent = either_of(absent, groups.pop((time, ""), None))
        marked = [Marked(none, True, frozenset(), "", _span(d), since) for (d, since), none in groups.items()]
        for way, name in self.names_of(ways, "behind") if len(ways) > 1 else ():
            some = self.groups_of(way).items()
            marked += [Marked(none, True, way, name, _span(d), since) for (d, since), none in some]
        return absent, None if absent is None else _span(time), marked

    def names_of(self, ways: frozenset[Border], where: str) -> Iterator[tuple[Border, str]]:
        """The borders of alternatives that ask for something, each with a mark."""
        some = sorted((way for way in ways if way), key=lambda way: [self.places[a].start for a in self.in_order(way)])
        if len(some) > _MARKS:
            span = self.places[self.in_order(some[0])[0]]
            raise self.refused(f"more than {_MARKS} different borders of alternatives", "write several queries", span)
        return ((way, f"#{where} {number}") for number, way in enumerate(some, 1))

    def groups_of(self, way: Border) -> _Groups:
        """The groups of one border. The time of a conjunction begins in front of it, or with its first event: it asks
        for nothing before a match."""
        found: dict[tuple[int | None, str], list[frozenset[Predicate]]] = {}
        for absent in self.in_order(way):
            lasting = absent.lasting
            if isinstance(absent.pattern, algebra.Atom) and (lasting is None or lasting.closes):
                key = self.times.get(absent), "" if lasting is None or lasting.opens else lasting.last
                found.setdefault(key, []).append(absent.pattern.predicates)
        return {key: NoneOf(frozenset(some)) for key, some in found.items()}

    def refuse_by_events(self, behind: Iterable[Absent], query: ast.Query) -> None:
        """Refuse times behind a match in a window that events alone close."""
        for absent in behind:
            if absent.lasting is not None and isinstance(query.within, ast.WithinEvents):
                raise self.unsupported("NOT … FOR at the end with WITHIN … EVENTS", self.places[absent], _TIMED)

    def refuse_hidden(self, borders: tuple[Absent, ...], query: ast.Query) -> None:
        """Refuse marks of events that are not shown: they would be among those in a row."""
        if query.selection.items is not None and query.selection.strategy is ast.Strategy.STRICT:
            what = "NOT at the border of some alternatives, with SELECT STRICT of some of the events"
            raise self.unsupported(what, self.places[borders[0]], "SELECT STRICT * shows all events")

    def absent_at_the_end(self, node: ast.Without, part: Part, query: ast.Query) -> tuple[NoneOf, Pattern | None]:
        """The absence behind a match, for `φ ; NOT ψ` as the whole formula: the predicate of the events of ψ, and a
        pattern. The pattern is `φ ; ψ` of those alternatives of ψ that have conditions on φ; None if none has."""
        alternatives, number = self.alternatives(node.child, part.defined)
        related = [alternative for alternative in alternatives if alternative.conditions]
        for alternative in related:
            if node.every:
                what = "a condition on other events in a NOT … FOR EVERY"
                raise self.unsupported(
                    what, alternative.conditions[0].span, "PARTITION BY [id] is for the events with the same id"
                )
            self.refuse_untold(alternative, part.pattern, query)
        plain = NoneOf(frozenset(a.predicates for a in alternatives if not a.conditions))
        return plain, self.with_event_behind(part.pattern, related, f"#{number}") if related else None

    def absent_at_the_start(self, bordered: Bordered, query: ast.Query) -> _Groups:
        """The events that must not come in front of a match, by `NOT ψ ; φ` as the whole formula."""
        found: dict[tuple[int | None, str], list[frozenset[Predicate]]] = {}
        for node in bordered.before:
            alternatives, _ = self.alternatives(node.child, None)
            for leaf in (leaf for alternative in alternatives for leaf in alternative.conditions):
                hint = "PARTITION BY [id] is for the events with the same id"
                raise self.unsupported("a condition on later events in a NOT at the start", leaf.span, hint)
            within, duration = query.within, node.duration
            if duration is None and isinstance(within, ast.WithinTime) and takes_one_event(bordered.formula):
                duration = within.nanoseconds  # the match has one event, with which its window ends
            found.setdefault((duration, ""), []).extend(a.predicates for a in alternatives)
        return {key: NoneOf(frozenset(some)) for key, some in found.items()}

    def refuse_lasting(self, bordered: Bordered, query: ast.Query) -> None:
        """Refuse the times of NOTs that this version does not run."""
        beside = {id(no) for node in walk(bordered.formula) for no in absences(node)}
        sides = {id(side) for node in walk(bordered.formula) if isinstance(node, ast.Either) for side in children(node)}
        for node in walk(bordered.formula):
            if not isinstance(node, ast.Without) or node.duration is None:
                continue
            if id(node) in sides:
                hint = "A ; (B OR NOT C FOR 5 SECONDS): the OR is beside ; or ->, without AS, FILTER or a repetition"
                raise self.refused("NOT … FOR, a silence as a side of OR, with no part beside the OR", hint, node.span)
            if id(node) not in beside:
                hint = "the event that it begins with: beat ; NOT beat FOR 10 SECONDS"
                raise self.refused("NOT … FOR with no part in front of it or behind it", hint, node.span)
            if isinstance(query.within, ast.WithinAttribute):
                raise self.unsupported("NOT … FOR in a window over an attribute", node.span, "its time is not known")
        around = [*bordered.before, *([] if bordered.behind is None else [bordered.behind])]
        lasting = [node for node in around if node.duration is not None]
        for node in lasting:
            if isinstance(query.within, ast.WithinAttribute):
                raise self.unsupported("NOT … FOR in a window over an attribute", node.span, "its time is not known")
            if isinstance(query.within, ast.WithinEvents) and node is bordered.behind:
                raise self.unsupported("NOT … FOR at the end with WITHIN … EVENTS", node.span, _TIMED)

    def refuse_repeated(self, bordered: Bordered, query: ast.Query) -> None:
        """Refuse what has no meaning with a silence that is reported again and again."""
        for node in walk(query.where):
            if isinstance(node, ast.Without) and node.every and node is not bordered.behind:
                hint = "it stands behind the whole formula: A ; NOT B FOR EVERY 10 SECONDS"
                raise self.refused("NOT … FOR EVERY anywhere but at the end of the query", hint, node.span)
        if bordered.behind is None or not bordered.behind.every:
            return
        span = bordered.behind.span
        if bordered.behind.duration == 0:
            raise self.refused("NOT … FOR EVERY no time at all", "FOR EVERY 10 SECONDS", span)
        if query.within is not None and not isinstance(query.within, ast.WithinTime):
            raise self.unsupported("NOT … FOR EVERY in a window that is not of time", span, _TIMED)
        discards = "CONSUME BY" if _consumes(query) else "AFTER MATCH" if _skips(query) else ""
        if query.selection.strategy is ast.Strategy.FIRST:
            discards = "SELECT FIRST"
        if discards:
            hint = f"a match that has been reported once is not over: leave {discards} out, or write FOR 10 SECONDS"
            raise self.refused(f"NOT … FOR EVERY and {discards} do not go together", hint, span)
        if self.settings.forget_keys_after is not None:
            hint = "a key that is silent would be forgotten: WITHIN 1 HOUR ends the silences, too"
            raise self.refused("NOT … FOR EVERY does not go with forget_keys_after", hint, span)

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


def _union(several: Iterable[_Groups]) -> _Groups:
    """All that several borders ask for."""
    found: _Groups = {}
    for groups in several:
        for key, none in groups.items():
            found[key] = NoneOf(found[key].alternatives | none.alternatives) if key in found else none
    return found


def _span(time: int | None) -> Window | None:
    return None if time is None else Window("span", time)


def _chooses(query: ast.Query) -> bool:
    """True if a clause chooses among the matches of a query."""
    strategy = query.selection.strategy not in (None, ast.Strategy.ALL, ast.Strategy.STRICT)
    return strategy or _consumes(query) or _skips(query) or query.limit is not None


def _consumes(query: ast.Query) -> bool:
    return query.consume is not None and query.consume.policy is not ast.Consume.NONE


def _skips(query: ast.Query) -> bool:
    return query.after is not None and query.after.rule is not AfterText.NO_SKIP
