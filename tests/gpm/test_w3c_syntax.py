"""The syntax tests of the W3C's SPARQL 1.0 and 1.1 suites: what is a query, and what is none.

Each is asked as a GPM: its SELECT as a subquery, else its graph pattern; those that are SELECT of one graph also as a
query of SPAseq, with its own result clauses. The suites lie outside the project; where they are not there, all is
skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from rdflib import RDF, Graph

import spaseq
from spaseq.language.syntax.scan import mask
from tests.gpm.test_w3c import FORM, MF, OTHER, STREAM, SUITES, _path, spaseq_text
from tests.support.data import cases_of

NAMED = re.compile(r"\bGRAPH\b", re.IGNORECASE)
KINDS = {"PositiveSyntaxTest": True, "PositiveSyntaxTest11": True} | {
    "NegativeSyntaxTest": False,
    "NegativeSyntaxTest11": False,
}
ELSEWHERE = {
    "sparql11/construct/constructwhere05": "CONSTRUCT WHERE { … } is no form of SPAseq; as a graph pattern it is right",
    "sparql11/construct/constructwhere06": "CONSTRUCT WHERE { … } is no form of SPAseq; as a graph pattern it is right",
}
"""Negative tests that are about what SPAseq does not have."""
REFUSED = {
    **dict.fromkeys(
        (f"sparql10/syntax-sparql2/syntax-dataset-0{n}" for n in range(1, 5)), "FROM: streams are named by FROM STREAM"
    ),
    **dict.fromkeys((f"sparql11/syntax-fed/test_{n}" for n in range(1, 4)), "SERVICE is refused by name"),
    **dict.fromkeys(
        (f"sparql11/syntax-query/test_{n}" for n in (1, 3, 4)),
        "an expression over a variable that nothing binds is refused as a slip",
    ),
}
"""Positive tests that SPAseq refuses on purpose, and why."""


class Case(NamedTuple):
    name: str
    query: Path
    positive: bool


def _cases() -> Iterator[Case]:
    for manifest in sorted(SUITES.glob("sparql1[01]/*/manifest.ttl")):
        graph = Graph().parse(manifest, publicID=manifest.as_uri())
        for test, kind in sorted(graph.subject_objects(RDF.type)):
            positive = KINDS.get(str(kind).rpartition("#")[2])
            action = graph.value(test, MF.action)
            if positive is not None and str(action).endswith(".rq"):
                name = f"{manifest.parent.parent.name}/{manifest.parent.name}/{str(test).rpartition('#')[2]}"
                yield Case(name, _path(action), positive)


CASES = list(_cases()) if SUITES.is_dir() else []


def as_pattern(text: str) -> str:
    """A SPARQL query as a SPAseq query whose GPM is the whole SELECT, or the graph pattern of another form."""
    masked = mask(text)
    form = FORM.search(masked)
    assert form is not None
    group = "{ { " + text[form.start() :] + "\n} }"
    if form[0].upper() != "SELECT":
        where = re.compile(r"\bWHERE\b", re.IGNORECASE).search(masked, form.end())
        start = masked.find("{", where.end() if where else form.end())
        if start < 0 and form[0].upper() != "DESCRIBE":
            return text
        group = text[start : _closing(masked, start)] if start >= 0 else "{ }"
    head = f"ASK FROM STREAM S <{STREAM}> WHERE {{ SEQ (A)\nDEFINE GPM A ON S {group} }}"
    return text[: form.start()] + head


def _closing(masked: str, start: int) -> int:
    depth = 0
    for end in range(start, len(masked)):
        depth += {"{": 1, "}": -1}.get(masked[end], 0)
        if depth == 0:
            return end + 1
    return len(masked)


def is_one_select(text: str) -> bool:
    """Whether the query may be one of SPAseq with the clauses of SPAseq."""
    try:
        masked = mask(text)
    except spaseq.QueryError:
        return False
    form = FORM.search(masked)
    plain = not OTHER.search(masked) and not NAMED.search(masked)
    return plain and form is not None and form[0].upper() == "SELECT" and masked.count("{") == masked.count("}") > 0


def _param(case: Case) -> object:
    return pytest.param(case, id=case.name)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases_of(SUITES, [_param(c) for c in CASES if c.positive]))
def test_what_is_right_is_taken(case: Case) -> None:
    text = case.query.read_text("utf-8")
    if case.name in REFUSED:
        with pytest.raises(spaseq.QueryError):
            spaseq.compile(as_pattern(text))
    else:
        spaseq.compile(as_pattern(text))


@pytest.mark.slow
@pytest.mark.parametrize("case", cases_of(SUITES, [_param(c) for c in CASES if not c.positive]))
def test_what_is_wrong_is_refused_with_its_place(case: Case) -> None:
    text = case.query.read_text("utf-8")
    if case.name in ELSEWHERE:
        spaseq.compile(as_pattern(text))
        return
    _refused(lambda: as_pattern(text))
    if is_one_select(text):
        _refused(lambda: spaseq_text(text, case.query.as_uri()))


def _refused(query: Callable[[], str]) -> None:
    with pytest.raises(spaseq.QueryError) as caught:
        spaseq.compile(query())
    assert caught.value.span is not None
