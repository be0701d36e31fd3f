"""The inner loops of the columnar plan, over flat arrays.

Terms are int32 numbers, -1 if a variable is unbound; rows come in order of their events.
"""

from __future__ import annotations

import numpy as np

from spaseq.core.jit import allocating

OPERATIONS = ("variable", "term", "+", "-", "*", "/", "neg")
"""The steps of `compare_rows`, by number."""
VARIABLE, TERM, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE = range(len(OPERATIONS))
OPEN = 2
"""The result for a comparison that the kernel does not decide."""

CONSTANT, SAME, FILL = 0, 1, 2
"""The action at a place of a triple pattern: compare with a term, compare with a slot, fill a slot."""

_LINEAR = 24  # candidates up to which a scan is cheaper than two binary searches


@allocating
def list_triples(
    triples: np.ndarray, offsets: np.ndarray, which: np.ndarray, rows: np.ndarray, starts: np.ndarray,
    longest: np.ndarray,
) -> None:  # fmt: skip
    """Lists the triples of each predicate p in list which[p] (-1 for none), in order of the source. O(n + lists * m).

    * `rows` (int32, room for all triples) receives the lists, one after another.
    * `starts`, int64 (lists, m + 1): receives in [l, e] the index in `rows` of the first triple of event e in list l.
      In [l, m] it receives the end of the list.
    * `longest`: longest[l] is set to the greatest number of triples at one event.
    """
    lists, events = starts.shape[0], offsets.shape[0] - 1
    ends = np.zeros(lists, np.int64)
    for i in range(triples.shape[0]):
        number = which[triples[i, 1]]
        if number >= 0:
            ends[number] += 1
    begin = np.int64(0)
    for number in range(lists):
        begin, ends[number] = begin + ends[number], begin
    for event in range(events):
        for number in range(lists):
            starts[number, event] = ends[number]
        for i in range(offsets[event], offsets[event + 1]):
            number = which[triples[i, 1]]
            if number >= 0:
                rows[ends[number]] = i
                ends[number] += 1
        for number in range(lists):
            longest[number] = max(longest[number], ends[number] - starts[number, event])
    for number in range(lists):
        starts[number, events] = ends[number]


@allocating
def _bind(values: np.ndarray, low: int, high: int, term: int, after: int) -> int:
    """The first index in the ascending values[low:high] with a value >= term, or with `after` > term."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < term or (after and values[middle] == term):
            low = middle + 1
        else:
            high = middle
    return low


@allocating
def match_events(
    triples: np.ndarray, rows: np.ndarray, sought: np.ndarray, starts: np.ndarray, steps: np.ndarray,
    events: np.ndarray, state: np.ndarray, slots: int, out_events: np.ndarray, out: np.ndarray,
) -> bool:  # fmt: skip
    """The solutions of a basic graph pattern on each of `events`, by backtracking over its triple patterns.

    * `steps`, int32 (k, 8): the number of the list of candidates, and three pairs (action, term or slot) for subject,
      predicate and object. Last is the place (0 or 2) by which the list is sorted, or -1.
    * `rows`: candidates as indices of triples, list after list; `sought`: the term at the sorted place of each.
    * `starts`, int64 (lists, m + 1): the beginnings of an event's candidates.
    * `out_events` and `out` (int32 (capacity, slots)) receive the solutions. `state`: the next event, rows written.

    Returns True if all events are done, False if the output is full; then call it again with more room.

    Cost: the candidates tried: one for each binding if lists are sorted, else all candidates of an event.
    """
    depth_last = steps.shape[0] - 1
    cursor = np.zeros(steps.shape[0], np.int64)
    stop = np.zeros(steps.shape[0], np.int64)
    bound = np.full(max(1, slots), -1, np.int32)
    capacity = out.shape[0]
    for at in range(state[0], events.shape[0]):
        event = events[at]
        begin = state[1]
        possible = True
        for d in range(steps.shape[0]):
            if starts[steps[d, 0], event] == starts[steps[d, 0], event + 1]:
                possible = False
                break
        if not possible:
            continue
        depth = 0
        cursor[0], stop[0] = _range(steps, 0, event, starts, sought, bound)
        while depth >= 0:
            if cursor[depth] >= stop[depth]:
                depth -= 1
                continue
            triple = rows[cursor[depth]]
            cursor[depth] += 1
            matches = True
            for place in range(3):
                what = steps[depth, 1 + 2 * place]
                value = steps[depth, 2 + 2 * place]
                term = triples[triple, place]
                if what == FILL:
                    bound[value] = term
                elif term != (value if what == CONSTANT else bound[value]):
                    matches = False
                    break
            if not matches:
                continue
            if depth < depth_last:
                depth += 1
                cursor[depth], stop[depth] = _range(steps, depth, event, starts, sought, bound)
                continue
            if state[1] == capacity:
                state[0], state[1] = at, begin
                return False
            out_events[state[1]] = event
            for slot in range(slots):
                out[state[1], slot] = bound[slot]
            state[1] += 1
    state[0] = events.shape[0]
    return True


@allocating
def _range(
    steps: np.ndarray, depth: int, event: int, starts: np.ndarray, sought: np.ndarray, bound: np.ndarray
) -> tuple[int, int]:
    """The candidates of a step at an event, narrowed to a term if the list is sorted by it."""
    low, high = starts[steps[depth, 0], event], starts[steps[depth, 0], event + 1]
    place = steps[depth, 7]
    if place >= 0 and high - low > _LINEAR:
        value = steps[depth, 2 + 2 * place]
        term = value if steps[depth, 1 + 2 * place] == CONSTANT else bound[value]
        low = _bind(sought, low, high, term, 0)
        high = _bind(sought, low, high, term, 1)
    return low, high


@allocating
def compare_rows(
    steps: np.ndarray, columns: np.ndarray, constants: np.ndarray, kind: np.ndarray, number: np.ndarray,
    exact: np.ndarray, sign: int, out: np.ndarray,
) -> int:  # fmt: skip
    """Sets out to the truth of a comparison for each row: 1, 0, -1 for an error, or OPEN. Returns the count of OPEN.

    * `steps`: both sides in postfix notation: (a number of `OPERATIONS`, the index of a column or constant).
    * `columns`: int32 (v, rows), numbers of terms, -1 if unbound; `constants`: numbers of terms.
    * `kind`, `number`, `exact`: the values of terms (`LiteralColumns`).
    * `sign`: the index of the sign in `< <= > >= = !=`.

    Numbers are float64 with a bound on their error. A computed number is never exact, as SPARQL's own arithmetic rounds
    too. Near ties are OPEN. Equality of two terms is decided for IRIs, blank nodes and plain strings too.
    """
    ulp = 2.0**-52
    depth = steps.shape[0]
    value, error = np.empty(depth, np.float64), np.empty(depth, np.float64)
    known, sure = np.empty(depth, np.bool_), np.empty(depth, np.bool_)
    term = np.empty(depth, np.int64)
    left_open = 0
    for row in range(out.shape[0]):
        top = 0
        for i in range(steps.shape[0]):
            what, at = steps[i, 0], steps[i, 1]
            if what <= TERM:
                t = np.int64(columns[at, row]) if what == VARIABLE else np.int64(constants[at])
                term[top] = t
                known[top] = t >= 0 and 3 <= kind[t] <= 5
                value[top] = number[t] if known[top] else 0.0
                sure[top] = known[top] and exact[t]
                error[top] = 0.0 if sure[top] else abs(value[top]) * ulp
                top += 1
                continue
            if what == NEGATE:
                value[top - 1] = -value[top - 1]
                continue
            top -= 1
            a, b, e, f = value[top - 1], value[top], error[top - 1], error[top]
            good = known[top - 1] and known[top]
            if what == ADD:
                a, e = a + b, e + f
            elif what == SUBTRACT:
                a, e = a - b, e + f
            elif what == MULTIPLY:
                a, e = a * b, e * abs(b) + f * abs(a) + e * f
            else:
                near = abs(b) - f
                good = good and near > 0
                a = a / b
                e = (e + abs(a) * f) / near
            e += abs(a) * 4 * ulp
            value[top - 1], error[top - 1], sure[top - 1] = a, e, False
            known[top - 1] = good and np.isfinite(a) and np.isfinite(e)
        a, b = value[0], value[1]
        if known[0] and known[1] and (abs(a - b) > error[0] + error[1] or (sure[0] and sure[1])):
            if sign == 0:
                out[row] = a < b
            elif sign == 1:
                out[row] = a <= b
            elif sign == 2:
                out[row] = a > b
            elif sign == 3:
                out[row] = a >= b
            elif sign == 4:
                out[row] = a == b
            else:
                out[row] = a != b
            continue
        out[row] = OPEN
        if depth == 2:
            s, t = term[0], term[1]
            if s < 0 or t < 0:
                out[row] = -1
            elif sign >= 4 and (kind[s] == 0 or kind[t] == 0 or (kind[s] == 1 and kind[t] == 1)):
                # A literal never equals an IRI or a blank node; other terms are equal if they are the same term.
                out[row] = (s == t) == (sign == 4)
        left_open += out[row] == OPEN
    return left_open


@allocating
def join_rows(
    left_events: np.ndarray, left: np.ndarray, right_events: np.ndarray, right: np.ndarray, overlap: bool,
    state: np.ndarray, out_left: np.ndarray, out_right: np.ndarray,
) -> bool:  # fmt: skip
    """Pairs of rows of one event whose terms are compatible: equal, or unbound on a side, in every shared column.

    left, right: int32 (rows, shared). With `overlap` a pair must also have a column that both sides bind (MINUS). The
    `state` has the next row of the left side, the first row of the right side at its event, and the pairs written.
    Returns True if all rows are done, False if the output is full. Cost: for each event the product of its rows on both
    sides.
    """
    capacity = out_left.shape[0]
    begin = state[1]
    for i in range(state[0], left_events.shape[0]):
        while begin < right_events.shape[0] and right_events[begin] < left_events[i]:
            begin += 1
        before = state[2]
        j = begin
        while j < right_events.shape[0] and right_events[j] == left_events[i]:
            compatible, shares = True, not overlap
            for c in range(left.shape[1]):
                a, b = left[i, c], right[j, c]
                if a >= 0 and b >= 0:
                    if a != b:
                        compatible = False
                        break
                    shares = True
            if compatible and shares:
                if state[2] == capacity:
                    state[0], state[1], state[2] = i, begin, before
                    return False
                out_left[state[2]] = i
                out_right[state[2]] = j
                state[2] += 1
            j += 1
    state[0], state[1] = left_events.shape[0], begin
    return True


@allocating
def close_pairs(
    events: np.ndarray, sources: np.ndarray, targets: np.ndarray, seeds_events: np.ndarray, seeds: np.ndarray,
    state: np.ndarray, marks: np.ndarray, queue: np.ndarray, out: np.ndarray,
) -> bool:  # fmt: skip
    """The terms that each seed reaches in its event over one or more edges, breadth first.

    Edges are sorted by (event, source). marks, queue: scratch, int32 (terms,), marks initially -1. out: int32
    (capacity, 3), set to (event, seed, term reached); state: the next seed, rows written. Returns True if all seeds are
    done, False if the output is full. Cost: for each seed the edges that it reaches.
    """
    for s in range(state[0], seeds.shape[0]):
        event, seed, begin = seeds_events[s], seeds[s], state[1]
        head, tail, node, first = 0, 0, seed, True
        while first or head < tail:
            if not first:
                node = queue[head]
                head += 1
            first = False
            low, high = 0, events.shape[0]
            while low < high:
                middle = (low + high) // 2
                if events[middle] < event or (events[middle] == event and sources[middle] < node):
                    low = middle + 1
                else:
                    high = middle
            while low < events.shape[0] and events[low] == event and sources[low] == node:
                target = targets[low]
                if marks[target] != s:
                    if state[1] == out.shape[0]:
                        for done in range(begin, state[1]):
                            marks[out[done, 2]] = -1
                        state[0], state[1] = s, begin
                        return False
                    marks[target] = s
                    queue[tail] = target
                    tail += 1
                    out[state[1], 0], out[state[1], 1], out[state[1], 2] = event, seed, target
                    state[1] += 1
                low += 1
    state[0] = seeds.shape[0]
    return True
