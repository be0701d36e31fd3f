"""Solution mappings and sets of them ([SPAseq] §5, Definition 5).

A mapping is a partial function from variables to RDF terms. It is a tuple of (variable, term) pairs in order of the
variables' names, so that it is hashable, and tuples are equal if the functions are. A mapping set Ω is a frozenset of
mappings.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingABC
from typing import Any, Final

Mapping = tuple[tuple[str, Any], ...]
MappingSet = frozenset[Mapping]

IDENTITY: Final[MappingSet] = frozenset({()})
"""The identity of the join: the empty mapping alone."""


def freeze(pairs: MappingABC[str, Any] | Iterable[tuple[str, Any]]) -> Mapping:
    """The mapping of variable-term pairs."""
    items = pairs.items() if isinstance(pairs, MappingABC) else pairs
    return tuple(sorted(items, key=_by_name))


def _by_name(pair: tuple[str, Any]) -> str:
    return pair[0]


def merge(left: Mapping, right: Mapping) -> Mapping | None:
    """left ∪ right, or None if they are not compatible (they give a shared variable different terms)."""
    if not left:
        return right
    if not right:
        return left
    union = dict(left)
    for name, term in right:
        if union.setdefault(name, term) != term:
            return None
    return freeze(union)


def variables(mappings: Iterable[Mapping]) -> frozenset[str]:
    """The variables that some mapping binds."""
    return frozenset(name for mapping in mappings for name, _ in mapping)


def bound_everywhere(mappings: MappingSet) -> frozenset[str]:
    """The variables that every mapping binds."""
    domains = [frozenset(name for name, _ in mapping) for mapping in mappings]
    return frozenset.intersection(*domains) if domains else frozenset()


def project(mappings: MappingSet, keep: frozenset[str]) -> MappingSet:
    """π_keep(Ω): every mapping without the variables that are not in `keep`."""
    return frozenset(tuple(pair for pair in mapping if pair[0] in keep) for mapping in mappings)


def restrict(mappings: MappingSet, key: Mapping) -> MappingSet:
    """The mappings that contain `key`: they bind each of its variables to the same term."""
    wanted = set(key)
    return frozenset(mapping for mapping in mappings if wanted.issubset(mapping))


def join(left: MappingSet, right: MappingSet) -> MappingSet:
    """left ⋈ right: the unions of compatible pairs."""
    if left == IDENTITY:
        return right
    if right == IDENTITY:
        return left
    if len(left) > len(right):
        left, right = right, left
    return IndexedMappings(left).join(right)


class IndexedMappings:
    """A mapping set for many joins, with an index for each set of shared variables, built on first use.

    The index covers the variables that both sides bind in every mapping; others are compared pair by pair.
    """

    __slots__ = ("_certain", "_indexes", "mappings")

    def __init__(self, mappings: MappingSet) -> None:
        self.mappings: MappingSet = mappings
        self._certain = bound_everywhere(mappings)
        self._indexes: dict[tuple[str, ...], dict[tuple[Any, ...], list[Mapping]]] = {}

    def join(self, other: MappingSet) -> MappingSet:
        """self ⋈ other."""
        shared = tuple(sorted(self._certain & bound_everywhere(other)))
        index = self._index(shared)
        found = (merge(mine, theirs) for theirs in other for mine in index.get(_key(theirs, shared), ()))
        return frozenset(mapping for mapping in found if mapping is not None)

    def _index(self, shared: tuple[str, ...]) -> dict[tuple[Any, ...], list[Mapping]]:
        index = self._indexes.get(shared)
        if index is None:
            index = {}
            for mapping in self.mappings:
                index.setdefault(_key(mapping, shared), []).append(mapping)
            self._indexes[shared] = index
        return index


def _key(mapping: Mapping, names: tuple[str, ...]) -> tuple[Any, ...]:
    if not names:
        return ()
    terms = dict(mapping)
    return tuple(terms[name] for name in names)
