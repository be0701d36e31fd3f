"""The stock example: its data is what its generator makes, its expected result is what its text says."""

from __future__ import annotations

import csv
import importlib.util
import json
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STOCK = ROOT / "examples" / "stock"
Match = tuple[int, ...]


def _expected() -> list[Match]:
    lines = (STOCK / "expected.jsonl").read_text("utf-8").splitlines()
    return [tuple(json.loads(line)["positions"]) for line in lines]


def _by_hand() -> list[Match]:
    """The query's matches found by trying every triple, from its text."""
    with (STOCK / "trades.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    stocks: dict[str, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        stocks[row["name"]].append(position)
    kind = [row["event_type"] for row in rows]
    price = [float(row["price"]) for row in rows]
    clock = [int(row["stock_time"]) for row in rows]
    return [
        (big, first, second)
        for trades in stocks.values()
        for first, second in pairwise(trades)
        for big in trades
        if big < first
        if kind[big] == "BUY" and kind[first] == kind[second] == "SELL"
        if int(rows[big]["volume"]) >= 500 and price[first] >= 1.01 * price[big] and price[second] > price[first]
        if clock[second] - clock[big] <= 10_000
    ]


def test_the_generator_makes_the_data(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("stock_generate", STOCK / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(tmp_path / "trades.csv")
    assert (tmp_path / "trades.csv").read_bytes() == (STOCK / "trades.csv").read_bytes()


def test_the_expected_result_is_every_such_triple() -> None:
    assert sorted(_by_hand()) == sorted(_expected())
    assert len(_expected()) == 40


def test_the_query_gives_the_expected_result() -> None:
    command = ["run", "query.ceql", "--events", "trades.csv", "--type-column", "event_type", "--format", "jsonl"]
    script = "from ceql.cli.main import entry; entry()"
    result = subprocess.run(
        [sys.executable, "-c", script, *command], cwd=STOCK, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == (STOCK / "expected.jsonl").read_text("utf-8")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert sorted(tuple(match["positions"]) for match in found) == sorted(_expected())
    assert all((match["start"], match["end"]) == (match["positions"][0], match["positions"][-1]) for match in found)
