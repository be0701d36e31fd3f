"""The common part of the runs of automata without registers: a kernel over symbol classes, and steps it lacks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from spaseq.core.engine.program.matches import Emit
from spaseq.core.engine.runs.base import Run
from spaseq.core.jit import Kernel, attempt_events, interprets
from spaseq.core.pattern import Batch
from spaseq.core.tecs.kernels import layout as k


class ClassRun(Run):
    """A run whose events are symbol classes alone, so that single events need no batch.

    `kernel` goes over events; its other arguments are `arguments`.
    """

    reads: ClassVar[bool] = False
    kernel: Kernel

    @abstractmethod
    def arguments(self, write: bool) -> tuple[Any, ...]:
        """Those of `kernel` behind the events, until an array grows or there are new steps."""

    @abstractmethod
    def fit(self) -> None:
        """Make room for the cells of every partition, and for the moves of any event."""

    @abstractmethod
    def _provide(self, status: int, events: np.ndarray) -> None:
        """Make room, or compute the steps, that the kernel's `status` asks for."""

    @abstractmethod
    def _sets(self) -> list[frozenset[int]] | None:
        """The sets of states that some run has been in; None if some of them are forgotten."""

    @property
    def reached(self) -> frozenset[int] | None:
        sets = self._sets()
        return None if sets is None else frozenset().union(*sets)

    def advance(self, batch: Batch, events: np.ndarray, emit: Emit, write: bool) -> Iterator[None]:
        arena = self._arena
        self._admit(events)

        def kernel() -> int:
            writes = write or interprets(self.kernel)  # see `base.Run.advance`
            return attempt_events(self.kernel, arena.st, k.ROW, k.DONE, events, *self.arguments(writes))

        while True:
            self.fit()
            status = self._run_kernel(kernel, emit, events)
            yield
            if status == k.FLUSH:
                continue
            self._note_lows(events)
            if status == k.DONE:
                return
            self._provide(status, events)
