"""The words for kinds of values, which CAST and the columns of CSV files share; and the texts of truth values.

=========  ====================================================================
kind       other words
=========  ====================================================================
NUMBER     DOUBLE, FLOAT, REAL, DECIMAL, NUMERIC
INTEGER    INT, BIGINT: whole numbers within 64 bits
TEXT       VARCHAR, STRING
BOOLEAN    BOOL
TIMESTAMP  DATETIME
=========  ====================================================================
"""

from __future__ import annotations

from typing import Final

from spaseq.core.slips import did_you_mean

_NAMES: Final = {
    "NUMBER": "DOUBLE FLOAT REAL DECIMAL NUMERIC",
    "INTEGER": "INT BIGINT",
    "TEXT": "VARCHAR STRING",
    "BOOLEAN": "BOOL",
    "TIMESTAMP": "DATETIME",
}
KINDS: Final = {name: kind for kind, others in _NAMES.items() for name in (kind, *others.split())}
"""The kind that each word means, in capitals."""
TRUTHS: Final = {"true": True, "t": True, "yes": True, "1": True, "false": False, "f": False, "no": False, "0": False}
"""The truth value of a text, in small letters."""


def kind_hint(word: str) -> str:
    """The hint for a word that names no kind."""
    return did_you_mean(word.upper(), KINDS) or f"kinds are {', '.join(_NAMES)}"
