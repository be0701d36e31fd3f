"""Groups of entities that belong together, as background knowledge: connected components over some properties."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import rdflib

from spaseq.core.errors import OptionError, expect_type
from spaseq.rdf.terms import Triple, term_from_key, term_key
from spaseq.rdf.triple_terms import TripleTerm

GROUP: Final = "urn:spaseq:group"
"""The property that leads from an entity to its group."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Background knowledge with, for each entity that triples of the properties `by` connect to others, directly or
    not and in either direction, a triple `entity <urn:spaseq:group> group`.

    `knowledge` is a graph for `Query.run`; `by` an IRI or several. The group is the least of its entities, as N-Triples
    writes them. Literals and triple terms connect nothing. With PARTITION BY its variable the streams are partitioned
    by group. OptionError without a property.
    """

    knowledge: Any
    by: Sequence[str]

    def __post_init__(self) -> None:
        expect_type("by", self.by, Iterable, 'Grouped("roads.ttl", by="http://…")')
        given = [self.by] if isinstance(self.by, str) else list(self.by)
        names = tuple(str(name).removeprefix("<").removesuffix(">") for name in given)
        if not all(names) or not names:
            raise OptionError("groups without a property that connects them", 'Grouped("roads.ttl", by="http://…")')
        object.__setattr__(self, "by", names)


def group_triples(triples: Iterable[Triple], by: Iterable[str]) -> Iterator[Triple]:
    """The triples that state the groups of a graph. O(triples), a Python step each."""
    named = set(map(str, by))
    links = ((s, o) for s, p, o in triples if str(p) in named and not isinstance(o, (rdflib.Literal, TripleTerm)))
    labels = group_labels((term_key(s), term_key(o)) for s, o in links)
    for entity, group in labels.items():
        yield term_from_key(entity), rdflib.URIRef(GROUP), term_from_key(group)


def group_labels(links: Iterable[tuple[str, str]]) -> dict[str, str]:
    """For each text that occurs in `links` the least of those connected with it. O(links), nearly."""
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while (parent := above.setdefault(name, name)) != name:
            above[name] = name = above[parent]  # halves the way for later look-ups
        return name

    for left, right in links:
        one, other = sorted((top(left), top(right)))
        above[other] = one
    return {name: top(name) for name in list(above)}
