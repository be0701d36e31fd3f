"""The share of random cases that a test takes: in the quick suite a third of them, in `make test-slow` all.

The cases of a seed are the same in both: the quick suite takes the first ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

_SHARE: Final = int(os.environ.get("SPASEQ_SHARE", "3"))
"""One in so many cases is taken."""


def some(cases: int) -> int:
    """The number of cases to take of so many, at least one."""
    return max(1, cases // _SHARE)


def share(cases: Sequence[Any]) -> Sequence[Any]:
    """Every third of these cases; all in `make test-slow`."""
    return cases[::_SHARE]
