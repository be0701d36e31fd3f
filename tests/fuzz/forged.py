"""Inputs that hold what some program might run, unpickle, expand or take for its own: in events, queries and options.

They are inputs of other kinds, whose values are replaced. What comes of them must be what comes of any value there:
matches, or an error that quotes it. The check (`tests.fuzz.checks`) runs each as its own kind, sees that nothing was
run, and sends each error through the text of an exception of Spark's and back.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from tests.fuzz import kinds

__all__ = ["MADE", "TEXTS", "draw"]

MADE: Final = "made"
"""The folder that the texts would make."""


def _body(value: Any) -> str:
    return b64encode(json.dumps(value).encode()).decode()


_PICKLE: Final = b64encode(b"cos\nmkdir\n(S'%s'\ntR." % MADE.encode()).decode()
_EVENT: Final = {"problem": "forged", "source": "", "record": 1, "counted": "", "attribute": "", "hint": ""}
TEXTS: Final = (
    f"spaseq-error={_PICKLE}.",
    f"x\nspaseq-error={_PICKLE}.\n",
    f"spaseq-error-{'0' * 32}={_PICKLE}.",
    f"spaseq-error-{'0123456789abcdef' * 2}={_body(['EventError', _EVENT])}.",
    f"spaseq-error={_body(['InternalError', 'forged'])}.",
    f"spaseq-error-{'f' * 32}=",
    "spaseq-error-",
    _PICKLE,
    f"__import__('os').mkdir('{MADE}')",
    f"'+__import__('os').mkdir('{MADE}')+'",
    f'"] or __import__("os").mkdir("{MADE}") or get["',
    f"\n    __import__('os').mkdir('{MADE}')",
    f"!!python/object/apply:os.mkdir ['{MADE}']",
    f"$(mkdir {MADE})",
    f"; mkdir {MADE}",
    f"| mkdir {MADE}",
    f"-o{MADE}",
    "{0.__class__}",
    "{}",
    "%s%n%(x)s",
    "${env:HOME}",
    "\\1\\g<0>",
    "Python worker failed to connect back",
    ", spaseq_row",
    "\x00",
    "\u2028'\"`\\",
    "\U0001f600" * 3,
    "e" * 500,
)
_BASES: Final = ("csv", "json lines", "n-quads", "n-triples", "trig", "knowledge", "options", "streams file",
                 "ceql query", "spaseq query", "ceql roads", "schema")  # fmt: skip
_QUOTED: Final = re.compile(r'"[^"\n]*"')
_IRI: Final = re.compile(r"<[^<>\s]*>")
_IN_QUERY: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_IN_GRAVES: Final = re.compile(r"(?<=\[)\w+|(?<=\.)[a-z]+\b(?= *[<>=!])")


def draw(rng: random.Random) -> kinds.Input:
    """An input of another kind with some of these texts in it."""
    while True:
        base = kinds.KINDS[rng.choice(_BASES)](rng)
        files = {name: _planted(name, data, rng) for name, data in base.files.items()}
        arguments = list(base.arguments)
        values = [at for at, word in enumerate(arguments) if at and arguments[at - 1] in _OPTIONS]
        if values and rng.random() < 0.3:
            arguments[rng.choice(values)] = rng.choice(TEXTS).replace("\x00", "")
        if (files, arguments) != (dict(base.files), list(base.arguments)):
            return kinds.Input("forged", (base.how, *arguments), files, base.stdin)


_OPTIONS: Final = ("--time", "--time-unit", "--type-column", "--late", "--lateness", "--ties", "--event-by", "--format",
                   "--malformed", "--set", "--interval", "--time-from")  # fmt: skip


def _planted(name: str, data: bytes, rng: random.Random) -> bytes:
    """The file with some of its values replaced."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    if name.endswith("csv"):
        return _in_cells(text, rng).encode()
    if name == "events":  # an event without a type is an error if it is pushed alone
        return json.dumps([_of_event(event, rng) for event in json.loads(text)]).encode()
    if name.endswith("jsonl"):
        return _replaced(_QUOTED, text, rng, json.dumps).encode()
    if name.startswith("query") and rng.random() < 0.5:
        return _replaced(_IN_QUERY, _replaced(_IN_GRAVES, text, rng, _graves), rng, _in_query).encode()
    if name.endswith(("nq", "nt", "trig", "ttl", "n3")):
        text = _replaced(_IRI, text, rng, _iri) if rng.random() < 0.2 else text
        return _replaced(_QUOTED, text, rng, _literal).encode()
    return data


def _replaced(pattern: re.Pattern[str], text: str, rng: random.Random, written: Callable[[str], str]) -> str:
    """Some of what the pattern finds, replaced."""
    share = rng.choice((0.02, 0.1, 0.5))
    return pattern.sub(lambda found: written(rng.choice(TEXTS)) if rng.random() < share else found[0], text)


def _of_event(event: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    return {
        name: rng.choice(TEXTS) if isinstance(value, str) and rng.random() < 0.2 else value
        for name, value in event.items()
    }


def _in_cells(text: str, rng: random.Random) -> str:
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        return text
    share, first = rng.choice((0.02, 0.1, 0.5)), rng.random() < 0.8
    out = io.StringIO()
    for number, row in enumerate(rows):
        kept = first and number == 0
        cells = [rng.choice(TEXTS) if not kept and rng.random() < share else cell for cell in row]
        csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\\u0000", "\\u0001")


def _iri(text: str) -> str:
    return "<http://e/" + "".join(c if c.isalnum() or c in "-=._~" else f"%{ord(c) & 255:02X}" for c in text) + ">"


def _in_query(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _graves(text: str) -> str:
    return "`" + text.replace("`", "").replace("\n", " ") + "`"
