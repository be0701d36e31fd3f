"""Functions of the user in SPAseq, by IRI: against Python, against SPARQL's own, on every road."""

from __future__ import annotations

import datetime
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdflib import BNode, Literal, URIRef, Variable
from rdflib.namespace import XSD
from rdflib.plugins.sparql.operators import register_custom_function, unregister_custom_function
from rdflib.plugins.sparql.sparql import SPARQLError

import spaseq
from spaseq.cli.main import main as cli
from spaseq.core.errors import OptionError
from spaseq.gpm.functions import own

E = "http://example.org/"
AT = "http://www.w3.org/ns/prov#generatedAtTime"
KB = f"<{E}a0> <{E}limit> 3 . <{E}a1> <{E}limit> 5 . <{E}a2> <{E}limit> 1 ."
Roads = Callable[..., list[Counter[Any]]]


def query(pattern: str, clauses: str = "?x ?y ?m", within: str = "", rest: str = "") -> str:
    return (f"PREFIX : <{E}> SELECT {clauses} FROM STREAM S <{E}S> {within} WHERE {{ SEQ (A) "
            f"DEFINE GPM A ON S {{ {pattern} }} }} {rest}")  # fmt: skip


def graph(time: int, *facts: tuple[str, str, Any]) -> spaseq.GraphEvent:
    return spaseq.GraphEvent(f"{E}S", time, tuple((URIRef(E + s), URIRef(E + p), o) for s, p, o in facts))


def listed(matches: Any) -> Counter[Any]:
    """Matches as a multiset: times, and the terms of each variable."""
    return Counter((match.times, tuple(sorted(match.bindings.items()))) for match in matches)


@pytest.fixture
def roads(tmp_path: Path) -> Iterator[Roads]:
    kb = tmp_path / "kb.ttl"
    kb.write_text(KB)
    number = iter(range(10_000))

    def run(text: str, events: list[spaseq.GraphEvent], *, known: bool = False) -> list[Counter[Any]]:
        """The matches of a query on each road: files as columns and by the reference, pushed singly, in two pieces, and
        behind a snapshot."""
        made = spaseq.compile(text)
        words: dict[str, Any] = {"kb": {f"{E}kb": str(kb)}} if known else {}
        path = tmp_path / f"{next(number)}.nq"
        path.write_text("".join(_lines(events)))
        found = [listed(made.run({"S": str(path)}, reference=r, time_unit="ns", **words)) for r in (False, True)]
        cut = len(events) // 2
        for pieces in ([[event] for event in events], [events[:cut], events[cut:]]):
            with made.open(**words) as session:
                several = [match for piece in pieces for match in session.push(piece)]
            found.append(listed([*several, *session.rest]))
        with made.open(**words) as session:
            several = session.push(events[:cut])
            state = session.snapshot()
        with made.open(state, **words) as session:
            several += session.push(events[cut:])
        return [*found, listed([*several, *session.rest])]

    yield run


def _lines(events: list[spaseq.GraphEvent]) -> Iterator[str]:
    for event in events:
        name = f"<{E}g{event.time}>"
        yield f'{name} <{AT}> "{event.time}" .\n'
        for s, p, o in event.triples:
            yield f"{s.n3()} {p.n3()} {o.n3()} {name} .\n"


DOWN = Literal("-INF", datatype=XSD.double, normalize=False)
VALUES = (
    Literal(0), Literal(1), Literal(2), Literal(7), Literal(Decimal("1.5")), Literal(2.5), Literal("a"), Literal(""),
    Literal("b", lang="en"), Literal(True), URIRef(f"{E}v"), Literal("x", datatype=XSD.integer),
    Literal(datetime.date(2026, 1, 2)),
)  # fmt: skip


def near(a: Any, b: Any) -> Any:
    """An example of a condition: a bool, None, a term or an exception."""
    one, other = a.toPython(), b.toPython()
    if one == 7:
        return None
    if one == 2:
        return Literal("true" if other == 1 else "false", datatype=XSD.boolean)
    return one + 1 > other


def mix(a: Any, b: Any) -> Any:
    """An example of a value: terms of several kinds, numbers of Python and numpy, None or an exception."""
    if isinstance(a, URIRef):
        return URIRef(f"{E}made")
    if b.value == "a":
        return None
    one, other = a.toPython(), b.toPython()
    if one == 0:
        return np.float64(other / 2)
    if isinstance(other, str):
        return other + "!" if b.language is None else Literal(other.upper(), lang=b.language)
    return one * other


def truth(found: Any) -> bool:
    """The effective boolean value of a result."""
    if isinstance(found, Literal):
        found = found.toPython()
    return bool(found)


def value(function: Any, *terms: Any) -> Any:
    """A result by definition: a term, or None for an error."""
    try:
        found = function(*terms)
    except Exception:
        return None
    found = found.item() if isinstance(found, np.generic) else found
    found = found.normalize() if isinstance(found, Decimal) else found
    return found if found is None or isinstance(found, (Literal, URIRef)) else Literal(found)


@pytest.mark.parametrize("count", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_random_values_as_python_has_them(roads: Roads, count: int) -> None:
    spaseq.register_function(f"{E}near", near)
    spaseq.register_function(f"{E}mix", mix)
    draw, kept, unbound = random.Random(5), 0, 0
    for known in (False, True):
        pattern = "?a :p ?x . ?a :q ?y FILTER (:near(?x, ?y)) BIND (:mix(?x, ?y) AS ?m)"
        limited = "GRAPH <http://example.org/kb> { ?a :limit ?l FILTER (:mix(?l, ?l) < 20) }"
        text = query(f"{pattern} {limited if known else ''}")
        for _ in range(count):
            events, expected = [], Counter[Any]()
            for time in range(draw.randrange(1, 12)):
                facts = {(f"a{draw.randrange(3)}", draw.choice("pq"), draw.choice(VALUES)) for _ in range(9)}
                events.append(graph(time, *facts))
                pairs = ((s, x, y) for s, p, x in facts if p == "p" for t, q, y in facts if (t, q) == (s, "q"))
                rows = set()
                for s, x, y in pairs:
                    if (known and s == "a1") or (held := value(near, x, y)) is None or not truth(held):
                        continue
                    found = value(mix, x, y)
                    row = {"x": x, "y": y} | ({} if found is None else {"m": found})
                    rows.add(tuple(sorted(row.items())))
                    kept, unbound = kept + 1, unbound + (found is None)
                expected.update(((time,), row) for row in rows)
            expected = Counter({((times[0] * 10**9,), row): count for (times, row), count in expected.items()})
            for found in roads(
                text, [spaseq.GraphEvent(e.stream, e.time * 10**9, e.triples) for e in events], known=known
            ):
                assert found == expected
    assert kept > 2 * count and max(1, count // 10) <= unbound < kept


SAME = [
    ("?a :p ?x FILTER (?x + 1 > 3)", "?a :p ?x FILTER (:more(?x, 1) > 3)", "?x"),
    ("?a :p ?x FILTER (?x > 2 || ?x / 0 > 1)", "?a :p ?x FILTER (:greater(?x, 2) || :never(?x))", "?x"),
    ("?a :p ?x OPTIONAL { ?a :q ?y FILTER (?y > ?x) }", "?a :p ?x OPTIONAL { ?a :q ?y FILTER (:greater(?y, ?x)) }",
     "?x ?y"),
    ("?a :p ?x FILTER EXISTS { ?a :q ?y FILTER (?y > ?x) }",
     "?a :p ?x FILTER EXISTS { ?a :q ?y FILTER (:greater(?y, ?x)) }", "?x"),
    ("?a :p ?x", "?a :p ?x", "?x (COALESCE(?x / 0, ?x + 2) AS ?m)", "?x (COALESCE(:never(?x), :more(?x, 2)) AS ?m)"),
    ("?a :p ?x", "?a :p ?x", "?a (SUM(?x + 1) AS ?m)", "?a (SUM(:more(?x, 1)) AS ?m)",
     "GROUP BY ?a HAVING (SUM(?x) + 1 > 2)", "GROUP BY ?a HAVING (:more(SUM(?x), 1) > 2)"),
]  # fmt: skip


@pytest.mark.parametrize("count", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", SAME, ids=lambda case: case[1])
def test_as_sparqls_own_in_every_place(case: tuple[str, ...], count: int, roads: Roads) -> None:
    spaseq.register_function(f"{E}more", lambda a, b: a.toPython() + b.toPython())
    spaseq.register_function(f"{E}greater", lambda a, b: a.toPython() > b.toPython())
    spaseq.register_function(f"{E}never", lambda a: None)
    plain, called, clauses, *others = case
    changed, *rest = others or [clauses]
    draw, some = random.Random(2), 0
    for _ in range(count):
        events = [
            graph(time * 10**9, *((f"a{draw.randrange(3)}", draw.choice("ppq"), Literal(draw.randrange(5)))
                                  for _ in range(6)))
            for time in range(8)
        ]  # fmt: skip
        tails, within = rest or ["", ""], "WITHIN 4 SECONDS" if rest else ""
        expected = roads(query(plain, clauses, within, tails[0]), events)[0]
        for found in roads(query(called, changed, within, tails[1]), events):
            assert found == expected
        some += len(expected)
    assert some


@pytest.mark.parametrize("rest", ["", " WITHIN 3 SECONDS", " WITHIN 3 SECONDS SLIDING", " PARTITION BY (?a)"])
@pytest.mark.parametrize("count", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_conditions_between_gpms(count: int, rest: str, roads: Roads) -> None:
    spaseq.register_function(f"{E}greater", lambda a, b: a.toPython() > b.toPython())
    spaseq.register_function(f"{E}more", lambda a, b: a.toPython() + b.toPython())

    def text(condition: str) -> str:
        gpms = f"DEFINE GPM A ON S {{ ?a :p ?x }} DEFINE GPM B ON S {{ ?a :q ?y FILTER ({condition}) }}"
        return f"PREFIX : <{E}> SELECT ?a ?x ?y FROM STREAM S <{E}S> {rest} WHERE {{ SEQ (A; B) {gpms} }}"

    draw, some = random.Random(3), 0
    for _ in range(count):
        events = [
            graph(time * 10**9, *((f"a{draw.randrange(2)}", draw.choice("pq"), Literal(draw.randrange(4)))
                                  for _ in range(3)))
            for time in range(9)
        ]  # fmt: skip
        for condition, called in (
            ("?y > ?x", ":greater(?y, ?x)"),
            ("?x + 1 < ?y + 0.5", ":more(?x, 1) < :more(?y, 0.5)"),
        ):
            expected = roads(text(condition), events)[0]
            for found in roads(text(called), events):
                assert found == expected
            some += len(expected)
    assert some > count


def test_terms_come_in_and_go_out_as_rdflib_has_them(roads: Roads) -> None:
    seen: list[Any] = []

    def function(*terms: Any) -> Any:
        seen.extend(terms)
        return terms[-1]

    spaseq.register_function(f"{E}last", function)
    node, text = BNode("n"), query("?a :p ?x BIND (:last(:last(1, 'x'^^xsd:string), ?x) AS ?m)", "?x ?m")
    text = f"PREFIX xsd: <{XSD}> " + text
    values = [*VALUES, node]
    for found in roads(text, [graph(time * 10**9, ("a", "p", term)) for time, term in enumerate(values)]):
        for (_, row), count in found.items():
            assert count == 1 and dict(row)["x"] == dict(row)["m"]
        assert sum(found.values()) == len(values)
    assert all(isinstance(term, (Literal, URIRef, BNode)) for term in seen)
    assert {term.value for term in seen if isinstance(term, Literal) and term.datatype == XSD.integer} >= {0, 1, 2, 7}


def matches_with_notes(function: Any, *values: Any) -> tuple[list[dict[str, Any]], list[str]]:
    spaseq.register_function(f"{E}f", function, replace=True)
    made = spaseq.compile(query("?a :p ?x BIND (:f(?x) AS ?m)", "?x ?m"))
    with made.open() as session:
        found = [m for time, term in enumerate(values) for m in session.push(graph(time, ("a", "p", Literal(term))))]
    return [match.bindings for match in [*found, *session.rest]], list(session.notes)


def test_an_exception_is_an_error_and_a_note() -> None:
    found, notes = matches_with_notes(lambda x: 1 / x.toPython(), 2, 0)
    assert found == [{"x": Literal(2), "m": Literal(0.5)}, {"x": Literal(0)}]
    assert notes == [f'<{E}f> raised ZeroDivisionError: division by zero, for ("0"^^<{XSD.integer}>): the call has no '
                     "value, as in SPARQL"]  # fmt: skip
    found, notes = matches_with_notes(lambda x: {x}, 2)
    assert found == [{"x": Literal(2)}] and "gave a set that is no term" in notes[0]


def test_a_function_that_runs_a_query_is_an_error(tmp_path: Path) -> None:
    """It would wait for itself: expressions are evaluated by one thread at a time."""
    inner = spaseq.compile(query("?a :p ?x FILTER (STRLEN(STR(?x)) > 0)", "?x"))
    (tmp_path / "s.nq").write_text("".join(_lines([graph(1, ("a", "p", Literal(2)))])))
    session = inner.open()
    functions = (
        lambda x: inner.run({"S": str(tmp_path / "s.nq")}).count(),
        lambda x: inner.open(),
        lambda x: session.push([graph(time, ("a", "p", x)) for time in range(3)]),
    )
    for function in functions:
        with pytest.raises(OptionError, match="runs a SPAseq query"):
            matches_with_notes(function, 1)


@pytest.mark.parametrize(("gives", "term"), [
    (True, Literal(True)), (10**20, Literal(10**20)), (np.int64(3), Literal(3)),
    (Decimal("1.50"), Literal(Decimal("1.5"))), (datetime.timedelta(hours=1), Literal(datetime.timedelta(hours=1))),
    (float("inf"), Literal("INF", datatype=XSD.double, normalize=False)), (float("-inf"), DOWN),
    (np.float32("nan"), Literal("NaN", datatype=XSD.double, normalize=False)), ("x", Literal("x")),
    (BNode("b.1"), BNode("b.1")),
    (Literal("x", datatype=XSD.string), Literal("x")),
    (datetime.datetime(2026, 1, 2, 3), Literal(datetime.datetime(2026, 1, 2, 3))), (URIRef("urn:x"), URIRef("urn:x")),
    (Decimal("NaN"), None), ("\ud800", None), (URIRef("a b"), None), (BNode("a b"), None), (b"x", None), ([1], None),
    (Literal("x", datatype="urn:a b"), None), (Variable("x"), None), (10**2_000_000, None),
], ids=lambda value: type(value).__name__)  # fmt: skip
def test_terms_of_results(gives: Any, term: Any) -> None:
    found, notes = matches_with_notes(lambda x: gives, 1)
    if term is None:
        assert found == [{"x": Literal(1)}]
        assert notes == [] if type(gives) is int else "that is no term" in notes[0]
    else:
        assert notes == [] and repr(found[0]["m"]) == repr(term)


def test_none_and_sparqls_errors_are_no_notes() -> None:
    def error(x: Any) -> Any:
        raise SPARQLError("no value")

    for function in (lambda x: None, error):
        assert matches_with_notes(function, 1) == ([{"x": Literal(1)}], [])


def test_notes_are_of_one_use(tmp_path: Path) -> None:
    spaseq.register_function(f"{E}f", lambda x: 1 / x.toPython())
    made = spaseq.compile(query("?a :p ?x FILTER (:f(?x) > 0)", "?x"))
    uses = []
    for value in (0, 1):
        path = tmp_path / f"{value}.nq"
        path.write_text("".join(_lines([graph(1, ("a", "p", Literal(value)))])))
        uses.append(made.run({"S": str(path)}))
    assert [use.count() for use in uses] == [0, 1]
    assert ["ZeroDivisionError" in " ".join(use.notes) for use in uses] == [True, False]


def test_a_function_of_rdflib_fails_alike() -> None:
    name = URIRef(f"{E}theirs")
    theirs: Any = lambda x: Literal(1 / x.toPython())  # noqa: E731
    register_custom_function(name, theirs)
    try:
        made = spaseq.compile(query("?a :p ?x BIND (:theirs(?x) AS ?m)", "?x ?m"))
        with made.open() as session:
            session.push([graph(1, ("a", "p", Literal(0))), graph(2, ("a", "p", Literal(4)))])
        assert len(session.rest) == 1 and made.warnings == ()
        assert "ZeroDivisionError" in session.notes[0]
        with pytest.raises(OptionError, match="registered with rdflib"):
            spaseq.register_function(str(name), len)
    finally:
        unregister_custom_function(name)


@pytest.mark.parametrize(("iri", "function", "said"), [
    ("distance", len, "no absolute IRI"), (f"{E} f", len, "no absolute IRI"), (3, len, "no absolute IRI"),
    (f"{E}f", 3, "is no function"), (str(XSD.integer), len, "a cast of SPARQL"),
])  # fmt: skip
def test_what_cannot_be_registered(iri: Any, function: Any, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        spaseq.register_function(iri, function)


def test_registering_again_needs_replace() -> None:
    spaseq.register_function(URIRef(f"{E}f"), len)
    spaseq.register_function(f"{E}f", len)
    with pytest.raises(OptionError, match="registered already"):
        spaseq.register_function(f"{E}f", abs)
    spaseq.register_function(f"{E}f", abs, replace=True)


def test_calls_that_can_have_no_value_are_warnings() -> None:
    spaseq.register_function(f"{E}two", lambda a, b: a)
    made = spaseq.compile(query("?a :p ?x FILTER (:two(?x))", "?x (:unknown(?x) AS ?m) (:two(?x, 1) AS ?n)"))
    assert made.warnings == (
        f"GPM A calls <{E}two>, which does not take 1 argument (missing a required argument: 'b'): the call never has "
        "a value",
        f"a clause of the result calls <{E}unknown>, which is no function here: it never has a value "
        f'(spaseq.register_function("{E}unknown", function) makes it one)',
    )


def plus(a: Any, b: Any) -> Any:
    return a.toPython() + b.toPython()


def test_a_query_takes_its_functions_with_it() -> None:
    spaseq.register_function(f"{E}plus", plus)
    sent = pickle.dumps(spaseq.compile(query("?a :p ?x", "?x (:plus(?x, 1) AS ?m)")))
    own.OWN.forget()
    with pickle.loads(sent).open() as session:
        session.push(graph(1, ("a", "p", Literal(2))))
    assert [match.bindings["m"] for match in session.rest] == [Literal(3)]


def test_a_snapshot_names_its_functions() -> None:
    spaseq.register_function(f"{E}plus", plus)
    text = query("?a :p ?x", "?x (:plus(?x, 1) AS ?m)")
    with spaseq.compile(text).open() as session:
        session.push(graph(1, ("a", "p", Literal(2))))
        state = session.snapshot()
    own.OWN.forget()
    with pytest.raises(OptionError, match=f"needs functions that are not registered here: {E}plus"):
        spaseq.compile(text).open(state)
    spaseq.register_function(f"{E}plus", plus)
    with spaseq.compile(text).open(state) as session:
        pass
    assert [match.bindings["m"] for match in session.rest] == [Literal(3)]


def test_the_command_runs_the_file_that_it_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(
        f"import spaseq\nspaseq.register_function('{E}half', lambda x: x.toPython() / 2)\n")  # fmt: skip
    (tmp_path / "s.nq").write_text("".join(_lines([graph(1, ("a", "p", Literal(3)))])))
    text = query("?a :p ?x", "?x (:half(?x) AS ?m)")
    arguments = ["run", text, "--stream", f"S={tmp_path / 's.nq'}", "--format", "csv"]
    assert cli([*arguments, "--functions", str(tmp_path / "own.py")]) == 0
    assert "3,1.5" in capsys.readouterr().out
    own.OWN.forget()
    assert cli(arguments) == 0
    assert "which is no function here" in capsys.readouterr().err
    (tmp_path / "bad.py").write_text("import spaseq\n\nspaseq.register_function('half', len)\n")
    for name, said in (("bad.py", "bad.py:3: 'half' is no absolute IRI"), ("none.py", "there is no such file")):
        assert cli([*arguments, "--functions", str(tmp_path / name)]) == 2
        assert said in capsys.readouterr().err
