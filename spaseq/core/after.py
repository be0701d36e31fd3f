"""AFTER MATCH as both languages write it: its rules, and hints for slips."""

from __future__ import annotations

import enum
from typing import Final


class AfterText(enum.Enum):
    """The rule for the matches, complete or partial, that a match discards, by the event at which they began.

    The names but `NO_SKIP` are those of `spaseq.core.engine.After`.
    """

    PAST_LAST = "SKIP PAST LAST EVENT"
    TO_NEXT = "SKIP TO NEXT EVENT"
    TO_FIRST = "SKIP TO FIRST"
    TO_LAST = "SKIP TO LAST"
    NO_SKIP = "NO SKIP"


AFTER_SLIPS: Final = (
    (
        r"AFTER\s+MATCH\s+SKIP\s+TO",
        r"\w",
        "write SKIP TO NEXT EVENT, SKIP TO FIRST x or SKIP TO LAST x; SQL's SKIP TO x is SKIP TO LAST x",
    ),
    (r"AFTER", r"(?:SKIP|NO)\b", "write AFTER MATCH SKIP PAST LAST EVENT, or AFTER MATCH NO SKIP"),
    (r"", r"SKIP\s+(?:PAST|TO)\b", "write AFTER MATCH before it: AFTER MATCH SKIP PAST LAST EVENT"),
    (
        r"",
        r"(?:ONE\s+ROW|ALL\s+ROWS)\s+PER\s+MATCH\b",
        "a match is one result, with its positions: leave PER MATCH out",
    ),
)
"""Patterns of the text before and behind a place that cannot be read, and the hint."""
