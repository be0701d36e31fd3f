"""RDF terms and mappings as text, in the syntaxes of result formats."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from rdflib.namespace import XSD
from rdflib.term import BNode, Literal, URIRef

from spaseq.core.errors import InternalError, OptionError
from spaseq.rdf import (
    TRIPLE_END,
    DirectionalString,
    GraphEvent,
    TripleTerm,
    is_triple_key,
    parts_of_key,
    split_tag,
    term_from_key,
    term_key,
)


def json_term(term: Any) -> dict[str, Any]:
    """The term as SPARQL 1.2 Query Results JSON writes it (§3.2.2)."""
    if not isinstance(term, (URIRef, BNode, Literal, TripleTerm)):
        raise InternalError(f"a solution holds a {type(term).__name__}")
    return json_of_key(term_key(term))


def json_of_key(key: str) -> dict[str, Any]:
    """`json_term` of the term with this `term_key`."""
    if is_triple_key(key):
        parts = map(json_of_key, parts_of_key(key))
        return {"type": "triple", "value": dict(zip(_PARTS, parts, strict=True))}
    kind, text, language, datatype = key_parts(key)
    if kind != "literal":
        return {"type": kind, "value": text}
    if language:
        tag, direction = split_tag(language)
        return {"type": kind, "value": text, "xml:lang": tag} | ({"its:dir": direction} if direction else {})
    return {"type": kind, "value": text} | ({"datatype": datatype} if datatype else {})


def key_parts(key: str) -> tuple[str, str, str, str]:
    """The kind (uri, bnode, literal, triple) of the term with this `term_key`, its text, language and datatype. The
    last two are empty if it has none. The text of a triple term is that of N-Triples."""
    if key.startswith("<"):
        return "uri", key[1:-1], "", ""
    if key.startswith("_:"):
        return "bnode", key[2:], "", ""
    if is_triple_key(key):
        return "triple", nquads_of_key(key), "", ""
    end = key.rindex('"')
    suffix = key[end + 1 :]
    if suffix.startswith("@"):
        return "literal", key[1:end], suffix[1:], ""
    return "literal", key[1:end], "", suffix[3:-1]


_PARTS: Final = ("subject", "predicate", "object")


def xml_term(term: Any) -> str:
    """The term as SPARQL 1.2 Query Results XML writes it. Raises `OptionError` for text that XML cannot hold."""
    if isinstance(term, TripleTerm):
        parts = zip(_PARTS, map(xml_term, term.parts), strict=True)
        return f"<triple>{''.join(f'<{name}>{part}</{name}>' for name, part in parts)}</triple>"
    text = str(term)
    bad = _NOT_XML.search(text)
    if bad is not None:
        raise OptionError(
            f"a literal holds the character U+{ord(bad[0]):04X}, which XML cannot", "use --format json, tsv or jsonl"
        )
    body = escape(text, {"\r": "&#13;"})
    match term:
        case URIRef():
            return f"<uri>{body}</uri>"
        case BNode():
            return f"<bnode>{body}</bnode>"
        case DirectionalString():
            its = f'xmlns:its="http://www.w3.org/2005/11/its" its:dir="{term.direction}"'
            return f'<literal xml:lang="{term.tag}" {its}>{body}</literal>'
        case Literal(language=str() as language):
            return f'<literal xml:lang="{language}">{body}</literal>'
        case Literal(datatype=URIRef() as datatype):
            return f"<literal datatype={quoteattr(str(datatype))}>{body}</literal>"
        case _:
            return f"<literal>{body}</literal>"


_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_AS_TERMS: Final = "@", "^^<>", f"^^<{XSD.string}>"
"""Suffixes of literals that rdflib writes in another way."""


_IN_LINES: Final = {character: written for character, written in _ESCAPES.items() if character != "\n"}


def _escape(text: str, escapes: Mapping[str, str] = _ESCAPES) -> str:
    for character, written in escapes.items():  # PERF: a fiftieth of the time of `str.translate`
        text = text.replace(character, written)
    return text


def nquads_of_key(key: str) -> str:
    """`nquads_term` of the term with this `term_key`."""
    # PERF: most keys are what N-Quads writes; making rdflib's term takes some 5 to 20 µs.
    if not is_triple_key(key) and (_PLAIN_IRI if key.startswith("<") else _PLAIN_LITERAL).fullmatch(key):
        return key
    if is_triple_key(key):
        return f"<<( {' '.join(map(nquads_of_key, parts_of_key(key)))} )>>"
    end = key.rindex('"') if key.startswith('"') else 0
    if end and not key.startswith(_AS_TERMS, end + 1):
        return f'"{_escape(key[1:end])}{key[end:]}'
    return nquads_term(term_from_key(key))


def nquads_of_keys(keys: Sequence[str]) -> Sequence[str]:
    """`nquads_of_key` of each key."""
    # PERF: a search in all at once costs a key 0.2 to 0.3 µs, one by one 0.9.
    whole = "\n".join(keys)
    if whole.count("\n") != len(keys) - 1:
        return list(map(nquads_of_key, keys))
    if TRIPLE_END in whole:
        return list(map(nquads_of_key, keys))
    if _ALL_PLAIN.fullmatch(whole):
        return keys
    bodies, suffix = _of_one_datatype(keys)
    if bodies is None or suffix.startswith(_AS_TERMS, 1):
        return list(map(nquads_of_key, keys))
    # PERF: escaped all at once, as list literals, a key costs 0.9 µs, one by one 2.1.
    return [f'"{body}{suffix}' for body in _escape("\n".join(bodies), _IN_LINES).split("\n")]


def _of_one_datatype(keys: Sequence[str]) -> tuple[list[str] | None, str]:
    """The texts of literals, if all are such and of one datatype, and their keys from the last quote on; else None."""
    first = keys[0] if keys else ""
    suffix = first[first.rindex('"') :] if first.startswith('"') else ""
    if not suffix.startswith('"^^<'):
        return None, ""
    size = len(suffix)
    if not all(key.endswith(suffix) and key[0] == '"' and len(key) > size for key in keys):
        return None, ""
    return [key[1:-size] for key in keys], suffix


def json_of_keys(keys: Sequence[str]) -> Sequence[str]:
    """`json_of_key` of each key, as JSON."""
    return list(map(_json_text, keys))


def _json_text(key: str) -> str:
    # PERF: texts without escapes are put together: 4 µs became 1.
    if _PLAIN_IRI.fullmatch(key):
        return f'{{"type": "uri", "value": "{key[1:-1]}"}}'
    found = _PLAIN_JSON.fullmatch(key)
    if found is None or is_triple_key(key):
        return _JSON(json_of_key(key))
    text, language, datatype = found.groups()
    about = f', "xml:lang": "{language}"' if language else f', "datatype": "{datatype}"' if datatype else ""
    return f'{{"type": "literal", "value": "{text}"{about}}}'


_JSON: Final = json.JSONEncoder(ensure_ascii=False).encode
_PLAIN_JSON: Final = re.compile(r'"([^"\\\x00-\x1f]*)"(?:@([A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)|\^\^<([^"\\\x00-\x1f]*)>)?')
_PLAIN_IRI: Final = re.compile(r"<[A-Za-z0-9:/#?&=.,;%+~@!$'()*_-]+>")
_PLAIN_LITERAL: Final = re.compile(r'"[^"\\\n\r\t]*"(@[a-z-]+|\^\^<[^"]*>)?')
_ALL_PLAIN: Final = re.compile(
    r'(?:(?:<[A-Za-z0-9:/#?&=.,;%+~@!$\'()*_-]++>|"[^"\\\n\r\t]*+"(?:@[a-z-]++|\^\^<[^">\n]*+>)?+)(?:\n|\Z))*+'
)


def nquads_term(term: Any) -> str:
    """The term as N-Quads writes it, on one line."""
    if isinstance(term, TripleTerm):
        return f"<<( {' '.join(map(nquads_term, term.parts))} )>>"
    if not isinstance(term, Literal):
        return str(term.n3())
    escaped = _escape(str(term))
    if term.language:
        return f'"{escaped}"@{term.language}'
    return f'"{escaped}"' + (f"^^<{term.datatype}>" if term.datatype else "")


_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LIST: Final = URIRef("http://w3id.org/awslabs/neptune/SPARQL-CDTs/List")
"""The datatype of list literals, of the community proposal for composite SPARQL datatypes (Apache Jena reads it)."""
_END: Final = f']"^^<{LIST}>'
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_BARE: Final = {
    _XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    _XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    _XSD + "double": re.compile(r"[+-]?([0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
    _XSD + "boolean": re.compile(r"true|false"),
}
"""By datatype, the pattern of literals that are written in a list without quotes."""


def graph_object(event: GraphEvent) -> dict[str, Any]:
    """The name of an event's graph (None for none), and its triples: terms in the syntax of N-Triples."""
    triples = [" ".join(map(nquads_term, triple)) for triple in event.triples]
    return {"graph": None if event.graph is None else nquads_term(event.graph), "triples": triples}


def list_literal(terms: Sequence[Any]) -> Literal:
    """A list of RDF terms as one literal: `"[1, 2.5, \\"a\\"@en, <http://example.org/b>]"^^cdt:List`."""
    return Literal("[" + ", ".join(item_of_key(term_key(term)) for term in terms) + "]", datatype=LIST)


def list_key(items: Sequence[str]) -> str:
    """The `term_key` of a list literal with these items (`item_of_key`)."""
    return '"[' + ", ".join(items) + _END


def item_of_key(key: str) -> str:
    """The term with this `term_key`, as a list literal has it."""
    if key.startswith('"'):
        _, text, _, datatype = key_parts(key)
        bare = _BARE.get(datatype)
        if bare is not None and bare.fullmatch(text):
            return text
    return nquads_of_key(key)


def items_of_keys(keys: Sequence[str]) -> Sequence[str]:
    """`item_of_key` of each key."""
    bodies, suffix = _of_one_datatype(keys)
    bare = _BARE.get(suffix[4:-1])
    if bodies is not None and bare is not None:
        # PERF: a search in all at once costs a key 0.4 µs, one by one 1.6.
        whole = "\n".join([*bodies, ""])
        if whole.count("\n") == len(bodies) and re.fullmatch(f"(?:(?:{bare.pattern})\n)*+", whole):
            return bodies
    return list(map(item_of_key, keys))


def plain_of_key(key: str) -> str:
    """`plain_text` of the term with this `term_key`."""
    return key if key.startswith("_:") else key_parts(key)[1]


def plain_text(term: Any) -> str:
    """The term as SPARQL 1.1 Query Results CSV writes it: IRIs and literals bare, blank nodes with `_:`. Triple terms
    are those of N-Triples."""
    return f"_:{term}" if isinstance(term, BNode) else str(term)


def short_text(term: Any, prefixes: Sequence[tuple[str, str]]) -> str:
    """The term for a table: IRIs with a prefix if there is one for them, literals bare, but not in a triple term."""
    if isinstance(term, TripleTerm):
        *ends, value = term.parts
        texts = [short_text(part, prefixes) for part in ends]
        bare = isinstance(value, Literal) and item_of_key(term_key(value))
        return f"<<( {' '.join([*texts, bare or short_text(value, prefixes)])} )>>"
    if isinstance(term, URIRef):
        for label, iri in prefixes:
            local = str(term).removeprefix(iri)
            if iri and local != str(term) and local and not any(c in local for c in "/#:"):
                return f"{label}:{local}"
        return f"<{term}>"
    return plain_text(term)
