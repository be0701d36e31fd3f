"""The options of reading events as the library takes them: durations as texts, timedeltas or nanoseconds."""

from __future__ import annotations

import datetime

from spaseq.errors import OptionError
from spaseq.events import EventOptions, parse_duration

__all__ = ["Duration", "event_options"]

Duration = str | int | datetime.timedelta


def event_options(
    type_column: str | None = None,
    time_column: str | None = None,
    time_from: str | None = None,
    time_unit: str = "s",
    interval: Duration = "1ms",
    lateness: Duration = 0,
    late: str = "error",
) -> EventOptions:
    """Checked options; `OptionError` for what cannot be used."""
    if time_from not in (None, "arrival"):
        raise OptionError(
            f"times cannot be taken from {time_from!r}", "time_from is 'arrival'; a column is time_column="
        )
    if late not in ("drop", "error"):
        raise OptionError(f"unknown policy for late events {late!r}", "drop or error")
    return EventOptions(
        type_column=type_column,
        time_column=time_column,
        from_arrival=time_from == "arrival",
        time_unit=time_unit,
        interval=_nanoseconds(interval),
        lateness=_nanoseconds(lateness),
        late="drop" if late == "drop" else "error",
    )


def _nanoseconds(duration: Duration) -> int:
    if isinstance(duration, str):
        return parse_duration(duration)
    if isinstance(duration, datetime.timedelta):
        return ((duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds) * 1_000
    return int(duration)
