"""The laws of the compact structure, checked on an arena."""

from __future__ import annotations

from spaseq.core.tecs.arena import Arena
from spaseq.core.tecs.kernels import layout as k


def check_laws(arena: Arena, low: int = 0) -> None:
    """Raises `AssertionError` unless laws 1 to 4 of `tecs.kernels.structure` hold. `low` is the first live start.

    Visits every node that may still be read: linear in the arena.
    """
    seen: set[int] = set()
    for cell in range(len(arena.cells)):
        if arena.cells[cell, k.HEAD] >= 0 and arena.cells[cell, k.HEAD_MAX] >= low:
            _check_list(arena, cell, low, seen)


def _check_list(arena: Arena, cell: int, low: int, seen: set[int]) -> None:
    head = int(arena.cells[cell, k.HEAD])
    head_max = int(arena.cells[cell, k.HEAD_MAX])
    assert _row(arena, head)[k.RIGHT] < 0, "a list's head is not a union"
    assert _row(arena, head)[k.MAX] == head_max, "the head's maximum start is kept beside it"
    _check_nodes(arena, head, low, seen)
    entry, before, length = int(arena.cells[cell, k.FIRST]), None, 0
    while entry >= 0:
        node, node_max = int(arena.entries[entry, k.NODE]), int(arena.entries[entry, k.NODE_MAX])
        if node_max >= low:
            assert _row(arena, node)[k.MAX] == node_max, "an entry's maximum start is kept beside it"
            assert node_max <= head_max, "the head's maximum start is the greatest"
            assert before is None or node_max < before, "maximum starts strictly decrease behind the head"
            assert _is_safe(arena, node), "nodes in lists are safe"
            _check_nodes(arena, node, low, seen)
        before, length = node_max, length + 1
        entry = int(arena.entries[entry, k.NEXT])
    assert length == arena.cells[cell, k.LENGTH], "LENGTH counts the entries"


def _row(arena: Arena, handle: int) -> list[int]:
    assert arena.st[k.OLDEST] <= handle < arena.st[k.TAIL], f"handle {handle} was reclaimed or never given"
    return [int(x) for x in arena.nodes[handle & (len(arena.nodes) - 1)]]


def output_depth(arena: Arena, handle: int) -> int:
    """The output depth ([CORE] §4.1): how many unions there are from `handle` down the left children."""
    depth = 0
    while _row(arena, handle)[k.RIGHT] >= 0:
        depth += 1
        handle = _row(arena, handle)[k.LEFT]
    return depth


def _is_safe(arena: Arena, handle: int) -> bool:
    row = _row(arena, handle)
    if row[k.RIGHT] < 0:
        return True
    alive = row[k.RIGHT] >= arena.st[k.OLDEST]
    return output_depth(arena, handle) == 1 and (not alive or output_depth(arena, row[k.RIGHT]) <= 2)


def _check_nodes(arena: Arena, root: int, low: int, seen: set[int]) -> None:
    todo = [root]
    while todo:
        handle = todo.pop()
        if handle in seen:
            continue
        seen.add(handle)
        left, right, pos, max_start = _row(arena, handle)
        if right >= 0:
            assert output_depth(arena, handle) <= 3, "3-bounded"
            assert _row(arena, left)[k.MAX] == max_start, "a union's maximum start is its left child's"
            assert pos <= max_start, "time order"
            todo.append(left)
            if pos >= low:
                assert _row(arena, right)[k.MAX] == pos, "the right child's maximum start is kept beside it"
                todo.append(right)
        elif right <= k.IS_OUTPUT and left >= 0:
            assert _row(arena, left)[k.MAX] == max_start, "an output node starts where its child does"
            todo.append(left)
