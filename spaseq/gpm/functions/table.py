"""The functions of SPARQL 1.2 §17.4, each once: `FUNCTIONS` has a row for every name, `CASTS` for every cast (§17.5).

A function of terms works on their keys (`spaseq.rdf.term_key`): `<iri>`, `_:label`, `"text"`, `"text"@tag`,
`"text"^^<iri>`. Keys are not escaped. It gives a key or a truth value, and raises SPARQLError for an error. Batches
call it for each distinct choice of arguments (`spaseq.gpm.columnar.truth`), and `spaseq.gpm.expressions` for a single
solution. Functions that work on whole columns of keys at once (regular expressions, CONCAT) have one of these beside
it.

A function of numbers works on rdflib's literal, whose value is parsed. Batches also have it over columns of numbers
(`spaseq.gpm.columnar.amounts`). Special forms, such as IF, have a row without a function: `spaseq.gpm.expressions`
evaluates them, and for batches `spaseq.gpm.columnar.truth`. Names are spelled as rdflib's parser spells them, hence
`isIRI` beside `STRLEN`.
"""

from __future__ import annotations

import hashlib
import math
import os
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

from rdflib.namespace import RDF, XSD
from rdflib.plugins.sparql.sparql import Prologue, SPARQLError
from rdflib.term import Literal, URIRef
from rdflib.xsd_datetime import parse_datetime, parse_xsd_date

from spaseq.core.watch import made_text, to_hold
from spaseq.gpm.functions import numbers
from spaseq.gpm.functions import regex as expressions
from spaseq.gpm.functions.numbers import TYPES, decimal_text, double_text, number_of, number_text
from spaseq.rdf import DIRECTIONS, TRIPLE_END, parts_of_key, split_tag, term_from_key, triple_key

Key = str
_Keys = Sequence[Key]


@dataclass(frozen=True, slots=True)
class Function:
    """A row of the table.

    `section`: the function's place in https://www.w3.org/TR/sparql12-query/. `least`, `most`: how many arguments it
    takes. At most one of these is there: `of_keys` and `of_number`, see the module. `of_columns`: `of_keys` for
    columns of keys, which gives the SPARQLError in place of the value of a row. `resolves`: True if `of_keys` gets the
    query's prologue before the keys.
    """

    section: str
    least: int
    most: int
    of_keys: Callable[..., Key | bool] | None = None
    of_number: Callable[[Any], Literal] | None = None
    of_columns: Callable[..., list[Any]] | None = None
    resolves: bool = False

    def on_columns(self, prologue: Prologue) -> Callable[[Sequence[_Keys]], list[Any]] | None:
        """The function of columns of keys: a key or a truth value for each row, or the SPARQLError. None without
        one."""
        if self.of_columns is not None:
            return self.of_columns
        if self.of_keys is None:
            return None
        function = partial(self.of_keys, prologue) if self.resolves else self.of_keys

        def values(columns: Sequence[_Keys]) -> list[Any]:
            found: list[Any] = []
            for keys in zip(*columns, strict=True):
                try:
                    found.append(function(*keys))
                except SPARQLError as error:
                    found.append(error)
            return found

        return values


# -- keys

# PERF: constants, since a name of rdflib's XSD takes a microsecond and a term in an f-string another: casts of 20,000
# literals took 650 ms in place of 200.
_TYPES: Final = tuple(f"^^<{datatype}>" for datatype in TYPES)
"""The end of a key, behind the text of a number, by the rank of its type."""
_INTEGER, _DECIMAL, _, _DOUBLE = _TYPES
_BOOLEAN, _DATE_TIME, _DATE, _DURATION = (
    f"^^<{datatype}>" for datatype in (XSD.boolean, XSD.dateTime, XSD.date, XSD.dayTimeDuration)
)
_STRING_TYPE: Final = f"<{XSD.string}>"
_TAGGED_TYPE: Final = f"<{RDF.langString}>"
_DIRECTED_TYPE: Final = f"<{RDF}dirLangString>"


def _parts(key: Key) -> tuple[str, str]:
    """(text, rest of the key) of a literal. SPARQLError for another term."""
    if not _is_literal(key):
        raise SPARQLError(f"{key} is no literal")
    if key[-1] == '"':
        return key[1:-1], ""
    end = key.rindex('"')
    return key[1:end], key[end + 1 :]


def _string(key: Key) -> tuple[str, str]:
    """(text, tag with its @) of a string."""
    if key[0] == key[-1] == '"':
        return key[1:-1], ""
    text, suffix = _parts(key)
    if suffix and suffix[0] != "@":
        raise SPARQLError(f"{key} is no string")
    return text, suffix


def _simple(key: Key) -> str:
    """The text of a string without a tag."""
    text, tag = _string(key)
    if tag:
        raise SPARQLError(f"{key} has a language")
    return text


def _alike(key: Key, part: Key) -> tuple[str, str, str]:
    """(text, its tag, text) of two strings that may be compared (SPARQL 1.1 §17.4.3.1.2)."""
    (text, tag), (searched, other) = _string(key), _string(part)
    if other and tag != other:
        raise SPARQLError(f"{key} and {part} have different languages")
    return text, tag, searched


def _integer_key(value: int) -> Key:
    return f'"{value}"{_INTEGER}'


# -- terms


def _str(key: Key) -> Key:
    if key[0] == "<":
        return f'"{key[1:-1]}"'
    return f'"{_parts(key)[0]}"'


def _lang(key: Key) -> Key:
    suffix = _parts(key)[1]
    return f'"{split_tag(suffix[1:])[0]}"' if suffix[:1] == "@" else '""'


def _datatype(key: Key) -> Key:
    suffix = _parts(key)[1]
    if suffix[:1] != "@":
        return suffix[2:] or _STRING_TYPE
    return _DIRECTED_TYPE if split_tag(suffix)[1] else _TAGGED_TYPE


def _is_numeric(key: Key) -> bool:
    return key[0] == '"' and key[-1] == ">" and numbers.is_numeric(_parts(key)[1][3:-1])


def _iri(prologue: Prologue, key: Key) -> Key:
    if key[0] == "<":
        return key
    return f"<{prologue.absolutize(URIRef(_parts(key)[0]))}>"


def _type(key: Key, datatype: Key) -> Key:
    text = _simple(key)
    if datatype[0] != "<":
        raise SPARQLError("STRDT takes a string and an IRI")
    return f'"{text}"' if datatype == _STRING_TYPE else f'"{text}"^^{datatype}'


_TAG: Final = re.compile(r"[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*")


def _tag(key: Key, tag: Key) -> Key:
    text, language = _simple(key), _string(tag)[0]
    if not _TAG.fullmatch(language):
        raise SPARQLError("STRLANG takes a string and a language tag")
    return f'"{text}"@{language}'


def _tag_and_direction(key: Key, tag: Key, named: Key) -> Key:
    named = _simple(named)
    if named in DIRECTIONS:
        return f"{_tag(key, tag)}--{named}"
    raise SPARQLError(f"STRLANGDIR takes one of the directions {', '.join(DIRECTIONS)}")


def _direction(key: Key) -> Key:
    suffix = _parts(key)[1]
    return f'"{split_tag(suffix)[1] if suffix[:1] == "@" else ""}"'


def _is_literal(key: Key) -> bool:
    return key[0] == '"' and not key.endswith(TRIPLE_END)


def _has_tag(key: Key) -> bool:
    return _is_literal(key) and _parts(key)[1][:1] == "@"


def _has_direction(key: Key) -> bool:
    return _has_tag(key) and bool(split_tag(_parts(key)[1])[1])


def _triple(subject: Key, predicate: Key, object: Key) -> Key:
    if subject[0] not in "<_" or predicate[0] != "<":
        raise SPARQLError("TRIPLE takes an IRI or a blank node, an IRI, and a term")
    return triple_key(subject, predicate, object)


def _part_of(place: int) -> Callable[[Key], Key]:
    def of(key: Key) -> Key:
        if key.endswith(TRIPLE_END):
            return parts_of_key(key)[place]
        raise SPARQLError(f"{key} is no triple term")

    return of


# -- strings


def _with_text(change: Callable[[str], str]) -> Callable[[Key], Key]:
    """The function that changes the text of a string and keeps its tag."""

    def of(key: Key) -> Key:
        text, tag = _string(key)
        return f'"{change(text)}"{tag}'

    return of


def _from_text(change: Callable[[str], str]) -> Callable[[Key], Key]:
    """The function that gives another string, without a tag, for the text of a string."""
    return lambda key: f'"{change(_string(key)[0])}"'


def _compare(test: Callable[[str, str], bool]) -> Callable[[Key, Key], bool]:
    def of(key: Key, part: Key) -> bool:
        text, _, searched = _alike(key, part)
        return test(text, searched)

    return of


def _contains(text: str, searched: str) -> bool:
    return searched in text


def _before(key: Key, part: Key) -> Key:
    text, tag, searched = _alike(key, part)
    place = text.find(searched)
    return f'"{text[:place]}"{tag}' if place >= 0 else '""'


def _after(key: Key, part: Key) -> Key:
    text, tag, searched = _alike(key, part)
    place = text.find(searched)
    return f'"{text[place + len(searched) :]}"{tag}' if place >= 0 else '""'


def _part(key: Key, start: Key, length: Key | None = None) -> Key:
    """SUBSTR. Positions count from 1; there are no characters at positions below (XPath §5.4.3)."""
    text, tag = _string(key)
    first = _place(start)
    stop = len(text) + 1 if length is None else first + _place(length)
    return f'"{text[max(first, 1) - 1 : max(stop - 1, 0)]}"{tag}'


def _place(key: Key) -> int:
    rank, value = _number(key)
    if rank:
        raise SPARQLError(f"{key} is no integer")
    return int(value)


def _in_range(tag: Key, wanted: Key) -> bool:
    """LANGMATCHES: the basic filter of RFC 4647, whose range may have * for a subtag."""
    text, accepted = _string(tag)[0], _string(wanted)[0].strip().lower().split("-")
    own = text.strip().lower().split("-")
    return bool(text) and len(accepted) <= len(own) and all(r in ("*", t) for r, t in zip(accepted, own, strict=False))


def _digest(name: str) -> Callable[[Key], Key]:
    made = partial(hashlib.new, name, usedforsecurity=False)
    return _from_text(lambda text: made(text.encode()).hexdigest())


def _escape(text: str) -> str:
    return quote(text.encode(), safe="")


_COPIES: Final = 3
"""The copies of a text that is made: as made, as a key, and as its bytes."""


def _join(*keys: Key) -> Key:
    """CONCAT; the result has the language tag that all arguments share, if they do."""
    strings = [_string(key) for key in keys]
    text, tags = "".join([text for text, _ in strings]), {tag for _, tag in strings}
    made_text(len(text))
    return f'"{text}"{tags.pop() if len(tags) == 1 else ""}'


def _all_joined(columns: Sequence[_Keys]) -> list[Any]:
    to_hold(_COPIES * sum(sum(map(len, keys)) for keys in columns))  # texts that double in each of many BINDs
    return list(map(_attempt(_join), *columns))


def _attempt(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, but a SPARQLError that it raises is given."""

    def of(*given: Any) -> Any:
        try:
            return function(*given)
        except SPARQLError as error:
            return error

    return of


def _find(columns: Sequence[_Keys]) -> list[Any]:
    """REGEX: each pattern is searched in all of its texts at once."""

    def found(strings: list[tuple[str, str]], pattern: str, flags: str = "") -> Iterable[Any]:
        return expressions.found_in(expressions.pattern_of(pattern, flags), [text for text, _ in strings])

    return _by_pattern(columns, found)


def _replace(columns: Sequence[_Keys]) -> list[Any]:
    """REPLACE: each pattern and replacement in all of its texts at once."""

    def replace(strings: list[tuple[str, str]], pattern: str, new: str, flags: str = "") -> Iterable[Any]:
        made, texts = expressions.pattern_of(pattern, flags), [text for text, _ in strings]
        values = expressions.replaced_in(made, texts, new, literal="q" in flags)
        return [f'"{value}"{tag}' for value, (_, tag) in zip(values, strings, strict=True)]

    return _by_pattern(columns, replace)


def _by_pattern(columns: Sequence[_Keys], values_of: Callable[..., Iterable[Any]]) -> list[Any]:
    """The values that `values_of` gives for the strings that share all other arguments, for each choice of these."""
    keys, *others = columns
    found: list[Any] = [SPARQLError("no string")] * len(keys)
    by_pattern: dict[tuple[Key, ...], list[int]] = {}
    for place, pattern in enumerate(zip(*others, strict=True)):
        by_pattern.setdefault(pattern, []).append(place)
    string = _attempt(_string)
    for pattern, places in by_pattern.items():
        strings = [(place, own) for place in places if isinstance(own := string(keys[place]), tuple)]
        try:
            values = values_of([own for _, own in strings], *(_string(key)[0] for key in pattern))
        except SPARQLError:
            continue
        for (place, _), value in zip(strings, values, strict=True):
            found[place] = value
    return found


def _singly(of_columns: Callable[[Sequence[_Keys]], list[Any]]) -> Callable[..., Any]:
    """The function of keys, given that of columns."""

    def of(*keys: Key) -> Any:
        (found,) = of_columns([[key] for key in keys])
        if isinstance(found, SPARQLError):
            raise found
        return found

    return of


# -- times

_DATE_TEXT: Final = re.compile(r"(-?\d{4,}-\d\d-\d\d)(Z|[+-]\d\d:\d\d)?")


def _day(key: Key) -> date:
    """The value of a dateTime or a date."""
    text, suffix = _parts(key)
    read = parse_datetime if suffix == _DATE_TIME else parse_xsd_date if suffix == _DATE else None
    if read is None:
        raise SPARQLError(f"{key} is no date")
    try:
        found: date = read(text)
    except (ValueError, OverflowError):
        raise SPARQLError(f"{key} has no value") from None
    return found


def _time(key: Key) -> datetime:
    """The value of a dateTime."""
    found = _day(key)
    if not isinstance(found, datetime):
        raise SPARQLError(f"{key} is no time")
    return found


def _seconds(key: Key) -> Key:
    time = _time(key)
    return f'"{decimal_text(time.second + Decimal(time.microsecond) / 1_000_000)}"{_DECIMAL}'


def _zone(key: Key) -> Key:
    """TZ."""
    name = _time(key).tzname() or ""
    return f'"{"Z" if name == "UTC" else name.removeprefix("UTC")}"'


def _offset(key: Key) -> Key:
    """TIMEZONE."""
    offset = _time(key).utcoffset()
    if offset is None:
        raise SPARQLError("the time names no zone")
    minutes = round(offset.total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    text = (f"{hours}H" if hours else "") + (f"{rest}M" if rest else "") or "0S"
    return f'"{"-" if minutes < 0 else ""}PT{text}"{_DURATION}'


# -- numbers and casts (SPARQL 1.1 §17.5, XPath §17.1)

_READ: Final[dict[str, tuple[int, Callable[[str], Any]]]] = {
    _INTEGER: (0, int),
    _DECIMAL: (1, Decimal),
    _DOUBLE: (3, float),
}
"""By the rest of the key: the rank of the type, and rdflib's function that reads the text."""
_REAL_TEXT: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?INF|NaN")
_LEXICAL: Final = (re.compile(r"[+-]?\d+"), re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)"), _REAL_TEXT, _REAL_TEXT)
"""By the rank of a type, the texts that a string may have to be cast to it."""


def _number(key: Key) -> tuple[int, Any]:
    """`number_of` of the literal with this key."""
    return _number_in(*_parts(key))


def _number_in(text: str, suffix: str) -> tuple[int, Any]:
    if (known := _READ.get(suffix)) is None:
        return number_of(term_from_key(f'"{text}"{suffix}'))
    try:
        return known[0], known[1](text)
    except (ValueError, ArithmeticError):
        raise SPARQLError(f"{text!r} has no value") from None


def _to_string(key: Key) -> Key:
    return f'"{key[1:-1] if key[0] == "<" else _canonical(key)}"'


def _to_boolean(key: Key) -> bool:
    text, suffix = _parts(key)
    if suffix == _BOOLEAN:
        return _truth(key)
    if suffix:
        _, value = _number_in(text, suffix)
        return bool(value) and value == value
    if text.strip() not in _BOOLEANS:
        raise SPARQLError(f"{key} is no boolean")
    return _BOOLEANS[text.strip()]


_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


def _truth(key: Key) -> bool:
    """The value of a boolean."""
    term = term_from_key(key)
    if not isinstance(term, Literal) or not isinstance(term.value, bool):
        raise SPARQLError(f"{key} has no value")
    return term.value


def _to_number(rank: int, key: Key) -> Key:
    text, suffix = _parts(key)
    value: Any
    if not suffix:
        value = _read(rank, text.strip())
    elif suffix == _BOOLEAN:
        value = int(_truth(key))
    else:
        _, value = _number_in(text, suffix)
    if rank > 1:
        value = numbers.as_double(value)
    elif not isinstance(value, int) and not math.isfinite(value):
        raise SPARQLError(f"{key} is not finite")
    elif rank == 0:
        value = int(value)
    else:
        return f'"{decimal_text(value)}"{_DECIMAL}'
    return f'"{number_text(rank, value)}"{_TYPES[rank]}'


def _read(rank: int, text: str) -> Any:
    """The number that a string denotes, if it is a text of the type."""
    if not _LEXICAL[rank].fullmatch(text):
        raise SPARQLError(f"{text!r} is no {TYPES[rank]}")
    try:
        return int(text) if rank == 0 else Decimal(text) if rank == 1 else float(text)
    except ValueError as error:  # of more digits than Python reads
        raise SPARQLError(str(error)) from None


def _to_time(key: Key) -> Key:
    text, suffix = _parts(key)
    if not suffix:
        text, suffix = text.strip(), _DATE_TIME
    time = f'"{text}"{suffix}'
    day = _day(time)
    if suffix == _DATE_TIME:
        return time
    found = _DATE_TEXT.fullmatch(text)
    if found is None:
        raise SPARQLError(f"{day} cannot be cast to a time")
    return f'"{found[1]}T00:00:00{found[2] or ""}"{_DATE_TIME}'


def _canonical(key: Key) -> str:
    """The canonical text of a number or a truth value; the text of other literals as it is."""
    text, suffix = _parts(key)
    try:
        if suffix == _BOOLEAN:
            return "true" if _truth(key) else "false"
        rank, number = _number(key)
    except SPARQLError:
        return text
    if not isinstance(number, float):
        return str(number) if rank == 0 else decimal_text(number)
    if not math.isfinite(number):
        return double_text(number)
    if number == 0 or 1e-6 <= abs(number) < 1e6:
        return decimal_text(number)
    mantissa, exponent = f"{Decimal(repr(number)).normalize():E}".split("E")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


# -- another value each time


def _random_numbers(count: int) -> list[Key]:
    return [f'"{random.random()!r}"{_DOUBLE}' for _ in range(count)]


def _random_names(first: str, last: str, count: int) -> list[Key]:
    """UUIDs of version 4 (RFC 9562 §5.4), between `first` and `last`."""
    made = []
    text = os.urandom(16 * count).hex()
    for at in range(0, 32 * count, 32):
        whole = text[at : at + 32]
        variant = "89ab"[int(whole[16], 16) & 3]
        made.append(f"{first}{whole[:8]}-{whole[8:12]}-4{whole[13:16]}-{variant}{whole[17:20]}-{whole[20:]}{last}")
    return made


def _fresh_nodes(count: int) -> list[Key]:
    """So many new blank nodes. No other process makes one of these."""
    prefix = f"_:N{uuid4().hex}x"
    return [f"{prefix}{place}" for place in range(count)]


FRESH: Final[dict[str, Callable[[int], list[Key]]]] = {
    "RAND": _random_numbers,
    "UUID": partial(_random_names, "<urn:uuid:", ">"),
    "STRUUID": partial(_random_names, '"', '"'),
    "BNODE": _fresh_nodes,
}
"""The functions whose value differs from one solution to the next: so many values, if they have no arguments."""

# -- the table

_MANY: Final = 1 << 30

FUNCTIONS: Final[dict[str, Function]] = {
    "BOUND": Function("func-bound", 1, 1),
    "IF": Function("func-if", 3, 3),
    "COALESCE": Function("func-coalesce", 0, _MANY),
    "sameTerm": Function("func-sameTerm", 2, 2),
    "isIRI": Function("func-isIRI", 1, 1, lambda key: key[0] == "<"),
    "isURI": Function("func-isIRI", 1, 1, lambda key: key[0] == "<"),
    "isBLANK": Function("func-isBlank", 1, 1, lambda key: key[0] == "_"),
    "isLITERAL": Function("func-isLiteral", 1, 1, _is_literal),
    "isNUMERIC": Function("func-isNumeric", 1, 1, _is_numeric),
    "STR": Function("func-str", 1, 1, _str),
    "LANG": Function("func-lang", 1, 1, _lang),
    "DATATYPE": Function("func-datatype", 1, 1, _datatype),
    "IRI": Function("func-iri", 1, 1, _iri, resolves=True),
    "URI": Function("func-iri", 1, 1, _iri, resolves=True),
    "BNODE": Function("func-bnode", 0, 1),
    "STRDT": Function("func-strdt", 2, 2, _type),
    "STRLANG": Function("func-strlang", 2, 2, _tag),
    "LANGDIR": Function("func-langdir", 1, 1, _direction),
    "hasLANG": Function("func-haslang", 1, 1, _has_tag),
    "hasLANGDIR": Function("func-haslangdir", 1, 1, _has_direction),
    "STRLANGDIR": Function("func-strlangdir", 3, 3, _tag_and_direction),
    "isTRIPLE": Function("func-isTriple", 1, 1, lambda key: key.endswith(TRIPLE_END)),
    "TRIPLE": Function("func-triple", 3, 3, _triple),
    "SUBJECT": Function("func-subject", 1, 1, _part_of(0)),
    "PREDICATE": Function("func-predicate", 1, 1, _part_of(1)),
    "OBJECT": Function("func-object", 1, 1, _part_of(2)),
    "UUID": Function("func-uuid", 0, 0),
    "STRUUID": Function("func-struuid", 0, 0),
    "STRLEN": Function("func-strlen", 1, 1, lambda key: _integer_key(len(_string(key)[0]))),
    "SUBSTR": Function("func-substr", 2, 3, _part),
    "UCASE": Function("func-ucase", 1, 1, _with_text(str.upper)),
    "LCASE": Function("func-lcase", 1, 1, _with_text(str.lower)),
    "STRSTARTS": Function("func-strstarts", 2, 2, _compare(str.startswith)),
    "STRENDS": Function("func-strends", 2, 2, _compare(str.endswith)),
    "CONTAINS": Function("func-contains", 2, 2, _compare(_contains)),
    "STRBEFORE": Function("func-strbefore", 2, 2, _before),
    "STRAFTER": Function("func-strafter", 2, 2, _after),
    "ENCODE_FOR_URI": Function("func-encode", 1, 1, _from_text(_escape)),
    "CONCAT": Function("func-concat", 0, _MANY, _join, of_columns=_all_joined),
    "LANGMATCHES": Function("func-langMatches", 2, 2, _in_range),
    "REGEX": Function("func-regex", 2, 3, _singly(_find), of_columns=_find),
    "REPLACE": Function("func-replace", 3, 4, _singly(_replace), of_columns=_replace),
    "ABS": Function("func-abs", 1, 1, of_number=numbers.absolute),
    "ROUND": Function("func-round", 1, 1, of_number=partial(numbers.rounded, numbers.nearest)),
    "CEIL": Function("func-ceil", 1, 1, of_number=partial(numbers.rounded, math.ceil)),
    "FLOOR": Function("func-floor", 1, 1, of_number=partial(numbers.rounded, math.floor)),
    "RAND": Function("idp2130040", 0, 0),
    "NOW": Function("func-now", 0, 0),
    "YEAR": Function("func-year", 1, 1, lambda key: _integer_key(_day(key).year)),
    "MONTH": Function("func-month", 1, 1, lambda key: _integer_key(_day(key).month)),
    "DAY": Function("func-day", 1, 1, lambda key: _integer_key(_day(key).day)),
    "HOURS": Function("func-hours", 1, 1, lambda key: _integer_key(_time(key).hour)),
    "MINUTES": Function("func-minutes", 1, 1, lambda key: _integer_key(_time(key).minute)),
    "SECONDS": Function("func-seconds", 1, 1, _seconds),
    "TIMEZONE": Function("func-timezone", 1, 1, _offset),
    "TZ": Function("func-tz", 1, 1, _zone),
    **{name.upper(): Function(f"func-{name}", 1, 1, _digest(name))
       for name in ("md5", "sha1", "sha256", "sha384", "sha512")},
    "minus": Function("OperatorMapping", 1, 1, of_number=numbers.negate),
    "plus": Function("OperatorMapping", 1, 1, of_number=numbers.keep_sign),
}  # fmt: skip
"""By name; the operators `-x` and `+x` as minus and plus."""

CASTS: Final[dict[URIRef, Function]] = {
    XSD.string: Function("FunctionMapping", 1, 1, _to_string),
    XSD.boolean: Function("FunctionMapping", 1, 1, _to_boolean),
    XSD.dateTime: Function("FunctionMapping", 1, 1, _to_time),
    **{type_: Function("FunctionMapping", 1, 1, partial(_to_number, rank)) for rank, type_ in enumerate(TYPES)},
}
