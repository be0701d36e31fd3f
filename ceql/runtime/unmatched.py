"""Reasons for no match: the input read, and the parts of the query that no event fulfilled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from ceql.expressions.predicates import Satisfies, StreamIs, TypeIs
from ceql.operators.values import KIND_WORDS
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.run import Run
from ceql.syntax import ast
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import parts
from spaseq.core.engine import Progress, stuck
from spaseq.core.events import EventCounters, EventOptions, format_duration
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


def unknown_attributes(query: CompiledQuery, counters: EventCounters) -> Iterator[str]:
    """A line for each attribute of the query that no event had."""
    for name in query.attributes if counters.events else ():
        if name not in counters.attributes:
            hint = did_you_mean(name, counters.attributes)
            yield f"no event has an attribute {name}, so no condition on it holds{hint and f'; {hint}'}"


def unlike_keys(kinds: Mapping[tuple[str, ...], Collection[str]]) -> Iterator[str]:
    """A line for each bracket of PARTITION BY whose values are of several kinds, which are never equal."""
    for names, found in kinds.items():
        if len(found) > 1 or "mixed" in found:
            said = " and ".join(KIND_WORDS[kind] for kind in sorted(found) if kind != "mixed") or "of several kinds"
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
            yield f"no event is {_told(step)}{_hint(conditions)}"


def _stuck(query: CompiledQuery, progress: Progress) -> str:
    limits = ["its conditions between events"] * (query.lowered.registers is not None)
    limits += ["its window"] * query.lowered.window.is_bounded
    limits += ["the keys of its partition"] * bool(query.lowered.partition)
    limits += ["what must not come"] * (query.lowered.absent is not None)
    return stuck(progress, "part of the query", "its order", limits, _told)


def _told(step: Iterable[Predicate]) -> str:
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
