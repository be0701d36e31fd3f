"""What follows along a hierarchy is what a join with its closure gives, each once, and nothing that was there."""

from __future__ import annotations

import random

import numpy as np
import pytest

from spaseq.core.errors import BudgetExceeded
from spaseq.rdf.columns import inherited
from spaseq.rdf.columns.inherited import Hierarchy
from spaseq.rdf.columns.pairs import transitive

TERMS = 30


def _drawn(rng: random.Random) -> tuple[set[tuple[int, int]], set[tuple[int, int, int]]]:
    """The closed pairs of a hierarchy, and links: a subject, a member and an object."""
    size = rng.randrange(2, 20)
    stated = {(rng.randrange(size), rng.randrange(size)) for _ in range(rng.randrange(1, 25))}
    pairs = np.array(sorted((a, b) for a, b in stated if a != b), np.int32).reshape(-1, 2)
    closed = {(a, b) for a, b in transitive(pairs).tolist()}
    links = {(rng.randrange(4), rng.randrange(TERMS), rng.randrange(3)) for _ in range(rng.randrange(30))}
    return closed, links


def _columns(rows: set, width: int) -> np.ndarray:
    return np.array(sorted(rows), np.int32).reshape(-1, width)


@pytest.mark.parametrize("block", [1 << 20, 1])
def test_along_random_hierarchies(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inherited, "_BLOCK", block)
    for seed in range(150):
        closed, links = _drawn(random.Random(seed))
        hierarchy = Hierarchy(_columns(closed, 2), TERMS)
        assert {a for a in range(TERMS) if a in hierarchy} == {a for pair in closed for a in pair}
        expected = {(s, c, o) for s, m, o in links for a, c in closed if a == m} - links
        rows = _columns(links, 3)
        for terms in (TERMS, 1 << 31):  # beyond 63 bits links are numbered
            hierarchy._terms = terms
            parts = [np.stack(part, axis=1) for part in hierarchy.of_links(*rows.T)]
            found = [row for part in parts for row in map(tuple, part.tolist())]
            assert sorted(found) == sorted(expected), seed
        types = {(s, m) for s, m, _ in links}
        rows = _columns(types, 2)
        follow = {(s, c) for s, m in types for a, c in closed if a == m}
        parts = [np.stack(part, axis=1) for part in hierarchy.of_terms(*rows.T)]
        assert sorted(row for part in parts for row in map(tuple, part.tolist())) == sorted(follow - types), seed
        least = set(map(tuple, hierarchy.least(rows).tolist()))
        assert least <= types <= least | {(s, c) for s, m in least for a, c in closed if a == m}, seed
        assert not any((s, c) in least for s, m in least for a, c in closed if a == m and (c, m) not in closed), seed


def test_more_than_may_be_made_is_refused_before_it_is_made() -> None:
    chain = np.array([(a, b) for a in range(10) for b in range(a + 1, 10)], np.int32)
    owners, members = np.arange(10, 20, dtype=np.int32), np.zeros(10, np.int32)
    hierarchy = Hierarchy(chain, 20)
    assert sum(len(own) for own, _ in hierarchy.of_terms(owners, members, 90)) == 90
    with pytest.raises(BudgetExceeded, match="closed_triples is 89 triples and 90 are needed"):
        next(hierarchy.of_terms(owners, members, 89))
