"""Joins and closures of pairs of numbered terms, by sorting. Pairs are int32 (n, 2)."""

from __future__ import annotations

from itertools import chain

import numpy as np

from spaseq.errors import BudgetExceeded

__all__ = ["NO_PAIRS", "composed", "met", "once", "refuse_more", "transitive"]

NO_PAIRS: np.ndarray = np.zeros((0, 2), np.int32)


def once(pairs: np.ndarray) -> np.ndarray:
    """The different pairs, in order."""
    codes = np.unique(pairs[:, 0].astype(np.int64) << 32 | pairs[:, 1])
    return np.stack([codes >> 32, codes & 0xFFFFFFFF], axis=1).astype(np.int32)


def transitive(direct: np.ndarray, most: int | None = None) -> np.ndarray:
    """The pairs of a term and one that is reached from it, without itself, in order. `direct` is in order.

    O(pairs), a Python step each. BudgetExceeded where there are more than `most`.
    """
    if not len(direct):
        return NO_PAIRS
    # PERF: sets of numbers. By arrays, a round for each level costs more where levels are many, as in a chain.
    starts, begins = np.unique(direct[:, 0], return_index=True)
    ends = [*begins[1:].tolist(), len(direct)]
    above = direct[:, 1].tolist()
    over = {term: above[low:high] for term, low, high in zip(starts.tolist(), begins.tolist(), ends, strict=True)}
    found: dict[int, set[int]] = {}
    size = 0
    for start, first in over.items():
        reached: set[int] = set()
        queue = list(first)
        while queue:
            term = queue.pop()
            if term not in reached:
                reached.add(term)
                if term in found:
                    reached |= found[term]
                else:
                    queue += over.get(term, ())
        reached.discard(start)
        found[start] = reached
        size += len(reached)
        refuse_more(size, most)
    sizes = np.fromiter(map(len, found.values()), np.int64, len(found))
    ends_of = np.fromiter(chain.from_iterable(found.values()), np.int32, int(sizes.sum()))
    return once(np.stack([np.repeat(starts, sizes), ends_of], axis=1))


def composed(left: np.ndarray, right: np.ndarray, most: int | None = None) -> np.ndarray:
    """(a, c) for each (a, b) of `left` and (b, c) of `right`, which is in order. BudgetExceeded as of `met`."""
    mine, theirs = met(left[:, 1], right[:, 0], most)
    return np.stack([left[mine, 0], right[theirs, 1]], axis=1)


def met(terms: np.ndarray, keys: np.ndarray, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(place in `terms`, place in `keys`) of each term and each equal key. `keys` ascend. BudgetExceeded where there
    are more than `most`."""
    low, high = (np.searchsorted(keys, terms, side) for side in ("left", "right"))
    lengths = high - low
    refuse_more(int(lengths.sum()), most)
    mine = np.repeat(np.arange(len(terms)), lengths)
    within = np.arange(len(mine)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return mine, np.repeat(low, lengths) + within


def refuse_more(size: int, most: int | None) -> None:
    """Raises `BudgetExceeded` where `size`, of consequences, is more than `most`."""
    if most is not None and size > most:
        raise BudgetExceeded(
            "consequences of the background knowledge", most, size, "triples",
            "leave out entailment, or what lets so much follow: owl:sameAs among many, a long chain of a transitive "
            "property",
        )  # fmt: skip
