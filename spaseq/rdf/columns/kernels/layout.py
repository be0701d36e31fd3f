"""Constants that kernels of several files share. Without numba."""

from __future__ import annotations

NIL = -1
"""No term, row, or place."""

# kinds of terms
IRI = 0
BLANK = 1
LITERAL = 2

# what a row says about time
NO_TIME = 0
TIME = 1
NOT_READ = 2  # only until the caller has read it
BAD_TIME = 3
