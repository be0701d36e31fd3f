"""The streams of a run: by name, and as they are read."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spaseq.core.errors import OptionError
from spaseq.language.runtime.read_ahead import Part
from spaseq.language.runtime.unmatched import Input
from spaseq.language.semantics.check import CheckedQuery
from spaseq.rdf import Counters

__all__ = ["Opened", "named"]


@dataclass(frozen=True, slots=True)
class Opened:
    """Streams that are being read: their parts, in the order of the FROM clause, whether each event is an instant of
    its own, and what becomes of the input."""

    parts: Sequence[Part]
    apart: bool
    counters: Counters
    read: Input


def named(streams: MappingABC[str, Any], query: CheckedQuery) -> dict[str, Any]:
    """`streams` by IRI, in order of the FROM clause; given by name or IRI. Raises `OptionError` for unknown and
    missing ones, and for what is no mapping."""
    if not isinstance(streams, MappingABC):
        hint = f'for example streams={{"{query.streams[0][0]}": "events.nq"}}'
        raise OptionError(f"streams are given by name, not as a {type(streams).__name__}", hint)
    found: dict[str, Any] = {}
    iris = {name: iri for key, iri in query.streams for name in (key, iri)}
    for name, value in streams.items():
        if name not in iris:
            known = ", ".join(key for key, _ in query.streams)
            raise OptionError(f"the query has no stream {name}", f"it reads {known}")
        if iris[name] in found:
            raise OptionError(f"stream {name} is given twice, by its name and by its IRI")
        found[iris[name]] = value
    for name, iri in query.streams:
        if iri not in found:
            raise OptionError(f"no file is given for stream {name} <{iri}>", f"give it: --stream {name}=FILE")
    return {iri: found[iri] for _, iri in query.streams}
