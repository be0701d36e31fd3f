"""GROUP BY KEY, GROUP BY 1 HOUR: the rows of GROUP BY EVENT, added up by the key and by the time of their events.

The sum of a semiring is associative, so rows of events are added to those of groups in any order. An open group is held
as its row and its last event, which has its key and its time. New rows wait until there are as many as groups, so that
adding them costs O(log groups) a row on average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from ceql.results.history import History, Past, events_of
from ceql.results.sums import Summing, add_by_group
from ceql.syntax import ast
from spaseq.core.engine import MatchBatch
from spaseq.core.engine.program.sums import Sums, plain_rows, read_rows
from spaseq.core.errors import BudgetExceeded
from spaseq.core.events import EventBatch
from spaseq.core.snapshot import expect

_FEW: Final = 1 << 12
"""So many rows wait to be added at least."""
Found = Iterator[tuple[MatchBatch, History]]


class Groups:
    """The open groups of one evaluation. `codes`: numbers for the keys of events, the same for the same key; None if
    the groups are not by key. `most`: the budget `partitions`."""

    def __init__(
        self, summing: Summing, grouping: ast.Grouping, codes: Callable[[EventBatch], np.ndarray] | None, most: int
    ) -> None:
        self._summing = summing
        self._length = grouping.length
        self._codes = codes if grouping.key else None
        self._most = most
        self._sums: list[Sums] = []
        self._events: list[EventBatch] = []
        self._waiting = 0
        self._groups = 0

    def add(self, matches: MatchBatch, history: History) -> None:
        """Add rows of events, which `history` has, to their groups."""
        assert matches.sums is not None
        self._sums.append(matches.sums)
        self._events += [events_of(history.blocks[number], rows) for number, _, rows in history.places(matches.end)]
        self._waiting += len(matches)
        if self._waiting >= self._groups + _FEW:
            self._settle()

    def until(self, time: int) -> Found:
        """The rows of the groups to which no event from `time` (ns) on belongs."""
        length = self._length
        if length is None or not self._events or int(self._events[0].times[0]) // length >= time // length:
            return
        self._settle()
        (events,) = self._events
        done = int(np.searchsorted(events.times, time // length * length))
        yield self._give(slice(0, done))
        rest = np.arange(done, len(events))
        self._hold(_rows(self._sums[0], rest), events.take(rest))

    def close(self) -> Found:
        """The rows of all groups, as the stream is over."""
        if self._events:
            self._settle()
            yield self._give(slice(None))
            self._hold(None, None)

    def _give(self, rows: slice) -> tuple[MatchBatch, History]:
        (events,), (sums,) = self._events, self._sums
        every = np.arange(len(events))[rows]
        chosen = events.take(every)
        ends = chosen.positions
        matches = MatchBatch(ends, ends, np.arange(len(ends) + 1), ends, sums=_rows(sums, every))
        return matches, History([chosen], [int(ends[0])])

    def _hold(self, sums: Sums | None, events: EventBatch | None) -> None:
        some = events is not None and len(events) > 0
        self._sums, self._events = ([sums], [events]) if some else ([], [])  # type: ignore[list-item]
        self._waiting, self._groups = 0, 0 if events is None else len(events)

    def _settle(self) -> None:
        """Add up what waits, so that there is a row for each group. In order of the groups' last events."""
        if not self._waiting:
            return
        events, sums = _join(self._events), Sums.concat(self._sums)
        groups = np.zeros(len(events), np.int64) if self._codes is None else self._codes(events)
        if self._length is not None:
            stretches, own = np.unique(events.times // self._length, return_inverse=True)
            groups = groups * len(stretches) + own
        _, own = np.unique(groups, return_inverse=True)
        last = np.zeros(own.max() + 1, np.int64)
        last[own] = np.arange(len(own))  # of equal places the last one counts
        if len(last) > self._most:
            hint = "raise partitions, or write GROUP BY KEY, 1 HOUR, which gives the rows of each hour and forgets them"
            raise BudgetExceeded("partitions", self._most, len(last), "groups", hint)
        order = np.argsort(last)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        self._hold(add_by_group(self._summing, sums, rank[own], len(last)), events.take(last[order]))

    def snapshot(self) -> dict[str, Any]:
        """The open groups as plain values."""
        self._settle()
        past = Past()
        for events in self._events:
            past.append(events, 0)
        rows = Sums.concat(self._sums) if self._sums else self._summing.no_sums()
        return {"events": past.snapshot(), "kinds": rows.kinds, **plain_rows("sums", rows)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        past, batches = Past(), state["events"]
        expect(type(batches) is list and len(batches) <= 1, "the last events of groups")
        past.restore(batches, [0] * len(batches))
        events = [block for block in past.blocks if isinstance(block, EventBatch)]
        rows = read_rows(self._summing, state, "sums", len(past))
        expect(not len(past) or rows.ints[:, 0].min() > 0, "matches in each group")
        kinds = tuple(map(tuple, self._summing.read_kinds(state["kinds"])))
        for each in events:
            self._hold(Sums(*rows, kinds=kinds), each)


def _rows(sums: Sums, rows: np.ndarray) -> Sums:
    return Sums(sums.ints[rows], sums.floats[rows], sums.kinds)


def _join(parts: list[EventBatch]) -> EventBatch:
    """The events one after the other."""
    if len(parts) == 1:
        return parts[0]
    table = History(parts, [int(part.positions[0]) for part in parts]).columns(None)
    times, positions = (np.concatenate(each) for each in ([p.times for p in parts], [p.positions for p in parts]))
    codes = None
    if any(part.stream_codes is not None for part in parts):
        codes = np.concatenate(
            [np.zeros(len(p), np.int32) if p.stream_codes is None else p.stream_codes for p in parts]
        )
    return EventBatch(table, parts[0].typed_by, times, positions, parts[-1].streams, codes)
