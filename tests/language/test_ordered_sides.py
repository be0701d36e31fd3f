"""FILTERs between GPMs that order texts, times, dates and truth values: the kernels against sets of mappings."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import spaseq
from spaseq.core.engine.program import text_order
from spaseq.core.engine.runs import evaluator as engine
from spaseq.core.engine.runs.coded import GuardRun
from spaseq.rdf import GraphEvent, StreamOptions
from tests.support.graph_events import read_stream
from tests.support.sizes import some

XSD = "http://www.w3.org/2001/XMLSchema#"
HEAD = "PREFIX x: <http://x/>\nSELECT * WITHIN 20 SECONDS FROM STREAM S <http://s/S>\nWHERE { SEQ (%s)\n"
GPMS = """DEFINE GPM A ON S { ?a x:one ?p }
DEFINE GPM B ON S { ?b x:two ?q FILTER (?q > ?p) }
DEFINE GPM C ON S { ?c x:one ?r FILTER (?r <= ?q) FILTER (?p < ?r) }
DEFINE GPM D ON S { ?d x:two ?s FILTER (?s <= ?p) }
DEFINE GPM E ON S { ?e x:one ?t FILTER (?t != ?p) FILTER (?q >= ?t) }
DEFINE GPM F ON S { ?f x:one ?u FILTER (?u != ?p) }
DEFINE GPM G ON S { ?g x:two ?v FILTER (?v = ?p) }"""
SEQUENCES = [
    "A; B",
    "A; B; C",
    "A; B+; C",
    "A; D!; B",
    "A, D+, B",
    "A; B; E",
    "A; D!",
    "A; F; D!; B",
    "A; G; D!; B",
    "A; B; G",
]
ERRORS = ["<http://n/a>", '"b"@en', f'"x"^^<{XSD}integer>', '"7"^^<http://own/type>']


def _zone(rng: random.Random) -> str:
    return rng.choice(["", "Z", "+05:00", "-11:30"])


def value(rng: random.Random, kind: str) -> str:
    match kind:
        case "string":
            text = rng.choice(["", "a", "a b", "a!", "ab", "é", "\U0001f600", "￿", 'q\\"t', "a\\tb", f"{rng.random()}"])
            return f'"{text}"' + rng.choice(["", f"^^<{XSD}string>"])
        case "dateTime":
            fraction = rng.choice(["", ".5", ".123456"])
            day, hour = rng.randrange(1, 4), rng.randrange(24)
            if rng.random() < 0.2:  # the first moment of the next day
                return f'"2026-01-0{day}T24:00:00{rng.choice(["", ".0"])}{_zone(rng)}"^^<{XSD}dateTime>'
            return f'"2026-01-0{day}T{hour:02}:30:00{fraction}{_zone(rng)}"^^<{XSD}dateTime>'
        case "date with zone":
            return f'"2026-01-{rng.randrange(10, 20)}{_zone(rng) or "Z"}"^^<{XSD}date>'
        case "date":
            return f'"2026-01-{rng.randrange(10, 20)}"^^<{XSD}date>'
        case "boolean":
            return f'"{rng.choice(["true", "false", "1", "0"])}"^^<{XSD}boolean>'
        case "time":
            return f'"{rng.randrange(10, 20)}:00:00"^^<{XSD}time>'
    return f'"{rng.randrange(9)}"^^<{XSD}{rng.choice(["integer", "decimal", "double"])}>'


def write(rng: random.Random, path: Path, kinds: list[str], several: float, errors: float) -> dict[str, str]:
    lines = []
    for i in range(some(180)):
        graph = f"<http://g/{i}>"
        for k in range(1 + (rng.random() < several)):
            found = rng.choice(ERRORS) if rng.random() < errors else value(rng, rng.choice(kinds))
            lines.append(f"<http://n/{i}-{k}> <http://x/{rng.choice(['one', 'two'])}> {found} {graph} .")
        lines.append(f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{i}"^^<{XSD}integer> .')
    path.write_text("\n".join(lines) + "\n")
    return {"S": str(path)}


def row(m: spaseq.Match) -> str:
    return f"{m.start} {m.end} {m.positions} {sorted(m.bindings.items())}"


def compiled(sequence: str) -> spaseq.Query:
    own = "\n".join(gpm for gpm in GPMS.splitlines() if gpm.split()[2] in sequence)
    return spaseq.compile(f"{HEAD % sequence}{own} }}")


KINDS = {
    "string": ["string"], "dateTime": ["dateTime"], "boolean": ["boolean"], "date": ["date"], "number": ["number"],
    "date with zone": ["date with zone"], "nothing": ["nothing"], "time": ["time"], "dates": ["date", "date with zone"],
    "mixed": ["string", "number", "dateTime"],
}  # fmt: skip
HANDED_OVER = {"time", "dates", "mixed"}


_QUICK = ("number", "dateTime", "mixed")


@pytest.mark.parametrize(("kind", "scarce"), [
    *(pytest.param(kind, False, marks=() if kind in _QUICK else pytest.mark.slow) for kind in KINDS), ("string", True)
])  # fmt: skip
def test_the_kernels_and_the_runs_agree(
    kind: str, scarce: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if scarce:  # labels of texts, which are given anew every few events
        monkeypatch.setattr(text_order, "_TOP", 1 << 10)
        monkeypatch.setattr(text_order, "_STEP", 4)
    rng, matches, stayed = random.Random(f"{kind} {scarce}"), 0, True
    for sequence in SEQUENCES:
        streams = write(
            rng, tmp_path / "s.nq", KINDS[kind], rng.choice((0.0, 0.3)), 0.0 if "D!; B" in sequence else 0.1
        )
        query = compiled(sequence)
        with monkeypatch.context() as context:
            context.setattr(engine, "codes_of", lambda program: None)
            expected = sorted(map(row, query.run(streams=streams)))
        assert sorted(map(row, query.run(streams=streams))) == expected, sequence
        events = list(read_stream("http://s/S", [streams["S"]], StreamOptions()))
        for most in (1, 30):
            pushed, ended = pushes(query, events, rng, most)
            assert sorted(pushed) == expected, (sequence, most)
            stayed = stayed and (ended or bool({"E", "F", "G"} & set(sequence)))  # an equality of what has no order
        matches += len(expected)
    assert stayed == (kind not in HANDED_OVER)
    assert matches or kind == "nothing"


TINY = f'"0.{"0" * 330}1"^^<{XSD}decimal>'
HUGE = f'"1{"0" * 310}"^^<{XSD}decimal>'


@pytest.mark.parametrize(("first", "second", "expected"), [(TINY, '"0.0"', 0), ('"0.0"', TINY, 1), (HUGE, HUGE, 0)])
def test_decimals_beyond_doubles_are_compared_as_they_are(
    first: str, second: str, expected: int, tmp_path: Path
) -> None:
    """Of a double nothing is left of them, or it is infinite."""
    typed = [text if "^^" in text else f"{text}^^<{XSD}decimal>" for text in (first, second)]
    lines = [f"<http://n/{i}> <http://x/{name}> {text} <http://g/{i}> ."
             for i, (name, text) in enumerate(zip(("one", "two"), typed, strict=True))]  # fmt: skip
    (tmp_path / "s.nq").write_text("\n".join(lines) + "\n")
    streams = {"S": str(tmp_path / "s.nq")}
    for gpms, more in (("A; B", expected), ("A; G", int(first == second))):
        query = compiled(gpms)
        assert query.run(streams=streams, time_from="arrival").count() == more
        assert query.run(streams=streams, time_from="arrival", reference=True).count() == more
        session = query.open(options=StreamOptions.parse(time_from="arrival"))
        pushed = [m for event in read_stream("http://s/S", [streams["S"]], StreamOptions.parse(time_from="arrival"))
                  for m in session.push([event])]  # fmt: skip
        assert len([*pushed, *session.close()]) == more
    within = spaseq.compile(f"PREFIX x: <http://x/>\nSELECT * FROM STREAM S <http://s/S>\nWHERE {{ SEQ (A)\n"
                            f"DEFINE GPM A ON S {{ ?b x:two ?q FILTER (?q > {typed[0]}) }} }}")  # fmt: skip
    assert within.run(streams=streams, time_from="arrival").count() == expected
    assert within.run(streams=streams, time_from="arrival", reference=True).count() == expected


def pushes(query: spaseq.Query, events: list[GraphEvent], rng: random.Random, most: int) -> tuple[list[str], bool]:
    """The matches of events that are pushed, up to so many at once, and whether the kernels found all of them."""
    session, at, stayed = query.open(), 0, True
    found: list[str] = []
    while at < len(events):
        size = rng.randint(1, most)
        found += map(row, session.push(events[at : at + size]))
        at += size
        stayed = stayed and isinstance(getattr(session.recogniser.evaluator, "run", None), GuardRun)
        if rng.random() < 0.05:
            session = query.open(session.snapshot())
    return [*found, *map(row, session.close())], stayed
