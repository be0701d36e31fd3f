"""The moves of one event: Algorithm 1 ([CORE] §4.3) on union lists, heaps and pools."""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

from spaseq.core.jit import hot, inline
from spaseq.core.tecs.kernels.boxes import cut_rows, enter_pool
from spaseq.core.tecs.kernels.heaps import add_heap, add_to_heap, tie_entries
from spaseq.core.tecs.kernels.kept_ranges import apply_tags
from spaseq.core.tecs.kernels.layout import (
    CUT,
    DEPTH,
    END,
    FIRST,
    HEAD,
    HEAD_MAX,
    IS_BOTTOM,
    IS_OUTPUT,
    LENGTH,
    LOW,
    M_FIRST,
    M_HEAD,
    M_LABEL,
    M_LENGTH,
    M_MAX,
    M_NODE,
    M_POOLED,
    M_SKIP_POOLED,
    M_SKIP_VALUE,
    M_TAG,
    M_VALUE,
    MARK_ACCEPTS,
    MARK_TO,
    MERGED,
    NIL,
    OUT,
    OUTS,
    RANGE,
    SKIP_ACCEPTS,
    SKIP_TO,
    SOURCE,
    STAY,
    TAG,
)
from spaseq.core.tecs.kernels.structure import add_list, add_node, free_entries, merge, new_node


@inline
def apply_moves(nodes, cells, entries, st, moves, count, position, low, outs, pools):
    """One event of Algorithm 1 ([CORE] §4.3): lines 7-11 for the `count` transitions in `moves`.

    First every source is merged, and the lists of sources that move away are detached; then the targets are extended.
    So no transition sees the effects of another one at the same event. `outs` (int64, (2 * rows of moves, 2)) receives
    the roots of the accepted runs and their tags. Precondition: `reserve` returned DONE for `count` moves. With
    `pools`, lists have two entries at most (`heaps`).
    """
    if pools is not None:
        apply_tags(pools.kept, pools, nodes, st, moves, count, position, low)
    for i in range(count):
        move = moves[i]
        cell = move[SOURCE]
        if cell in (RANGE, TAG):
            continue
        if pools is not None and cell == CUT:
            cut_rows(pools, nodes, cells, st, move[SKIP_TO], move, M_VALUE, M_SKIP_VALUE, low)
            continue
        if cell < 0:
            move[M_MAX] = position
            move[M_NODE] = NIL
            if move[SKIP_TO] >= 0 or move[SKIP_ACCEPTS]:
                move[M_NODE] = new_node(nodes, st, NIL, IS_BOTTOM, position, position)
            move[M_HEAD] = move[M_NODE]
            move[M_FIRST] = NIL
            move[M_LENGTH] = 0
        else:
            move[M_NODE] = merge(nodes, cells, entries, st, cell, low)
            move[M_MAX] = cells[cell, HEAD_MAX]
            if move[SKIP_TO] != STAY:
                move[M_HEAD] = cells[cell, HEAD]
                move[M_FIRST] = cells[cell, FIRST]
                move[M_LENGTH] = cells[cell, LENGTH]
                cells[cell, HEAD] = NIL
                cells[cell, MERGED] = NIL
                cells[cell, FIRST] = NIL
                cells[cell, LENGTH] = 0
    n_outs = 0
    for i in range(count):
        move = moves[i]
        if pools is not None and (move[SOURCE] == CUT or move[SOURCE] == TAG):
            continue
        if move[MARK_TO] >= 0 or move[MARK_ACCEPTS]:
            node = new_node(nodes, st, move[M_NODE], IS_OUTPUT - move[M_LABEL], position, move[M_MAX])
            if move[MARK_TO] >= 0:
                if pools is None:
                    add_node(nodes, cells, entries, st, move[MARK_TO], node, move[M_MAX], low)
                elif move[M_POOLED]:
                    enter_pool(
                        pools, nodes, cells, st, move[MARK_TO], move, M_VALUE, move[M_POOLED], node, move[M_MAX], NIL,
                        NIL, low,
                    )  # fmt: skip
                else:
                    add_to_heap(nodes, cells, entries, st, move[MARK_TO], node, move[M_MAX], low, pools.path)
            if move[MARK_ACCEPTS]:
                outs[n_outs, 0] = node
                outs[n_outs, 1] = move[M_TAG]
                n_outs += 1
        if move[SKIP_ACCEPTS]:
            outs[n_outs, 0] = move[M_NODE]
            outs[n_outs, 1] = -1 - move[M_TAG]
            n_outs += 1
        if move[SKIP_TO] >= 0:
            if pools is None:
                add_list(nodes, cells, entries, st, move[SKIP_TO], move, low)
            elif move[M_SKIP_POOLED]:
                ties, ties_max = tie_entries(nodes, entries, st, move[M_FIRST], low, pools.path)
                free_entries(entries, st, move[M_FIRST])
                enter_pool(
                    pools, nodes, cells, st, move[SKIP_TO], move, M_SKIP_VALUE, move[M_SKIP_POOLED], move[M_HEAD],
                    move[M_MAX], ties, ties_max, low,
                )  # fmt: skip
            else:
                add_heap(nodes, cells, entries, st, move[SKIP_TO], move, low, pools.path)
        elif move[SKIP_TO] != STAY:
            free_entries(entries, st, move[M_FIRST])
    st[OUTS] = n_outs
    st[OUT] = 0
    st[DEPTH] = 0
    st[END] = position
    st[LOW] = low


@inline
def apply_starts(nodes, cells, st, moves, count, position, low, outs, pools):
    """`apply_moves` if only ends are asked for: a cell holds the greatest start of its runs, and no node is made.

    Of the runs in one cell, all complete at the same events, and the one that started last leaves the window last. So a
    match ends at an event if an accepting transition fires from a cell whose greatest start is alive. `outs[0]`
    receives the greatest start among these moves, and the tag of one that has it. O(moves).
    """
    if pools is not None:
        apply_tags(pools.kept, pools, nodes, st, moves, count, position, low)
    for i in range(count):
        move = moves[i]
        if move[SOURCE] in (RANGE, TAG):
            continue
        if pools is not None and move[SOURCE] == CUT:
            cut_rows(pools, nodes, cells, st, move[SKIP_TO], move, M_VALUE, M_SKIP_VALUE, low)
            continue
        if move[SOURCE] < 0:
            move[M_MAX] = position
        else:
            move[M_MAX] = cells[move[SOURCE], HEAD_MAX]
            if move[SKIP_TO] != STAY:
                cells[move[SOURCE], HEAD] = NIL
    outs[0, 0] = NIL
    for i in range(count):
        move = moves[i]
        start = move[M_MAX]
        if pools is not None and (move[SOURCE] == CUT or move[SOURCE] == TAG):
            continue
        if move[MARK_TO] >= 0:
            count = move[M_POOLED] if pools is not None else 0
            if pools is not None and count:
                enter_pool(
                    pools, nodes, cells, st, move[MARK_TO], move, M_VALUE, count, NIL, start, NIL, NIL, low
                )  # fmt: skip
            else:
                raise_start(cells, move[MARK_TO], start)
        if move[SKIP_TO] >= 0:
            count = move[M_SKIP_POOLED] if pools is not None else 0
            if pools is not None and count:
                enter_pool(
                    pools, nodes, cells, st, move[SKIP_TO], move, M_SKIP_VALUE, count, NIL, start, NIL, NIL, low
                )  # fmt: skip
            else:
                raise_start(cells, move[SKIP_TO], start)
        if (move[MARK_ACCEPTS] or move[SKIP_ACCEPTS]) and start > outs[0, 0]:
            outs[0, 0] = start
            outs[0, 1] = move[M_TAG] if move[MARK_ACCEPTS] else -1 - move[M_TAG]
    st[OUTS] = 1 if outs[0, 0] >= low else 0
    st[END] = position


@hot
def raise_start(cells, cell, start):
    """A run that began at `start` reaches a cell, of those that hold nothing but a start."""
    if cells[cell, HEAD] < 0:
        cells[cell, HEAD] = 0
        cells[cell, HEAD_MAX] = start
    elif start > cells[cell, HEAD_MAX]:
        cells[cell, HEAD_MAX] = start
