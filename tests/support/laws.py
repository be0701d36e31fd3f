"""The laws of the compact structure, checked on an arena."""

from __future__ import annotations

from collections import Counter

import numpy as np

from spaseq.core.engine.kernels.registers import layout as reg
from spaseq.core.engine.runs.coded import GuardRun
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
        if right == k.IS_PRODUCT:
            assert _row(arena, left)[k.MAX] == max_start, "a product starts where its runs do"
            assert _row(arena, pos)[k.MAX] == k.FOREVER, "what is put on runs is a suffix"
            todo += [left, pos]
        elif right >= 0:
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


def check_pools(run: GuardRun) -> None:
    """Raises `AssertionError` unless the laws of `tecs.kernels.pools` hold, and laws 1 to 4 of all nodes that its rows
    lead to, in the window of the last event."""
    if run._pools is None:
        return
    arena, rows, trees = run._arena, run._pools._rows, run._pools._trees
    lows = np.maximum(run.cell_lows(), arena.st[k.KEEP])
    seen: set[int] = set()
    for cell in run._pool_cells.tolist():
        root, top, count, steps = trees[cell].tolist()
        low = int(lows[cell])
        if arena.cells[cell, k.HEAD_MAX] < low:
            continue
        assert arena.cells[cell, k.HEAD_MAX] == rows[root, k.P_START], "the root has the greatest start"
        assert arena.st[k.STARTS_ONLY] or arena.cells[cell, k.HEAD] == rows[root, k.P_NODE], "the root is the head"
        held = run._confs[cell, reg.REGISTERS :] == reg.POOLED
        assert count == held.sum() <= run._tables.pooled[run._confs[cell, reg.CONF_STATE], 0], "a value a register"
        if steps > 0:
            _check_kept_tree(arena, rows, root, top, count, steps, low, seen)
        else:
            _check_tree(arena, rows, root, top, count, low, seen)


def _check_tree(
    arena: Arena, rows: np.ndarray, row: int, level: int, count: int, low: int, seen: set[int]
) -> set[tuple[int, ...]]:
    """The values, `count` of a row, of a live tree of at least one row, whose children differ at `level`."""
    own = rows[row].tolist()
    fresh = own[k.P_UNION] >= 0 and not arena.st[k.STARTS_ONLY]
    below = []
    for child in own[k.P_LEFT : k.P_RIGHT + 1]:
        live = child >= 0 and rows[child, k.P_START] >= low
        assert not live or not fresh or rows[child, k.P_UNION] >= 0, "what is above stale unions is stale"
        below.append(_check_tree(arena, rows, child, level - 1, count, low, seen) if live else set())
    held = _check_place(rows, row, level, count, low, below)
    if arena.st[k.STARTS_ONLY]:
        return held
    head = _row(arena, own[k.P_NODE])
    assert head[k.RIGHT] < 0 and head[k.MAX] == own[k.P_START], "a row's node is no union, and has its start"
    _check_nodes(arena, own[k.P_NODE], low, seen)
    if own[k.P_TIES] >= 0 and own[k.P_TIES_MAX] >= low:
        assert own[k.P_TIES_MAX] <= own[k.P_START], "ties begin no later"
        assert _row(arena, own[k.P_TIES])[k.MAX] == own[k.P_TIES_MAX] and _is_safe(arena, own[k.P_TIES])
        _check_nodes(arena, own[k.P_TIES], low, seen)
    if fresh:
        assert _row(arena, own[k.P_UNION])[k.MAX] == own[k.P_START], "a union starts where its row does"
        assert _is_safe(arena, own[k.P_UNION]), "unions are safe"
        _check_nodes(arena, own[k.P_UNION], low, seen)
        found = _runs_below(arena, own[k.P_UNION], low)
        expected = _runs_below(arena, own[k.P_NODE], low)
        if own[k.P_TIES] >= 0 and own[k.P_TIES_MAX] >= low:
            expected += _runs_below(arena, own[k.P_TIES], low)
        for child in own[k.P_LEFT : k.P_RIGHT + 1]:
            if child >= 0 and rows[child, k.P_START] >= low:
                expected += _runs_below(arena, int(rows[child, k.P_UNION]), low)
        assert expected <= found, "a union has the runs of its subtree"  # and some that have left the window since
        assert set(found.values()) == {1}, "a union has each run once"
    return held


def _check_place(
    rows: np.ndarray, row: int, level: int, count: int, low: int, below: list[set[tuple[int, ...]]]
) -> set[tuple[int, ...]]:
    """The values of a live subtree, `below` being those of its children."""
    own = rows[row].tolist()
    held = {(own[k.P_VALUE], *own[k.P_MORE : k.P_MORE + count - 1])}
    bit, number = divmod(level, count)
    for side in (0, 1):
        child = own[k.P_LEFT + side]
        if child < 0 or rows[child, k.P_START] < low:
            continue
        assert rows[child, k.P_START] <= own[k.P_START], "starts descend"
        sides = {(values[number] >> bit & 1) ^ (bit == 63) for values in below[side]}
        assert sides == {side}, "values lie on their side"
        held |= below[side]
    for number in range(count):
        of = {values[number] for values in held}
        agreed = next((at for at in range(64) if at * count + number > level), 64)
        assert agreed == 64 or len({value >> agreed for value in of}) == 1, "values agree above their level"
        if count > 1:
            least, greatest = own[k.P_BOX + 2 * number : k.P_BOX + 2 * number + 2]
            assert least <= min(of) and max(of) <= greatest, "a box has the values of its subtree"
    return held


def _check_kept_tree(
    arena: Arena, rows: np.ndarray, row: int, level: int, count: int, steps: int, low: int, seen: set[int]
) -> tuple[set[tuple[int, ...]], list[Counter[_Run]]]:
    """As `_check_tree` for rows of several steps; also the runs of the subtree at each step."""
    own = rows[row].tolist()
    below: list[set[tuple[int, ...]]] = []
    runs = [_runs_at(arena, own, k.P_RUNS, k.P_OWN, step, low) for step in range(steps)]
    for child in own[k.P_LEFT : k.P_RIGHT + 1]:
        below.append(set())
        if child >= 0 and rows[child, k.P_START] >= low:
            below[-1], theirs = _check_kept_tree(arena, rows, child, level - 1, count, steps, low, seen)
            for mine, other in zip(runs, theirs, strict=True):
                mine += other
    held = _check_place(rows, row, level, count, low, below)
    head = _row(arena, own[k.P_NODE])
    assert head[k.RIGHT] < 0 and head[k.MAX] == own[k.P_START], "a row's node is no union, and has its start"
    assert max(own[k.P_RUNS + 1 : k.P_UNIONS : 2]) == own[k.P_START], "a row starts as the last of its runs"
    for step in range(steps):
        fresh = not own[k.P_STALE] >> step & 1
        for column in (k.P_RUNS, *([k.P_UNIONS] if fresh else [])):
            node, start = own[column + 2 * step : column + 2 * step + 2]
            if node >= 0 and start >= low:
                assert _row(arena, node)[k.MAX] == start and _is_safe(arena, node)
                _check_nodes(arena, node, low, seen)
        if fresh:
            node, start = own[k.P_UNIONS + 2 * step : k.P_UNIONS + 2 * step + 2]
            found = Counter(_runs(arena, node, low)) if node >= 0 and start >= low else Counter()
            assert found == runs[step], "a union has the runs of its subtree"
        assert set(runs[step].values()) <= {1}, "each run once"
    for suffix in own[k.P_OWN :]:
        assert suffix < 0 or (_row(arena, suffix)[k.MAX] == k.FOREVER and _is_safe(arena, suffix)), "suffixes are safe"
    tagged = [_runs_at(arena, own, None, k.P_TAGS, step, low, runs) for step in range(steps)]
    return held, tagged


_Run = tuple[int, ...]
"""The start of a run, and the positions and labels that it marked."""


def _runs_at(
    arena: Arena, own: list[int], column: int | None, suffixes: int, step: int, low: int,
    runs: list[Counter[_Run]] | None = None,
) -> Counter[_Run]:  # fmt: skip
    """The runs of a row at a step: those of a node for each step, from `column` on, or `runs`, and with suffixes."""
    found: Counter[_Run] = Counter()
    for i in range(step + 1):
        if runs is None:
            assert column is not None
            node, start = own[column + 2 * i : column + 2 * i + 2]
            base = Counter(_runs(arena, node, low) if node >= 0 and start >= low else [])
        else:
            base = runs[i]
        found += base if i == step else Counter()
        suffix = own[suffixes + step * (step + 1) // 2 + i]
        for behind in _runs(arena, suffix, low) if suffix >= 0 and base else []:
            for run, times in base.items():
                found[run + behind] += times
    return found


def _runs(arena: Arena, handle: int, low: int) -> list[_Run]:
    """The live runs below a node, or the suffixes."""
    left, right, pos, max_start = _row(arena, handle)
    if right == k.IS_PRODUCT:
        return [run + behind for run in _runs(arena, left, low) for behind in _runs(arena, pos, low)]
    if right >= 0:
        return _runs(arena, left, low) + (_runs(arena, right, low) if pos >= low else [])
    if right == k.IS_BOTTOM:
        return [(max_start,)]
    before = [()] if left == k.HOLE else _runs(arena, left, low) if left >= 0 else [(max_start,)]
    return [(*run, pos, right) for run in before]


def _runs_below(arena: Arena, handle: int, low: int) -> Counter[int]:
    """The output and bottom nodes that unions from `handle` on lead to, each as often as it is reached."""
    found: Counter[int] = Counter()
    todo = [handle]
    while todo:
        left, right, pos, _ = _row(arena, todo[-1])
        node = todo.pop()
        if right < 0:
            found[node] += 1
        else:
            todo.append(left)
            todo += [right] if pos >= low else []
    return found
