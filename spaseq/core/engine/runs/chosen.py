"""The choice among matches that events around them decide about: selection, consumption, LIMIT, AFTER MATCH.

NOT at a border leaves some matches of each end, and only among these a query chooses. So its runs keep all matches, as
roots (`spaseq.core.engine.runs.ending`), and the choice is made once it is known which of them are left. These are the
matches below the roots of one end that start in a range. CONSUME BY and AFTER MATCH discard by the start as well, and
raise the lower bound of the ranges to come. So nothing is enumerated to be discarded.

NEXT and LAST are found on the structure (`Roots.best`), LIMIT and ANY by the latest starts. MAX, and the rules of AFTER
MATCH that do not come down to NEXT, list the matches of an end that are left, within `output_bytes`.

The matches of one end are given together, and ends in their order, as far as the choice depends on the ends before.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple

import numpy as np

from spaseq.core.automata.cea import INITIAL
from spaseq.core.engine.program.matches import Labels, MatchBatch, matches_of, within
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.settings import After, Choice, Consume, Selection
from spaseq.core.snapshot import expect
from spaseq.core.tecs import Arena, Roots
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.layout import NEVER
from spaseq.core.watch import check

_ALL_KEYS: Final = -1
_FEW: Final = 64
"""Single starts of a partition that are kept without a look at their window."""


class OpenRoots:
    """The matches below roots. As matches, roots have one position, their node, and a start that is no later than those
    of the matches below them. `ends_only`: one match of each root is enough, without positions."""

    def __init__(self, arena: Arena, labels: Labels, *, ends_only: bool) -> None:
        self.nodes: Roots = Roots(arena)
        self._labels = labels
        self._ends_only = ends_only

    def matches(self, roots: np.ndarray) -> Generator[MatchBatch]:
        """The matches in the ranges of `roots`, int64 (r, ROOT_COLUMNS), a part at a time. To be read to its end, or
        closed."""
        if not self._ends_only:
            with closing(self.nodes.enumerate(roots)) as chunks:
                for chunk in chunks:
                    yield matches_of(chunk, self._labels)
            return
        starts = self.nodes.latest_starts(roots)
        there = starts >= 0
        if there.any():
            yield MatchBatch(starts[there], roots[there, k.O_END], np.zeros(int(there.sum()) + 1, np.int64))


class _Listed(NamedTuple):
    """A match: its start, its positions, and the numbers of their labels, empty if there are none."""

    start: int
    positions: tuple[int, ...]
    labels: tuple[int, ...]

    @property
    def order(self) -> tuple[Any, ...]:
        """The order of NEXT: the one with the smallest position of the symmetric difference first, then the start."""
        return (*self.positions, NEVER), self.start


class Chooser:
    """Chooses among the matches of `program` that are left, by `Program.chosen`. `roots`: None if they wait one by one.

    `floors`: of each partition the first start that no match has discarded; `dead`: its single starts that are. Those
    of all partitions together are of `_ALL_KEYS`.
    """

    def __init__(self, program: Program, roots: OpenRoots | None) -> None:
        assert program.chosen is not None
        self._choice: Choice = program.chosen
        self._roots = roots
        self._labelled = program.labels_written is not None
        self._hides = program.hides_labels
        self._marked = all(t.marks for t in program.cea.transitions[INITIAL])
        self._budget = program.settings.output_bytes
        self._labels = program.cea.labels or ()
        self._apart = program.chosen.consume is not Consume.ANY
        limits = [n for n in (program.chosen.limit, 1 if program.chosen.selection is Selection.ANY else None)
                  if n is not None]  # fmt: skip
        self._limit = min(limits) if limits else None
        self.floors: dict[int, int] = {}
        self.dead: dict[int, set[int]] = {}
        self._sweep_at: dict[int, int] = {}

    @property
    def in_order(self) -> bool:
        """True if the choice among the matches of an end depends on the ends before."""
        return self._choice.forgets

    @property
    def by_key(self) -> bool:
        """True if it depends on those of the same partition alone."""
        return self._apart

    def take(self, roots: np.ndarray, keys: np.ndarray) -> Iterator[MatchBatch]:
        """The matches that are reported, of those in the ranges of the roots, int64 (r, ROOT_COLUMNS), of partitions
        `keys`. The roots of one end follow each other, and are all that are left of it. Changes the state at once.
        O(ends) calls of kernels."""
        if not len(roots):
            return iter(())
        bounds = np.flatnonzero(np.append(roots[1:, k.O_END] != roots[:-1, k.O_END], True)) + 1
        found: list[np.ndarray | list[_Listed]] = []
        ends: list[int] = []
        first = 0
        for last in bounds.tolist():
            check()
            own, key = roots[first:last].copy(), int(keys[first]) if self._apart else _ALL_KEYS
            first = last
            own[:, k.O_LOW] = np.maximum(own[:, k.O_LOW], self.floors.get(key, 0))
            own = own[own[:, k.O_LOW] < own[:, k.O_HIGH]]
            if len(own):
                found.append(self._of_one_end(own, key))
                ends.append(int(own[0, k.O_END]))
        return itertools.chain.from_iterable(map(self._parts, found, ends))

    def take_listed(self, matches: MatchBatch, keys: np.ndarray) -> Iterator[MatchBatch]:
        """`take`, of matches that waited one by one. O(matches of an end * positions), but for MAX."""
        found = []
        listed = zip(_to_list(matches), matches.end.tolist(), keys.tolist(), strict=True)
        for end, group in itertools.groupby(listed, key=lambda one: one[1]):
            check()
            own = list(group)
            key = own[0][2] if self._apart else _ALL_KEYS
            floor = self.floors.get(key, 0)
            left = list(dict.fromkeys(match for match, *_ in own if match.start >= floor))
            if left:
                found.append(self._batch(self._of_list(left, key, end), end))
        return iter(found)

    def _of_list(self, found: list[_Listed], key: int, end: int) -> list[_Listed]:
        """The reported ones of the matches of one end that are left."""
        choice = self._choice
        if choice.after is not None and choice.consume is Consume.NONE:
            return self._by_rule(found, choice.after.rule, key, end)
        match choice.selection:
            case Selection.NEXT:
                best = min(match.order[:-1] for match in found)
                found = [match for match in found if match.order[:-1] == best]
            case Selection.LAST:
                last = max(match.positions[::-1] for match in found)
                found = [match for match in found if match.positions[::-1] == last]
            case Selection.MAX:
                found = _maximal(found)
        if choice.consume is not Consume.NONE:
            self.floors[key] = NEVER if choice.consume is Consume.ONCE else end + 1
        return found if self._limit is None else self._recent(found, self._limit)

    @property
    def _open(self) -> OpenRoots:
        assert self._roots is not None
        return self._roots

    def _parts(self, found: np.ndarray | list[_Listed], end: int) -> Iterator[MatchBatch]:
        if isinstance(found, np.ndarray):
            return self._open.matches(found)
        return iter((self._batch(found, end),) if found else ())

    def _of_one_end(self, roots: np.ndarray, key: int) -> np.ndarray | list[_Listed]:
        """The reported matches of one end, as roots or as a list."""
        choice, end = self._choice, int(roots[0, k.O_END])
        if choice.after is not None and choice.consume is Consume.NONE:
            return self._by_rule(self._list(roots), choice.after.rule, key, end)
        found: np.ndarray | list[_Listed]
        match choice.selection:
            case Selection.NEXT | Selection.LAST:
                found = self._best(roots)
            case Selection.MAX:
                found = _maximal(self._list(roots))
            case _ if choice.consume is not Consume.NONE and not (self._open.nodes.latest_starts(roots) >= 0).any():
                return []
            case _:
                found = roots
        if choice.consume is not Consume.NONE and len(found):
            self.floors[key] = NEVER if choice.consume is Consume.ONCE else end + 1
        return found if self._limit is None else self._recent(found, self._limit)

    def _best(self, roots: np.ndarray) -> list[_Listed]:
        roots[:, k.O_LOW] = roots[:, k.O_LOW].min()
        latest = self._choice.selection is Selection.LAST
        bits = self._open.nodes.label_bits
        return [
            _Listed(
                start,
                tuple(place >> bits for place in places),
                tuple(place & ((1 << bits) - 1) for place in places) if self._labelled else (),
            )
            for start, places in self._open.nodes.best(roots, latest=latest, marked=self._marked)
        ]

    def _recent(self, found: np.ndarray | list[_Listed], limit: int) -> list[_Listed]:
        """At most so many of the matches, those with the latest starts."""
        if isinstance(found, list):
            return sorted(found, key=lambda match: -match.start)[:limit]
        chosen: list[_Listed] = []
        while len(chosen) < limit and len(found):
            starts = self._open.nodes.latest_starts(found)
            latest = int(starts.max())
            if latest < 0:
                break
            own = found[starts == latest]
            own[:, k.O_LOW], own[:, k.O_HIGH] = latest, latest + 1
            with closing(self._open.matches(own)) as parts:
                for part in parts:
                    chosen += _to_list(part)
                    if len(chosen) >= limit:
                        break
            found = found[found[:, k.O_LOW] < latest]
            found[:, k.O_HIGH] = latest
        return chosen[:limit]

    def _list(self, roots: np.ndarray) -> list[_Listed]:
        """All matches in the ranges. Raises `BudgetExceeded` for `output_bytes`."""
        return [match for part in within(self._open.matches(roots), self._budget) for match in _to_list(part)]

    def _by_rule(self, found: list[_Listed], rule: After, key: int, end: int) -> list[_Listed]:
        """The matches of one end that a rule of AFTER MATCH leaves: each discards before the next one is taken."""
        taken: list[_Listed] = []
        dead = self.dead.setdefault(key, set())
        for _, group in itertools.groupby(sorted(found, key=lambda match: match.order), lambda match: match.order):
            one, *others = group
            if one.start < self.floors.get(key, 0) or one.start in dead:
                continue
            taken += [one._replace(labels=())] if self._hides else [one, *others]
            match rule:
                case After.PAST_LAST:
                    self.floors[key] = end + 1
                case After.ONCE:
                    self.floors[key] = NEVER
                case After.TO_NEXT:
                    dead.add(one.start)
                case _:
                    reached = self._taken_by_variable([one, *others])
                    if reached:
                        bound = min(reached) if rule is After.TO_FIRST else max(reached)
                        self.floors[key] = max(self.floors.get(key, 0), bound)
        if not dead:
            del self.dead[key]
        return taken

    def _taken_by_variable(self, matches: list[_Listed]) -> list[int]:
        assert self._choice.after is not None
        name = self._choice.after.variable
        places = (pair for match in matches for pair in zip(match.positions, match.labels, strict=True))
        return [position for position, label in places if name in self._labels[label]]

    def _batch(self, matches: list[_Listed], end: int) -> MatchBatch:
        sizes = [0, *(len(match.positions) for match in matches)]
        labels = [label for match in matches for label in match.labels] if self._labelled and not self._hides else None
        return MatchBatch(
            np.array([match.start for match in matches], np.int64),
            np.full(len(matches), end),
            np.cumsum(sizes),
            np.array([position for match in matches for position in match.positions], np.int64),
            None,
            None if labels is None else np.array(labels, np.int64),
        )

    def drop_before(self, key: int, low: int) -> None:
        """Starts of a partition before `low` are never asked for any more. Amortised O(1)."""
        if len(self.dead.get(key, ())) > self._sweep_at.get(key, _FEW):
            self.dead[key] = {start for start in self.dead[key] if start >= low}
            self._sweep_at[key] = 2 * len(self.dead[key]) + _FEW

    def rename(self, key: int, other: int | None) -> None:
        """Make what is known of partition `key` that of partition `other`, or forget it."""
        self._sweep_at.pop(key, None)
        for some in (self.floors, self.dead):
            known = some.pop(key, None)
            if known is not None and other is not None:
                some[other] = known  # type: ignore[assignment]

    def snapshot(self) -> Any:
        """The state, as plain values."""
        return dict(self.floors), {key: sorted(starts) for key, starts in self.dead.items()}

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`."""
        floors, dead = state
        numbers = [*floors, *floors.values(), *dead, *itertools.chain.from_iterable(dead.values())]
        expect(all(type(number) is int for number in numbers), "partitions and starts")
        self.floors = dict(floors)
        self.dead = {key: set(starts) for key, starts in dead.items()}


def _to_list(part: MatchBatch) -> Iterator[_Listed]:
    bounds, positions = part.offsets.tolist(), part.positions.tolist()
    labels = [] if part.labels is None else part.labels.tolist()
    for i, start in enumerate(part.start.tolist()):
        own = slice(bounds[i], bounds[i + 1])
        yield _Listed(start, tuple(positions[own]), tuple(labels[own]))


def _maximal(matches: list[_Listed]) -> list[_Listed]:
    """The matches whose positions are no proper subset of another's. O(matches * maximal ones)."""
    place = {position: i for i, position in enumerate({p for match in matches for p in match.positions})}
    found: list[_Listed] = []
    most: list[int] = []
    by_positions = itertools.groupby(
        sorted(matches, key=lambda match: (-len(match.positions), match.positions)), lambda match: match.positions
    )
    for positions, group in by_positions:
        check()
        own = sum(1 << place[position] for position in positions)
        if not any(own & other == own for other in most):
            most.append(own)
            found += group
    return found
