"""The algebra of mapping sets against Definition 5, written out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spaseq.gpm.mappings import IDENTITY, IndexedMappings, MappingSet, freeze, join, project, restrict

_mapping = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), max_size=3).map(freeze)
_sets = st.frozensets(_mapping, max_size=6)


def _by_definition(left: MappingSet, right: MappingSet) -> MappingSet:
    """{μ1 ∪ μ2 | compatible}"""
    return frozenset(
        freeze({**dict(a), **dict(b)})
        for a in left
        for b in right
        if all(dict(a)[name] == dict(b)[name] for name in dict(a).keys() & dict(b).keys())
    )


@given(_sets, _sets)
def test_join_is_definition_5(left: MappingSet, right: MappingSet) -> None:
    assert join(left, right) == _by_definition(left, right)


@given(_sets, st.lists(_sets, max_size=4))
def test_an_index_serves_many_joins(left: MappingSet, others: list[MappingSet]) -> None:
    indexed = IndexedMappings(left)
    assert [indexed.join(other) for other in others] == [_by_definition(left, other) for other in others]


@given(_sets)
def test_the_identity(omega: MappingSet) -> None:
    assert join(IDENTITY, omega) == omega == join(omega, IDENTITY)


@given(_sets, st.frozensets(st.sampled_from("xyz")))
def test_projection(omega: MappingSet, keep: frozenset[str]) -> None:
    assert project(omega, keep) == {freeze({v: t for v, t in m if v in keep}) for m in omega}


@given(_sets, _mapping)
def test_restriction_needs_every_pair(omega: MappingSet, key: tuple[tuple[str, int], ...]) -> None:
    assert restrict(omega, key) == {m for m in omega if all(pair in m for pair in key)}
