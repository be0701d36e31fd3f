"""Equalities over all events of a match become a partition: `x.id = y.id AND y.id = z.id` is PARTITION BY [id].

Events with different keys are then in different partitions, and the condition needs no registers. The matches must stay
the same, so it is done only if all of these hold:

* The conditions stand around the whole formula, compare one attribute of two variables with `=`, and join the variables
  into one group. Each variable of the group takes an event in every match, as an empty one would satisfy its conditions
  and join nothing. Every event of the formula is taken by one of them. Then all events of a match have the same value,
  not NULL.
* Nothing counts or excludes events by their place in the whole stream: no contiguity (`:`, `:+`, STRICT), no window in
  EVENTS, no NOT that says what must not come.
* CONSUME BY PARTITION is not used: with more partitions a match would delete fewer partial matches. CONSUME BY ANY
  deletes those of all partitions. For the same reason AFTER MATCH and SELECT FIRST are not used. TO NEXT EVENT may be:
  it discards what began with the first event of the match, and that has its key.

Selection and LIMIT compare only matches that end at the same event, which all have its key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ceql.guards.guard import Guard
from ceql.lowering.taken import taken
from ceql.syntax import ast
from spaseq.core.engine import After, Choice, Consume, Window
from spaseq.core.pattern import Bordered, Correlate, Filter, Iterate, Pattern, Project, Sequence, Skip, all_shown
from spaseq.core.trees import walk


def infer_keys(
    pattern: Pattern, window: Window, choice: Choice, strict: bool, waits: bool
) -> tuple[Pattern, tuple[str, ...]]:
    """The pattern without the conditions that become keys, and the attributes that are the keys.

    `strict`: the query selects STRICT; `waits`: the query has a NOT at the end.
    """
    discards = choice.after is not None and choice.after.rule is not After.TO_NEXT
    if strict or waits or window.per_partition or choice.consume is Consume.PARTITION or discards:
        return pattern, ()
    if not _is_free(pattern):
        return pattern, ()
    keys: list[str] = []
    for attribute in reversed(dict.fromkeys(name for name, _, _ in _equalities(pattern))):  # as they were written
        for group in _groups([(x, y) for name, x, y in _equalities(pattern) if name == attribute]):
            if all(taken(pattern, v)[0] for v in group) and all_shown(pattern, group):
                pattern = _without(pattern, attribute, group)
                keys.append(attribute)
                break
    return pattern, tuple(keys)


def _is_free(pattern: Pattern) -> bool:
    """True if any events may lie between those of a match, everywhere in the pattern."""
    for node in walk(pattern):
        match node:
            case Sequence(skip=skip, absent=absent, never=never, watched=watched) if (
                skip is not Skip.ANY or absent or never is not None or watched
            ):
                return False
            case Bordered():
                return False
            case Iterate(skip=skip) if skip is not Skip.ANY:
                return False
    return True


def _equalities(node: Pattern) -> Iterator[tuple[str, str, str]]:
    """(attribute, variable, variable) for each condition `v.attribute = w.attribute` around the whole pattern."""
    match node:
        case Correlate(child, _, Guard() as guard):
            found = _equality(guard)
            if found is not None:
                yield found
            yield from _equalities(child)
        case Filter(child, _, _) | Project(child, _):  # not AS: below it, its variable is another one
            yield from _equalities(child)


def _equality(guard: Guard) -> tuple[str, str, str] | None:
    match guard.condition:
        case ast.Compare("=", ast.Attribute(name, str() as x), ast.Attribute(same, str() as y)) if name == same:
            return (name, x, y) if x != y else None
    return None


def _groups(pairs: list[tuple[str, str]]) -> list[frozenset[str]]:
    """The variables in groups: those that the pairs connect, directly or by way of others."""
    groups: list[frozenset[str]] = []
    for pair in pairs:
        joined = [g for g in groups if g & set(pair)]
        groups = [g for g in groups if g not in joined] + [frozenset(pair).union(*joined)]
    return groups


def _without(node: Pattern, attribute: str, group: frozenset[str]) -> Pattern:
    """The pattern without the conditions that the partition by `attribute` makes true."""
    match node:
        case Correlate(child, _, Guard() as guard):
            rest = _without(child, attribute, group)
            found = _equality(guard)
            implied = found is not None and found[0] == attribute and found[1] in group
            return rest if implied else dataclasses.replace(node, child=rest)
        case Filter(child, _, _) | Project(child, _):
            return dataclasses.replace(node, child=_without(child, attribute, group))
    return node
