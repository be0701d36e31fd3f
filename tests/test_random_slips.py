"""Random slips in right queries: each compiles, or is one error of ours that says where. By itself:

SPASEQ_RANDOM=20000 python -m pytest -m random tests/test_random_slips.py
"""

from __future__ import annotations

import os
import random
import re

import pytest

import ceql
import spaseq
from spaseq.core.errors import BudgetExceeded, QueryError
from tests.support import harness

CASES = harness.load_all()
ROUNDS = int(os.environ.get("SPASEQ_RANDOM", "2000")) // 2
TOKEN = re.compile(r"""\s+|\w+|'[^']*'|"[^"]*"|<[^<>\s]*>|.""", re.DOTALL)


def slipped(query: str, rng: random.Random) -> str:
    """`query` with up to three of its tokens left out, written again elsewhere, or in each other's place."""
    tokens = TOKEN.findall(query)
    for _ in range(rng.randint(1, 3)):
        here, there = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        match rng.choice(["leave", "write", "swap"]):
            case "leave" if len(tokens) > 1:
                del tokens[here]
            case "write":
                tokens.insert(here, tokens[there])
            case _:
                tokens[here], tokens[there] = tokens[there], tokens[here]
    return "".join(tokens)


@pytest.mark.random
@pytest.mark.parametrize(("language", "module"), [("ceql", ceql), ("spaseq", spaseq)])
def test_a_slip_is_a_query_or_an_error_with_its_place(language: str, module: object) -> None:
    rng = random.Random(7)
    queries = [case.query for case in CASES if case.is_spaseq is (language == "spaseq")]
    for _ in range(ROUNDS):
        text = slipped(rng.choice(queries), rng)
        try:
            module.compile(text)  # type: ignore[attr-defined]
        except QueryError as error:
            assert error.span is not None, text
        except BudgetExceeded:
            pass
