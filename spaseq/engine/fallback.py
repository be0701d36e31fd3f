"""Where determinisation explodes: the same evaluation goes on set by set.

A pattern may have more deterministic states alive at one time than `Settings.automaton_bytes` holds. Then `_Classes`
gives up by `Exploded`, between two events, and `set_by_set` hands what is alive over to a `RegisterRun`: it works out
where each live set of states goes at every event, and keeps no table of it. The structure stays as it is; a cell
that hung off a deterministic state hangs off the set of automaton states which that one stood for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spaseq.engine.program import Program
from spaseq.engine.register_run import RegisterRun
from spaseq.engine.settings import Consume
from spaseq.tecs import Arena
from spaseq.tecs import kernels as k

if TYPE_CHECKING:
    from spaseq.engine.evaluator import _Classes

__all__ = ["Exploded", "set_by_set"]


class Exploded(Exception):
    """The live deterministic states alone exceed their budget. `states`: what each stands for, by number."""

    def __init__(self, states: list[frozenset[int]]) -> None:
        super().__init__("too many live deterministic states")
        self.states = states


def set_by_set(
    program: Program, arena: Arena, classes: _Classes, states: list[frozenset[int]], vectors: list[int]
) -> RegisterRun:
    """A run that goes on where `classes` stopped. O(cells)."""
    run = RegisterRun(program, arena)
    arena.st[k.UNKNOWN_STATE] = 0
    empty = run._registers.empty
    taken = arena.cells[:, k.HEAD] >= 0
    cells = np.flatnonzero(taken)
    keys, numbers = np.divmod(cells, classes._width)
    configurations = [frozenset((q, empty) for q in some) for some in states]
    lows = classes._key_lows
    run.restore(
        {
            "keys": keys.tolist(),
            "sets": [configurations[state] for state in numbers.tolist()],
            "cells": cells,
            "key_lows": {} if lows is None else dict(enumerate(lows.tolist())),
            "floors": _floors(program, arena, classes),
        },
        vectors,
    )
    return run


def _floors(program: Program, arena: Arena, classes: _Classes) -> dict[int, int]:
    match program.choice.consume:
        case Consume.ANY:
            return {0: int(arena.st[k.FLOOR])}
        case Consume.PARTITION:
            return {key: floor for key, floor in enumerate(classes._floors.tolist()) if floor}
    return {}
