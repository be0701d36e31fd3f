"""Where determinisation explodes: the same evaluation goes on set by set.

A pattern may have more deterministic states alive at one time than `Settings.automaton_bytes` holds. Then a
`DeterministicRun` gives up by `Exploded`, between two events, and `set_by_set` hands what is alive over to a
`RegisterRun`: it works out where each live set of states goes at every event, and keeps no table of it. The structure
stays as it is; a cell that hung off a deterministic state hangs off the set of automaton states that it stood for.
"""

from __future__ import annotations

import numpy as np

from spaseq.engine.program.program import Program
from spaseq.engine.program.settings import Consume
from spaseq.engine.runs.deterministic import DeterministicRun
from spaseq.engine.runs.row_sets import RegisterRun
from spaseq.tecs import Arena
from spaseq.tecs.kernels import layout as k

__all__ = ["set_by_set"]


def set_by_set(
    program: Program, arena: Arena, classes: DeterministicRun, states: list[frozenset[int]], vectors: list[int]
) -> RegisterRun:
    """A run that goes on where `classes` stopped. O(cells)."""
    run = RegisterRun(program, arena)
    arena.st[k.UNKNOWN_STATE] = 0
    empty = run.registers.empty
    taken = arena.cells[:, k.HEAD] >= 0
    cells = np.flatnonzero(taken)
    keys, numbers = np.divmod(cells, classes.width)
    configurations = [frozenset((q, empty) for q in some) for some in states]
    lows = classes.key_lows
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


def _floors(program: Program, arena: Arena, classes: DeterministicRun) -> dict[int, int]:
    match program.choice.consume:
        case Consume.ANY:
            return {0: int(arena.st[k.FLOOR])}
        case Consume.PARTITION:
            return {key: floor for key, floor in enumerate(classes.floors.tolist()) if floor}
    return {}
