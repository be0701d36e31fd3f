"""Random result forms over the solutions of random streams: the engine against the definitions."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.rdf import StreamOptions
from tests.support import harness
from tests.support import oracle_spaseq_results as forms
from tests.support.graph_events import read_stream
from tests.support.oracle_spaseq_results import Aggregate, Form

E = "http://example.org/"
SECONDS = 10
"""The window."""
VARIABLES = ("s", "x", "n", "y")
BASE = """PREFIX : <http://example.org/>
{select} WITHIN 10 SECONDS FROM STREAM S <http://example.org/S>
WHERE {{ SEQ ({sequence})
  DEFINE GPM A ON S {{ ?s :p ?x OPTIONAL {{ ?s :n ?n }} }}
  DEFINE GPM B ON S {{ ?s :q ?y }} }} {tail}
"""
FULL = int(os.environ.get("SPASEQ_RANDOM", "2000")) // 5


def _streams(rng: random.Random) -> harness.Graphs:
    events = []
    for time in sorted(rng.sample(range(3 * SECONDS), rng.randrange(4, 12))):
        triples = []
        for _ in range(rng.randrange(1, 4)):
            triples.append(f":{rng.choice('abc')} :{rng.choice('ppqn')} {rng.randrange(5)}")
        events.append((time, " . ".join(dict.fromkeys(triples))))
    return {"S": events}


def _expression(rng: random.Random, names: Sequence[str]) -> forms.Expression:
    if rng.random() < 0.3:
        return ("?", rng.choice(names))
    other: Any = ("?", rng.choice(names)) if rng.random() < 0.5 else ("number", rng.randrange(4))
    return (rng.choice("+-*"), ("?", rng.choice(names)), other)


def _aggregate(rng: random.Random) -> Aggregate:
    match rng.randrange(3):
        case 0:
            return Aggregate("COUNT", None)
        case 1:
            return Aggregate("COUNT", ("?", rng.choice(VARIABLES)), rng.random() < 0.5)
        case _:  # ?x is bound in every solution: what has no value makes no error
            return Aggregate(rng.choice(("SUM", "AVG", "MIN", "MAX")), _expression(rng, ("x",)), rng.random() < 0.2)


def _values(rng: random.Random) -> Any:
    names = rng.choice((("s",), ("s", "w"), ("w",)))
    rows = [
        tuple(
            rng.choice((f":{rng.choice('abc')}", None)) if name == "s" else rng.choice((7, 8, None)) for name in names
        )
        for _ in range(rng.randrange(1, 4))
    ]
    return names, tuple(rows)


def _form(rng: random.Random) -> Form:
    values = _values(rng) if rng.random() < 0.3 else None
    extra = tuple(name for name in (values[0] if values else ()) if name not in VARIABLES)
    group: tuple[str, ...] | None = None
    having = None
    select: list[tuple[str, Any]]
    if rng.random() < 0.5:
        group = tuple(rng.sample(("s", "n", "x"), rng.randrange(1, 3))) if rng.random() < 0.8 else None
        if values and not (group and set(values[0]) <= set(group)):
            values = None
        select = [(name, None) for name in group or ()]
        select += [(f"v{i}", _aggregate(rng)) for i in range(rng.randrange(1, 3))]
        if rng.random() < 0.4:
            having = (Aggregate("COUNT", None), rng.choice("><="), rng.randrange(1, 4))
    else:
        select = [(name, None) for name in rng.sample(VARIABLES + extra, rng.randrange(1, 4))]
        if rng.random() < 0.4:
            select.append(("v", _expression(rng, ("x", "n", "y"))))
    order: tuple[tuple[str, bool], ...] = ()
    limit, offset = None, 0
    if rng.random() < 0.6:
        names = [name for name, _ in select]
        others = [name for name in VARIABLES if name not in names] if group is None and having is None else []
        if any(isinstance(how, Aggregate) for _, how in select):
            others = []
        order = tuple((name, rng.random() < 0.5) for name in rng.sample(names + others, len(names + others)))
        if rng.random() < 0.6:
            limit, offset = rng.randrange(4), rng.choice((0, 0, 1, 2))
    distinct = rng.random() < 0.3
    if distinct and limit is not None:
        order = tuple((name, down) for name, down in order if name in dict(select))
    return Form(tuple(select), distinct, group, having, order, limit, offset, values)


def _plain(term: Any) -> Any:
    """A term of the naive evaluators or of the engine, as the result forms have it."""
    text = term if isinstance(term, str) and term[:1] in '<"_' else term.n3()
    if text.startswith("<"):
        return ":" + text[1:-1].removeprefix(E)
    if text.startswith("_:"):
        return "_:b"
    lexical = text[1:].split('"')[0] if text.startswith('"') else text
    number = Fraction(lexical)
    return int(number) if number.denominator == 1 else number


def _windows(graphs: harness.Graphs, sequence: str) -> dict[int, list[forms.Solution]]:
    text = BASE.format(select="SELECT *", sequence=sequence, tail="")
    found: dict[int, list[forms.Solution]] = {}
    answers = {(answer[2][-1], answer[3]) for answer in harness.spaseq_oracle(text, graphs, {})}
    for time, solution in sorted(answers, key=lambda pair: (pair[0], sorted(pair[1]))):
        mapping = {name: _plain(term) for name, term in solution}
        found.setdefault(time // (SECONDS * 10**9), []).append((time, mapping))
    return found


def _near(rows: Sequence[forms.Solution]) -> list[Any]:
    """Rows to compare: thirds have no end as decimals."""
    return [
        (t, tuple(sorted((n, v if isinstance(v, str) else round(float(v), 9)) for n, v in m.items()))) for t, m in rows
    ]


def _check(seed: int, folder: Path) -> int:
    rng = random.Random(seed)
    graphs, sequence, form = _streams(rng), rng.choice(("A ; B?", "A ; B", "A , B?", "A : B")), _form(rng)
    select, tail = forms.text(form)
    text = BASE.format(select=select, sequence=sequence, tail=tail)
    windows = _windows(graphs, sequence)
    lasts = {int(time) // SECONDS: int(time) * 10**9 for time, _ in graphs["S"]}  # the last instant of each window
    expected = [row for w, last in lasts.items() for row in forms.results(form, windows.get(w, []), last)]
    query = spaseq.compile(text)
    if rng.random() < 0.5:
        matches = list(query.run(harness.write_streams(graphs, folder)))
    else:
        session = query.open()
        events = list(read_stream(query.streams[0][1], [harness.write_streams(graphs, folder)["S"]], StreamOptions()))
        matches = [match for event in events for match in session.push(event)] + session.close()
    found = [(m.time, {name: _plain(term) for name, term in m.bindings.items()}) for m in matches]
    mine, theirs = _near(expected), _near(found)
    if not form.order and not form.grouped and form.limit is None and not form.distinct:
        mine = sorted(set(mine))  # a set of pairs (Definition 16)
        theirs = sorted(set(theirs))
    elif not form.order:
        mine, theirs = sorted(mine), sorted(theirs)
    assert theirs == mine, f"seed {seed}\n{text}\n{graphs}"
    return len(mine)


@pytest.mark.parametrize("block", range(4))
def test_sample(block: int, tmp_path: Path) -> None:
    assert sum(_check(seed, tmp_path) for seed in range(block * 15, (block + 1) * 15)) > 15


@pytest.mark.random
@pytest.mark.parametrize("block", range(20))
def test_full(block: int, tmp_path: Path) -> None:
    """A fifth of SPASEQ_RANDOM."""
    for seed in range(1_000 + block * FULL // 20, 1_000 + (block + 1) * FULL // 20):
        _check(seed, tmp_path)


@pytest.mark.parametrize("seed", range(8))
def test_construct(seed: int, tmp_path: Path) -> None:
    """The graphs of all solutions, whichever of the template's triples they fill."""
    rng = random.Random(seed)
    parts = [("?", name) for name in VARIABLES]
    template = [
        (rng.choice([*parts, "_:b", ":z"]), rng.choice((":r", ":t")), rng.choice([*parts, "_:b", 3]))
        for _ in range(rng.randrange(1, 4))
    ]
    rows = [" ".join(f"?{part[1]}" if isinstance(part, tuple) else str(part) for part in triple) for triple in template]
    graphs, sequence = _streams(rng), rng.choice(("A ; B?", "A ; B", "A , B?"))
    query = spaseq.compile(BASE.format(select=f"CONSTRUCT {{ {' . '.join(rows)} }}", sequence=sequence, tail=""))
    names = {part[1] for triple in template for part in triple if isinstance(part, tuple)}
    expected = set()
    for window in _windows(graphs, sequence).values():
        for time, mapping in window:
            expected.add((time, forms.graph(template, {n: t for n, t in mapping.items() if n in names})))
    found = {
        (m.time, frozenset(tuple(map(_plain, triple)) for triple in query.construct(m.bindings, i)))
        for i, m in enumerate(query.run(harness.write_streams(graphs, tmp_path)))
    }
    assert found == expected
