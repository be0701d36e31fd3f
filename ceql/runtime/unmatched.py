"""Reasons for no match: the input read, and the parts of the query that no event fulfilled. And reasons for NULL: the
attributes that no event had."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from ceql.expressions.predicates import Satisfies, StreamIs, TypeIs
from ceql.operators.columns import known_rows
from ceql.operators.values import KIND_WORDS
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.run import Run
from ceql.semantics.types import types_of_variables
from ceql.syntax import ast
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import attributes_of, parts
from spaseq.core.engine import Progress, stuck
from spaseq.core.errors import EventError
from spaseq.core.events import EventBatch, EventCounters, EventOptions, format_duration
from spaseq.core.pattern import Predicate
from spaseq.core.slips import did_you_mean


def why_none(query: CompiledQuery, run: Run, counters: EventCounters, options: EventOptions) -> list[str]:
    """Reasons for no match, a line each, the most telling last.

    Arguments: the query, its evaluation, and the counts and options of its input. Only counts were kept for it.
    """
    lines = [counters.seen.told(options.unit)]
    if not counters.events:
        return lines
    if counters.untimed and not options.counts:
        lines.append(_untimed(options))
    progress = run.progress()
    if progress is not None:
        lines += dict.fromkeys(_unmet(progress, counters))
        if not progress.unmet:
            lines.append(_stuck(query, progress))
    return lines


def unknown_attributes(query: CompiledQuery, known: Collection[str]) -> Iterator[str]:
    """A line for each attribute of the query that no event had; `known` are those that some had."""
    for name in query.attributes:
        if name not in known:
            hint = did_you_mean(name, known)
            yield f"no event has an attribute {name}, so no condition on it holds{hint and f'; {hint}'}"


class Lacking:
    """The attributes that SELECT or ORDER BY reads of a variable, and that no event of its types has had.

    PERF: an attribute is looked for up to the first batch that has it; for 65,536 events that lack it in 0.2 ms.
    """

    def __init__(self, tree: ast.Query) -> None:
        types = types_of_variables(tree.where)
        read = [(a.variable, a.name) for expression in tree.expressions for a in attributes_of(expression)]
        read += [(item.variable, name.text) for item in tree.selection.items or () for name in item.attributes]
        self._read = {(v, name): own for v, name in read if v is not None and (own := types.get(v)) is not None}
        self._others: dict[frozenset[str], list[str]] = {}

    def note(self, batch: EventBatch) -> None:
        """Look at some more events."""
        for (variable, name), types in list(self._read.items()):
            rows = _rows_of(batch, types)
            if _has(batch, name, rows):
                del self._read[variable, name]
            elif len(rows) and types not in self._others:
                self._others[types] = [other for other in batch.table.column_names if _has(batch, other, rows)]

    def lines(self, known: Collection[str]) -> Iterator[str]:
        """A line for each such attribute that is one of `known`, those of other events."""
        for (variable, name), types in self._read.items():
            if types in self._others and name in known:
                kinds = " or ".join(sorted(kind for kind in types if ">" not in kind))
                hint = did_you_mean(name, self._others[types])
                line = f"no event of type {kinds} has an attribute {name}, so {variable}.{name} is NULL"
                yield f"{line}{hint and f'; {hint}'}"


def _rows_of(batch: EventBatch, types: Collection[str]) -> np.ndarray:
    """The rows of the events of these types."""
    found = batch.types
    if found is None:
        return np.zeros(0, np.int64)
    chosen = np.array([*(kind in types for kind in found.texts.to_pylist()), False])  # the last is of code -1
    return np.flatnonzero(chosen[found.codes])


def _has(batch: EventBatch, name: str, rows: np.ndarray) -> bool:
    """True if an event at `rows` has a value of the attribute, or one that conditions cannot read."""
    try:
        return bool(known_rows(batch.column(name), len(batch))[rows].any())
    except EventError:
        return True


def unlike_keys(kinds: Mapping[tuple[str, ...], Collection[str]]) -> Iterator[str]:
    """A line for each bracket of PARTITION BY whose values are of several kinds, which are never equal."""
    for names, found in kinds.items():
        if len(found) > 1:
            said = " and ".join(KIND_WORDS[kind] for kind in sorted(found))
            yield f"the key {' or '.join(names)} is {said} in different events: values of two kinds are never equal"


def _untimed(options: EventOptions) -> str:
    apart = format_duration(options.step)
    return (
        f"no column time or timestamp: events count as {apart} apart, in their order "
        '(time="COLUMN" names another one; time_from="arrival" if that is meant)'
    )


def _unmet(progress: Progress, counters: EventCounters) -> Iterator[str]:
    for step in progress.unmet:
        kinds = [predicate for predicate in step if isinstance(predicate, TypeIs)]
        conditions = [predicate.condition for predicate in step if isinstance(predicate, Satisfies)]
        missing = [kind for kind in kinds if kind.name not in counters.seen.kinds]
        if missing and not counters.seen.others:
            for kind in missing:
                hint = did_you_mean(kind.name, counters.seen.kinds)
                yield f"no event has the type {kind.name}{hint and f'; {hint}'}"
        elif kinds:
            yield f"no event is {_words_of(step)}{_hint(conditions)}"


def _stuck(query: CompiledQuery, progress: Progress) -> str:
    limits = ["its conditions between events"] * (query.lowered.registers is not None)
    limits += ["its window"] * query.lowered.window.is_bounded
    limits += ["the keys of its partition"] * bool(query.lowered.partition)
    limits += ["what must not come"] * (not query.lowered.around.is_empty)
    return stuck(progress, "part of the query", "its order", limits, _words_of)


def _words_of(step: Iterable[Predicate]) -> str:
    """A step in the words of the query."""
    kinds = sorted(p.name for p in step if isinstance(p, TypeIs))
    streams = sorted(p.name for p in step if isinstance(p, StreamIs))
    conditions = sorted(print_expression(p.condition) for p in step if isinstance(p, Satisfies))
    others = sorted(str(p) for p in step if not isinstance(p, TypeIs | StreamIs | Satisfies))
    text = "".join(f"{name}>" for name in streams) + (" and ".join(kinds) or "any event")
    return text + "".join(f" with {condition}" for condition in [" and ".join([*conditions, *others])] if condition)


def _hint(conditions: Iterable[ast.Condition]) -> str:
    """LIKE is a regular expression; authors of % mean SQL's."""
    for condition in conditions:
        for part in parts(condition):
            if isinstance(part, ast.Like) and "%" in part.pattern:
                meant = part.pattern.replace("%", ".*")
                return f"; LIKE is a regular expression of the whole text: LIKE {meant!r}"
    return ""
