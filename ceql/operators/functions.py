"""The functions of CEQL: a row for each, those of single values and aggregates over the events of a variable.

A row is all that a function takes. By it, calls are parsed, printed, checked, and evaluated on batches, on pushed
events and in guards. A function that gives a truth value may stand for a condition.

A function is NULL if an argument is, as in SQL; the rows with `takes_null` say what they do instead.
"""

from __future__ import annotations

from typing import Final

from ceql.operators.aggregates import AGGREGATES
from ceql.operators.casts import CASTS
from ceql.operators.choices import CHOICES
from ceql.operators.function import Function, kind_words, plural
from ceql.operators.numbers import NUMBERS
from ceql.operators.sets import SETS
from ceql.operators.texts import TEXTS
from ceql.operators.times import TIMES

__all__ = ["FUNCTIONS", "Function", "kind_words", "plural"]

FUNCTIONS: Final = {row.name: row for row in (*AGGREGATES, *CHOICES, *TEXTS, *NUMBERS, *TIMES, *CASTS, *SETS)}
