"""The six comparisons of both languages: a row for each."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple


class Comparison(NamedTuple):
    """`left symbol right`, which is `right mirror left`, and not `left negation right`.

    `holds` takes two values or two numpy arrays. Arrow's compute function has the name `arrow`.
    """

    symbol: str
    mirror: str
    negation: str
    holds: Callable[[Any, Any], Any]
    arrow: str

    @property
    def is_order(self) -> bool:
        """True for <, <=, > and >=; equality needs no order."""
        return self.mirror != self.symbol


COMPARISONS: Final = {
    row.symbol: row
    for row in (
        Comparison("=", "=", "!=", operator.eq, "equal"),
        Comparison("!=", "!=", "=", operator.ne, "not_equal"),
        Comparison("<", ">", ">=", operator.lt, "less"),
        Comparison("<=", ">=", ">", operator.le, "less_equal"),
        Comparison(">", "<", "<=", operator.gt, "greater"),
        Comparison(">=", "<=", "<", operator.ge, "greater_equal"),
    )
}
