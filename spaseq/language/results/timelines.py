"""Matches to look at: on a time axis, each beside its bindings, and as the table of a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from spaseq.core.drawing import Timeline, matches_html, time_text, timeline_of
from spaseq.gpm.serialise import short_text
from spaseq.language.results.match import Match
from spaseq.language.semantics.check import CheckedQuery

_SHOWN: Final = 3
"""Variables named beside a match."""


def prefixes_of(query: CheckedQuery) -> tuple[tuple[str, str], ...]:
    """The query's own prefixes, the longest IRI first."""
    declared = [(p.label, p.iri) for p in query.tree.prologue if p.label is not None]
    return tuple(sorted(declared, key=lambda pair: -len(pair[1])))


def listed_matches(matches: Iterable[Match], query: CheckedQuery) -> str:
    """The first of the matches as HTML."""
    prefixes = prefixes_of(query)

    def row(match: Match) -> list[str]:
        terms = (match.bindings.get(name) for name in query.select)
        return [time_text(match.time), *("" if term is None else short_text(term, prefixes) for term in terms)]

    return matches_html(matches, ("time", *(f"?{name}" for name in query.select)), row)


def drawn_matches(matches: Iterable[Match], query: CheckedQuery, limit: int, source: str = "") -> Timeline:
    """The first `limit` of the matches as a picture."""
    prefixes = prefixes_of(query)

    def label(match: Match) -> str:
        names = [name for name in query.select if name in match.bindings][:_SHOWN]
        return "  ".join(f"?{name} {short_text(match.bindings[name], prefixes)}" for name in names)

    return timeline_of(matches, label, title=source, limit=limit)
