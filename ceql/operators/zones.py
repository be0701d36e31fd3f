"""Time zones: the offset of local times to UTC, of single times and of columns.

The rules are those of the standard library's `zoneinfo`. Columns look an offset up among the changes of a zone, which
are found year by year and cached, so that both agree.
"""

from __future__ import annotations

import datetime
import functools
import zoneinfo
from typing import Final

import numpy as np

from spaseq.core.errors import EventError
from spaseq.core.slips import did_you_mean

SECOND: Final = 10**9
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DAY: Final = 86_400


@functools.lru_cache(256)
def check_zone(name: str) -> None:
    """Raises `EventError` if there is no such time zone."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = sorted(zoneinfo.available_timezones())
        hint = did_you_mean(name, known) if known else "this machine has no time zones: install the package tzdata"
        raise EventError(f"unknown time zone {name!r}", hint=hint or "for example 'Europe/Berlin', or 'UTC'") from None


@functools.lru_cache(65536)
def offset_at(zone: str, second: int) -> int:
    """Seconds that local times of a zone are ahead of UTC, at a second since 1970."""
    local = (_EPOCH + datetime.timedelta(seconds=second)).astimezone(zoneinfo.ZoneInfo(zone))
    return _seconds(local)


def offsets_at(zone: str, seconds: np.ndarray) -> np.ndarray:
    """`offset_at` of each of these: int64 (n,). O(n log changes), and some milliseconds for each new year of a zone."""
    if not len(seconds):
        return seconds
    first, last = (_year_of(int(second)) for second in (seconds.min(), seconds.max()))
    changes = [change for year in range(first, last + 1) for change in _changes(zone, year)]
    starts = np.array([start for start, _ in changes], np.int64)
    offsets = np.array([offset for _, offset in changes], np.int64)
    return np.asarray(offsets[np.searchsorted(starts, seconds, side="right") - 1])


@functools.lru_cache(65536)
def utc_of(zone: str, local: int) -> int:
    """The second of UTC at which a day of a zone begins: `local` is its midnight in seconds since 1970, as if in UTC.
    The first one if there are two; if clocks skip it, the second at which they do."""
    naive = (_EPOCH + datetime.timedelta(seconds=local)).replace(tzinfo=zoneinfo.ZoneInfo(zone))
    return local - _seconds(naive)


def _seconds(time: datetime.datetime) -> int:
    offset = time.utcoffset()
    assert offset is not None
    return offset.days * _DAY + offset.seconds


def _year_of(second: int) -> int:
    return (_EPOCH + datetime.timedelta(seconds=second)).year


@functools.lru_cache(8192)
def _changes(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """(second, offset from it on): at the year's beginning, and at each change in it. No zone changes twice a day."""
    start = int(datetime.datetime(year, 1, 1, tzinfo=datetime.UTC).timestamp())
    end = int(datetime.datetime(year + 1, 1, 1, tzinfo=datetime.UTC).timestamp())
    found = [(start, offset_at(zone, start))]
    for day in range(start, end, _DAY):
        low, high = day, min(day + _DAY, end)
        before = found[-1][1]
        if offset_at(zone, high) == before:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset_at(zone, middle) == before else (low, middle)
        found.append((high, offset_at(zone, high)))
    return tuple(found)
