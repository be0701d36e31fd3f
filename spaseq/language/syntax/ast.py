"""The syntax tree of SPAseq: frozen, slotted, each node with the span of its text.

Spans take no part in equality, so a query and its printed form (`spaseq.language.syntax.printer`) have equal trees. The
graph pattern of a GPM is kept as text here; `spaseq.gpm` parses it. Names in the paper: a `Definition` is a GPM
expression (u, P); `Both` and `Either` build BOp expressions (Definitions 8, 9); a `Chain` is a sequence expression
(Definition 4).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from spaseq.core.after import AfterText
from spaseq.core.errors import Span

_NOWHERE = Span(0, 0, 1, 1)


class Operator(enum.Enum):
    """The event selection strategies between two elements ([SPAseq] §4.2.2)."""

    STRICT = ","
    NEXT = ";"
    ANY = ":"


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a stream or a GPM."""

    text: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """`?text`, without the question mark."""

    text: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Embedded:
    """Embedded SPARQL, as text with its brackets: an expression, a template or a group graph pattern."""

    text: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Prefix:
    """`PREFIX label: <iri>`; `label` None is BASE."""

    label: str | None
    iri: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Stream:
    """`FROM STREAM name <iri>`, the IRI resolved."""

    name: str
    iri: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Within:
    """`WITHIN amount unit [SLIDING] [STARTING AT start]`.

    The unit is in plural; `start` is a time literal as written, without quotes.
    """

    amount: str
    unit: str
    sliding: bool = False
    start: str | None = None
    span: Span = field(default=_NOWHERE, compare=False, repr=False)

    @property
    def by_events(self) -> bool:
        """True if it counts events, not time."""
        return self.unit == "EVENTS"

    @property
    def slides(self) -> bool:
        """True if each match has a window of its own, as with all that count events."""
        return self.sliding or self.by_events


@dataclass(frozen=True, slots=True)
class AfterMatch:
    """`AFTER MATCH rule`; `gpm` is that of TO FIRST and TO LAST, else None."""

    rule: AfterText
    gpm: Name | None = None
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """A GPM, by its name."""

    name: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Both:
    """`a & b & …`: all of them match at one instant."""

    parts: tuple[Element, ...]
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Either:
    """`a | b | …`: at least one of them matches at the instant."""

    parts: tuple[Element, ...]
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Repeated:
    """`child+`, `child{low,high}`, `child:+`: `low` to `high` rounds, None for no bound.

    `operator` is the sign that joins the rounds; None if none is written.
    """

    child: Element
    low: int = 1
    high: int | None = None
    operator: Operator | None = None
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Optional:
    """`child?`"""

    child: Element
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Lasting:
    """`FOR amount unit` behind `!`; the unit is in plural."""

    amount: str
    unit: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negated:
    """`child!`, or `child! FOR lasting`."""

    child: Element
    lasting: Lasting | None = None
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Chain:
    """`first`, then each of `rest` under the operator before it."""

    first: Element
    rest: tuple[tuple[Operator, Element], ...]
    span: Span = field(default=_NOWHERE, compare=False, repr=False)

    @property
    def elements(self) -> tuple[Element, ...]:
        """All elements, in order."""
        return (self.first, *(element for _, element in self.rest))


@dataclass(frozen=True, slots=True)
class Unordered:
    """`AND(a, b, …)`: an instant for each part, in any order; several parts may match at one instant."""

    parts: tuple[Element, ...]
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


Element = Reference | Both | Either | Repeated | Optional | Negated | Chain | Unordered


@dataclass(frozen=True, slots=True)
class Definition:
    """`DEFINE GPM name ON streams group`; `group` keeps its braces."""

    name: str
    streams: tuple[Name, ...]
    group: Embedded
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Modifier:
    """A solution modifier, as text: `kind` is GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET or VALUES."""

    kind: str
    text: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query.

    `form` is SELECT, CONSTRUCT or ASK; `select` holds the SELECT list (empty for `*`), or the CONSTRUCT template.
    `once`: True if FIRST stands behind the form.
    """

    prologue: tuple[Prefix, ...]
    form: str
    quantifier: str | None
    select: tuple[Variable | Embedded, ...]
    within: Within | None
    partition: tuple[Variable, ...]
    streams: tuple[Stream, ...]
    sequence: Element
    definitions: tuple[Definition, ...]
    modifiers: tuple[Modifier, ...] = ()
    span: Span = field(default=_NOWHERE, compare=False, repr=False)
    form_span: Span = field(default=_NOWHERE, compare=False, repr=False)
    once: bool = False
    after: AfterMatch | None = None
