"""The registers of runs and the columns of instants: the places of the codes by which the kernels join mappings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from spaseq.gpm import GraphPattern, Side
from spaseq.language.guards.compared import Filters
from spaseq.language.guards.guards import Take
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.semantics.filters import Join, conjunction_binds

Value = tuple[str, str | Side]
"""A value of a mapping: ("term", variable), ("number", side), ("near", variable), which is the double nearest to it, or
("round", variables), of several with blanks between."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a conjunction. `values` are the values read of a mapping, `read` their columns.

    `others` and `first` hold the number of further mappings of an instant, and the first of them (`ForEachValue`).
    `present` is UNKNOWN if there is no mapping, `nothing` is NOTHING at all instants.
    """

    values: tuple[Value, ...]
    others: int
    first: int
    present: int
    read: slice
    nothing: int

    @classmethod
    def of(cls, values: Sequence[Value], at: int) -> Columns:
        """The columns from `at` on."""
        end = at + 3 + len(values)
        return cls(tuple(values), at, at + 1, at + 2, slice(at + 3, end), end)

    def place(self, kind: str, what: str | Side) -> int:
        """The column of a value."""
        return int(self.read.start) + self.values.index((kind, what))


@dataclass(frozen=True, slots=True)
class Layout:
    """The place of each code.

    `terms`, `numbers` and `near` are the registers of the variables that are kept, of the sides that are compared
    later, and of doubles near to variables' values. `list` is that of a list of rounds, or None. `columns` are those of
    each conjunction. `unseen` is the column that is NOTHING until a conjunction matches that must not match before the
    first step. `collected` are the variables that rounds bind. `registers` and `width` are their numbers.

    By the times that absences last (ns): `deadlines` are the registers of the last instant's time and that time
    together, `late` the columns of the same of each instant. `now` is the column of its own time.
    """

    terms: dict[str, int]
    numbers: dict[Side, int]
    near: dict[str, int]
    list: int | None
    collected: tuple[str, ...]
    columns: dict[Conjunction, Columns]
    unseen: dict[Conjunction, int]
    registers: int
    width: int
    deadlines: dict[int, int]
    late: dict[int, int]
    now: int

    def held(self) -> Iterator[tuple[int, str, Value]]:
        """Each register of a variable, with the variable and the value that it holds of it."""
        yield from ((register, name, ("term", name)) for name, register in self.terms.items())
        yield from ((register, side.name, ("number", side)) for side, register in self.numbers.items())
        yield from ((register, name, ("near", name)) for name, register in self.near.items())


def layout_of(
    patterns: MappingABC[str, GraphPattern],
    filters: MappingABC[Join, Filters],
    takes: Sequence[Take],
    asked_later: frozenset[str],
    collected: MappingABC[tuple[int, Take], frozenset[str]],
    times: Sequence[int] = (),
) -> Layout:
    """The layout for the guards `takes` and the FILTERs of each join; `asked_later`: variables that states need.
    `collected`: those whose values in a round are kept. `times`: those that absences last.

    PERF: `keep` of a step names what later ones bind, too. A sequence of 20 GPMs of four variables, of which they share
    one, has 2 registers; it had 59, and one of 21 GPMs more than the kernel takes.
    """
    kept = asked_later & frozenset().union(*(take.keep for take in takes))
    questions = [question for own in filters.values() for question in own.asked]
    register = itertools.count()
    terms = {name: next(register) for name in sorted(kept)}
    sides = dict.fromkeys(c.outer for own in filters.values() for c in own.compared)
    numbers = {side: next(register) for side in sides}
    near = {name: next(register) for name in sorted(frozenset().union(*(q.numbers for q in questions)) & kept)}
    rounds: dict[Conjunction, set[str]] = {}
    for (_, take), kept_values in collected.items():
        if kept_values:
            names = kept_values & conjunction_binds(patterns, take.conjunction)
            rounds.setdefault(take.conjunction, set()).add(" ".join(sorted(names)))
    place, columns = 0, dict[Conjunction, Columns]()
    own_of: dict[Conjunction, list[Filters]] = {}
    for (conjunction, _), own in filters.items():
        own_of.setdefault(conjunction, []).append(own)
    for conjunction, several in own_of.items():
        binds = conjunction_binds(patterns, conjunction)
        asked = [question for own in several for question in own.asked]
        inner = [c.inner for own in several for c in own.compared]
        named = dict.fromkeys([*terms, *(name for question in asked for name in question.names)])
        compared = dict.fromkeys([*inner, *(side for side in numbers if side.name in binds)])
        close = dict.fromkeys([*near, *(name for question in asked for name in sorted(question.numbers))])
        values: list[Value] = [("term", name) for name in named if name in binds]
        values += [("number", side) for side in compared]
        values += [("near", name) for name in close if name in binds]
        values += [("round", names) for names in sorted(rounds.get(conjunction, ()))]
        columns[conjunction] = Columns.of(values, place)
        place = columns[conjunction].nothing + 1
    column = itertools.count(place)
    unseen = {conjunction: next(column) for conjunction in dict.fromkeys(c for take in takes for c in take.before)}
    listed = {name for own in rounds.values() for names in own for name in names.split()}
    chain = next(register) if rounds else None
    deadlines = {time: next(register) for time in times}
    late = {time: next(column) for time in times}
    now = next(column) if times else -1
    return Layout(
        terms, numbers, near, chain, tuple(sorted(listed)), columns, unseen, next(register), next(column), deadlines,
        late, now,
    )  # fmt: skip
