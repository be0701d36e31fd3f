"""Joins in the kernels against joins of mapping sets: the same matches, on streams too long for the oracle."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import spaseq
from spaseq.core.engine import Program
from spaseq.core.engine.runs import evaluator as engine
from spaseq.core.engine.runs.coded import GuardRun
from tests.support.sizes import some

HEAD = "PREFIX x: <http://x/>\nSELECT * %s FROM STREAM S <http://s/S> FROM STREAM T <http://s/T>\nWHERE { SEQ (%s)\n"
GPMS = """DEFINE GPM A ON S { ?a x:of ?c . ?a x:price ?p FILTER (?p > 3) }
DEFINE GPM B ON S { ?b x:of ?c . ?b x:price ?q FILTER (?q < ?p) }
DEFINE GPM C ON S { ?d x:of ?c . ?d x:price ?r FILTER (?r >= ?p) }
DEFINE GPM D ON T { ?e x:of ?f OPTIONAL { ?e x:mood ?m } }
DEFINE GPM E ON S, T { ?g x:of ?c }
DEFINE GPM F ON S { ?h x:of ?i FILTER (?i != ?c) }
DEFINE GPM H ON S { ?o x:of ?c . ?o x:price ?t FILTER (?t > ?p - 3) FILTER (-?t != ?q) }
DEFINE GPM I ON S { ?o x:of ?c . ?o x:price ?t FILTER (?t * 2 <= ABS(?p - 9)) }
DEFINE GPM K ON S { ?o x:of ?c . ?o x:price ?t FILTER (?t > ?p + ?q - 3) }
DEFINE GPM L ON S { ?o x:of ?c . ?o x:price ?t FILTER (!(?p * ?t / ?q <= ?t + 0.5) || ?t = ?q) }
DEFINE GPM M ON S { ?o x:of ?z . ?o x:price ?t FILTER (STR(?c) < STR(?z) || ?t IN (?p, ?p + 1)) }
DEFINE GPM N ON T { ?y x:of ?v OPTIONAL { ?y x:mood ?w } FILTER (CONCAT(?m, ?w) != "m1m1") }
DEFINE GPM O ON S { ?o x:of ?z . ?o x:price ?t FILTER (?p + ?q + ?r > 2 * ABS(-?t)) }
DEFINE GPM G ON T { ?j x:of ?k . ?j x:mood ?n FILTER (?n = ?m) FILTER (?j != ?e) }"""
SEQUENCES = ["A; B; C", "A: B", "A, B", "A; B+; C", "A; D: C", "A; B+, C", "A; D!; C", "D; A; E", "(A | D); E", "A+; C",
             "A; B?; C", "E; A", "A; (A & D); C", "A; F; E", "D; G", "A; D; F!; G", "A; F+; C", "A; B; H",
             "A; I+; C", "A: I", "A; B; C!", "A; D!", "D!; A; E", "A+; C!", "A?; D; C!", "A; B; K", "A: B: L",
             "A; M", "A; M+; C", "D; N", "D; G; N", "A; B; C; O", "A; B; K!; C", "A; B; C; O!", "A; B+; K",
             "A?; B; K", "A, B+, C", "A, B+; C", "A, E+, C", "A; F, E+, C", "A, B+, I+", "A, B+, C!", "A, B+, E+; C",
             "A; D!; E+, C"]  # fmt: skip
WINDOWS = ["WITHIN 20 SECONDS", "WITHIN 15 SECONDS SLIDING", "PARTITION BY (?c) WITHIN 30 SECONDS"]


def compiled(window: str, sequence: str) -> spaseq.Query:
    """With the definitions that the sequence names: to read all of them takes longer than the run."""
    own = "\n".join(gpm for gpm in GPMS.splitlines() if gpm.split()[2] in sequence)
    return spaseq.compile(f"{HEAD % (window, sequence)}{own} }}")


def write(rng: random.Random, folder: Path, events: int, several: float) -> dict[str, str]:
    """Two streams. `several`: how often an event has two subjects or three, and shares its instant."""
    lines: dict[str, list[str]] = {"S": [], "T": []}
    at = 0
    for i in range(events):
        name = rng.choice("SST")
        graph = f"<http://g/{i}>"
        for k in range(1 + (rng.random() < several) * rng.randrange(1, 3)):
            node = f"<http://n/{i}-{k}>"
            lines[name].append(f"{node} <http://x/of> <http://c/{rng.randrange(4)}> {graph} .")
            if name == "S":
                kind = rng.choice(("integer", "decimal", "double"))
                price = f'"{rng.randrange(9)}"^^<http://www.w3.org/2001/XMLSchema#{kind}>'
                lines[name].append(f"{node} <http://x/price> {price} {graph} .")
            elif rng.random() < 0.5:
                lines[name].append(f'{node} <http://x/mood> "m{rng.randrange(3)}" {graph} .')
        at += rng.random() >= several
        time = f'"{at}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        lines[name].append(f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time} .")
    for name, found in lines.items():
        (folder / f"{name}.nq").write_text("\n".join(found) + "\n")
    return {name: str(folder / f"{name}.nq") for name in lines}


def remembered(monkeypatch: pytest.MonkeyPatch) -> list[engine.Evaluator]:
    """The evaluators that are made from here on."""
    made: list[engine.Evaluator] = []

    class Remembered(engine.Evaluator):
        def __init__(self, program: Program) -> None:
            super().__init__(program)
            made.append(self)

    monkeypatch.setattr(spaseq.core.engine, "Evaluator", Remembered, raising=False)
    return made


def found(query: spaseq.Query, streams: dict[str, str]) -> list[str]:
    return sorted(f"{m.start} {m.end} {m.positions} {sorted(m.bindings.items())}" for m in query.run(streams=streams))


def windows(sequence: str) -> list[str]:
    """Those that the sequence may have, each sequence beginning at another one."""
    first = SEQUENCES.index(sequence) % len(WINDOWS)
    return [
        window
        for window in (*WINDOWS[first:], *WINDOWS[:first])
        # every GPM must bind the partition's variable, and no window begins at a time of its own
        if not ("PARTITION" in window and set("DFGMNO") & set(sequence))
        and not ("SLIDING" in window and sequence.startswith("D!"))
    ]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_the_kernels_and_the_runs_agree(sequence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, matches = random.Random(sequence), 0
    for number, window in enumerate(windows(sequence)):
        if matches and number >= some(3):
            break
        streams = write(rng, tmp_path, 80, rng.choice((0.0, 0.03, 0.3, 0.7)))
        query = compiled(window, sequence)
        with monkeypatch.context() as context:
            context.setattr(engine, "codes_of", lambda program: None)
            expected = found(query, streams)
        assert found(query, streams) == expected, window
        matches += len(expected)
    assert matches or "&" in sequence  # of single streams, no instant has both


LEAVE = ["(A | D); E", "A, B+, I+", "A, B+, E+; C"]


@pytest.mark.parametrize(
    ("sequences", "several", "leave"),
    [(LEAVE, 0.0, []), (SEQUENCES, 0.4, LEAVE), pytest.param(SEQUENCES, 0.0, [], marks=pytest.mark.slow)],
    ids=["those one by one", "all", "all one by one"],
)
def test_queries_stay_in_the_kernels(
    sequences: list[str], several: float, leave: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but those that may take an instant in two ways at once, which leave different mapping sets."""
    made = remembered(monkeypatch)
    streams = write(random.Random(7), tmp_path, 80, several)
    gone = []
    for sequence in sequences:
        found(compiled(WINDOWS[0], sequence), streams)
        run = made[-1].run
        if not isinstance(run, GuardRun):
            gone.append(sequence)
    assert gone == leave


def test_values_that_only_results_read_make_no_configurations(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many runs wait as the window has instants, in a configuration for each state and each value that is shared."""
    text = (
        "PREFIX x: <http://x/> SELECT * WITHIN 300 EVENTS FROM STREAM S <http://s/S> WHERE { SEQ (A : B : C)"
        " DEFINE GPM A ON S { ?a x:a ?p . ?a x:of ?c } DEFINE GPM B ON S { ?b x:b ?q . ?b x:of ?c }"
        " DEFINE GPM C ON S { ?d x:c ?r } }"
    )
    made = remembered(monkeypatch)
    with spaseq.compile(text).open() as session:
        for i in range(200):
            own = f"@prefix x: <http://x/> . <http://n/{i}> x:{'ab'[i % 2]} {i} ; x:of {i % 3} ."
            assert not session.push(own, time=i)
        assert not session.push("<http://n/c> <http://x/c> 7 .", time=200)
        assert made[-1].run.statistics["live_runs"] <= 4
        found = session.close()
    values = {tuple(int(str(match.bindings[name])) for name in "pqrc") for match in found}
    assert values == {(a, b, 7, a % 3) for b in range(1, 200, 2) for a in range(0, b, 2) if a % 3 == b % 3}
    assert len(found) == len(values)
