"""The data model: the terms of one batch, numbered, and the events of one batch over those numbers.

A term is held as the UTF-8 bytes of its key (`spaseq.rdf.terms.term_key`: `<iri>`, `_:label`, `"text"`, `"text"@tag`,
`"text"^^<iri>`; triple terms as `spaseq.rdf.triple_terms` has them, whose kind is `LITERAL`). Keys have no escapes,
tags are in lower case, xsd:string is left out. All keys are in one array of
bytes, each at a multiple of eight and followed by zeros up to the next. So equal terms have equal bytes. rdflib's
object for a term is made only on request.

Rejected: one dictionary for a whole stream (ever new values such as times fill it; a batch's own is small, stays in the
cache and needs no eviction). Also rejected: offsets into the file's text (which would live as long as the batch).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Final, Protocol

import numpy as np
from rdflib import BNode, Literal, URIRef

from spaseq.core.errors import EventError
from spaseq.core.integers import ranges
from spaseq.rdf.columns.values import Kinds, LiteralColumns, literal_columns
from spaseq.rdf.model import GraphEvent
from spaseq.rdf.terms import Term, Triple, plain_literal, term_bytes, term_from_key
from spaseq.rdf.triple_terms import TRIPLE, TRIPLE_END, TripleTerm

__all__ = ["BLANK", "IRI", "LITERAL", "BatchLimits", "Finds", "GraphBatch", "Kinds", "LiteralColumns", "TermTable",
           "damaged_file"]  # fmt: skip

IRI: Final = 0
BLANK: Final = 1
LITERAL: Final = 2
_BEGINS: Final = np.frombuffer(b'<_"', np.uint8)
"""The first byte of a key, by the kind of its term."""
_QUOTE: Final = ord('"')
_NONE: Final = -1
_WORD: Final = 8
_KEY: Final = re.compile(
    rb'<[^\x00-\x20<>"{}|\\^`]*>|_:[^\x00-\x20<>"]+|'
    rb'".*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?|\^\^<(?:[^\x00-\x20<>"{}|\\^`]*|triple\x1fterm)>)?|'
    rb"<triple\x1fterm>",
    re.DOTALL,
)
"""The form of a key that nothing has damaged."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The limits at which a batch is made of the input read: a number of triples, or of bytes of different terms.

    A batch can be larger by a block of the file (1 MiB, or one line). Waiting events are held besides: unfinished ones,
    those within the lateness, and graphs whose time stands further on.
    """

    triples: int = 65_536
    text: int = 1 << 24


class Finds(Protocol):
    """Finds terms of a table by their keys."""

    def __call__(self, key: bytes) -> int:
        """The number of the term, -1 if it is not there."""

    def all(self, text: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The same for keys of another table: int64."""


class TermTable:
    """The terms of one batch, numbered from 0; numbers of different batches do not compare.

    * `kind`: uint8 (t,), `IRI`, `BLANK` or `LITERAL`.
    * `text`: uint8, the keys of all terms; that of term i is the `length[i]` bytes (int32) from `start[i]` (int64).
    * `lexical`: int32 (t,), of a literal the number of bytes of its text between the quotes, otherwise -1.
    * `datatype`: int32 (t,), of a literal with a datatype the number of its IRI, otherwise -1 (also with a tag).
    * `own`: int64 (k, 2), of the last k terms, blank nodes without a key. The columns are the number of the event in
      its file, from 1, and of the node in the event, from 0. Their labels are made of `scope` and these. Other blank
      nodes in such a table are names of the file, in no event.
    * `kept`: the file from which the arrays are mapped (`spaseq.rdf.columns.kept`), otherwise empty. A term is checked
      when it is used: EventError (`damaged`) if its parts do not agree.

    Arrays must not be written. Numbers are equal exactly if the terms are, as rdflib compares them with `==`.
    """

    __slots__ = ("_ids", "_made", "_values", "datatype", "finds", "kept", "kind", "length", "lexical", "own", "scope",
                 "start", "text")  # fmt: skip

    def __init__(
        self,
        text: np.ndarray,
        start: np.ndarray,
        length: np.ndarray,
        kind: np.ndarray,
        lexical: np.ndarray,
        datatype: np.ndarray,
        own: np.ndarray | None = None,
        scope: str = "",
        find: Finds | None = None,
        made: dict[int, Term] | None = None,
    ) -> None:
        self.text: np.ndarray = text
        self.start: np.ndarray = start
        self.length: np.ndarray = length
        self.kind: np.ndarray = kind
        self.lexical: np.ndarray = lexical
        self.datatype: np.ndarray = datatype
        self.own: np.ndarray = own if own is not None else np.zeros((0, 2), dtype=np.int64)
        self.scope: str = scope
        self._made = made if made is not None and not len(self.own) else {}
        self._ids: dict[bytes, int] | None = None
        self.finds: Finds | None = find
        """Finds terms by a kernel, in tables that were read: all but those of `own`."""
        self.kept: str = ""
        self._values: LiteralColumns | None = None

    @staticmethod
    def of(terms: Iterable[Term]) -> TermTable:
        """The table of `terms`, which are different; the datatypes of literals follow if they are not among them."""
        numbers: dict[Term, int] = {}
        for term in terms:
            numbers.setdefault(plain_literal(term), len(numbers))
        return _table(numbers)

    @staticmethod
    def of_keys(keys: Sequence[bytes]) -> TermTable:
        """The table of terms given by their keys, which are different; the datatypes of literals follow if they are not
        among them. A Python step for each key, but no term is made."""
        numbers: dict[bytes, int] = {}
        typed, ends, types = [], [], []
        for place, key in enumerate(keys):
            if key.endswith((b">", b'"')) or not key.startswith(b'"'):
                if key.startswith(b'"') and key.endswith(b">"):
                    end = key.rindex(b'"')
                    typed.append(place)
                    ends.append(end - 1)
                    types.append(numbers.setdefault(key[end + 3 :], len(numbers)))
                continue
            typed.append(place)
            ends.append(key.rindex(b'"') - 1)
            types.append(_NONE)
        known = {key: place for place, key in enumerate(keys)} if numbers else {}
        added = [key for key in numbers if key not in known]
        places = {key: len(keys) + i for i, key in enumerate(added)}
        number_of = np.array([places.get(key, known.get(key, _NONE)) for key in numbers] + [_NONE], dtype=np.int32)
        text, start, length = _texts([*keys, *added])
        first = text[start] if len(start) else np.zeros(0, dtype=np.uint8)
        kind = np.where(first == ord('"'), LITERAL, np.where(first == ord("<"), IRI, BLANK)).astype(np.uint8)
        lexical = np.where(kind == LITERAL, length - 2, _NONE).astype(np.int32)
        lexical[typed] = ends
        datatype = np.full(len(kind), _NONE, dtype=np.int32)
        datatype[typed] = number_of[types]
        return TermTable(text, start, length, kind, lexical, datatype)

    def __len__(self) -> int:
        return len(self.kind)

    def find_keys(self, keys: Sequence[bytes]) -> np.ndarray:
        """The numbers of terms given by their keys, -1 for those that the table does not have: int32. By a kernel for
        tables that were read, else a Python step for each."""
        if self.finds is not None and not len(self.own):
            return self.finds.all(*_texts(keys)).astype(np.int32)
        return np.array([self._id_of_key(key) for key in keys], np.int32)

    def key(self, number: int) -> bytes:
        """The bytes of `term_key` of term `number`."""
        named = len(self.kind) - len(self.own)
        if number >= named:
            event, rank = self.own[number - named]
            return f"_:{self.scope}{event}b{rank}".encode()
        start, length = int(self.start[number]), int(self.length[number])
        if self.kept:
            self.spans(np.array([number]))
            self.check_text([self.text[start : start + length].tobytes()])
        return self.text[start : start + length].tobytes()

    def keys(self, numbers: np.ndarray) -> list[bytes]:
        """`key` of each of `numbers`, none of them of `own`."""
        starts, lengths = self.spans(numbers)
        text = self.text.data
        bounds = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
        found = [text[start:end].tobytes() for start, end in bounds]
        if self.kept:
            self.check_text(found)
        return found

    def spans(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`start` and `length` of the terms `numbers`, whose keys are then in `text`."""
        starts, lengths = self.start[numbers], self.length[numbers]
        if self.kept:
            last = len(self.start) - 1
            ends = np.where(numbers < last, self.start[np.minimum(numbers + 1, last)], len(self.text))
            if not _are_spans(starts, lengths, ends, len(self.text)) or not self._are_of_their_kinds(numbers):
                raise self.damaged()
        return starts, lengths

    def _are_of_their_kinds(self, numbers: np.ndarray) -> bool:
        """True if the terms `numbers`, whose keys lie in `text`, begin as their kinds require, and literals end."""
        start, kind, lexical = self.start[numbers], self.kind[numbers], self.lexical[numbers]
        literal = kind == LITERAL
        ends = np.where(literal, lexical + 1, 0)
        inside = (kind < len(_BEGINS)) & (ends >= 0) & (ends < self.length[numbers])
        if not inside.all():
            return False
        return bool((self.text[start] == _BEGINS[kind]).all() and (self.text[start + ends][literal] == _QUOTE).all())

    def check_text(self, keys: Iterable[bytes]) -> None:
        """Raises `damaged` for keys of a file that are no UTF-8."""
        try:
            b"\n".join(keys).decode()
        except UnicodeDecodeError:
            raise self.damaged() from None

    def damaged(self) -> EventError:
        """The error about the file from which the table is mapped."""
        return damaged_file(self.kept)

    def term(self, number: int) -> Term:
        """rdflib's term `number`, as `spaseq.rdf.terms` makes it; made once."""
        found = self._made.get(number)
        if found is None:
            found = self._made[number] = self._read(number)
        return found

    def _read(self, number: int) -> Term:
        key = self.key(number)
        if self.kept and _KEY.fullmatch(key) is None:
            raise self.damaged()
        return term_from_key(key.decode())

    def id_of(self, term: Term) -> int:
        """The number of `term`, -1 if the batch does not have it."""
        return self._id_of_key(term_bytes(term))

    def _id_of_key(self, key: bytes) -> int:
        if self.finds is not None and not (len(self.own) and key.startswith(b"_:")):
            return self.finds(key)
        if self._ids is None:
            first = len(self) - len(self.own) if self.finds is not None else 0
            self._ids = {self.key(number): number for number in range(first, len(self))}
        return self._ids.get(key, _NONE)

    def numbers_of(self, other: TermTable, numbers: np.ndarray) -> np.ndarray:
        """The numbers in this table of the terms `numbers` of another one, -1 for those that it does not have: int32.
        By a kernel for tables that were read, else a Python step for each term."""
        found = np.full(len(numbers), _NONE, dtype=np.int32)
        if not len(self):
            return found
        named = np.flatnonzero(numbers < len(other) - len(other.own))
        if self.finds is not None:
            own = numbers[named]
            found[named] = self.finds.all(other.text, *other.spans(own))
            if not len(self.own):
                return found
            named = named[(found[named] < 0) & (other.kind[own] == BLANK)]
        # PERF: by the bytes of keys 0.5 us a term; with rdflib's terms between it took 5, a fifth of smart grid's time.
        found[named] = np.fromiter(map(self._id_of_key, other.keys(numbers[named])), np.int32, len(named))
        return found

    def literals(self) -> LiteralColumns:
        """The values of the literals, as columns (`LiteralColumns`); computed on first use, each term once."""
        if self._values is None:
            self.check()
            self._values = literal_columns(self.text, self.start, self.length, self.lexical, self.datatype, self.term)
        return self._values

    def check(self) -> None:
        """Raises `damaged` if the arrays of a table that is kept do not agree with each other. O(terms)."""
        if not self.kept:
            return
        ends = np.append(self.start[1:], len(self.text))[: len(self.start)]
        whole = _are_spans(self.start, self.length, ends, len(self.text))
        text = bool((self.lexical >= _NONE).all() and (self.lexical <= self.length - 2).all())
        if not whole or not text or not ((self.datatype >= _NONE) & (self.datatype < len(self))).all():
            raise self.damaged()

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """(values float64 (t,), is_number bool (t,)): the literals of SPARQL's numeric types, by value.

        Terms that are no number have the value NaN. A value that float64 does not hold exactly is the nearest one:
        `literals` marks the exact ones.
        """
        values = self.literals()
        return values.number, values.is_number


@dataclass(frozen=True, slots=True, eq=False)
class GraphBatch:
    """Events of one stream from one source, as columns.

    `stream` and `source` as in GraphEvent, then

    * `triples`: int32 (n, 3), the terms of subject, predicate and object; a triple stands once in an event.
    * `offsets`: int64 (m + 1,): event i has the triples `offsets[i]:offsets[i + 1]`, in the order of the source.
    * `times`: int64 (m,), nanoseconds since the epoch, never decreasing once the reader has put events in order.
    * `graphs`: int32 (m,), the term of the graph's name, or -1.
    * `records`: int64 (m,), the first line of the event, from 1.
    * `terms`: the terms of all of it (and possibly some more).
    """

    stream: str
    source: str
    triples: np.ndarray
    offsets: np.ndarray
    times: np.ndarray
    graphs: np.ndarray
    records: np.ndarray
    terms: TermTable

    def __len__(self) -> int:
        return len(self.times)

    def event(self, index: int) -> GraphEvent:
        """Event `index` as an object."""
        term = self.terms.term
        rows = self.triples[self.offsets[index] : self.offsets[index + 1]].tolist()
        triples = tuple((term(s), term(p), term(o)) for s, p, o in rows)
        graph = int(self.graphs[index])
        name = None if graph == _NONE else term(graph)
        return GraphEvent(self.stream, int(self.times[index]), triples, name, self.source, int(self.records[index]))

    def select(self, events: np.ndarray) -> GraphBatch:
        """The batch of some of its events, int64, different, in this order. The table of terms stays the same."""
        counts = np.diff(self.offsets)[events]
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        return replace(
            self,
            triples=self.triples[ranges(self.offsets[events], counts)],
            offsets=offsets,
            times=self.times[events],
            graphs=self.graphs[events],
            records=self.records[events],
        )

    @staticmethod
    def of(events: Sequence[GraphEvent]) -> GraphBatch:
        """The batch of `events`, at least one, all of one stream and one source. O(triples), a Python step each.

        For events that a program makes one by one.
        """
        if not events:
            raise ValueError("a batch has at least one event")
        stream, source = events[0].stream, events[0].source
        if any(event.stream != stream or event.source != source for event in events):
            raise ValueError("the events of a batch are of one stream and one source")
        numbers: dict[Term, int] = {}
        rows = [_row(triple, numbers) for event in events for triple in event.triples]
        graphs = [_NONE if event.graph is None else _number(event.graph, numbers) for event in events]
        return GraphBatch(
            stream,
            source,
            np.array(rows, dtype=np.int32).reshape(-1, 3),
            np.cumsum([0, *(len(event.triples) for event in events)], dtype=np.int64),
            np.array([event.time for event in events], dtype=np.int64),
            np.array(graphs, dtype=np.int32),
            np.array([event.record for event in events], dtype=np.int64),
            _table(numbers),
        )


def damaged_file(path: str, what: str = "damaged: what it says does not fit together") -> EventError:
    """The error for a file of kept knowledge that cannot be used."""
    return EventError(what, source=path, hint=f"build it again: spaseq knowledge build FILE… -o {path}")


def _are_spans(starts: np.ndarray, lengths: np.ndarray, ends: np.ndarray, size: int) -> bool:
    """True if all are keys in a text of `size` bytes, each padded up to the start of the next."""
    padded = (lengths.astype(np.int64) + _WORD - 1) // _WORD * _WORD
    inside = (starts >= 0) & (lengths > 0) & (starts % _WORD == 0) & (ends <= size)
    return bool((inside & (ends - padded == starts)).all())


def _row(triple: Triple, numbers: dict[Term, int]) -> tuple[int, int, int]:
    s, p, o = triple
    return _number(s, numbers), _number(p, numbers), _number(o, numbers)


def _number(term: Term, numbers: dict[Term, int]) -> int:
    return numbers.setdefault(plain_literal(term), len(numbers))


def _table(numbers: dict[Term, int]) -> TermTable:
    """The table of the numbered terms; datatypes that are not among them get numbers of their own, at the end."""
    for term in list(numbers):
        if (datatype := datatype_of(term)) is not None:
            numbers.setdefault(datatype, len(numbers))
    terms = list(numbers)
    text, start, length = _texts([term_bytes(term) for term in terms])
    return TermTable(
        text,
        start,
        length,
        np.array([kind_of(term) for term in terms], dtype=np.uint8),
        np.array(list(map(lexical_size, terms)), dtype=np.int32),
        np.array([_NONE if (d := datatype_of(term)) is None else numbers[d] for term in terms], dtype=np.int32),
    )


def _texts(keys: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`text`, `start` and `length` of a table with these keys."""
    length = np.fromiter(map(len, keys), dtype=np.int32, count=len(keys))
    sizes = (length.astype(np.int64) + (_WORD - 1)) // _WORD * _WORD
    padded = b"".join(map(bytes.ljust, keys, sizes.tolist(), repeat(b"\0")))
    return np.frombuffer(bytearray(padded), dtype=np.uint8), np.cumsum(sizes) - sizes, length


def datatype_of(term: Term) -> URIRef | None:
    """The datatype in the key of a term; None for other terms."""
    if isinstance(term, TripleTerm):
        return TRIPLE
    return term.datatype if isinstance(term, Literal) else None


def lexical_size(term: Term) -> int:
    """`TermTable.lexical` of a term."""
    if isinstance(term, TripleTerm):
        return len(term_bytes(term)) - len(TRIPLE_END) - 1
    return len(str(term).encode()) if isinstance(term, Literal) else _NONE


def kind_of(term: Term) -> int:
    """`TermTable.kind` of a term."""
    if isinstance(term, URIRef):
        return IRI
    return BLANK if isinstance(term, BNode) else LITERAL
