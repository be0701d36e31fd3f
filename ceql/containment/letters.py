"""The events that may come next: the alphabet of the product of the automata of two queries.

An event is a type, a stream and values of the attributes that the moves at hand read. The values are those of
`ceql.containment.domains`, so every event that the automata can tell apart is among them. A condition that is more than
comparisons may be true or false of any of them; such a letter is not sure, unless an event shows it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ceql.containment.domains import Domains, Refused, rank
from ceql.expressions.predicates import Satisfies, StreamIs, TypeIs
from ceql.expressions.scalar import compile_condition
from ceql.guards.guard import Guard, slots_of
from ceql.guards.registers import GuardRegisters
from ceql.guards.rounds import kept_attributes
from ceql.semantics.contradictions import contradictory
from ceql.syntax import ast
from ceql.syntax.walk import attributes_of, reads_earlier
from spaseq.core.automata import CEA, INITIAL, Avoid, Take, Transition
from spaseq.core.containment.product import UNSEEN, Configurations, Letter
from spaseq.core.errors import BudgetExceeded, EventError
from spaseq.core.pattern import NoneOf, Predicate

Row = dict[str, Any]
OPAQUE: Final = 8
"""Conditions of one event, each more than comparisons, whose truths are tried in all ways."""


_BEGIN: Final = frozenset((INITIAL,))


class _Events:
    """Events as rows, in the place of a batch that registers read."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows
        self.source = ""
        self.positions = range(1 << 62)

    @property
    def events(self) -> _Events:
        return self

    def getter(self, name: str) -> Callable[[int], Any]:
        rows = self._rows
        return lambda event: rows[event].get(name)


@dataclass(frozen=True, slots=True)
class Query:
    """The parts of a query that the alphabet reads: its automaton, its guards, and the attributes of its keys."""

    cea: CEA
    guards: tuple[Guard, ...]
    keys: tuple[str, ...]


class _Part(NamedTuple):
    """Values of some attributes, the conditions that are true of them, and if an event shows that."""

    values: tuple[tuple[str, Any], ...]
    true: frozenset[ast.Condition]
    sure: bool


class Alphabet:
    """The letters of two queries, for words of one key: `key` has the values of the attributes of all keys.

    Raises `Refused` if a predicate is none that it knows.
    """

    def __init__(
        self, old: Query, new: Query, domains: Domains, key: Mapping[str, Any], streams: tuple[str, ...], most: int
    ) -> None:
        self._queries = old, new
        self._domains, self._key, self._most = domains, key, most
        self.rows: list[Row] = []
        self.registers: tuple[GuardRegisters, GuardRegisters] = (GuardRegisters(old.guards), GuardRegisters(new.guards))
        for registers in self.registers:
            registers.load(_Events(self.rows))
        leaves = list(leaves_of(p for query in self._queries for p in query.cea.predicates))
        names = sorted({leaf.name for leaf in leaves if isinstance(leaf, TypeIs)})
        other = "Other"
        while other in names:
            other += "_"
        self._kinds = [(name, stream) for name in [*names, other] for stream in streams or ("",)]
        self._tests = {leaf.condition: _test_of(leaf.condition) for leaf in leaves if isinstance(leaf, Satisfies)}
        self._kept = [_kept_names(query.guards) for query in self._queries]
        self._known: dict[Any, list[Letter]] = {}
        self._constants = {id(sort): sorted(sort.constants) for sort in domains if len(sort.kinds) < 2}

    # What registers hold

    def _values_in(self, both: tuple[Configurations, Configurations]) -> dict[int, set[Any]]:
        """By sort the values that registers hold."""
        found: dict[int, set[Any]] = {}
        for kept, configurations in zip(self._kept, both, strict=True):
            for _, row in configurations:
                for number, variables in row:
                    for names, values in zip(kept[number], variables, strict=True):
                        for value in values:
                            for name, one in zip(names, _tuple(value), strict=True):
                                found.setdefault(id(self._domains.sort(name)), set()).add(one)
        return found

    def cost(self, old: Configurations, new: Configurations) -> int:
        """1, and 1 for each value that registers hold."""
        return 1 + sum(map(len, self._values_in((old, new)).values()))

    def key(self, old: Configurations, new: Configurations) -> Hashable:
        """The configurations with values by their order alone."""
        held = self._values_in((old, new))
        if not held:
            return old, new
        ordered = {sort: sorted(one for one in found if one is not None) for sort, found in held.items()}

        def place(name: str, value: Any) -> Any:
            sort = id(self._domains.sort(name))
            return rank(value, self._constants.get(sort, []), ordered[sort])

        def places(names: tuple[str, ...], values: Any) -> Any:
            return frozenset(tuple(place(*one) for one in zip(names, _tuple(v), strict=True)) for v in values)

        return tuple(
            frozenset(
                (state, tuple((number, tuple(map(places, kept[number], variables))) for number, variables in row))
                for state, row in configurations
            )
            for kept, configurations in zip(self._kept, (old, new), strict=True)
        )

    # Letters

    def letters(self, old: Configurations, new: Configurations) -> Iterable[Letter]:
        """The letters behind these configurations; sure ones first."""
        held = self._values_in((old, new))
        states = frozenset(q for q, _ in old), frozenset(q for q, _ in new)
        memo = (states, tuple((sort, frozenset(found)) for sort, found in sorted(held.items())))
        found = self._known.get(memo)
        if found is None:
            found = self._known[memo] = list(self._make(states, held))
            found.sort(key=lambda letter: not letter.sure)
        return found

    def _make(self, states: tuple[frozenset[int], frozenset[int]], held: dict[int, set[Any]]) -> Iterator[Letter]:
        seen: set[Any] = set()
        for kind in self._kinds:
            conditions, names, kept = self._read_by(states, kind)
            for key in self._keys(first=states == (_BEGIN, _BEGIN)):
                sees = [all(key[name] == self._key[name] is not None for name in query.keys) for query in self._queries]
                if not any(sees):
                    continue
                parts = [self._parts(group, conditions, kept, key, held) for group in self._groups(names, conditions)]
                total = 1
                for part in parts:
                    total *= len(part)
                if total > self._most:
                    raise BudgetExceeded("compared_steps", self._most, total, "kinds of events", "raise compared_steps")
                for chosen in itertools.product(*parts):
                    true = frozenset[ast.Condition]().union(*(part.true for part in chosen))
                    values = dict(itertools.chain(*(part.values for part in chosen)))
                    sure = all(part.sure for part in chosen)
                    first, second = (
                        self._vector(query.cea, kind, true) if seen_by else UNSEEN
                        for query, seen_by in zip(self._queries, sees, strict=True)
                    )
                    same = (first, second, sure, tuple((name, values[name]) for name in sorted(kept)))
                    if same in seen:
                        continue
                    seen.add(same)
                    self.rows.append(_row(kind, {**key, **values}))
                    yield Letter(len(self.rows) - 1, first, second, sure)

    def _keys(self, first: bool) -> Iterator[dict[str, Any]]:
        """The values of keys that an event may have: those of the word, which are those of its first event, and others
        if the keys differ."""
        old, new = (query.keys for query in self._queries)
        if first or set(old) == set(new):
            yield dict(self._key)
            return
        names = list(self._key)
        tries = [self._domains.sort(name).tries([self._key[name]], 2) for name in names]
        for chosen in itertools.product(*tries):
            yield dict(zip(names, chosen, strict=True))

    def _read_by(
        self, states: tuple[frozenset[int], frozenset[int]], kind: tuple[str, str]
    ) -> tuple[list[ast.Condition], list[str], set[str]]:
        """The conditions and attributes that an event of a type and stream is asked for, and those that registers
        keep."""
        conditions: dict[ast.Condition, None] = {}
        names: dict[str, None] = {}
        kept: dict[str, None] = {}
        for query, some in zip(self._queries, states, strict=True):
            for transition in (t for state in sorted(some) for t in query.cea.transitions[state]):
                predicates = [query.cea.predicates[p] for p in sorted(transition.predicates)]
                if all(_may_hold(predicate, kind) for predicate in predicates):
                    conditions |= dict.fromkeys(c for p in predicates for c in _conditions(p, kind))
                    kept |= dict.fromkeys(_taken_names(transition))
        for condition in conditions:
            names |= dict.fromkeys(attribute.name for attribute in attributes_of(condition))
        names |= kept
        return list(conditions), list(names), set(kept)

    def _groups(self, names: list[str], conditions: list[ast.Condition]) -> list[list[str]]:
        """The attributes in groups: conditions and sorts join no two groups."""
        groups = [{name} for name in names]
        joined = [{a.name for a in attributes_of(condition)} for condition in conditions]
        joined += [sort.names for sort in self._domains if sort.related]
        for together in joined:
            touched = [group for group in groups if group & together]
            if len(touched) > 1:
                groups = [g for g in groups if g not in touched] + [set().union(*touched)]
        if any(not together for together in joined):
            groups.append(set())  # conditions that read no attribute
        return [sorted(group) for group in groups]

    def _parts(
        self, group: list[str], conditions: list[ast.Condition], kept: set[str], key: Mapping[str, Any],
        held: dict[int, set[Any]],
    ) -> list[_Part]:  # fmt: skip
        """The values of a group of attributes that differ in the truth of a condition or in what registers keep."""
        inside = [c for c in conditions if {a.name for a in attributes_of(c)} <= set(group)]
        if group:
            inside = [c for c in inside if any(True for _ in attributes_of(c))]
        tries = [[key[name]] if name in key else self._tries(name, group, held) for name in group]
        found: dict[Any, _Part] = {}
        size = 1
        for one in tries:
            size *= len(one)
        if size > self._most:
            raise BudgetExceeded("compared_steps", self._most, size, "kinds of events", "raise compared_steps")
        for chosen in itertools.product(*tries):
            values = dict(zip(group, chosen, strict=True))
            try:
                true = frozenset(c for c in inside if self._tests[c](values) is True)
            except EventError:
                continue  # the kinds do not go together: no stream has such an event
            written = tuple((name, values[name]) for name in group if name in kept)
            found.setdefault((true, written), _Part(tuple(values.items()), true, True))
        return [*found.values(), *self._unsure(inside, found)]

    def _tries(self, name: str, group: list[str], held: dict[int, set[Any]]) -> list[Any]:
        sort = self._domains.sort(name)
        keys = [value for other, value in self._key.items() if self._domains.sort(other) is sort]
        return sort.tries([*held.get(id(sort), ()), *keys], sum(1 for other in group if other in sort.names))

    def _unsure(self, inside: list[ast.Condition], found: dict[Any, _Part]) -> list[_Part]:
        """The truths of opaque conditions that no value tried has shown, but for those that contradict each other."""
        opaque = [condition for condition in inside if condition in self._domains.opaque]
        if not opaque:
            return []
        if len(opaque) > OPAQUE:
            raise Refused(f"an event is under more than {OPAQUE} conditions such as {_text_of(opaque[0])}")
        more: dict[Any, _Part] = {}
        for (true, written), part in found.items():
            for chosen in itertools.product((False, True), repeat=len(opaque)):
                truths = true - set(opaque) | {c for c, holds in zip(opaque, chosen, strict=True) if holds}
                if (truths, written) not in found and (truths, written) not in more and not contradictory(truths):
                    more[truths, written] = _Part(part.values, truths, False)
        return list(more.values())

    @staticmethod
    def _vector(cea: CEA, kind: tuple[str, str], true: frozenset[ast.Condition]) -> int:
        return sum(1 << n for n, predicate in enumerate(cea.predicates) if _holds(predicate, kind, true))


def leaves_of(predicates: Iterable[Predicate]) -> Iterator[TypeIs | StreamIs | Satisfies]:
    """The types, streams and conditions in some predicates. Raises `Refused` for a predicate that is no condition on an
    event by itself."""
    for predicate in predicates:
        yield from _leaves(predicate)


def _leaves(predicate: Predicate) -> Iterator[TypeIs | StreamIs | Satisfies]:
    match predicate:
        case TypeIs() | StreamIs() | Satisfies():
            yield predicate
        case NoneOf(alternatives):
            for one in sorted(itertools.chain(*alternatives), key=str):
                yield from _leaves(one)
        case _:
            raise Refused(f"{predicate} is no condition on one event")


def _holds(predicate: Predicate, kind: tuple[str, str], true: frozenset[ast.Condition]) -> bool:
    match predicate:
        case TypeIs(name):
            return name == kind[0]
        case StreamIs(name):
            return name == kind[1]
        case Satisfies(condition):
            return condition in true
        case NoneOf(alternatives):
            return not any(all(_holds(one, kind, true) for one in every) for every in alternatives)
    raise Refused(f"{predicate} is no condition on one event")


def _may_hold(predicate: Predicate, kind: tuple[str, str]) -> bool:
    """False if no event of a type and stream satisfies a predicate."""
    return not isinstance(predicate, TypeIs | StreamIs) or _holds(predicate, kind, frozenset())


def _conditions(predicate: Predicate, kind: tuple[str, str]) -> Iterator[ast.Condition]:
    """The conditions that decide about a predicate for events of a type and stream."""
    match predicate:
        case Satisfies(condition):
            yield condition
        case NoneOf(alternatives):
            for every in alternatives:
                if all(_may_hold(one, kind) for one in every):
                    for one in sorted(every, key=str):
                        yield from _conditions(one, kind)


def _taken_names(transition: Transition) -> Iterator[str]:
    """The attributes that the guards of a transition read of its event."""
    for action in transition.actions:
        match action:
            case Take(Guard() as guard, variables) | Avoid(Guard() as guard, variables):
                yield from (a.name for a in attributes_of(guard.condition) if a.variable in variables)


def _kept_names(guards: tuple[Guard, ...]) -> list[list[tuple[str, ...]]]:
    """For each guard and each of its variables (or slots), in order, the attributes whose values a row has."""
    found: list[list[tuple[str, ...]]] = []
    for guard in guards:
        if reads_earlier(guard.condition):
            found.append(kept_attributes(guard))
            continue
        slots = slots_of(guard)
        found.append([slots.get(variable, ()) for variable in sorted(guard.variables)])
    return found


def _test_of(condition: ast.Condition) -> Callable[[Row], bool | None]:
    def look_up(attribute: ast.Attribute) -> Callable[[Row], Any]:
        name = attribute.name
        return lambda row: row.get(name)

    return compile_condition(condition, look_up)


def _tuple(value: Any) -> tuple[Any, ...]:
    """The values that a register row keeps of an event: one, or a tuple of them."""
    return value if isinstance(value, tuple) else (value,)


def _row(kind: tuple[str, str], values: Mapping[str, Any]) -> Row:
    stream = {"stream": kind[1]} if kind[1] else {}
    return {"type": kind[0], **stream, **values}


def _text_of(condition: ast.Condition) -> str:
    from ceql.syntax.printer import print_expression

    return print_expression(condition)
