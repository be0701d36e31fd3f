"""Conditions of FILTERs that imply each other: `?p > 30` holds only if `?p > 20` does.

A double is compared with the double that is nearest to a limit. So `?p >= 2` does not imply `?p > 1.9999999999999999`,
both limits of which are one double.
"""

from __future__ import annotations

import operator
from decimal import Decimal
from typing import Final

from rdflib.namespace import XSD
from rdflib.term import Literal, Variable

from spaseq.gpm import algebra
from spaseq.gpm.functions.numbers import as_double
from spaseq.gpm.pattern import Condition

_MIRROR: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def implies(given: Condition, wanted: Condition) -> bool:
    """True if a condition certainly holds whenever `given` does: it is the same, or compares the same variable with a
    number that is no harder to pass."""
    if given == wanted:
        return True
    one, two = _limit_of(given.expression), _limit_of(wanted.expression)
    if one is None or two is None or one[0] != two[0] or one[1][0] != two[1][0]:
        return False
    (_, symbol, limit), (_, other, least) = one, two
    if limit == least:
        return symbol == other or other.endswith("=")
    further = operator.gt if symbol[0] == ">" else operator.lt
    strict = symbol.endswith("=") and not other.endswith("=")
    return further(limit, least) and (not strict or further(as_double(limit), as_double(least)))


def _limit_of(node: algebra.Expression) -> tuple[str, str, Decimal] | None:
    """(variable, <, <=, > or >=, number) of a comparison of a variable with an integer or a decimal; else None."""
    match node:
        case algebra.Call(symbol, (algebra.Term(Variable() as name), algebra.Term(Literal() as limit))):
            pass
        case algebra.Call(symbol, (algebra.Term(Literal() as limit), algebra.Term(Variable() as name))):
            symbol = _MIRROR.get(symbol, "")
        case _:
            return None
    if symbol not in _MIRROR or limit.datatype not in (XSD.integer, XSD.decimal) or limit.value is None:
        return None
    return str(name), symbol, Decimal(limit.value)
