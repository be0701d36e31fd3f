"""An evaluator that is exchanged for another one at nearly every batch, for tests."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from unittest.mock import patch

from spaseq.core.engine.choice import auto
from spaseq.core.engine.choice.auto import AutoEvaluator
from spaseq.core.engine.choice.cost import estimate
from spaseq.core.engine.runs.evaluator import Evaluator


class Changing(AutoEvaluator):
    """Another evaluator after nearly every batch, if it may change at all."""

    def _choose(self) -> None:
        found = estimate(self._plan, self._statistics)
        if self._reach.is_whole and self._kind is not None:
            self._change(random.Random(self._seen).choice(("compact", "chain", "tree")), found.orders)


@contextlib.contextmanager
def changing() -> Iterator[None]:
    """Meanwhile, a query whose settings name no evaluator has such a one whenever it may."""
    with (
        patch.object(auto, "AutoEvaluator", Changing),
        patch.object(auto, "FIRST", 1),
        patch.object(auto, "EVERY", 1),
        patch.object(auto, "PATIENCE", 0),
        patch.object(Evaluator, "compares_all", lambda evaluator: True),
    ):
        yield
