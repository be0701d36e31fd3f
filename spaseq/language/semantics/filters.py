"""The FILTERs over several GPMs that are decided within a conjunction, and those decided in the join with the run.

A FILTER of a part of AND may name variables of parts that a run takes later. It is decided at the first step behind
which no part is missing that may bind one of its variables: other parts change none of their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingABC
from typing import Any

from spaseq.gpm import Condition, GraphPattern
from spaseq.language.semantics.expand import Among, Conjunction

FilterNames = tuple[tuple[str, int], ...]
"""FILTERs by the GPM that each belongs to, and the number among its correlated ones."""
Join = tuple[Conjunction, FilterNames | None]
"""The join of a conjunction with the run, and the FILTERs decided in it; None: those of the conjunction's own GPMs that
are not decided within it."""


def conditions(
    patterns: MappingABC[str, GraphPattern], names: Conjunction, *, inner: bool
) -> Iterator[tuple[Condition, Any]]:
    """The correlated FILTERs of a conjunction's GPMs, each with its prologue.

    With `inner`, those that are decided within the conjunction, because it always binds all their variables; else the
    others, which are decided in the join with the run.
    """
    certain = frozenset().union(*(patterns[name].certain for name in names))
    for name in names:
        for condition in patterns[name].correlated:
            if (condition.variables <= certain) == inner:
                yield condition, patterns[name].prologue


def conjunction_binds(patterns: MappingABC[str, GraphPattern], names: Iterable[str]) -> frozenset[str]:
    """The variables that a conjunction of GPMs binds."""
    return frozenset().union(*(patterns[name].binds for name in names))


def decided_filters(patterns: MappingABC[str, GraphPattern], conjunction: Conjunction, among: Among) -> FilterNames:
    """The FILTERs decided in the join of the run with a part of AND, its own and those of parts in front of it. This
    part is the last one that may bind one of their variables."""
    missing = conjunction_binds(patterns, among.missing)
    before = missing | conjunction_binds(patterns, among.own)
    found: dict[tuple[str, int], None] = {}
    for place, names in enumerate((*among.taken, conjunction)):
        certain = frozenset().union(*(patterns[name].certain for name in names))
        for name in names:
            for number, condition in enumerate(patterns[name].correlated):
                variables = condition.variables
                is_decided = variables <= certain or (place < len(among.taken) and not variables & before)
                if not is_decided and not variables & missing:
                    found[name, number] = None
    return tuple(sorted(found))


def join_conditions(patterns: MappingABC[str, GraphPattern], join: Join) -> Iterator[tuple[Condition, Any]]:
    """The FILTERs that are decided in a join, each with its prologue."""
    conjunction, decided = join
    if decided is None:
        yield from conditions(patterns, conjunction, inner=False)
    for name, number in decided or ():
        yield patterns[name].correlated[number], patterns[name].prologue
