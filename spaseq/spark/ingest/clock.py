"""The times of events, as Spark computes them of columns: of timestamps, dates and whole numbers."""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, IntegralType, TimestampNTZType, TimestampType

from spaseq.core.events.time import unit_nanoseconds

_DAY: Final = 86_400_000_000_000


def nanoseconds(column: Column, kind: DataType | None, unit: str = "s") -> Column | None:
    """The time (ns) of a column, as the local engine computes it; None if Python is to. `unit` is that of whole
    numbers. NULL for a time that cannot be held."""
    match kind:
        case TimestampType():
            micros = F.unix_micros(column)
        case TimestampNTZType():
            # A time without a zone is in UTC, whatever the session's zone.
            gone = column - F.lit("1970-01-01").cast("timestamp_ntz")
            parts = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000), ("SECOND", 1_000_000))
            micros = reduce(
                Column.__add__,
                ((F.extract(F.lit(part), gone) * F.lit(size)).cast("long") for part, size in parts),
            )
        case DateType():
            return F.unix_date(column).cast("long") * F.lit(_DAY)
        case IntegralType():
            return _to_nanoseconds(column.cast("long"), unit_nanoseconds(unit))
        case _:
            return None
    return _to_nanoseconds(micros, 1000)


def _to_nanoseconds(column: Column, scale: int) -> Column:
    most = ((1 << 63) - 1) // scale
    return column if scale == 1 else F.when(column.between(-most, most), column * F.lit(scale))
