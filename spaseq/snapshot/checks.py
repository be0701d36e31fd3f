"""What a part that is restored checks of the values it is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.errors import OptionError

__all__ = ["array", "damaged", "expect"]


def damaged(what: str) -> OptionError:
    """The error for a snapshot that cannot be what `snapshot()` gave. `what`: what is wrong with it."""
    return OptionError(f"this snapshot is damaged: {what}", "take it again, or go on from an earlier one")


def expect(holds: object, what: str) -> None:
    """`OptionError` unless `holds`. `what`: what should be the case."""
    if not holds:
        raise damaged(f"{what} does not hold")


def array(
    value: Any,
    what: str,
    *,
    columns: int | None = None,
    rows: int | None = None,
    low: int | None = None,
    high: int | None = None,
) -> np.ndarray:
    """`value`, which must be an int64 array of one dimension (of two, with `columns`), as an array of its own.

    `rows`: how many there must be. `low`, `high`: the least and the greatest value there may be. `OptionError` else,
    which calls it `what`.
    """
    shape = (-1,) if columns is None else (-1, columns)
    fits = isinstance(value, np.ndarray) and value.dtype == np.int64 and value.ndim == len(shape)
    if not fits or (columns is not None and value.shape[1] != columns) or rows not in (None, len(value)):
        raise damaged(f"{what} are not what they should be")
    if value.size and ((low is not None and value.min() < low) or (high is not None and value.max() > high)):
        raise damaged(f"{what} point outside")
    return np.array(value, np.int64)
