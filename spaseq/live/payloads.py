"""The events of messages: a payload is bytes or text, and a decoder gives its events."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from spaseq.core.errors import EventError
from spaseq.core.measure import shorten

ID: Final = "match_id"
"""The member of a record that holds its id."""
Decode = Callable[[bytes], list[Any]]
"""Gives the events of a payload. Raises `EventError` for one that it cannot read."""
OnBad = Callable[[bytes, EventError], object]
"""Called with a payload that cannot be read, and the error."""


def json_lines(payload: bytes) -> list[dict[str, Any]]:
    """The events of a payload of JSON Lines, in UTF-8: an object a line. Empty lines count for nothing.

    >>> json_lines(b'{"type": "A"}')
    [{'type': 'A'}]
    """
    found = []
    for number, line in enumerate(payload.splitlines(), 1):
        if line.strip():
            try:
                event = json.loads(line)
            except ValueError as error:  # of UTF-8, too
                raise EventError(f"line {number} is no JSON: {error}", hint=_excerpt(line)) from None
            if not isinstance(event, dict):
                raise EventError(f"line {number} is no object of JSON, so it is no event", hint=_excerpt(line))
            found.append(event)
    return found


def _excerpt(line: bytes) -> str:
    return f"it is {shorten(line.decode('utf-8', 'replace'), 60)!r}"


def events_of(payload: bytes | str, decode: Decode, on_bad: OnBad | None, place: str) -> list[Any]:
    """The events of a payload; none if it cannot be read and `on_bad` takes it, else an `EventError` that names its
    place."""
    raw = payload.encode() if isinstance(payload, str) else payload
    try:
        return decode(raw)
    except EventError as error:
        named = error
        if not error.source:
            named = EventError(error.problem, source=place, hint=error.hint)
        if on_bad is None:
            raise named from None
        on_bad(raw, named)
        return []


def json_bytes(record: Any) -> bytes:
    """A record as a line of JSON, without its end. What JSON has no form for becomes a text."""
    return json.dumps(record, ensure_ascii=False, default=str).encode()
