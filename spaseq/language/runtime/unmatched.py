"""Reasons for no match: the input read, and the parts of the query that no event fulfilled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spaseq.core.engine import Progress, stuck
from spaseq.core.events import Seen
from spaseq.core.pattern import Predicate
from spaseq.language.lowering.lower import Holds
from spaseq.language.semantics.check import CheckedQuery
from spaseq.language.semantics.expand import Conjunction
from spaseq.rdf import (
    ARRIVAL,
    StreamOptions,
    StreamSource,
    guessed_events,
    guessed_unit,
    no_times,
    sampled_predicates,
    untimed_events,
)
from spaseq.rdf.iri import closest_iri

_LEAVERS: Final = ("HAVING", "VALUES", "OFFSET", "LIMIT")
"""Clauses that may leave matches, or groups of them, without a result."""
_BY_TURNS: Final = (
    'no stream has times, so their events are taken by turns, the first of each first (time="PREDICATE" names what '
    'holds times; time_from="arrival" if that is meant)'
)


@dataclass(slots=True)
class Input:
    """The input and its options: the `sources` by stream, the options as they were `chosen`, and as `settled` for these
    files. `timed`: the clause or setting that needs times. `seen`: events by the IRI of their stream."""

    sources: Sequence[StreamSource]
    chosen: StreamOptions
    settled: StreamOptions
    timed: str = ""
    seen: Seen = field(default_factory=Seen)

    @property
    def untimed(self) -> bool:
        """True if events have the times of their arrival by default."""
        return self.settled.time == ARRIVAL and not self.chosen.counts

    def check(self) -> None:
        """`OptionError` if events have no times and `timed` or the lateness needs them."""
        if self.untimed and self._needs:
            raise no_times(self._needs, self.sources, self.settled)

    @property
    def _needs(self) -> str:
        """The clause or option that needs times; empty if there is none."""
        return self.timed or ("lateness" if self.chosen.lateness else "")

    @property
    def notes(self) -> list[str]:
        """A line for each thing that was guessed and that the answer depends on."""
        lines = guessed_events(self.sources, self.chosen)
        if self.untimed and len(self.sources) > 1:
            return [*lines, _BY_TURNS]
        return [*lines, *(guessed_unit(self.sources, self.settled) if self._needs else ())]


def why_none(query: CheckedQuery, read: Input, progress: Progress | None, *, matched: bool = False) -> list[str]:
    """A line for each possible reason why there is no match, the most telling last.

    `matched`: True if there were matches, and clauses made no result of them. Only counts were kept for it; the first
    statements of files are read again.
    """
    names = {iri: name for name, iri in query.streams}
    lines = [_name(read.seen, names).told(of="of ")]
    if read.untimed:
        lines.append(untimed_events(read.sources, read.settled))
    leavers = [modifier.kind for modifier in query.tree.modifiers if modifier.kind in _LEAVERS]
    if matched and leavers:
        return [*lines, f"there are matches, and {' and '.join(leavers)} leave{'s' * (len(leavers) == 1)} none of them"]
    if not read.seen.kinds or progress is None:
        return lines
    silent = [iri for iri in names if iri not in read.seen.kinds]
    lines += [f"stream {names[iri]} <{iri}> had no event" for iri in silent]
    unmet = _unmet_conjunctions(query, progress)
    lines += dict.fromkeys(_unmet(query, read, unmet, frozenset(silent)))
    if not unmet:
        lines.append(_stuck(query, progress))
    return lines


def _name(seen: Seen, names: dict[str, str]) -> Seen:
    return Seen({names.get(iri, iri): count for iri, count in seen.kinds.items()}, seen.others, seen.first, seen.last)


def _unmet_conjunctions(query: CheckedQuery, progress: Progress) -> list[Conjunction]:
    """Those that held at no instant, but for parts of AND at one instant: these need not be."""
    written = {c for element in query.elements for part in element.parts() for c in part.alternatives}
    found = (p.conjunction for step in progress.unmet for p in step if isinstance(p, Holds))
    return [conjunction for conjunction in found if conjunction in written]


def _unmet(
    query: CheckedQuery, read: Input, conjunctions: Iterable[Conjunction], silent: frozenset[str]
) -> Iterator[str]:
    for conjunction in conjunctions:
        patterns = [query.patterns[name] for name in conjunction]
        if any(silent.issuperset(pattern.streams) for pattern in patterns):
            continue
        if len(conjunction) > 1:
            yield f"at no time do events match {' & '.join(conjunction)} together"
            continue
        (pattern,) = patterns
        with_graphs = "".join(f", joined with GRAPH <{iri}>" for iri in pattern.graphs)
        yield f"no event matches GPM {pattern.name}{with_graphs}{_slip(pattern, read)}"


def _slip(pattern: Any, read: Input) -> str:
    """A predicate of the pattern that streams spell in another way."""
    there = frozenset[str]().union(
        *(sampled_predicates(source, read.settled) for source in read.sources if source.iri in pattern.streams)
    )
    missing = [str(predicate) for predicate in sorted(pattern.required) if str(predicate) not in there]
    for predicate in missing:
        if (other := closest_iri(predicate, there)) is not None:
            return f"; it needs <{predicate}>, did you mean <{other}>?"
    return (
        f"; it needs <{missing[0]}>, which no statement has at the beginning of its files" if missing and there else ""
    )


def _stuck(query: CheckedQuery, progress: Progress) -> str:
    limits = ["variables that GPMs share"] if len(query.patterns) > 1 else []
    if query.window is not None:
        within = query.tree.within
        sliding = within is not None and within.slides
        limits.append("its window" if sliding else "its window, which tumbles (SLIDING slides)")
    limits += ["the keys of its partition"] * bool(query.partition)
    return stuck(progress, "GPM", "the order of SEQ", limits, _told)


def _told(step: Iterable[Predicate]) -> str:
    return " and ".join(sorted(map(str, step))) or "any event"
