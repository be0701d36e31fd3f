"""The values of `x IN {…}`, prepared once, so that a test takes a look-up however many they are.

`=` is that of `ceql.operators.values`: numbers are compared by value, a time with the times that texts stand for.
Values whose kinds do not go together are left to the comparisons one by one, which name them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ceql.expressions.exact import same_as
from ceql.operators import values
from ceql.syntax import ast
from spaseq.core.events import Column, NumberColumn, TextColumn, TimeColumn, TruthColumn, text_array


def members(node: ast.In) -> Members:
    """The prepared values of a node; made when they are first asked for."""
    found = node.prepared
    if found is None:
        found = Members(node.items)
        object.__setattr__(node, "prepared", found)
    assert isinstance(found, Members)
    return found


class Members:
    """The constants of an IN as sets and as sorted arrays."""

    def __init__(self, items: Sequence[ast.Expression]) -> None:
        self.constants: tuple[Any, ...] = tuple(i.value for i in items if isinstance(i, _CONSTANTS))
        kinds = {values.kind_of(value) for value in self.constants}
        self._kind = kinds.pop() if len(kinds) == 1 and len(self.constants) == len(items) else None
        self._times: frozenset[int] | None = None
        self._arrays: dict[str, Any] = {}
        if self._kind is not None:
            self._set = frozenset(self.constants)

    def has(self, value: Any) -> bool | None:
        """True if a value is one of them; None for NULL. `EventError` if the kinds do not go together."""
        if value is None:
            return None
        kind = values.kind_of(value)
        if kind == "time" and self._kind == "text":
            return int(value) in self._as_times()
        if kind != self._kind:
            return any([values.compare("=", value, constant) for constant in self.constants])
        return value in self._set

    def where(self, column: Column) -> np.ndarray | pa.BooleanArray | None:
        """bool (n,), true for the values of a column that are among them, valid for known values; for texts, of the
        distinct texts. None if the kinds do not go together."""
        if isinstance(column, TextColumn) and self._kind == "text":
            return pc.is_in(column.texts, value_set=self._array("text"))
        if isinstance(column, TimeColumn) and self._kind == "text":
            return _is_in(column.values, self._array("time"))
        if isinstance(column, TruthColumn) and self._kind == "truth":
            found = [column.values == value for value in self._set]
            return np.asarray(found[0] if len(found) == 1 else np.ones(len(column.values), bool))
        if not isinstance(column, NumberColumn) or self._kind != "number":
            return None
        return _is_in(column.values, self._array(column.values.dtype.kind))

    def _array(self, of: str) -> Any:
        if of not in self._arrays:
            self._arrays[of] = self._make(of)
        return self._arrays[of]

    def _make(self, of: str) -> Any:
        match of:
            case "text":
                return text_array(list(self._set))
            case "time":
                return np.array(sorted(self._as_times()), np.int64)
        return same_as(self._set, of)

    def _as_times(self) -> frozenset[int]:
        if self._times is None:
            self._times = frozenset(values.time_of(text) for text in self.constants)
        return self._times


_CONSTANTS: Final = (ast.Number, ast.Text, ast.Truth)


def _is_in(found: np.ndarray, members: np.ndarray) -> np.ndarray:
    """bool: the values that are in a sorted array. O(values · log members)."""
    if not len(members):
        return np.zeros(len(found), bool)
    places = np.searchsorted(members, found)
    places[places == len(members)] = 0
    return np.asarray(members[places] == found)
