"""Steps of a sequence that are not evaluated while no run waits for them: the same matches, and less work."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest

import spaseq
from spaseq import Settings
from spaseq.core.engine.program.needed import Needed
from spaseq.language.solving.solve import Solver
from tests.support.ahead import in_small_batches

_EX = "http://example.org/"
_HEAD = f"PREFIX : <{_EX}> SELECT * WITHIN 12 SECONDS FROM STREAM S <{_EX}S> FROM STREAM T <{_EX}T> WHERE {{ SEQ (%s)\n"
_GPMS = """  DEFINE GPM A ON S { ?k :a ?x FILTER (?x > 5) }
  DEFINE GPM B ON S, T { ?k :b ?y FILTER (?y > 3) }
  DEFINE GPM C ON T { ?k :c ?z OPTIONAL { ?k :a ?o } FILTER (?z != 2) }
  DEFINE GPM D ON S { { ?k :a ?v } UNION { ?k :b ?v } FILTER (?v < ?x) }
  DEFINE GPM E ON T { ?k :c ?w BIND (?w * 2 AS ?twice) FILTER (?twice > 6) } }"""
_SEQUENCES = (
    "A; B; C", "A, B", "A: B: C", "A; B+; C", "A; B?; E", "A; C!; B", "A; (B | C); E", "A; (B & D); C", "A+; C",
    "A; B, C", "A; D; B; E",
)  # fmt: skip


def _query(sequence: str, keyed: bool) -> str:
    named = {letter for letter in sequence if letter.isalpha()}
    body = "\n".join(line for line in _GPMS.removesuffix(" }").split("\n") if line.split()[2] in named)
    head = _HEAD.replace("SECONDS", "SECONDS PARTITION BY (?k)") if keyed else _HEAD
    return head % sequence + body + " }"


def _write(folder: Path, seed: int, events: int = 100) -> dict[str, str]:
    """Stretches without what begins a match lie between those with it."""
    paths = {}
    for name in "ST":
        rng = random.Random(f"{seed} {name}")
        lines, at = [], 0
        for number in range(events):
            at += rng.choice((0, 1, 1, 2))
            graph = f"<{_EX}{name}{number}>"
            lines.append(f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{at}" .')
            for _ in range(rng.randrange(1, 4)):
                letter = rng.choice("abc" if number // 25 % 2 else "bc")
                value = f'"{rng.randrange(9)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
                lines.append(f"<{_EX}k{rng.randrange(3)}> <{_EX}{letter}> {value} {graph} .")
        paths[name] = str(folder / f"{name}{seed}.nq")
        Path(paths[name]).write_text("\n".join(lines) + "\n")
    return paths


def _matches(query: spaseq.Query, paths: dict[str, str], **more: Any) -> list[Any]:
    with in_small_batches(80):
        found = list(query.run(paths, **more))
    return [(m.start, m.end, m.positions, sorted((n, str(t)) for n, t in m.bindings.items())) for m in found]


@pytest.mark.parametrize("keyed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_matches_are_the_same_whatever_waits(keyed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Counter[str]()
    for seed, sequence in enumerate(_SEQUENCES):
        paths = _write(tmp_path, seed)
        query = spaseq.compile(_query(sequence, keyed), settings=Settings(threads=1))
        with monkeypatch.context() as eager:
            eager.setattr("spaseq.core.engine.runs.evaluator.Needed", _Nothing)
            eager.setattr(Solver, "learn", lambda self, rows: None)
            expected = _matches(query, paths)
        assert _matches(query, paths) == expected, sequence
        with monkeypatch.context() as lazy:
            lazy.setattr(Solver, "learn", lambda self, rows: self.rare.update(rows.asked()))
            assert _matches(query, paths) == expected, sequence
        found[sequence] = len(expected)
    assert sum(map(bool, found.values())) > len(found) // 2, found


class _Nothing(Needed):
    """Every predicate matters everywhere."""

    def __init__(self, cea: Any) -> None:
        super().__init__(cea)
        self.applies = False


@pytest.mark.parametrize("reference", [False, True])
def test_a_later_step_is_evaluated_where_a_run_waits(
    reference: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph in three hundred begins a run: the step behind it is not evaluated in most batches (of those in which
    somebody asks, at all events from there on where it has a plan)."""
    value = '"%d"^^<http://www.w3.org/2001/XMLSchema#integer>'
    lines = []
    for number in range(600):
        graph = f"<{_EX}g{number}>"
        lines.append(f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{number}" .')
        lines.append(f"<{_EX}k> <{_EX}{'a' if number % 300 == 0 else 'b'}> {value % 7} {graph} .")
    path = tmp_path / "S.nq"
    path.write_text("\n".join(lines) + "\n")
    text = f"""PREFIX : <{_EX}> SELECT * WITHIN 4 SECONDS FROM STREAM S <{_EX}S> WHERE {{ SEQ (A; B)
      DEFINE GPM A ON S {{ ?k :a ?x }} DEFINE GPM B ON S {{ ?k :b ?y FILTER (?y > 3) }} }}"""
    solved = Counter[str]()
    name = "spaseq.gpm.columnar.evaluate._Gpm.solve"
    whole = resolve_name(name.replace("._Gpm", ":_Gpm"))

    def counted(self: Any, lists: Any, events: np.ndarray, *rest: Any, **more: Any) -> Any:
        solved[self.name] += len(events)
        return whole(self, lists, events, *rest, **more)

    monkeypatch.setattr(name, counted)
    query = spaseq.compile(text, settings=Settings(threads=1))
    assert len(_matches(query, {"S": str(path)}, reference=reference)) == 2
    assert solved["A"] == 2
    assert 2 <= solved["B"] < 598 // 2, solved
