"""The best matches below each root, over nodes that matches share, without a list of all of them.

A match has a *sum*: one number or several, of which the first that differ decide. The greatest sum below each node is a
bound for every way from a root down to it. A search that goes on with the way of the greatest bound meets the matches
in order of their sums. It is over behind the k-th one. Ways with a bound as great as the k-th sum are then walked depth
first, and each step leads to a match that is wanted.

Unions would be in the way: a chain of them is as long as the window. So a node has its output nodes as a heap, the
best of which is on top. That of a union is melded of those of its sides, which stay as they are: leftist heaps share
rows, and a meld makes O(log n) new ones.

A product is a choice as an output node is. A way through it goes down its suffixes first. A row of the trail remembers
the runs that they stand on, and the way goes on with these once a suffix is over. So a way may have several such rows
*open*, each behind another. Its bound has the greatest sum of each. A suffix does not know how many events the runs
below have taken. So its positions count from its own first event on, and move behind those of the runs in a sum of
both.

Arguments of several: `ranks` and `search` are the named tuples of `layout`. `node` is a row of choices or NIL, `at` the
last row of a trail, `runs` the last open row of it or NIL. `placed`, `used` and `slack` are as of `find_best`.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.engine.kernels.sums.layout import (
    B_CHOICES,
    B_FIRST,
    B_KEPT,
    B_MATCHES,
    B_NEEDED,
    B_NUMBER,
    B_PAIR,
    B_PLACES,
    B_ROOT,
    B_STACK,
    B_TOPS,
    B_TRAIL,
    B_WAYS,
    BEST_CHOICES,
    BEST_DONE,
    BEST_FLUSH,
    BEST_TRAIL,
    BEST_WAYS,
    C_LEFT,
    C_NODE,
    C_RANK,
    C_RIGHT,
    T_BEFORE,
    T_OPEN,
    T_PLACE,
    T_TAKEN,
)
from spaseq.core.jit import kernel
from spaseq.core.tecs.kernels.layout import NIL


@kernel
def is_less(one, i, a, two, j, b, used, slack):
    """True if a sum is less than another, by more than `slack` in the last of the `used` numbers. The sums are in row i
    of `one` from column `a` on, and in row j of `two` from column `b` on."""
    for c in range(used - 1):
        if one[i, a + c] != two[j, b + c]:
            return one[i, a + c] < two[j, b + c]
    return one[i, a + used - 1] < two[j, b + used - 1] - slack


@kernel
def meld_choices(ranks, st, one, two):
    """The top of a heap of the choices in the heaps of `one` and `two`, which stay as they are. O(log n) rows of
    `ranks`, whose number in use is in `st`."""
    choices, best, path = ranks.choices, ranks.best, ranks.path
    values = best.shape[1]
    depth = 0
    while one >= 0 and two >= 0:
        if is_less(best, choices[one, C_NODE], 0, best, choices[two, C_NODE], 0, values, 0.0):
            one, two = two, one
        path[depth] = one
        depth += 1
        one = choices[one, C_RIGHT]
    rest = max(one, two)
    while depth > 0:
        depth -= 1
        row = path[depth]
        left = choices[row, C_LEFT]
        if left < 0 or choices[left, C_RANK] < choices[rest, C_RANK]:
            left, rest = rest, left
        rest = add_choice(choices, st, choices[row, C_NODE], left, rest)
    return rest


@kernel
def add_choice(choices, st, node, left, right):
    """A new row of `choices` for an output node, above the rows `left` and `right`; its number."""
    row = st[B_CHOICES]
    st[B_CHOICES] = row + 1
    choices[row, C_NODE] = node
    choices[row, C_LEFT] = left
    choices[row, C_RIGHT] = right
    choices[row, C_RANK] = 1 if right < 0 else choices[right, C_RANK] + 1
    return row


@kernel
def add_behind(sums, i, others, j, depth, keys):
    """Add row j of `others` to row i of `sums`: the first `keys` numbers, and the positions as those of events behind
    `depth` others."""
    for c in range(keys):
        sums[i, c] += others[j, c]
    for c in range(keys + depth, sums.shape[1]):
        sums[i, c] += others[j, c - depth]


@kernel
def rank_root(nodes, m, weights, which, placed, ranks, st):
    """Write the rows of `ranks` (`Ranks`) of the nodes in part m of `nodes`, from that in `st` on; True if there was
    room. The other arguments are those of `find_best`. O(nodes log nodes)."""
    top, below, own, best, choices, path = ranks
    values = best.shape[1]
    keys = values - placed
    first = nodes.offsets[m]
    last = nodes.offsets[m + 1]
    before = nodes.last[m] - (last - first)
    if first < last and st[B_PAIR] == 0 and before < st[B_NUMBER]:  # numbers begin anew
        st[B_CHOICES] = 0
    while first + st[B_PAIR] < last:
        if st[B_CHOICES] + path.shape[0] > choices.shape[0]:
            return False
        i = first + st[B_PAIR]
        st[B_PAIR] += 1
        number = before + st[B_PAIR]
        down = nodes.pairs[i, 0]
        other = nodes.pairs[i, 1]
        if other >= 0 and down >= 0:
            top[number] = meld_choices(ranks, st, top[down], top[other])
            continue
        product = other >= 0
        on_hole = down < 0 and not product
        if down < 0:
            down = -1 - down
        inner = choices[top[down], C_NODE] if down > 0 else 0
        depth = below[inner, 2] if down > 0 else 0
        below[number, 0] = down
        below[number, 1] = -1 - other
        if product:
            suffix = choices[top[other], C_NODE]
            below[number, 2] = depth + below[suffix, 2]
            for c in range(values):
                best[number, c] = best[inner, c]
            add_behind(best, number, best, suffix, depth, keys)
        else:
            below[number, 2] = depth + 1
            for c in range(values):
                own[number, c] = weights[which[i], c]
            if depth < placed:
                position = (-1 - other) >> nodes.bits
                own[number, keys + depth] = position if depth == 0 and not on_hole else -position
            for c in range(values):
                best[number, c] = own[number, c] + (best[inner, c] if down > 0 else 0.0)
        top[number] = add_choice(choices, st, number, np.int64(NIL), np.int64(NIL))
    st[B_NUMBER] = nodes.last[m]
    return True


@kernel
def push_way(search, node, at):
    """Put the way to a row of choices (`node`), with its trail from row `at` on and its bound and sum in the rows of
    `search.spare`, into the heap."""
    heap, sums = search.heap, search.heap_sums
    values = search.tops.shape[1]
    i = search.st[B_WAYS]
    search.st[B_WAYS] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        if not is_less(sums, parent, values, search.spare, 0, 0, values, 0.0):
            break
        heap[i, 0] = heap[parent, 0]
        heap[i, 1] = heap[parent, 1]
        for c in range(2 * values):
            sums[i, c] = sums[parent, c]
        i = parent
    heap[i, 0] = node
    heap[i, 1] = at
    for c in range(values):
        sums[i, values + c] = search.spare[0, c]
        sums[i, c] = search.spare[1, c]


@kernel
def pop_way(search):
    """Take the way of the greatest bound from the heap. Once the order does not matter it is the last one. Returns its
    row of choices and the last row of its trail; row 1 of `search.spare` gets its sum."""
    heap, sums = search.heap, search.heap_sums
    values = search.tops.shape[1]
    last = search.st[B_WAYS] - 1
    search.st[B_WAYS] = last
    if search.st[B_FIRST] == 0:
        for c in range(values):
            search.spare[1, c] = sums[last, c]
        return heap[last, 0], heap[last, 1]
    node = heap[0, 0]
    at = heap[0, 1]
    for c in range(values):
        search.spare[1, c] = sums[0, c]
        search.spare[0, c] = sums[last, values + c]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        if child + 1 < last and is_less(sums, child, values, sums, child + 1, values, values, 0.0):
            child += 1
        if not is_less(search.spare, 0, 0, sums, child, values, values, 0.0):
            break
        heap[i, 0] = heap[child, 0]
        heap[i, 1] = heap[child, 1]
        for c in range(2 * values):
            sums[i, c] = sums[child, c]
        i = child
    heap[i, 0] = heap[last, 0]
    heap[i, 1] = heap[last, 1]
    for c in range(2 * values):
        sums[i, c] = sums[last, c]
    return node, at


@kernel
def stack_way(search, node, at):
    """Put the way to a row of choices (`node`), with its trail from row `at` on and its sum in row 1 of `search.spare`,
    on the stack."""
    top = search.st[B_STACK]
    search.stack[top, 0] = node
    search.stack[top, 1] = at
    search.stack[top, 2] = search.st[B_TRAIL]
    for c in range(search.tops.shape[1]):
        search.stack_sums[top, c] = search.spare[1, c]
    search.st[B_STACK] = top + 1


@kernel
def note_sum(search, used):
    """Keep the sum in row 1 of `search.spare`, of a match, if it is one of the k greatest so far. If it is not, no
    other below this root will be: those that tie are left, and the order of ways does not matter any more. Nor does it
    if the sum is not known."""
    st, tops, spare = search.st, search.tops, search.spare
    most = tops.shape[0]
    i = st[B_TOPS]
    fits = i < most or is_less(tops, most - 1, 0, spare, 1, 0, used, 0.0)
    for c in range(used):
        fits = fits and np.isfinite(spare[1, c])
    if not fits:
        if st[B_FIRST]:
            st[B_FIRST] = 0
            st[B_KEPT] = st[B_TRAIL]
        return
    if i == most:
        i -= 1
    else:
        st[B_TOPS] = i + 1
    while i > 0 and is_less(tops, i - 1, 0, spare, 1, 0, used, 0.0):
        for c in range(tops.shape[1]):
            tops[i, c] = tops[i - 1, c]
        i -= 1
    for c in range(tops.shape[1]):
        tops[i, c] = spare[1, c]


@kernel
def is_wanted(search, ranks, node, runs, placed, used, slack):
    """True if a match from a row of choices (`node`) on, whose way has the sum in row 1 of `search.spare`, may be one
    of the best. Row 0 gets the bound."""
    spare, tops = search.spare, search.tops
    if node < 0:
        return True
    best = ranks.choices[node, C_NODE]
    if runs < 0:
        for c in range(tops.shape[1]):
            spare[0, c] = spare[1, c] + ranks.best[best, c]
    else:
        for c in range(tops.shape[1]):
            spare[0, c] = spare[1, c] + search.open_sums[runs, c]
        add_behind(spare, 0, ranks.best, best, search.trail[runs, T_TAKEN], tops.shape[1] - placed)
    return search.st[B_TOPS] < tops.shape[0] or not is_less(spare, 0, 0, tops, tops.shape[0] - 1, 0, used, slack)


@kernel
def open_runs(search, ranks, product, at, row, placed):
    """Remember the runs of a product (a number) in `row` of the trail, behind row `at`, while a way leads through its
    suffixes."""
    trail, sums = search.trail, search.open_sums
    values = sums.shape[1]
    before = trail[at, T_OPEN] if at >= 0 else np.int64(NIL)
    down = ranks.below[product, 0]
    inner = ranks.choices[ranks.top[down], C_NODE]
    taken = trail[before, T_TAKEN] if before >= 0 else np.int64(0)
    for c in range(values):
        sums[row, c] = sums[before, c] if before >= 0 else 0.0
    add_behind(sums, row, ranks.best, inner, taken, values - placed)
    trail[row, T_PLACE] = -1 - down
    trail[row, T_BEFORE] = at
    trail[row, T_OPEN] = row
    trail[row, T_TAKEN] = taken + ranks.below[inner, 2]


@kernel
def search_root(nodes, m, ranks, search, placed, used, slack, matches, places):
    """Write the best matches below the root of part m; the arguments are those of `find_best`. Goes on with the ways in
    `search`; a status."""
    st, spare, trail = search.st, search.spare, search.trail
    top, below, own, choices = ranks.top, ranks.below, ranks.own, ranks.choices
    values = own.shape[1]
    while st[B_STACK] > 0 or st[B_WAYS] > 0:
        if st[B_STACK] > 0:
            last = st[B_STACK] - 1
            st[B_STACK] = last
            node = search.stack[last, 0]
            at = search.stack[last, 1]
            if st[B_FIRST] == 0:
                st[B_TRAIL] = max(st[B_KEPT], search.stack[last, 2])
            for c in range(values):
                spare[1, c] = search.stack_sums[last, c]
        else:
            if st[B_FIRST] == 0:
                st[B_TRAIL] = st[B_KEPT]
            node, at = pop_way(search)
        runs = trail[at, T_OPEN] if at >= 0 else np.int64(NIL)
        if not is_wanted(search, ranks, node, runs, placed, used, slack):
            if st[B_FIRST]:  # nor is any other
                st[B_WAYS] = 0
            continue
        while node >= 0:
            if st[B_STACK] + 3 > search.stack.shape[0] or st[B_WAYS] + 2 > search.heap.shape[0]:
                stack_way(search, node, at)
                return BEST_WAYS
            row = st[B_TRAIL]
            if row == trail.shape[0]:
                stack_way(search, node, at)
                return BEST_TRAIL
            for side in range(C_LEFT, C_RIGHT + 1):
                other = choices[node, side]
                if other >= 0 and is_wanted(search, ranks, other, runs, placed, used, slack):
                    if st[B_FIRST]:
                        push_way(search, other, at)
                    else:
                        stack_way(search, other, at)
            best = choices[node, C_NODE]
            place = below[best, 1]
            st[B_TRAIL] = row + 1
            if place < 0:
                open_runs(search, ranks, best, at, row, placed)
                runs = row
                at = row
                node = top[-1 - place]
                continue
            down = below[best, 0]
            if runs < 0:
                for c in range(values):
                    spare[1, c] += own[best, c]
            else:
                add_behind(spare, 1, own, best, trail[runs, T_TAKEN], values - placed)
                if down == 0:  # the suffix is over
                    down = -1 - trail[runs, T_PLACE]
                    before = trail[runs, T_BEFORE]
                    runs = trail[before, T_OPEN] if before >= 0 else np.int64(NIL)
            trail[row, T_PLACE] = place
            trail[row, T_BEFORE] = at
            trail[row, T_OPEN] = runs
            at = row
            node = top[down] if down > 0 else np.int64(NIL)
        size = 0
        row = at
        while row >= 0:
            size += trail[row, T_PLACE] >= 0
            row = trail[row, T_BEFORE]
        if st[B_MATCHES] + 1 >= matches.shape[1] or st[B_PLACES] + size > places.shape[0]:
            st[B_NEEDED] = size
            stack_way(search, node, at)
            return BEST_FLUSH
        to = st[B_PLACES]
        i = st[B_MATCHES]
        matches[0, i] = trail[at, T_PLACE] >> nodes.bits
        matches[1, i] = nodes.ends[m]
        while at >= 0:
            if trail[at, T_PLACE] >= 0:
                places[to] = trail[at, T_PLACE]
                to += 1
            at = trail[at, T_BEFORE]
        matches[2, i + 1] = to
        st[B_PLACES] = to
        st[B_MATCHES] = i + 1
        note_sum(search, used)
    return BEST_DONE


@kernel
def find_best(nodes, weights, which, placed, ranks, search, used, slack, matches, places):
    """Write the best matches below each root in `nodes` (`Nodes` of `layout`) to `matches` and `places`, root by root;
    a status, as the caller makes room and calls again.

    Of the matches of an event these are the k with the greatest sums, all that tie with the k-th, and maybe others.
    `weights` float64 (w, values): row which[i] has what the event that pair i marks adds to a sum. A number that is not
    finite says that the sum is not known: such matches are written. The last `placed` numbers are the start of a match,
    and minus the positions of the next events that it takes. `ranks`: `Ranks`, with room. `search`: `Search`; k is the
    number of rows of `tops`. The first `used` numbers decide. The last of them may be wrong by less than half of
    `slack`. `matches` int64 (3, n + 1): start, end, and in the next column one past its last place; `places` int64:
    positions above their labels.
    """
    st = search.st
    while st[B_ROOT] < nodes.roots.shape[0]:
        m = st[B_ROOT]
        if st[B_PAIR] >= 0:
            if not rank_root(nodes, m, weights, which, placed, ranks, st):
                return BEST_CHOICES
            if m == 0 or nodes.ends[m] != nodes.ends[m - 1]:
                st[B_TOPS] = 0
            st[B_PAIR] = NIL
            st[B_TRAIL] = 0
            st[B_KEPT] = 0
            root = nodes.roots[m]
            if root >= 0:
                st[B_FIRST] = 1
                for c in range(search.tops.shape[1]):
                    search.spare[1, c] = 0
                    if c < used and not np.isfinite(ranks.best[ranks.choices[ranks.top[root], C_NODE], c]):
                        st[B_FIRST] = 0
                stack_way(search, ranks.top[root], np.int64(NIL))
        status = search_root(nodes, m, ranks, search, placed, used, slack, matches, places)
        if status != BEST_DONE:
            return status
        st[B_PAIR] = 0
        st[B_ROOT] = m + 1
    return BEST_DONE
