"""The FILTERs over several GPMs that are decided within a conjunction, and those decided in the join with the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingABC
from typing import Any

from spaseq.gpm import Condition, GraphPattern
from spaseq.language.semantics.expand import Conjunction


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
