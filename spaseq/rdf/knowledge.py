"""Background knowledge from tables of triples; files are read in `columns/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pyoxigraph
import rdflib
from rdflib.util import from_n3

from spaseq.core.errors import EventError
from spaseq.rdf.given import FOREIGN, term_of
from spaseq.rdf.terms import Term, Terms, plain_literal, quiet_literals
from spaseq.rdf.triple_terms import TripleTerm

COLUMNS: Final = ("subject", "predicate", "object")


def is_table(value: object) -> bool:
    """True if `value` is a table: a pyarrow Table or RecordBatch, a pandas or a Polars frame."""
    return hasattr(value, "columns") and (hasattr(value, "to_pylist") or hasattr(value, "to_dict"))


def table_knowledge(table: Any) -> rdflib.Graph:
    """The graph of a table with the columns `subject`, `predicate` and `object`: a triple a row.

    A cell is an RDF term, or text in N-Triples syntax: `<http://example.org/a>`, `"text"@en`, `_:b`. EventError names
    the missing column, or the row (from 1) and the column of a value that is no such term.
    """
    graph = rdflib.Graph()
    memory: dict[tuple[str, object], Term] = {}
    for number, row in enumerate(_rows(table), 1):
        s, p, o = (_term(cell, name, number, memory) for name, cell in zip(COLUMNS, row, strict=True))
        graph.add((s, p, o))
    return graph


def _rows(table: Any) -> Iterator[tuple[Any, ...]]:
    names = list(getattr(table, "column_names", table.columns))
    for name in COLUMNS:
        if name not in names:
            raise EventError(
                f"the table of background knowledge has no column {name}",
                attribute=name,
                hint=f"it has {', '.join(map(str, names))}; there must be {', '.join(COLUMNS)}",
            )
    yield from zip(*(_cells(table, name) for name in COLUMNS), strict=True)


def _cells(table: Any, name: str) -> list[Any]:
    column = table.column(name) if hasattr(table, "column_names") else table[name]
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _term(cell: Any, name: str, number: int, memory: dict[tuple[str, object], Term]) -> Term:
    known = memory.get((name, cell)) if isinstance(cell, str) else None
    if known is not None:
        return known
    term: Any = cell if isinstance(cell, (rdflib.URIRef, rdflib.BNode, rdflib.Literal, TripleTerm)) else None
    if isinstance(cell, (*FOREIGN, pyoxigraph.Triple)):
        term = term_of(cell, f"row {number} of the table of background knowledge, {name}")
    elif term is None and isinstance(cell, str) and cell[:1] in ("<", '"', "_"):
        with quiet_literals():
            term = _parse(cell)
    allowed: tuple[type, ...] = {
        "subject": (rdflib.URIRef, rdflib.BNode),
        "predicate": (rdflib.URIRef,),
        "object": (rdflib.URIRef, rdflib.BNode, rdflib.Literal, TripleTerm),
    }[name]
    if not isinstance(term, allowed):
        raise EventError(
            f"row {number} of the table of background knowledge: the {name} {cell!r} is no such RDF term",
            record=number,
            attribute=name,
            hint='write terms as in N-Triples: <http://example.org/a>, "text", "3"^^<http://…#integer>, _:b',
        )
    found: Term = plain_literal(term)  # type: ignore[arg-type]  # it is allowed, so it is a term
    if isinstance(cell, str):
        memory[(name, cell)] = found
    return found


def _parse(text: str) -> Any:
    """The term, or None."""
    if text.startswith("<<(") or _DIRECTION.search(text):
        return _parse_newer(text)
    try:
        return from_n3(text)
    except Exception:  # rdflib raises the errors inside its parser
        return None


_DIRECTION: Final = re.compile(r"--[A-Za-z]+$")


def _parse_newer(text: str) -> Any:
    """A term that only RDF 1.2 has, in N-Triples; None if it is none."""
    line = f"<x:s> <x:p> {text} ."
    try:
        (quad,) = pyoxigraph.parse(line.encode(), pyoxigraph.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError):
        return None
    return Terms().convert(quad.object)
