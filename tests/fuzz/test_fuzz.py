"""A share of the fuzz target in every run, and the most of it in the slow one; and that a find is found."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import ceql
from spaseq.core.errors import EventError, OptionError
from tests.fuzz import checks, kinds
from tests.fuzz.campaign import Campaign, again
from tests.fuzz.kinds import KINDS, Input
from tests.support.sizes import some

SHARE = some(3)
"""Inputs of each kind."""
FULL = int(os.environ.get("SPASEQ_RANDOM", "2000")) // 4


def _nothing_found(folder: Path, first: int, end: int) -> None:
    campaign = Campaign(folder)
    try:
        for kind in KINDS:
            campaign.run(kind, first, end)
    finally:
        campaign.close()
    told = [f"{path}: {json.loads(path.read_text('utf-8'))['problem'][:5]}" for path in campaign.finds]
    assert not told, f"{campaign}\n" + "\n".join(told)
    assert campaign.counted.keys() == KINDS.keys()


def test_share(tmp_path: Path) -> None:
    _nothing_found(tmp_path, 0, SHARE)


@pytest.mark.slow
def test_full(tmp_path: Path) -> None:
    _nothing_found(tmp_path, 1_000_000, 1_000_000 + FULL)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "snapshot" not in kind])
def test_a_seed_is_an_input_and_a_file_holds_it(kind: str) -> None:
    given = kinds.drawn(kind, 3)
    assert Input.of_json(given.to_json()) == given == kinds.drawn(kind, 3)
    assert given != kinds.drawn(kind, 4)


# -- a find is found

_BEFORE = "import json, os, sys, time, pathlib\n"
_NEXT = """
asked = json.loads(sys.stdin.readline())
(pathlib.Path(sys.argv[2]) / "current").write_text(json.dumps({"kind": asked["kind"], "seed": asked["first"]}))
print(json.dumps({"begin": [asked["kind"], asked["first"]]}), flush=True)
"""


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("os.kill(os.getpid(), 11)", "ended with -11"),
        ("\nwhile True: pass", "hangs"),
        ("held = b'x' * (400 << 20); time.sleep(60)", "holds"),
    ],
)
def test_a_process_that_dies_hangs_or_swells_is_a_find_and_the_next_goes_on(
    tmp_path: Path, does: str, told: str
) -> None:
    campaign = Campaign(tmp_path, deaf=1.0, most=300 << 20, worker=("-c", _BEFORE + _NEXT + does))
    try:
        campaign.run("csv", 5, 7)
    finally:
        campaign.close()
    assert [path.name for path in campaign.finds] == ["csv-5.json", "csv-6.json"]
    whole = json.loads(campaign.finds[0].read_text("utf-8"))
    assert told in whole["problem"][0] and (whole["kind"], whole["seed"]) == ("csv", 5)


def _raising(error: Exception) -> Callable[..., None]:
    def raises(*given: object, **words: object) -> None:
        raise error

    return raises


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("x"), "KeyError"),
        (OptionError(""), "says nothing"),
        (OptionError("'NoneType' is not it, TypeError"), "inner name"),
        (EventError("bad"), "does not say where"),
    ],
)
def test_errors_that_are_not_as_promised_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    monkeypatch.setattr(ceql, "compile", _raising(error))
    given = Input("compile", ("ceql",), {"query": b"SELECT * WHERE A"})
    with pytest.raises(checks.Wrong, match=told):
        checks.run(given, tmp_path)
    (tmp_path / "find.json").write_text(given.to_json())
    assert again(tmp_path / "find.json") == 1


def test_events_that_are_lost_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Input("events", ("e.csv",), {"query.ceql": b"SELECT * WHERE A", "e.csv": b"type\nA\nB\n"})
    assert checks.run(given, tmp_path) == "exit 0"
    monkeypatch.setattr(checks, "_rows", lambda name, data: 3)
    with pytest.raises(checks.Wrong, match="3 records went in, 2 were read"):
        checks.run(given, tmp_path)


def test_what_is_drawn_is_right_often_enough_to_be_run(tmp_path: Path) -> None:
    """Mutation must not leave syntax errors alone."""
    rng = random.Random(1)
    said = [checks.run(kinds.drawn("ceql roads", rng.randrange(10**6)), tmp_path) for _ in range(some(60))]
    assert sum(text in ("matches", "no match") for text in said) > len(said) * 16 // 60
