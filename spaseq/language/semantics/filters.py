"""The FILTERs over several GPMs: which are decided inside a conjunction, and which where it joins with the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingABC
from typing import Any

from spaseq.gpm import Condition, GraphPattern
from spaseq.language.semantics.expand import Conjunction

__all__ = ["conditions", "conjunction_binds"]


def conditions(
    patterns: MappingABC[str, GraphPattern], names: Conjunction, *, inner: bool
) -> Iterator[tuple[Condition, Any]]:
    """The FILTERs between GPMs of a conjunction that are decided inside it, or those that belong to the join with the
    run, each with its prologue: the latter are those over a variable that the conjunction does not always bind."""
    certain = frozenset().union(*(patterns[name].certain for name in names))
    for name in names:
        for condition in patterns[name].correlated:
            if (condition.variables <= certain) == inner:
                yield condition, patterns[name].prologue


def conjunction_binds(patterns: MappingABC[str, GraphPattern], names: Iterable[str]) -> frozenset[str]:
    """The variables that a conjunction of GPMs binds."""
    return frozenset().union(*(patterns[name].binds for name in names))
