"""tECS: the compact structure that represents all runs at once ([CORE] §4).

`Arena` holds it, the kernels build and enumerate it, `check_laws` says whether it is one. Only the engine uses this
package.
"""

from __future__ import annotations

from spaseq.tecs.arena import Arena, Chunk
from spaseq.tecs.laws import check_laws

__all__ = ["Arena", "Chunk", "check_laws"]
