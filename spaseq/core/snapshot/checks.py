"""Checks of the values that a part of an evaluation is restored from."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.core.errors import OptionError


def damage_error(what: str) -> OptionError:
    """The error for bytes that `snapshot()` cannot have returned. `what`: the part that is wrong, a noun."""
    return OptionError(f"this snapshot is damaged: {what}", "take it again, or go on from an earlier one")


def expect(holds: object, what: str) -> None:
    """Raises `OptionError` unless `holds`. `what`: the expected value, a noun for the message."""
    if not holds:
        raise damage_error(f"expected {what}")


def array(
    value: Any,
    what: str,
    *,
    columns: int | None = None,
    rows: int | None = None,
    low: int | None = None,
    high: int | None = None,
) -> np.ndarray:
    """A copy of `value`, which must be an int64 array of one dimension, or of shape (n, `columns`).

    `rows`: the length it must have. `low`, `high`: the least and the greatest value it may contain. Raises
    `OptionError` otherwise; `what` is a plural noun for the message.
    """
    shape = (-1,) if columns is None else (-1, columns)
    fits = isinstance(value, np.ndarray) and value.dtype == np.int64 and value.ndim == len(shape)
    if not fits or (columns is not None and value.shape[1] != columns) or rows not in (None, len(value)):
        raise damage_error(f"{what} have another type or shape")
    if value.size and ((low is not None and value.min() < low) or (high is not None and value.max() > high)):
        raise damage_error(f"{what} are out of range")
    return np.array(value, np.int64)
