"""Functions of terms over columns: of texts, of what a term is, and of the parts of times (SPARQL 1.1 §17.4).

A function here reads the texts of its arguments and makes no rdflib terms; it is called once for each distinct choice
of arguments. It takes the usual ones, strings without a tag for example, and says `ASK` of others: of these
`spaseq.gpm.functions` gives the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import Identifier

from spaseq.gpm import regex as expressions
from spaseq.gpm.columnar.table import Space
from spaseq.watch import made_text

__all__ = ["ASK", "ERROR", "values_of"]

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_STRING: Final = f"<{_XSD}string>"
_TAGGED: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"
_WHOLE: Final = re.compile(r'"([+-]?[0-9]{1,18})"\^\^<http://www\.w3\.org/2001/XMLSchema#integer>')
_TIME: Final = re.compile(
    r'"([0-9]{4})-([0-9]{2})-([0-9]{2})T([01][0-9]|2[0-3]):([0-9]{2}):[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})?'
    r'"\^\^<http://www\.w3\.org/2001/XMLSchema#dateTime>'
)

ASK: Final = object()
"""In place of a result: it is not said here."""
ERROR: Final = object()
"""In place of a result: it is an error."""
_Function = Callable[..., Any]
"""Of the keys of its arguments; the key of a term, a truth value, `ASK` or `ERROR`."""


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
    return f'"{key[1:-1]}"' if key[0] == "<" else ERROR


def _lang(key: str) -> Any:
    if key[0] != '"':
        return ERROR
    if key[-1] == '"':
        return '""'
    suffix = key[key.rindex('"') + 1 :]
    return _plain(suffix[1:] if suffix[0] == "@" else "")


def _datatype(key: str) -> Any:
    if key[0] != '"':
        return ERROR
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
}
"""By name: what rdflib calls the arguments, in order, the last ones optional; and the function."""
_TIMES: Final = frozenset({"YEAR", "MONTH", "DAY", "HOURS", "MINUTES"})


def values_of(name: str, handle: CompValue) -> Callable[[list[np.ndarray], Space], list[Any]] | None:
    """The function that gives the values of a built-in function for rows of arguments, of which each row binds all:
    keys of terms, truth values, `ASK` or `ERROR`. None if there is none here. `handle` is rdflib's expression."""
    name = name.removeprefix("Builtin_")
    given = tuple(n for n, value in handle.items() if isinstance(value, (Identifier, CompValue)))
    if name == "CONCAT" and isinstance(dict.get(handle, "arg"), list):
        return _joined
    if name == "REGEX" and given in (("text", "pattern"), ("text", "pattern", "flags")):
        return _found
    if name not in _FUNCTIONS or given != _FUNCTIONS[name][0][: len(given)] or not given:
        return None
    if name != "SUBSTR" and len(given) < len(_FUNCTIONS[name][0]):
        return None
    function, times = _FUNCTIONS[name][1], name in _TIMES

    def values(arguments: list[np.ndarray], space: Space) -> list[Any]:
        held = (
            space.literals().has_whole[arguments[0]].tolist() if times else None
        )  # a time of such a form that is none
        found = []
        for place, keys in enumerate(zip(*(_keys(column, space) for column in arguments), strict=True)):
            if held is not None and not held[place]:
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
    return [
        space.cased_key(number) if key is None else key.decode()
        for number, key in zip(numbers.tolist(), space.keys(numbers), strict=True)
    ]


def _joined(arguments: list[np.ndarray], space: Space) -> list[Any]:
    """CONCAT of strings without tags."""
    rows = zip(*(_keys(column, space) for column in arguments), strict=True)
    return [_one_of(keys) if all(key[0] == key[-1] == '"' for key in keys) else ASK for keys in rows]


def _one_of(keys: Sequence[str]) -> str:
    text = "".join([key[1:-1] for key in keys])
    made_text(len(text))
    return _plain(text)


def _found(arguments: list[np.ndarray], space: Space) -> list[Any]:
    """REGEX: each pattern is searched in all of its texts at once."""
    texts, *others = (_keys(column, space) for column in arguments)
    found: list[Any] = [ASK] * len(texts)
    by_pattern: dict[tuple[str, ...], list[int]] = {}
    for place, pattern in enumerate(zip(*others, strict=True)):
        if all(key[0] == key[-1] == '"' for key in (texts[place], *pattern)):
            by_pattern.setdefault(pattern, []).append(place)
    for pattern, places in by_pattern.items():
        flags = _text(pattern[1]) if len(pattern) > 1 else ""
        try:
            made = expressions.pattern_of(_text(pattern[0]), flags)
            answers: Sequence[Any] = expressions.found_in(made, [_text(texts[place]) for place in places])
        except SPARQLError:
            answers = [ERROR] * len(places)
        for place, answer in zip(places, answers, strict=True):
            found[place] = answer
    return found
