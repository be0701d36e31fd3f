"""`spaseq.compare`: proofs are never contradicted by streams, and every witness is one."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from rdflib import XSD, Literal, URIRef

import spaseq
from spaseq.cli.main import main
from spaseq.core.containment.result import Relation
from spaseq.gpm.containment.implied import implies
from spaseq.language import containment
from spaseq.language.containment import compare
from tests.support import strategies
from tests.support.sizes import some

EQUAL, LESS, MORE = Relation.EQUIVALENT, Relation.NEW_IN_OLD, Relation.OLD_IN_NEW
_A = "?h :pow ?p . FILTER (?p > 20)"


def _query(sequence: str = "A : B", a: str = _A, b: str = "?h :tmp ?t", clauses: str = "", select: str = "?h") -> str:
    return (
        f"PREFIX : <http://x/> SELECT {select} {clauses} FROM STREAM S <http://s/1> "
        f"WHERE {{ SEQ ({sequence}) DEFINE GPM A ON S {{ {a} }} DEFINE GPM B ON S {{ {b} }} }}"
    )


_TWO = (
    "PREFIX : <http://x/> SELECT ?h ?u WITHIN 6 SECONDS SLIDING FROM STREAM S <http://s/1> FROM STREAM T <http://s/2> "
    "WHERE { SEQ (A : B) DEFINE GPM A ON S { ?h :pow ?p } DEFINE GPM B ON T { ?h :tmp ?u } }"
)


@pytest.mark.parametrize(
    ("old", "new", "relation"),
    [
        (_query(), _query().replace("PREFIX : ", "PREFIX y: ").replace(" :", " y:").replace("A y: B", "A : B"), EQUAL),
        (_query(), _query(a=_A.replace("20", "30")), LESS),
        (_query(), _query(a=_A.replace("> 20", ">= 20.0")), MORE),
        pytest.param(_query(), _query(a=_A.replace("?p > 20", "20 < ?p && ?p < 100")), LESS, marks=pytest.mark.slow),
        pytest.param(
            _query(clauses="WITHIN 10 MINUTES SLIDING"),
            _query(clauses="WITHIN 5 MINUTES SLIDING"),
            LESS,
            marks=pytest.mark.slow,
        ),
        (_query(clauses="WITHIN 10 MINUTES"), _query(clauses="WITHIN 5 MINUTES"), LESS),
        (_query(clauses="WITHIN 10 MINUTES"), _query(clauses="WITHIN 10 MINUTES SLIDING"), MORE),
        (_query("A ; B"), _query("A ; B"), EQUAL),
        (_TWO, _TWO.replace("WITHIN 6", "WITHIN 5"), LESS),
        (_query("A & B"), _query("A & B", b="?h :tmp ?t FILTER (?t < 5)"), LESS),
    ],
)
def test_a_relation(old: str, new: str, relation: Relation) -> None:
    found = compare(old, new)
    assert found.relation is relation, found
    for witness in (found.only_old, found.only_new, found.both):
        if witness is not None:
            assert _reported_by(witness, old, new) == witness.reported_by


def _reported_by(witness: Any, old: str, new: str) -> str:
    """The query that reports the match of a witness, pushed event by event."""
    found = []
    for text in (old, new):
        session = spaseq.compile(text).open()
        matches = []
        for row in witness.rows:
            matches += session.push(row["graph"], time=row["time"], stream=row["stream"])
        matches += session.close()
        terms = [(m.start, m.end, tuple(m.positions), {str(n): t.n3() for n, t in m.bindings.items()}) for m in matches]
        found.append(tuple(witness.match.values()) in terms)
    return {(True, False): "old", (False, True): "new", (True, True): "both"}.get((found[0], found[1]), "none")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (_query("A ; B"), _query("A ; B", a=_A.replace("20", "30")), "waits for the next instant"),
        (_query(), _query(clauses="PARTITION BY (?h)"), "PARTITION BY"),
        (_query(), _query(b="?h :tmp ?u"), "their graph patterns"),
        (_query(), _query().replace("s/1", "s/2"), "different streams"),
        (_query(b="GRAPH <urn:k> { ?h :in ?t } ?h :tmp ?u"), _query(b="?h :tmp ?u"), "background knowledge"),
        (
            _query(a=_A.replace("20", "RAND()")),
            _query(a=_A.replace("20", "RAND()")),
            "the value of RAND is another one",
        ),
        (_query(select="(UUID() AS ?u)"), _query(select="(UUID() AS ?u)"), "the value of UUID is another one"),
    ],
)
def test_what_is_not_proved_says_why(old: str, new: str, reason: str) -> None:
    found = compare(old, new, streams=10)
    assert reason in found.reason
    assert found.relation in (Relation.UNDECIDED, Relation.OVERLAPPING)


@pytest.mark.parametrize(
    ("given", "wanted", "number"),
    [
        ("?p >= 9007199254740993", "?p > 9007199254740992", "9007199254740992"),
        ("?p >= 1.0000000000000000001", "?p > 1", "1.0"),
        ("?p <= 0.99999999999999999999", "?p < 1", "1.0"),
    ],
)
def test_limits_that_are_one_double_prove_nothing(given: str, wanted: str, number: str) -> None:
    """Decimals are promoted to double, so the given condition is true of the number and the wanted one is not."""
    old, new = (_query("A", a=f"?h :pow ?p FILTER ({condition})") for condition in (f"{given} && ?p != 5", wanted))
    triple = URIRef("http://x/h"), URIRef("http://x/pow"), Literal(number, datatype=XSD.double)
    streams = {"http://s/1": [(0, [triple])]}
    assert [len(list(spaseq.compile(text).run(streams))) for text in (old, new)] == [1, 0]
    assert compare(old, new).relation in (Relation.UNDECIDED, Relation.OVERLAPPING)


@pytest.mark.parametrize(
    ("given", "wanted", "implied"),
    [
        ("?p >= 3", "?p > 2", True),
        ("?p > 2.5", "?p >= 2.5", True),
        ("?p <= 1", "?p < 2", True),
        ("?p > 1.0000000000000000001", "?p > 1", True),
        ("?p > 1.0000000000000000001", "?p >= 1", True),
        ("?p >= 1.0000000000000000001", "?p >= 1", True),
        ("?p >= 1.0000000000000000001", "?p > 1", False),
        ("?p <= 1" + "0" * 400, "?p < 2" + "0" * 400, False),
        ("?p >= 2", "?p > 2", False),
        ("?p > 2", "?p > 3", False),
    ],
)
def test_what_a_condition_implies(given: str, wanted: str, implied: bool) -> None:
    old, new = (_query("A", a=f"?h :pow ?p FILTER ({condition})") for condition in (given, wanted))
    (one,), (other,) = (spaseq.compile(text).checked.patterns["A"].local for text in (old, new))
    assert implies(one, other) is implied


def _check(seed: int) -> Relation:
    """A random query and a simpler one: no stream of theirs contradicts the relation."""
    rng = random.Random(seed)
    case = strategies.spaseq_case(rng)
    simpler = [c for c in itertools.islice(strategies.smaller_spaseq(case), 30) if c.text != case.text]
    other = rng.choice([case, *simpler])
    try:
        queries = spaseq.compile(case.text), spaseq.compile(other.text)
    except spaseq.QueryError:
        return Relation.UNDECIDED
    found = compare(*queries, streams=0)
    for rows in containment._random_streams(*queries, 12):
        try:
            old, new = (containment._matches(query, rows, None) for query in queries)
        except spaseq.SpaseqError:  # background knowledge, which is not given here
            continue
        excluded: Any = {EQUAL: old.keys() ^ new.keys()}.get(found.relation, set())
        assert not excluded, (case.text, other.text, rows)
        if "more conditions" in found.reason:
            either = old.keys() - new.keys(), new.keys() - old.keys()
            assert not all(either), (case.text, other.text, rows)
    return found.relation


def test_random_pairs() -> None:
    assert EQUAL in set(map(_check, range(some(12))))


@pytest.mark.slow
def test_many_random_pairs() -> None:
    assert EQUAL in set(map(_check, range(12, 1_000)))


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", _query(), _query(a=_A.replace("20", "30"))]) == 5
    assert capsys.readouterr().out.startswith(
        "new contained in old: one query has more conditions or a narrower window\n"
    )
    assert main(["compare", _query("A ; B"), _query("A ; B"), "--streams", "1"]) == 0
