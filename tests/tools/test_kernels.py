"""The queries that compile kernels ahead are queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from ceql import compile
from ceql.cli.main import main as ceql
from spaseq.cli.main import main as spaseq
from spaseq.tools.kernels import commands, main


def test_every_command_is_taken(tmp_path: Path) -> None:
    for name, _, query, *_ in commands(tmp_path):
        assert {"ceql": ceql, "spaseq": spaseq}[name](["check", query]) == 0, query


def test_orders_have_pools(tmp_path: Path) -> None:
    """In a window that was shorter than pools need, kernels of a minute were left to the first query of a user."""
    queries = [
        query for _, _, query, *_ in commands(tmp_path) if "SELECT * FROM S" in query and "price > a.price" in query
    ]
    assert any("a tree by the value compared" in compile(query).explain() for query in queries)


def test_it_takes_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fast"]) == 2
    assert "usage" in capsys.readouterr().err
