"""Kernels interpreted, compiled, and taking turns within one evaluation: the same matches."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import ceql
from spaseq.core import jit
from spaseq.core.engine.runs import coded, deterministic, row_sets, shaped
from spaseq.core.tecs import arena
from tests.ceql.test_guarded import ENDINGS, FORMULAS, STRATEGIES, events, reported

PLAIN = ["A AS x ; B AS y", "A AS x ; B+ AS y ; C AS z", "(A AS x OR C AS x) : B AS y", "A AS x ; NOT D ; B AS y"]


def pushed(query: ceql.Query, stream: list[dict[str, Any]]) -> list[Any]:
    """The matches, event by event."""
    session = query.open()
    found = [m for event in stream for m in session.push(event)] + list(session.close())
    return [(m.start, m.end, tuple(m.positions)) for m in found]


SOME = [*PLAIN, *(pytest.param(f, marks=[pytest.mark.slow] if i % 3 else []) for i, f in enumerate(FORMULAS[::4]))]


@pytest.fixture
def queries(request: pytest.FixtureRequest) -> list[ceql.Query]:
    formula = request.param
    rng = random.Random(formula)
    texts = [f"SELECT {'ALL' if 'LIMIT' in e else rng.choice(STRATEGIES)} * WHERE {formula} {e}" for e in ENDINGS]
    return [ceql.compile(text) for text in rng.sample(texts, 3)]


@pytest.mark.parametrize("queries", SOME, indirect=True)
def test_interpreted_and_compiled_agree(queries: list[ceql.Query], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(0)
    for query in queries:
        stream = events(rng, 70, floats=True)
        found = []
        for interprets in (lambda _: False, lambda _: True, lambda _: rng.random() < 0.5):
            monkeypatch.setattr(jit, "interprets", interprets)
            cuts = random.Random(1)  # the same each time: LIMIT leaves open which of equal starts are reported
            found.append((reported(query, stream), reported(query, stream, cuts), pushed(query, stream)))
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("queries", SOME, indirect=True)
def test_counts_interpreted_and_compiled_agree(queries: list[ceql.Query], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it changes among the matches of an event: at any call of a kernel."""
    rng = random.Random(0)
    monkeypatch.setattr(arena, "_MATCHES", 3)
    for query in queries:
        stream = events(rng, 50, floats=True)
        expected = len(reported(query, stream))
        for interprets in (lambda _: False, lambda _: True, lambda _: rng.random() < 0.5):
            for module in (jit, deterministic, coded, row_sets, shaped):
                monkeypatch.setattr(module, "interprets", interprets)
            assert query.run(stream).count() == expected


def test_a_small_count_needs_no_compiler() -> None:
    """It took eight seconds, the first time."""
    for where in ("", "FILTER f.v <= l.v", "FILTER SUM(f.v) <= l.v"):
        script = (
            "import sys, ceql; events = [{'type': t, 'v': 1} for t in ('fail', 'login') * 5]; "
            f"assert ceql.compile('SELECT * WHERE fail+ AS f ; login AS l {where}').run(events).count() > 0; "
            "sys.exit('numba' in sys.modules)"
        )
        assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0, where


def test_what_is_small_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does the next event, once there is no time left, need another session."""
    query = ceql.compile("SELECT * WHERE (A AS x ; B AS y) FILTER x.p < y.p WITHIN 10 EVENTS")
    stream = [{"type": "A", "p": 1}, {"type": "B", "p": 2}] * 10
    expected = pushed(query, stream)
    calls: list[str] = []

    def timed(kernel: jit.Kernel, arguments: tuple[Any, ...]) -> Any:
        calls.append(kernel.__name__)
        with np.errstate(over="ignore"):
            return kernel.interpreted(*arguments)

    monkeypatch.setattr(jit, "_time", timed)
    monkeypatch.setattr(jit, "interprets", lambda _: len(calls) < 20)
    assert pushed(query, stream) == expected
    assert len(calls) == 20
    assert {"run_guarded", "rebuild"} <= set(calls)
