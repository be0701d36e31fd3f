"""Random SPAseq queries with AFTER MATCH or FIRST, and with sequences in parentheses."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace

from tests.support import oracle_spaseq_text, strategies
from tests.support.strategies import SpaseqCase

_RULES = ("PAST LAST EVENT", "PAST LAST EVENT", "TO NEXT EVENT", "TO FIRST", "TO LAST", "")


def spaseq_after_case(rng: random.Random) -> SpaseqCase:
    """A query with AFTER MATCH, or `SELECT FIRST`."""
    case = strategies.spaseq_case(rng)
    while strategies.ends_with_negation(case.sequence):
        case = strategies.spaseq_case(rng)
    return with_after(rng, case)


def with_after(rng: random.Random, case: SpaseqCase) -> SpaseqCase:
    """The query with a rule for what a match discards, of a GPM that is not negated if it names one."""
    rule = rng.choice(_RULES)
    if not rule:
        return replace(case, select=f"FIRST {case.select}")
    taking = re.findall(r"[A-Z](?!!)", re.sub(r"\([^()]*\)!", "", case.sequence))
    name = f" {rng.choice(taking)}" if rule in ("TO FIRST", "TO LAST") else ""
    return replace(case, clauses=f"{case.clauses} AFTER MATCH SKIP {rule}{name}".strip())


def smaller_sequences(case: SpaseqCase) -> Iterator[SpaseqCase]:
    """The same with a part less, as the oracle reads it."""
    for smaller in strategies.smaller_spaseq(case):
        try:
            query = oracle_spaseq_text.read(smaller.text)
        except (ValueError, KeyError):
            continue
        named = query.after[1] if query.after else ""
        if not named or re.search(rf"\b{named}\b", smaller.sequence):
            yield smaller
