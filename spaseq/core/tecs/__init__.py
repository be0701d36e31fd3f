"""tECS: the compact structure that represents all runs at once ([CORE] §4).

`Arena` holds its arrays, the kernels build and enumerate it. Only the engine uses this package.

Modules:

* `kernels/`: Kernels of the compact structure tECS ([CORE] §4).
* `arena`: The arrays of a compact structure and how they grow.
* `roots`: Nodes whose matches wait, and the matches below them that start in a range.
"""

from __future__ import annotations

from spaseq.core.tecs.arena import NO_ROOTS, Arena, Chunk, TooManyMatches
from spaseq.core.tecs.roots import Roots

__all__ = [
    "NO_ROOTS",
    "Arena",
    "Chunk",
    "Roots",
    "TooManyMatches",
]
