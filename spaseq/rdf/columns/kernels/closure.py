"""Kernels that find the nodes reached from each node of a graph of numbered nodes."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from spaseq.core.jit import kernel
from spaseq.rdf.columns.kernels.layout import NIL


@kernel
def components(begins, ends, entered, low, component, path, calls, place):
    """The strongly connected components of a graph, numbered so that an edge never goes to a higher one (Tarjan).

    `begins` (int64 (n + 1,)): the range of each node's edges in `ends` (int32). `component` (int32, NIL) receives the
    numbers. Scratch: `entered` (int32, NIL), `low`, `path` and `calls` (int32 (n,)), `place` (int64 (n,)). How many
    there are. O(nodes + edges).
    """
    time = np.int64(0)
    count = np.int64(0)
    on_path = np.int64(0)
    for root in range(len(component)):
        if entered[root] != NIL:
            continue
        depth = np.int64(0)
        calls[0] = root
        place[root] = begins[root]
        entered[root] = time
        low[root] = time
        time += 1
        path[on_path] = root
        on_path += 1
        while depth >= 0:
            node = calls[depth]
            if place[node] < begins[node + 1]:
                other = ends[place[node]]
                place[node] += 1
                if entered[other] == NIL:
                    depth += 1
                    calls[depth] = other
                    place[other] = begins[other]
                    entered[other] = time
                    low[other] = time
                    time += 1
                    path[on_path] = other
                    on_path += 1
                elif component[other] == NIL and entered[other] < low[node]:
                    low[node] = entered[other]
                continue
            if low[node] == entered[node]:
                while True:
                    on_path -= 1
                    member = path[on_path]
                    component[member] = count
                    if member == node:
                        break
                count += 1
            depth -= 1
            if depth >= 0 and low[node] < low[calls[depth]]:
                low[calls[depth]] = low[node]
    return count


@kernel
def reach(begins, ends, steps, state, starts, found, seen):
    """For each node, all nodes that are reached from it, in a graph whose edges never go to a higher node.

    The ends of a node's edges stand in `ends` from the highest down. So a node that is reached by way of another is
    passed over before it is searched.

    `starts` (int64 (n + 1,)) receives the beginnings of each node's results in `found` (int32). `seen` (int32 (n,),
    NIL) is scratch. `state` (int64 (2,)): the node to go on with, and the used length of `found`. Returns True if there
    is more to do: after some `steps`, or if `found` is full; then state[1] is its value before the node.
    """
    done = np.int64(0)
    to = state[1]
    for node in range(state[0], len(begins) - 1):
        starts[node] = to
        for edge in range(begins[node], begins[node + 1]):
            other = ends[edge]
            done += 1
            if seen[other] == node:
                continue
            done += starts[other + 1] - starts[other]
            if to + 1 + starts[other + 1] - starts[other] > len(found):
                state[0] = node
                return True
            seen[other] = node
            found[to] = other
            to += 1
            for i in range(starts[other], starts[other + 1]):
                beyond = found[i]
                if seen[beyond] != node:
                    seen[beyond] = node
                    found[to] = beyond
                    to += 1
        starts[node + 1] = to
        state[0] = node + 1
        state[1] = to
        if done > steps:
            return state[0] < len(begins) - 1
    return False


@kernel
def inherit(codes, bits, begins, above, steps, state, stated, seen, least, found):
    """The members that each owner gains from its own, along a hierarchy that is transitive.

    * `codes` (int64, ascending) have an owner above `bits` bits and a member in these. A member that is above another
      one has a higher number, unless each is above the other.
    * `begins` (int64 (members + 1,)): the range of each member's in `above` (int32).
    * `least` (bool) receives True for each code without a member before it that is below it.
    * `found` (int64) receives the codes of the members above an owner's that are none of them, each once; if it is
      empty they are counted.
    * `state` (int64 (2,)): the code to go on with, and the number found.
    * `stated` and `seen` (int64, by member, NIL) are scratch, and stay as they were left.

    Returns True if there is more to do: after some `steps`, or if `found` might not hold an owner's. O(codes, and for
    the least of an owner's members, those above them).
    """
    mask = (np.int64(1) << np.int64(bits)) - 1
    low = state[0]
    to = state[1]
    done = np.int64(0)
    while low < len(codes):
        if done > steps or (len(found) > 0 and to + len(stated) > len(found)):
            state[0] = low
            state[1] = to
            return True
        owner = codes[low] & ~mask
        high = low
        while high < len(codes) and codes[high] & ~mask == owner:
            stated[codes[high] & mask] = low
            high += 1
        for at in range(low, high):
            member = codes[at] & mask
            least[at] = seen[member] != low
            if least[at]:
                seen[member] = low
                done += begins[member + 1] - begins[member]
                for i in range(begins[member], begins[member + 1]):
                    other = above[i]
                    if seen[other] != low:
                        seen[other] = low
                        if stated[other] != low:
                            if len(found) > 0:
                                found[to] = owner | other
                            to += 1
        done += high - low
        low = high
    state[0] = low
    state[1] = to
    return False
