"""Conditions of FILTERs that imply each other: `?p > 30` holds only if `?p > 20` does."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from rdflib.namespace import XSD
from rdflib.term import Literal, Variable

from spaseq.gpm import algebra
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
    further = limit > least if symbol[0] == ">" else limit < least
    return further or (limit == least and (symbol == other or other.endswith("=")))


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
