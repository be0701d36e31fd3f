"""Every case of `cases/` by every evaluator: the naive one, the engine whole and in random batches, and Spark."""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import oracle_spaseq
import pytest
from harness import Case

from spaseq import errors

CASES = harness.load_all()
ROUNDS = 3
"""Random cuts per case."""


def _each(wanted: Callable[[Case], bool]) -> pytest.MarkDecorator:
    cases = [case for case in CASES if wanted(case)]
    return pytest.mark.parametrize("case", cases, ids=[case.place for case in cases])


def _answered(case: Case) -> bool:
    return case.error is None


def _ceql(case: Case) -> bool:
    return _answered(case) and not case.is_spaseq


def _spaseq(case: Case) -> bool:
    return _answered(case) and case.is_spaseq


def _skip_unless_run(case: Case) -> None:
    if case.oracle_only:
        pytest.skip(case.oracle_only)


def test_names_are_unique() -> None:
    places = [case.place for case in CASES]
    assert len(set(places)) == len(places)


def test_the_naive_evaluators_know_nothing_of_the_engine() -> None:
    """They import only the standard library and one another."""
    for path in Path(__file__).parent.glob("oracle*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                root = name.split(".")[0]
                assert root in sys.stdlib_module_names or root.startswith("oracle"), f"{path.name} imports {name}"


@_each(_ceql)
def test_ceql_by_definition(case: Case) -> None:
    assert harness.ceql_oracle(case.query, case.events) == case.matches


@_each(_ceql)
def test_ceql_engine(case: Case) -> None:
    _skip_unless_run(case)
    assert sorted(harness.ceql_whole(case.query, case.events)) == case.matches


@_each(_ceql)
def test_ceql_engine_in_batches(case: Case) -> None:
    _skip_unless_run(case)
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        found = harness.ceql_batches(case.query, list(harness.cut(case.events, rng)), rng)
        assert sorted(found) == case.matches, f"cut with seed {seed}"


def _bound(case: Case) -> bool:
    return case.bindings is not None


@_each(_bound)
def test_ceql_valuations_by_definition(case: Case) -> None:
    assert harness.ceql_bindings_by_definition(case.query, case.events) == case.bindings


@_each(_bound)
def test_ceql_valuations(case: Case) -> None:
    assert harness.ceql_bindings_whole(case.query, case.events) == case.bindings
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        cut = list(harness.cut(case.events, rng))
        assert harness.ceql_bindings_batches(case.query, cut, rng) == case.bindings, f"cut with seed {seed}"


def _check_answers(case: Case, answers: list[oracle_spaseq.Answer]) -> None:
    """The expected solutions and instants, and each answer once."""
    assert oracle_spaseq.solutions(answers) == harness.expected_solutions(case)
    if case.instants is not None:
        expected = {tuple(round(t * 10**9) for t in times) for times in case.instants}
        assert {times for _, _, times, _ in answers} == expected
    assert len(answers) == len(set(answers))


@_each(_spaseq)
def test_spaseq_by_definition(case: Case) -> None:
    _check_answers(case, list(harness.spaseq_oracle(case.query, case.graphs, case.kb)))


@_each(_spaseq)
def test_spaseq_engine(case: Case, tmp_path: Path) -> None:
    _skip_unless_run(case)
    streams, kb = harness.write_streams(case.graphs, tmp_path), harness.write_knowledge(case.kb, tmp_path)
    _check_answers(case, harness.spaseq_whole(case.query, streams, kb))


@_each(_spaseq)
def test_spaseq_engine_in_batches(case: Case, tmp_path: Path) -> None:
    _skip_unless_run(case)
    streams, kb = harness.write_streams(case.graphs, tmp_path), harness.write_knowledge(case.kb, tmp_path)
    for seed in range(ROUNDS):
        _check_answers(case, harness.spaseq_batches(case.query, streams, kb, random.Random(seed)))


def _on_spark() -> list[Any]:
    """The SPAseq cases; the first of each file in every run, the others in the slow one."""
    seen: set[str] = set()
    params = []
    for case in filter(_spaseq, CASES):
        file = case.place.split(":")[0]
        params.append(pytest.param(case, id=case.place, marks=[pytest.mark.slow] if file in seen else []))
        seen.add(file)
    return params


@pytest.mark.spark
@pytest.mark.parametrize("case", _on_spark())
def test_spaseq_spark(case: Case, tmp_path: Path, spark_session: Any) -> None:
    _skip_unless_run(case)
    if case.not_spark:
        pytest.skip(case.not_spark)
    kb = harness.write_knowledge(case.kb, tmp_path)
    _check_answers(case, harness.spaseq_spark(case.query, spark_session, case.graphs, tmp_path, kb))


@_each(lambda case: case.error is not None)
def test_wrong_queries(case: Case) -> None:
    """One clear error: the class of the exception and a part of its text."""
    import ceql
    import spaseq

    module = spaseq if case.is_spaseq else ceql
    with pytest.raises(getattr(errors, str(case.error))) as caught:
        module.compile(case.query)
    assert case.message in str(caught.value)
