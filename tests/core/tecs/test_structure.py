"""The compact structure itself: what it stands for, its laws, and the delay of enumerating it."""

from __future__ import annotations

import random

from spaseq.core.engine import Evaluator, Window, compile_program
from spaseq.core.engine.kernels.registers import layout as registers
from spaseq.core.tecs import Arena
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.structure import add_list, add_node, merge, new_node
from tests.support import oracle as o
from tests.support.engine_patterns import lower, random_rows
from tests.support.laws import check_laws
from tests.support.sizes import some

Open = set[tuple[int, tuple[int, ...]]]


def stands_for(arena: Arena, handle: int, low: int = 0) -> list[tuple[int, tuple[int, ...]]]:
    """The open complex events (start, D) of a node, by the definition of full paths ([CORE] §4.1)."""
    left, right, pos, max_start = (int(x) for x in arena.nodes[handle & (len(arena.nodes) - 1)])
    if right >= 0:
        return stands_for(arena, left, low) + (stands_for(arena, right, low) if pos >= low else [])
    if right == k.IS_BOTTOM:
        return [(pos, ())]
    rest = [(max_start, ())] if left < 0 else stands_for(arena, left, low)
    return [(start, (*marked, pos)) for start, marked in rest]


def add(arena: Arena, cell: int, start: int, pos: int) -> int:
    node = new_node(arena.nodes, arena.st, k.NIL, k.IS_OUTPUT, pos, start)
    add_node(arena.nodes, arena.cells, arena.entries, arena.st, cell, node, start, 0)
    return int(node)


def test_lists_hold_what_was_put_in_whatever_the_order() -> None:
    """Newer heads fold, equal starts unite, older ones are sorted in; merging and moving lists loses nothing."""
    rng = random.Random(5)
    for _ in range(some(200)):
        arena = Arena(1 << 24)
        arena.add_cells(2)
        held: list[Open] = [set(), set()]
        for pos in range(rng.randrange(1, 30)):
            cell = rng.randrange(2)
            start = rng.randrange(pos + 1)
            add(arena, cell, start, pos)
            held[cell].add((start, (pos,)))
            if rng.random() < 0.2 and all(held):  # the other cell's whole list moves over
                other, move = 1 - cell, arena.moves[0]
                move[k.M_NODE] = merge(arena.nodes, arena.cells, arena.entries, arena.st, other, 0)
                for to, column in ((k.M_HEAD, k.HEAD), (k.M_MAX, k.HEAD_MAX), (k.M_FIRST, k.FIRST),
                                   (k.M_LENGTH, k.LENGTH)):  # fmt: skip
                    move[to] = arena.cells[other, column]
                arena.cells[other] = (k.NIL, k.NIL, k.NIL, k.NIL, 0)
                add_list(arena.nodes, arena.cells, arena.entries, arena.st, cell, move, 0)
                held[cell] |= held[other]
                held[other] = set()
            check_laws(arena)
        for cell in range(2):
            if held[cell]:
                node = merge(arena.nodes, arena.cells, arena.entries, arena.st, cell, 0)
                found = stands_for(arena, int(node))
                assert sorted(found) == sorted(held[cell])  # as lists: nothing twice
                check_laws(arena)


def steps_between_matches(arena: Arena, roots: list[int], low: int) -> list[tuple[int, int]]:
    """(nodes visited, positions written) for each match of an enumeration, left before right, pruned at `low`."""
    delays, mask = [], len(arena.nodes) - 1
    for root in roots:
        stack, visited = [(root, 0)], 0
        while stack:
            handle, depth = stack.pop()
            while True:
                visited += 1
                left, right, pos, _ = (int(x) for x in arena.nodes[handle & mask])
                if right >= 0:
                    if pos >= low:
                        stack.append((right, depth))
                    handle = left
                    continue
                if right <= k.IS_OUTPUT and left >= 0:
                    handle, depth = left, depth + 1
                    continue
                delays.append((visited, depth + 1))
                visited = 0
                break
    return delays


def test_the_delay_is_linear_in_the_match_whatever_the_length_of_the_stream() -> None:
    formula = o.Then(o.Then(o.Type("A"), o.Plus(o.Type("B"))), o.Type("C"))
    worst = []
    for size in (50, 500, 5000):
        rng = random.Random(1)
        rows = random_rows(rng, size)
        rows.types[:] = [rng.choice("AB") if i % 6 else "A" for i in range(size)]
        evaluator = Evaluator(compile_program(lower(formula), Window("events", 16)))
        evaluator.push(rows)
        arena = evaluator._arena
        low = size - 17
        roots = [
            int(merge(arena.nodes, arena.cells, arena.entries, arena.st, cell, low))
            for cell in range(len(arena.cells))
            if arena.cells[cell, k.HEAD] >= 0 and arena.cells[cell, k.HEAD_MAX] >= low
        ]
        delays = steps_between_matches(arena, roots, low)
        assert len(delays) > 20
        # At most three unions before each node that is not one, and one node a position ([CORE] Theorem 3).
        assert all(visited <= 4 * (written + 1) for visited, written in delays)
        worst.append(max(visited / (written + 1) for visited, written in delays))
    assert worst[2] <= 4


def test_matches_handed_over_stay_what_they_were() -> None:
    """Buffers are taken back only when nobody looks at them: all chunks kept, and all chunks dropped, read the same."""
    rows = random_rows(random.Random(4), 3000)
    formula = o.Then(o.Then(o.Type("A"), o.Type("B")), o.Type("C"))
    program = compile_program(lower(formula), Window("events", 120))
    kept = list(Evaluator(program).stream(rows))
    copies = [part.positions.copy() for part in Evaluator(program).stream(rows)]
    assert len(kept) > 10
    assert all((part.positions == copy).all() for part, copy in zip(kept, copies, strict=True))
    evaluator = Evaluator(program)
    buffers = {id(evaluator._arena.matches) for _ in evaluator.stream(rows)}
    assert len(buffers) <= 4


def test_statuses_are_told_apart() -> None:
    """The arena grows what the structure's kernels ask for, and leaves the statuses of the register machine to it."""
    own = {name: value for name, value in vars(k).items() if name.startswith("GROW_") or name in ("DONE", "FLUSH")}
    machine = {name: value for name, value in vars(registers).items() if name.startswith(("GROW_", "NEED_"))}
    statuses = list((own | {"NEED_STATES": k.NEED_STATES} | machine).values())
    assert len(set(statuses)) == len(statuses) > 12
