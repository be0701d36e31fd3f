"""Many operands of one associative operator as a balanced tree instead of a chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def balance(operator: Callable[[_T, _T], _T], parts: Sequence[_T]) -> _T:
    """`parts` (at least one, order kept) combined by an associative `operator` into a tree of logarithmic depth.

    Functions over formulas are recursive: a chain of some hundred alternatives would exceed Python's recursion limit.
    """
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return operator(balance(operator, parts[:half]), balance(operator, parts[half:]))
