"""Result clauses as columns beside the same clauses evaluated row by row by rdflib's algebra, over random matches."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdflib import BNode, Literal, URIRef

import spaseq
from spaseq.core.engine import Window
from spaseq.gpm.columnar import groups, truth
from spaseq.gpm.columnar.order import first_rows, ranks
from spaseq.gpm.columnar.table import Space
from spaseq.language.guards import terms as numbered
from spaseq.language.guards.terms import NumberedTerms
from spaseq.language.results import results
from spaseq.language.results.computing import Computation
from spaseq.language.results.gathered import Gathered, SpaceTerms
from spaseq.language.results.history import Pool
from spaseq.language.results.match import Match
from spaseq.language.results.results import Results, finish
from spaseq.rdf import term_bytes
from spaseq.rdf.columns import TermTable

XSD_ = "http://www.w3.org/2001/XMLSchema#"


def _typed(kind: str, *texts: str) -> list[Literal]:
    return [Literal(text, datatype=URIRef(XSD_ + kind), normalize=False) for text in texts]


PLAIN: list[Any] = [*_typed("integer", "1", "2", "01", "-7"), *_typed("decimal", "1.0", "0.25", "2.50")]
TERMS: list[Any] = [
    *PLAIN, *_typed("double", "0.1", "1e0", "-0.0", "NaN"), *_typed("float", "1.5"), *_typed("integer", "9" * 30),
    *_typed("decimal", "0.12345678901234567890"), *_typed("dateTime", "2026-06-15T08:00:00Z"),
    *_typed("boolean", "true"),
    Literal("a"), Literal("b"), Literal("a", lang="en"), URIRef("urn:a"), URIRef("urn:b"), BNode("n"),
    *_typed("date", "2026-06-15"), *_typed("integer", "x"),
]  # fmt: skip
VALUES = "(1 'one') (2 'two') (1 'eins') ('a' 'text') (<urn:a> 1.0)"
CLAUSES = [
    ("SELECT DISTINCT ?x", ""),
    ("SELECT DISTINCT ?x ?y", "ORDER BY DESC(?y) ?x LIMIT 5"),
    ("SELECT ?x ?y", "ORDER BY ?z DESC(?x)"),
    ("SELECT ?x", "ORDER BY (?x + ?z) LIMIT 4 OFFSET 1"),
    ("SELECT ?x ?y", "LIMIT 3"),
    ("SELECT ?x (?x + ?z AS ?w) (IF(?w > 1, STR(?x), ?y) AS ?v)", "ORDER BY ?w"),
    ("SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?x) AS ?m) (COUNT(DISTINCT *) AS ?k)", ""),
    ("SELECT ?x (COUNT(?y) AS ?n) (SAMPLE(?y) AS ?s) (GROUP_CONCAT(?z; SEPARATOR='|') AS ?c)", "GROUP BY ?x"),
    ("SELECT ?x (SUM(?z) AS ?a) (AVG(?z) AS ?b) (MIN(?y) AS ?c) (MAX(?y) AS ?d)", "GROUP BY ?x ORDER BY DESC(?a) ?x"),
    ("SELECT ?k (SUM(DISTINCT ?z) AS ?a) (AVG(DISTINCT ?z) AS ?b)",
     "GROUP BY (DATATYPE(?y) AS ?k) HAVING (SUM(?z) > 1)"),
    ("SELECT (SUM(?y) AS ?a) (AVG(?y) AS ?b) (GROUP_CONCAT(DISTINCT ?y) AS ?c)", "HAVING (COUNT(?y) > 2)"),
    ("SELECT ?x (SUM(?z * 2 + 1) / COUNT(*) AS ?a) (MAX(STR(?y)) AS ?b)", "GROUP BY ?x STR(?y) LIMIT 6"),
    ("SELECT DISTINCT (COUNT(?z) AS ?n)", "GROUP BY ?x ORDER BY ?n"),
    ("SELECT ?x (COALESCE(SUM(?y), 'none') AS ?a)", "GROUP BY ?x ORDER BY ?a"),
    ("SELECT ?x ?y ?k", f"VALUES (?x ?k) {{ {VALUES} }}"),
    ("SELECT ?x ?y ?k", f"ORDER BY ?k ?y LIMIT 9 VALUES (?x ?k) {{ {VALUES} }}"),
    ("SELECT DISTINCT ?k", f"VALUES (?k ?x) {{ {VALUES} }}"),
    ("SELECT ?x (?z + ?k AS ?w)", "ORDER BY ?w VALUES (?x ?k) { (1 10) (2 20) (1 'x') }"),
    ("SELECT ?x (SUM(?z) AS ?a) ?k", f"GROUP BY ?x ORDER BY ?a LIMIT 7 VALUES (?x ?k) {{ {VALUES} }}"),
    ("SELECT ?x", "ORDER BY ?x VALUES ?x { }"),
]  # fmt: skip


def _clauses(select: str, tail: str) -> Any:
    text = f"""PREFIX : <urn:> {select} WITHIN 10 SECONDS FROM STREAM S <urn:s> WHERE {{ SEQ (A)
               DEFINE GPM A ON S {{ ?t :p ?z OPTIONAL {{ ?t :x ?x }} OPTIONAL {{ ?t :y ?y }} }} }} {tail}"""
    return spaseq.compile(text).checked.clauses


def _matches(rng: random.Random, terms: list[Any], count: int) -> list[Match]:
    found = {}
    for _ in range(count):
        start, middle, end = sorted(rng.sample(range(8), 3))
        positions = rng.choice(((start, end), (start, middle, end)))
        bindings = {"t": URIRef("urn:t"), "z": rng.choice(PLAIN)}
        bindings |= {name: rng.choice(terms) for name in "xy" if rng.random() < 0.8}
        found[positions, tuple(bindings.items())] = Match(start, end, positions, bindings, positions, ())
    return list(found.values())


@pytest.mark.parametrize(("select", "tail"), CLAUSES)
@pytest.mark.parametrize("terms", [PLAIN, TERMS, TERMS[7:10]], ids=["decimals", "all", "doubles"])
def test_columns_give_what_rows_give(select: str, tail: str, terms: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    clauses = _clauses(select, tail)
    assert Computation.of(clauses) is not None
    rng = random.Random(f"{select} {tail}")
    monkeypatch.setattr(truth, "FEW", 0)
    for count in (0, 1, 2, 7, 40):
        matches = _matches(rng, terms, count)
        expected = results._finish_by_row(clauses, matches)
        found = finish(clauses, matches)
        assert [repr(m) for m in found] == [repr(m) for m in expected]


@pytest.mark.parametrize("tail", ["", f"VALUES (?x ?k) {{ {VALUES} }}", "VALUES ?y { }"])
def test_rows_are_computed_of_each_match_alone(tail: str) -> None:
    clauses = _clauses(f"SELECT ?y {'?k' if '?k' in tail else ''} (?z * 2 AS ?w) (IF(BOUND(?x), ?x, ?z) AS ?v)", tail)
    rng = random.Random(4)
    matches = sorted(_matches(rng, TERMS, 60), key=lambda match: match.end)
    computed, by_row = Results(clauses, Window("none")), Results(clauses, Window("none"))
    by_row._computation = None
    found = [[match for part in each.push(iter(matches), 0) for match in part] for each in (computed, by_row)]
    assert [repr(m) for m in found[0]] == [repr(m) for m in found[1]]


def test_values_with_tags_are_shown_as_they_are_written() -> None:
    assert Computation.of(_clauses("SELECT ?x", "VALUES ?x { 'a'@EN }")) is None
    assert Computation.of(_clauses("SELECT ?x", "VALUES (?x ?y) { (1 UNDEF) }")) is None
    matches = [Match(0, 1, (0, 1), {"t": URIRef("urn:t"), "x": Literal("a", lang="en")}, (0, 1), ())]
    (found,) = finish(_clauses("SELECT ?x", "VALUES ?x { 'a'@EN }"), matches)
    assert found.bindings["x"].language == "EN"


def test_windows_are_cut_and_survive_a_snapshot() -> None:
    clauses = _clauses("SELECT ?x (COUNT(*) AS ?n)", "GROUP BY ?x")
    window = Window("tumbling", 3, 0)
    matches = sorted(_matches(random.Random(5), TERMS, 80), key=lambda match: match.end)
    whole = Results(clauses, window)
    expected = [m for part in [*whole.push(matches, 7), *whole.close(())] for m in part]
    assert len({window.number(match.time) for match in expected}) == 2
    for cut in (0, 11, 40, 79):
        first, then = Results(clauses, window), Results(clauses, window)
        found = [m for part in first.push(matches[:cut], matches[cut].end) for m in part]
        pool = Pool()
        state = first.snapshot(pool)
        then.restore(state, Pool.restore(pool.snapshot()))
        rest = [m for part in [*then.push(matches[cut:], 7), *then.close(())] for m in part]
        assert sorted(map(repr, found + rest)) == sorted(map(repr, expected))


FEW = [
    ("SELECT ?x ?y", "ORDER BY ?z DESC(?x) LIMIT 4"),
    ("SELECT ?x", "ORDER BY DESC(?z) LIMIT 3 OFFSET 2"),
    ("SELECT ?x", "ORDER BY (?x + ?z) LIMIT 4 OFFSET 1"),
    ("SELECT ?x (?z * 2 AS ?w)", "ORDER BY ?w LIMIT 5"),
    ("SELECT ?x ?y", "LIMIT 3 OFFSET 1"),
    ("SELECT ?x ?y", "ORDER BY ?y LIMIT 0"),
    ("SELECT DISTINCT ?x", ""),
    ("SELECT DISTINCT ?y", "LIMIT 3 OFFSET 1"),
    ("SELECT ?x ?k", f"ORDER BY ?z ?k LIMIT 4 VALUES (?x ?k) {{ {VALUES} }}"),
    ("SELECT DISTINCT ?k", f"VALUES (?k ?x) {{ {VALUES} }}"),
]


@pytest.mark.parametrize(("select", "tail"), FEW)
@pytest.mark.parametrize("terms", [PLAIN, TERMS], ids=["decimals", "all"])
def test_what_is_no_result_is_let_go(select: str, tail: str, terms: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    clauses = _clauses(select, tail)
    monkeypatch.setattr(results, "_MANY", 1)
    for seed in range(3):
        matches = [
            replace(match, bindings={n: term for n, term in match.bindings.items() if n in clauses.needed})
            for match in sorted(_matches(random.Random(seed), terms, 150), key=lambda match: match.end)
        ]
        expected = results._finish_by_row(clauses, matches)
        each, found, ends = Results(clauses, Window("none")), list[Match](), sorted({match.end for match in matches})
        for end in ends:
            found += [m for part in each.push([m for m in matches if m.end == end], end) for m in part]
        last = clauses.last
        if last is not None and not clauses.distinct:
            assert len(each._pending) <= max(last, each._reduced) < len(matches) / 3
        found += [m for part in each.close(()) for m in part]
        assert [repr(m) for m in found] == [repr(m) for m in expected]


def test_what_follows_may_change_other_clauses() -> None:
    kept = [
        ("SELECT DISTINCT ?x ?y", "ORDER BY DESC(?z) LIMIT 5"),
        ("SELECT ?x (COUNT(*) AS ?n)", "GROUP BY ?x LIMIT 2"),
    ]
    assert not any(_clauses(*each).few for each in kept)


def test_the_first_rows_are_those_of_a_whole_sort() -> None:
    rng = random.Random(3)
    for terms in (PLAIN, TERMS, TERMS[7:10]):
        space = Space(TermTable.of(()))
        for rows in (1, 7, 60):
            keys = [np.array([space.number(rng.choice(terms)) for _ in range(rows)], np.int32) for _ in range(2)]
            keys[1][rng.randrange(rows)] = -1
            turned = [rng.random() < 0.5, rng.random() < 0.5]
            places = [ranks(k, space, apart=False) * (-1 if d else 1) for k, d in zip(keys, turned, strict=True)]
            whole = np.lexsort(places[::-1])
            for most in (None, 0, 1, 3, 59, 60):
                assert first_rows(keys, turned, space, most).tolist() == whole[:most].tolist()


def test_terms_of_columns_and_of_matches_meet() -> None:
    """They are told apart by the codes of their owner only while all come from there."""
    terms = NumberedTerms()
    codes = terms.of_keys([term_bytes(term) for term in TERMS[:12]])
    space = SpaceTerms(Space(TermTable.of(())))
    first = space.numbers_of(terms, codes[2:5])
    assert space.numbers_of(terms, codes).tolist()[2:5] == first.tolist()
    assert [space.space.number(term) for term in TERMS[2:5]] == first.tolist()
    added = space.space.number(TERMS[14])
    more = terms.of_keys([term_bytes(term) for term in TERMS[12:16]])
    assert space.numbers_of(terms, more)[2] == added
    assert len({*space.numbers_of(terms, np.concatenate([codes, more])).tolist()}) == 16 == len(space.space)


def test_sums_of_exact_numbers_ask_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clauses = _clauses("SELECT ?x (SUM(?z) AS ?a) (AVG(?z) AS ?b) (MAX(?z) AS ?c)", "GROUP BY ?x ORDER BY DESC(?a)")
    monkeypatch.setattr(groups, "combine", lambda *_: pytest.fail("a group was asked"))
    assert len(finish(clauses, _matches(random.Random(6), PLAIN, 90))) > 3


def test_terms_are_gathered_once() -> None:
    gathered = Gathered(("x", "y", "z"), ())
    gathered.add_matches(_matches(random.Random(7), TERMS, 50))
    gathered.add_matches(_matches(random.Random(8), TERMS, 50))
    rows = gathered.rows()
    assert len(rows) == len(gathered) > 90
    used = np.unique(np.concatenate(list(rows.columns.values())))
    assert len({gathered.space.key(n) for n in used.tolist() if n >= 0}) == (used >= 0).sum()


@pytest.mark.parametrize("count", [1, 4, 40])
def test_what_is_computed_of_a_float_is_a_float(count: int, tmp_path: Path) -> None:
    """Whatever was made of its term before somebody asks whether there is one."""
    kinds = ("integer", "decimal", "float", "double")
    path = tmp_path / "s.nq"
    lines = [f'<urn:a> <urn:p> "{n + 3}"^^<{XSD_}{kind}> <urn:g> .\n' for n in range(count) for kind in kinds]
    path.write_text("".join(lines))
    query = spaseq.compile(
        "PREFIX : <urn:> SELECT ?x (-?x AS ?n) FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { :a :p ?x } }"
    )
    rows = [m.bindings for m in query.run({"S": str(path)}, time_from="arrival")]
    assert len(rows) == len(lines)
    assert all(row["n"].datatype == row["x"].datatype for row in rows)


@pytest.mark.parametrize(
    ("select", "tail", "expected"),
    [("?c (COUNT(?t) AS ?n)", "GROUP BY ?c", ["600"] * 5), ("(COUNT(DISTINCT ?c) + 0 * COUNT(?t) AS ?n)", "", ["5"])],
)
def test_a_window_has_more_terms_than_the_engine_keeps(
    select: str, tail: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A term that the engine let go of and meets again is the same to the clauses: its groups fell apart."""
    kept: list[int] = []
    keep = NumberedTerms.keep
    monkeypatch.setattr(numbered, "_TERMS", 64)

    def counted(self: NumberedTerms, numbers: Collection[int]) -> None:
        kept.append(len(numbers))
        keep(self, numbers)

    monkeypatch.setattr(NumberedTerms, "keep", counted)
    path = tmp_path / "trades.nq"
    path.write_text("".join(
        f'<urn:g{i}> <http://www.w3.org/ns/prov#generatedAtTime> '
        f'"2026-06-15T08:{i // 60 % 60:02}:{i % 60:02}Z"^^<{XSD_}dateTime> <urn:g{i}> .\n'
        f"<urn:t{i}> <urn:company> <urn:c{i % 5}> <urn:g{i}> .\n"
        for i in range(3_000)
    ))  # fmt: skip
    query = spaseq.compile(
        f"SELECT {select} WITHIN 2 DAYS FROM STREAM S <urn:s> "
        f"WHERE {{ SEQ (A) DEFINE GPM A ON S {{ ?t <urn:company> ?c }} }} {tail}"
    )
    counts = [str(match.bindings["n"]) for match in query.run({"S": str(path)})]
    assert kept  # else there is nothing to see
    assert counts == expected


@pytest.mark.parametrize(("terms", "n", "chunks"), [(numbered._TERMS, 60_000, 1), (64, 3_000, 2)])
def test_a_chunk_has_its_terms_numbered_once(
    terms: int, n: int, chunks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine made room for terms before each piece of a chunk, and all of the chunk were numbered again."""
    kept: list[int] = []
    keep = NumberedTerms.keep

    def counted(self: NumberedTerms, numbers: Collection[int]) -> None:
        kept.append(len(numbers))
        assert len(kept) <= chunks, "terms are let go of again and again"
        keep(self, numbers)

    monkeypatch.setattr(numbered, "_TERMS", terms)
    monkeypatch.setattr(NumberedTerms, "keep", counted)
    path = tmp_path / "s.nq"
    path.write_text("".join(f"<urn:s{i}> <urn:p> <urn:o{i}> <urn:g{i}> .\n" for i in range(n)))
    query = spaseq.compile(
        "SELECT ?x ?y WITHIN 2 SECONDS FROM STREAM S <urn:s> WHERE { SEQ (A, B) "
        "DEFINE GPM A ON S { ?x <urn:p> ?v } DEFINE GPM B ON S { ?y <urn:p> ?w FILTER (?w != ?v) } }"
    )
    assert query.run({"S": str(path)}, time_from="arrival", interval="1s").count() == n // 2
