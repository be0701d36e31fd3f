"""The borders of matches, by marks: labels of their first and last events.

If alternatives of a pattern differ in what must not come before their matches, or behind them, a match has to tell its
alternative. So the automaton is one of valuations, in which a *mark*, a variable of its own, takes the first event of
the matches with one border, or the last (`compile_pattern`). Others take the event with which the time of an absence
begins, if it is in the middle of a match. Matches wait with the numbers of their marks, and the positions of such
events. The marks themselves are left out of what is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spaseq.core.automata import UNSEEN
from spaseq.core.engine.program.matches import MatchBatch


class Marks:
    """Reads the marks `names`, and the positions of `kept`, in matches with these `labels`. `hides`: True if what is
    reported has no labels."""

    def __init__(
        self, names: Sequence[str], kept: Sequence[str], labels: tuple[frozenset[str], ...], *, hides: bool
    ) -> None:
        self._takes, self._keeps = (
            [np.array([name in label for label in labels], bool) for name in some] for some in (names, kept)
        )
        self._unseen = np.array([UNSEEN in label for label in labels], bool)
        seen = without_marks(labels, (*names, *kept))
        self._number = np.array([seen.index(label) for label in seen], np.int64)
        self._hides = hides

    def read(self, matches: MatchBatch) -> tuple[MatchBatch, np.ndarray, np.ndarray]:
        """The matches without marks, and the marks of each, int64 (m,): mark i is bit i. The last position that each of
        `kept` took in them, int64 (kept, m), -1 for none. O(positions * marks)."""
        found, since = np.zeros(len(matches), np.int64), np.full((len(self._keeps), len(matches)), -1)
        if matches.labels is None or not len(matches):
            return matches, found, since
        for i, takes in enumerate(self._takes):
            found |= _any(takes[matches.labels], matches.offsets).astype(np.int64) << i
        for i, keeps in enumerate(self._keeps):
            own = np.repeat(np.arange(len(matches)), np.diff(matches.offsets))
            taken = keeps[matches.labels]
            np.maximum.at(since[i], own[taken], matches.positions[taken])
        seen = ~self._unseen[matches.labels]
        offsets = np.concatenate([[0], np.cumsum(seen)])[matches.offsets]
        labels = None if self._hides else self._number[matches.labels[seen]]
        return replace(matches, offsets=offsets, positions=matches.positions[seen], labels=labels), found, since

    @staticmethod
    def once(matches: MatchBatch, given: np.ndarray, waits: np.ndarray) -> None:
        """Of equal matches, which differed in their marks, one is given, and no other waits on: `given` and `waits`,
        bool (m,), are changed. O(positions of the matches with the ends of those given)."""
        bounds, told = matches.offsets.tolist(), set[tuple[int, int, bytes, bytes]]()
        labels = matches.positions[:0] if matches.labels is None else matches.labels
        others = np.flatnonzero(waits & np.isin(matches.end, matches.end[given]))
        for i in (*np.flatnonzero(given).tolist(), *others.tolist()):
            part = slice(bounds[i], bounds[i + 1])
            name = int(matches.start[i]), int(matches.end[i]), matches.positions[part].tobytes(), labels[part].tobytes()
            if name in told:
                given[i] = waits[i] = False
            elif given[i]:
                told.add(name)


def without_marks(labels: tuple[frozenset[str], ...], names: Sequence[str]) -> tuple[frozenset[str], ...]:
    """The labels without marks; some may be alike then."""
    return tuple(label.difference(names, (UNSEEN,)) for label in labels)


def _any(truth: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """True for the matches with a true position: bool (m,)."""
    before = np.concatenate([[0], np.cumsum(truth)])
    found: np.ndarray = before[offsets[1:]] > before[offsets[:-1]]
    return found
