"""`check` says what is probably not meant, though it can be run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ceql
import spaseq
from ceql.cli.main import main as ceql_main
from spaseq.cli.main import main as spaseq_main
from spaseq.language.semantics.advice import _unrelated_patterns

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("A AS a ; B AS b", ["nothing relates b to a"]),
        ("A AS a ; B AS b FILTER a.k = b.k", []),
        ("A AS a ; B AS b FILTER a[k > 1]", ["nothing relates b to a"]),
        ("A AS a ; B AS b PARTITION BY [k]", []),
        ("A AS a : B AS b", []),
        ("A AS a ; B AS b ; C AS c FILTER a.k = b.k", ["nothing relates c to a and b"]),
        ("A AS a ; B AS b ; C AS c FILTER a.k = b.k AND c.k < b.k", []),
        ("A AS a ; (B AS b OR C AS c)", []),
        ("A", []),
        ("A+", ["1:16: + takes every choice of events"]),
        ("A:+", []),
    ],
)
def test_ceql(query: str, said: list[str]) -> None:
    found = ceql.compile(f"SELECT * WHERE {query}").advice
    assert len(found) == len(said)
    for line, part in zip(found, said, strict=True):
        assert line.startswith(f"<query>: {part}"), line
    for strategy in ("MAX", "NEXT", "ANY", "STRICT"):
        assert ceql.compile(f"SELECT {strategy} * WHERE {query}").advice == ()


def _spaseq(a: str, b: str, more: str = "") -> tuple[str, ...]:
    head = "PREFIX : <urn:e#> SELECT * FROM STREAM S <urn:s> WHERE { SEQ (A ; B) "
    return spaseq.compile(f"{head} DEFINE GPM A ON S {{ {a} }} DEFINE GPM B ON S {{ {b} }} }} {more}").advice


def test_spaseq() -> None:
    assert _spaseq("?x :p ?v", "?x :q ?w") == ()
    assert _spaseq("?x :p ?v", "?y :q ?w . FILTER (?w > ?v)") == ()
    (apart,) = _spaseq("?x :p ?v", "?y :q ?w")
    assert apart.startswith("<query>: GPMs: A shares no variable with B: each solution goes with every other")
    apart, slip = _spaseq("?house :p ?v", "?hous :q ?w")
    assert slip == "<query>: ?hous of GPM B and ?house of GPM A are two variables: is one a slip?"
    assert len(_spaseq("?house1 :p ?v", "?house2 :q ?w")) == 1, "numbered on purpose"


def test_related_gpms_are_found_in_one_pass() -> None:
    """1,500 alternatives were compared each with each: that took minutes."""
    looks = []

    class Pattern:
        def __init__(self, name: str, *mentions: str) -> None:
            self.name, self._mentions = name, mentions

        @property
        def mentions(self) -> frozenset[str]:
            looks.append(self.name)
            return frozenset(self._mentions)

    patterns = [Pattern("A", "x"), Pattern("B", "y", "z"), Pattern("C", "x", "w"), Pattern("D", "v"), Pattern("E", "z")]
    part = SimpleNamespace(negated=False, alternatives=[[pattern.name] for pattern in patterns])
    element = SimpleNamespace(parts=lambda: [part])
    query: Any = SimpleNamespace(elements=[element], partition=(), patterns={p.name: p for p in patterns})
    (said,) = _unrelated_patterns(query)
    assert said.startswith("GPMs: A and C shares no variable with B and E, D: each solution")
    assert looks == ["A", "B", "C", "D", "E"]


def test_the_commands_say_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.ceql").write_text("SELECT * WHERE A ; B")
    assert ceql_main(["check", "q.ceql"]) == 0
    assert capsys.readouterr().err.startswith("note: q.ceql: nothing relates B to A: ")
    for path in sorted(EXAMPLES.glob("*/*.rq")):
        assert spaseq_main(["check", str(path)]) == 0
        assert capsys.readouterr().err == "", path
