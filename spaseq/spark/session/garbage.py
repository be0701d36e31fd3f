"""Collections of garbage in Spark's workers.

After each task, PySpark's daemon has the worker collect all garbage. Such a collection visits all objects of the
imported libraries and compiled kernels.

PERF: it took 0.25 s of processor time after each task, which often took less itself. 28 tests of batches and streams,
252 tasks: 98 s in the workers before, 65 now (2026-11-27).
"""

from __future__ import annotations

import gc
import sys
from itertools import count
from typing import Final

_DAEMON: Final = "pyspark.daemon"
_tasks = count(1)


def spare_what_lasts() -> None:
    """Called at the end of each task. After the first, second, fourth, eighth … task of a worker, collections leave out
    all that it then holds. Of that, cycles that become garbage are not freed, so it is done ever more seldom. Does
    nothing in another process than a worker that takes several tasks."""
    if getattr(sys.modules["__main__"].__spec__, "name", None) != _DAEMON:
        return
    number = next(_tasks)
    if number & (number - 1) == 0:
        gc.collect()
        gc.freeze()
