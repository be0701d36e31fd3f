"""Functions of terms over columns: of texts, of what a term is, and of the parts of times (SPARQL 1.1 §17.4).

A function here reads the texts of its arguments and makes no rdflib terms; it is called once for each distinct choice
of arguments. It takes the usual ones, strings without a tag for example, and says `ASK` of others: of these
`spaseq.gpm.functions` gives the result.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import numpy as np
from rdflib.plugins.sparql.operators import _lang_range_check
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import Identifier, Literal

from spaseq.core.integers import different
from spaseq.core.watch import made_text, to_hold
from spaseq.gpm import regex as expressions
from spaseq.gpm.columnar.table import Space
from spaseq.gpm.functions import double_text
from spaseq.gpm.reference import evaluating
from spaseq.rdf.columns import Kinds

__all__ = ["ASK", "NO_VALUE", "Given", "cast_terms", "fresh_nodes", "fresh_values", "nodes_of", "values_of"]

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_STRING: Final = f"<{_XSD}string>"
_TAGGED: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"
_WHOLE: Final = re.compile(r'"([+-]?[0-9]{1,18})"\^\^<http://www\.w3\.org/2001/XMLSchema#integer>')
_TAG: Final = re.compile(r'"([a-z]{1,8}(?:-[a-z0-9]{1,8})*)"')
_TIME: Final = re.compile(
    r'"([0-9]{4})-([0-9]{2})-([0-9]{2})T([01][0-9]|2[0-3]):([0-9]{2}):([0-9]{2}(?:\.[0-9]+)?)(Z|[+-][0-9]{2}:[0-9]{2})?'
    r'"\^\^<http://www\.w3\.org/2001/XMLSchema#dateTime>'
)

ASK: Final = object()
"""In place of a result: it is not said here."""
NO_VALUE: Final = object()
"""In place of a result: it is an error."""
_Function = Callable[..., Any]
"""Of the keys of its arguments; the key of a term, a truth value, `ASK` or `NO_VALUE`."""


class _Other(Exception):
    """An argument that the functions here do not read."""


def _text(key: str) -> str:
    """The text of a string without a tag."""
    if not (key[0] == key[-1] == '"'):
        raise _Other
    return key[1:-1]


def _whole(key: str) -> int:
    found = _WHOLE.fullmatch(key)
    if found is None:
        raise _Other
    return int(found[1])


def _plain(text: str) -> str:
    return f'"{text}"'


def _number(value: int) -> str:
    return f'"{value}"^^<{_XSD}integer>'


def _str(key: str) -> Any:
    if key[0] == '"':
        return key if key[-1] == '"' else key[: key.rindex('"') + 1]
    return f'"{key[1:-1]}"' if key[0] == "<" else NO_VALUE


def _lang(key: str) -> Any:
    if key[0] != '"':
        return NO_VALUE
    if key[-1] == '"':
        return '""'
    suffix = key[key.rindex('"') + 1 :]
    return _plain(suffix[1:] if suffix[0] == "@" else "")


def _datatype(key: str) -> Any:
    if key[0] != '"':
        return NO_VALUE
    if key[-1] == '"':
        return _STRING
    suffix = key[key.rindex('"') + 1 :]
    return _TAGGED if suffix[0] == "@" else suffix[2:]


def _before(key: str, part: str) -> str:
    text, searched = _text(key), _text(part)
    return _plain(text[: max(text.find(searched), 0)])


def _after(key: str, part: str) -> str:
    text, searched = _text(key), _text(part)
    place = text.find(searched)
    return _plain(text[place + len(searched) :] if place >= 0 else "")


def _part(key: str, start: str, length: str | None = None) -> str:
    text, first = _text(key), _whole(start)
    stop = len(text) + 1 if length is None else first + _whole(length)
    return _plain(text[max(first, 1) - 1 : max(stop - 1, 0)])


def _time(group: int) -> _Function:
    def part(key: str) -> str:
        found = _TIME.fullmatch(key)
        if found is None:
            raise _Other
        return _number(int(found[group]))

    return part


def _seconds(key: str) -> str:
    found = _TIME.fullmatch(key)
    if found is None or len(found[6]) > 9:  # rdflib holds microseconds
        raise _Other
    whole, _, part = found[6].partition(".")
    digits = part.rstrip("0")
    return f'"{int(whole)}{"." if digits else ""}{digits}"^^<{_XSD}decimal>'


def _zone(key: str) -> str:
    """The zone of a time, as it is written."""
    found = _TIME.fullmatch(key)
    if found is None or (found[7] or "")[1:] == "00:00":
        raise _Other
    return found[7] or ""


def _offset(key: str) -> Any:
    zone = _zone(key)
    if not zone:
        return NO_VALUE
    hours, minutes = (0, 0) if zone == "Z" else (int(zone[1:3]), int(zone[4:]))
    text = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "") or "0S"
    return f'"{"-" if zone[0] == "-" else ""}PT{text}"^^<{_XSD}dayTimeDuration>'


def _typed(key: str, datatype: str) -> str:
    text = _text(key)
    if datatype[0] != "<" or datatype == _TAGGED:
        raise _Other
    return f'"{text}"' if datatype == _STRING else f'"{text}"^^{datatype}'


def _tagged(key: str, tag: str) -> str:
    text, found = _text(key), _TAG.fullmatch(tag)
    if found is None:
        raise _Other
    return f'"{text}"@{found[1]}'


def _iri(key: str) -> str:
    """An IRI that needs no base."""
    if key[0] == "<":
        return key
    text = _text(key)
    if ":" not in text:
        raise _Other
    return f"<{text}>"


def _in_range(tag: str, wanted: str) -> bool:
    text, found = _text(tag), _text(wanted)
    return bool(text) and bool(_lang_range_check(Literal(found), Literal(text)))


def _digest(name: str) -> _Function:
    made = partial(hashlib.new, name, usedforsecurity=False)
    return lambda key: _plain(made(_text(key).encode()).hexdigest())


_FUNCTIONS: Final[dict[str, tuple[tuple[str, ...], _Function]]] = {
    "STR": (("arg",), _str),
    "LANG": (("arg",), _lang),
    "DATATYPE": (("arg",), _datatype),
    "isIRI": (("arg",), lambda key: key[0] == "<"),
    "isURI": (("arg",), lambda key: key[0] == "<"),
    "isBLANK": (("arg",), lambda key: key[0] == "_"),
    "isLITERAL": (("arg",), lambda key: key[0] == '"'),
    "STRLEN": (("arg",), lambda key: _number(len(_text(key)))),
    "UCASE": (("arg",), lambda key: _plain(_text(key).upper())),
    "LCASE": (("arg",), lambda key: _plain(_text(key).lower())),
    "CONTAINS": (("arg1", "arg2"), lambda key, part: _text(part) in _text(key)),
    "STRSTARTS": (("arg1", "arg2"), lambda key, part: _text(key).startswith(_text(part))),
    "STRENDS": (("arg1", "arg2"), lambda key, part: _text(key).endswith(_text(part))),
    "STRBEFORE": (("arg1", "arg2"), _before),
    "STRAFTER": (("arg1", "arg2"), _after),
    "SUBSTR": (("arg", "start", "length"), _part),
    "YEAR": (("arg",), _time(1)),
    "MONTH": (("arg",), _time(2)),
    "DAY": (("arg",), _time(3)),
    "HOURS": (("arg",), _time(4)),
    "MINUTES": (("arg",), _time(5)),
    "SECONDS": (("arg",), _seconds),
    "TZ": (("arg",), lambda key: _plain(_zone(key))),
    "TIMEZONE": (("arg",), _offset),
    "IRI": (("arg",), _iri),
    "URI": (("arg",), _iri),
    "STRDT": (("arg1", "arg2"), _typed),
    "STRLANG": (("arg1", "arg2"), _tagged),
    "LANGMATCHES": (("arg1", "arg2"), _in_range),
    "ENCODE_FOR_URI": (("arg",), lambda key: _plain(quote(_text(key).encode(), safe=""))),
    **{name.upper(): (("arg",), _digest(name)) for name in ("md5", "sha1", "sha256", "sha384", "sha512")},
}
"""By name: what rdflib calls the arguments, in order, the last ones optional; and the function."""
_COPIES: Final = 3
"""How often a text that is made is in memory: as made, as a key, and as its bytes."""
_TIMES: Final = frozenset({"YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TZ", "TIMEZONE"})


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """An argument of a function in some rows: `keys` of its terms, and `numbers` of these in `space`, where they have
    some."""

    keys: list[str]
    numbers: np.ndarray | None
    space: Space

    @staticmethod
    def of(numbers: np.ndarray, space: Space) -> Given:
        """Terms by number."""
        return Given(_keys(numbers, space), numbers, space)

    def take(self, places: np.ndarray) -> Given:
        """The rows at `places`."""
        keys = self.keys
        numbers = None if self.numbers is None else self.numbers[places]
        return Given([keys[place] for place in places.tolist()], numbers, self.space)

    def is_time(self) -> list[bool]:
        """Where a term has the value of a time, or of a whole number."""
        if self.numbers is None:
            return [False] * len(self.keys)
        found: list[bool] = self.space.literals().has_whole[self.numbers].tolist()
        return found


def values_of(name: str, handle: CompValue) -> Callable[[list[Given]], list[Any]] | None:
    """The function that gives the values of a built-in function for rows of arguments, of which each row binds all:
    keys of terms, truth values, `ASK` or `NO_VALUE`. None if there is none here. `handle` is rdflib's expression."""
    name = name.removeprefix("Builtin_")
    given = tuple(n for n, value in handle.items() if isinstance(value, (Identifier, CompValue)))
    if name == "CONCAT" and isinstance(dict.get(handle, "arg"), list):
        return _joined
    if name == "REGEX" and given in (("text", "pattern"), ("text", "pattern", "flags")):
        return _found
    if name == "REPLACE" and given in (("arg", "pattern", "replacement"), ("arg", "pattern", "replacement", "flags")):
        return _replaced
    if name not in _FUNCTIONS or given != _FUNCTIONS[name][0][: len(given)] or not given:
        return None
    if name != "SUBSTR" and len(given) < len(_FUNCTIONS[name][0]):
        return None
    function, times = _FUNCTIONS[name][1], name in _TIMES

    def values(arguments: list[Given]) -> list[Any]:
        is_time = arguments[0].is_time() if times else None
        found = []
        for place, keys in enumerate(zip(*(argument.keys for argument in arguments), strict=True)):
            if is_time is not None and not is_time[place]:  # a time of such a form that is none
                found.append(ASK)
                continue
            try:
                found.append(function(*keys))
            except _Other:
                found.append(ASK)
        return found

    return values


def _keys(numbers: np.ndarray, space: Space) -> list[str]:
    """The keys of terms."""
    if len(numbers) and numbers.min() >= space.base:
        return space.cased_keys(numbers.tolist())
    return [
        space.cased_key(number) if key is None else key.decode()
        for number, key in zip(numbers.tolist(), space.keys(numbers), strict=True)
    ]


def _joined(arguments: list[Given]) -> list[Any]:
    """CONCAT of strings without tags."""
    characters = sum(sum(map(len, argument.keys)) for argument in arguments)
    to_hold(_COPIES * characters)  # texts that double in each of many BINDs go from half of a limit to twice as much
    rows = zip(*(argument.keys for argument in arguments), strict=True)
    return [_one_of(keys) if all(key[0] == key[-1] == '"' for key in keys) else ASK for keys in rows]


def _one_of(keys: Sequence[str]) -> str:
    text = "".join([key[1:-1] for key in keys])
    made_text(len(text))
    return _plain(text)


def _found(arguments: list[Given]) -> list[Any]:
    """REGEX: each pattern is searched in all of its texts at once."""

    def found(texts: list[str], pattern: str, flags: str = "") -> Sequence[Any]:
        return expressions.found_in(expressions.pattern_of(pattern, flags), texts)

    return _by_pattern(arguments, found)


def _replaced(arguments: list[Given]) -> list[Any]:
    """REPLACE: each pattern and replacement in all of its texts at once."""

    def replaced(texts: list[str], pattern: str, new: str, flags: str = "") -> Sequence[Any]:
        made = expressions.pattern_of(pattern, flags)
        values: Sequence[Any] = expressions.replaced_in(made, texts, new, literal="q" in flags)
        return [_plain(value) if isinstance(value, str) else value for value in values]

    return _by_pattern(arguments, replaced)


def _by_pattern(arguments: list[Given], answers_of: Callable[..., Sequence[Any]]) -> list[Any]:
    """What `answers_of` says of the texts that share all other arguments, where all are strings without tags."""
    texts, *others = (argument.keys for argument in arguments)
    found: list[Any] = [ASK] * len(texts)
    by_pattern: dict[tuple[str, ...], list[int]] = {}
    for place, pattern in enumerate(zip(*others, strict=True)):
        if all(key[0] == key[-1] == '"' for key in (texts[place], *pattern)):
            by_pattern.setdefault(pattern, []).append(place)
    for pattern, places in by_pattern.items():
        try:
            answers = answers_of([_text(texts[place]) for place in places], *map(_text, pattern))
        except SPARQLError:
            answers = [NO_VALUE] * len(places)
        for place, answer in zip(places, answers, strict=True):
            found[place] = answer
    return found


# -- casts


_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]*))?")
_REAL: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?")
_LARGE: Final = 1e15


def _short(value: float) -> str | None:
    """The canonical decimal of a double that Python writes without an exponent; None of others."""
    text = repr(value or 0.0)
    return None if "e" in text or "n" in text else text.removesuffix(".0")


def _canonical(text: str) -> str | None:
    """The canonical text of a decimal."""
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return None
    whole, part = found[2].lstrip("0") or "0", (found[3] or "").rstrip("0")
    if whole == "0" and not part:
        return "0"
    return f"{'-' if found[1] == '-' else ''}{whole}{'.' if part else ''}{part}"


def _to_string(kind: int, key: str, number: float, whole: int) -> str | None:
    match kind:
        case Kinds.NO_LITERAL:
            return key[1:-1] if key[0] == "<" else None
        case Kinds.STRING:
            return key[1:-1]
        case Kinds.INTEGER:
            return str(whole)
        case Kinds.DECIMAL:
            return _canonical(key[1 : key.rindex('"')])
        case Kinds.DOUBLE:
            return _short(number) if 1e-3 <= abs(number) < 1e6 else None
        case _:
            return None


def _to_integer(kind: int, key: str, number: float, whole: int) -> str | None:
    match kind:
        case Kinds.INTEGER:
            return str(whole)
        case Kinds.DECIMAL | Kinds.DOUBLE:
            return str(int(number)) if abs(number) < _LARGE else None
        case Kinds.STRING if _DIGITS.fullmatch(text := key[1:-1]):
            return str(int(text))
        case _:
            return None


def _to_decimal(kind: int, key: str, number: float, whole: int) -> str | None:
    match kind:
        case Kinds.INTEGER:
            return str(whole)
        case Kinds.DECIMAL:
            return _canonical(key[1 : key.rindex('"')])
        case Kinds.DOUBLE:
            return _short(number) if abs(number) < _LARGE else None
        case _:
            return None


def _to_double(kind: int, key: str, number: float, whole: int) -> str | None:
    match kind:
        case Kinds.INTEGER | Kinds.DECIMAL if not number:
            return None if kind == Kinds.DECIMAL else "0.0"  # a decimal may be a negative zero
        case Kinds.INTEGER | Kinds.DECIMAL | Kinds.DOUBLE:
            return double_text(number)
        case Kinds.STRING if _REAL.fullmatch(text := key[1:-1]):
            return double_text(float(text))
        case _:
            return None


_CASTS: Final[dict[str, tuple[Callable[[int, str, float, int], str | None], str]]] = {
    _XSD + "string": (_to_string, ""),
    _XSD + "integer": (_to_integer, f"^^<{_XSD}integer>"),
    _XSD + "decimal": (_to_decimal, f"^^<{_XSD}decimal>"),
    _XSD + "double": (_to_double, f"^^<{_XSD}double>"),
}


def _cast_values(target: str, numbers: np.ndarray, space: Space) -> list[str | None]:
    """The keys of what terms are when they are cast to the type `target`; None where it is not said here, as where a
    number is not exactly that of the columns, or there is none."""
    if target not in _CASTS:
        return [None] * len(numbers)
    function, suffix = _CASTS[target]
    literals = space.literals()
    kind, exact = literals.kind[numbers], literals.exact[numbers]
    sure = np.where(literals.numeric(numbers), exact, True) & ((kind != Kinds.INTEGER) | literals.has_whole[numbers])
    columns = (kind, _keys(numbers, space), literals.number[numbers], literals.whole[numbers], sure)
    lists = (column if isinstance(column, list) else column.tolist() for column in columns)
    found: list[str | None] = []
    for own, key, number, whole, is_sure in zip(*lists, strict=True):
        text = function(own, key, number, whole) if is_sure else None
        found.append(None if text is None else f'"{text}"{suffix}')
    return found


def cast_terms(target: Identifier, cast: Callable[[Any], Literal], numbers: np.ndarray, space: Space) -> np.ndarray:
    """The terms cast, each distinct one once: int32, -1 for errors."""
    used, places = different(numbers)
    found = np.full(len(used), -1, np.int32)
    bound = np.flatnonzero(used >= 0)
    keys = _cast_values(str(target), used[bound], space)
    said = [place for place, key in zip(bound.tolist(), keys, strict=True) if key is not None]
    found[said] = space.numbers_of_keys([key.encode() for key in keys if key is not None])
    with evaluating():
        for place, key in zip(bound.tolist(), keys, strict=True):
            if key is None:
                try:
                    found[place] = space.number(cast(space.term(int(used[place]))))
                except SPARQLError:
                    continue
    return found[places]


# -- another value each time


def fresh_values(name: str, count: int, space: Space) -> np.ndarray:
    """The values of a function of `UNSTEADY` without arguments for so many rows, as numbers of terms: int32."""
    if name == "Builtin_BNODE":
        return fresh_nodes(count, space)
    if name == "Builtin_RAND":
        texts = [f'"{random.random()!r}"^^<{_XSD}double>' for _ in range(count)]
        return space.numbers_of_keys([text.encode() for text in texts])
    first, last = ("<urn:uuid:", ">") if name == "Builtin_UUID" else ('"', '"')
    given = np.frombuffer(os.urandom(16 * count), np.uint8).reshape(count, 16).copy()
    given[:, 6] = given[:, 6] & 0x0F | 0x40  # version 4 (RFC 9562 §5.4)
    given[:, 8] = given[:, 8] & 0x3F | 0x80
    text = given.tobytes().hex()
    made = []
    for at in range(0, 32 * count, 32):
        parts = text[at : at + 8], text[at + 8 : at + 12], text[at + 12 : at + 16], text[at + 16 : at + 20]
        made.append(f"{first}{'-'.join(parts)}-{text[at + 20 : at + 32]}{last}".encode())
    return space.add_keys(made)


def fresh_nodes(count: int, space: Space) -> np.ndarray:
    """So many new blank nodes, as numbers of terms: int32. No other process makes one of these."""
    prefix = f"_:N{uuid4().hex}x"
    return space.add_keys([f"{prefix}{place}".encode() for place in range(count)])


def nodes_of(texts: np.ndarray, rows: np.ndarray | None, space: Space) -> np.ndarray:
    """BNODE of texts, given by number: int32, -1 where it is an error. One node for a text and a solution; `rows` has a
    node for each solution, None where no other expression names those of the same."""
    is_text = (texts >= 0) & (space.literals().kind[texts] != Kinds.NO_LITERAL)
    own = fresh_nodes(len(texts), space) if rows is None else rows
    found = np.full(len(texts), -1, np.int32)
    pairs = zip(space.cased_keys(own[is_text].tolist()), texts[is_text].tolist(), strict=True)
    found[is_text] = space.numbers_of_keys([f"{row}x{text}".encode() for row, text in pairs])
    return found
