"""The original engine's own operator tests, run as they are: query, stream file, data.

They lie outside the project (SPASEQ_DATA, or ../shared/data beside it) and are skipped by name where they are not. The
disjunction has an answer recorded by that engine; the other answers were worked out by hand from the data, and the
naive evaluator gives the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.cli.main import main
from spaseq.gpm import Knowledge
from spaseq.language.runtime.knowledge import knowledge_of
from spaseq.rdf import StreamOptions, parse_streams_file
from tests.support import oracle_spaseq, oracle_spaseq_text
from tests.support.data import DATA, needs
from tests.support.graph_events import open_streams

ROOT = Path(__file__).resolve().parents[2]
ORIGINAL = DATA / "spaseq-original"
KB = "http://www.example.com/kb"
EBAY = "http://example/company#eBay"

pytestmark = needs(ORIGINAL)

ARRIVAL = ["--time-from", "arrival"]
"""The original engine's clock."""

# folder: query, stream file, words of the command line, and for each match its instants and a part of its bindings
TESTS: dict[str, tuple[str, str, list[str], list[tuple[tuple[int, ...], dict[str, str]]]]] = {
    "conjunction": (
        "queryConjunction.q",
        "streamConjunction.txt",
        ["--time", "http://example/occursat", "--time-unit", "ms"],
        [((0, 1, 2), {"p1": "14.0", "p2": "12.0", "p3": "18.0", "p4": "16.0"})],
    ),
    "disjunction": (
        "queryDisjunction.q",
        "streamDisjunction.txt",
        ARRIVAL,
        [((0, 1, 2), {"company": EBAY, "p1": "14.0", "p4": "18.0"})],
    ),
    "kleeneplus": (
        "queryKleene.q",
        "streamKleene.txt",
        ARRIVAL,
        [
            ((0, 2, 4), {"p1": "14.0", "p2": "11.0", "p3": "16.0"}),
            ((0, 2, 3, 4), {"p1": "14.0", "p2": "10.0", "p3": "16.0"}),
            ((1, 2, 4), {"p1": "88.0", "p2": "11.0", "p3": "16.0"}),
            ((1, 2, 3, 4), {"p1": "88.0", "p2": "10.0", "p3": "16.0"}),
            ((2, 3, 4), {"p1": "11.0", "p2": "10.0", "p3": "16.0"}),
        ],
    ),
    "externalknowledgebase": (
        "queryKB.q",
        "streamKB.txt",
        [*ARRIVAL, "--kb", f"{KB}={ORIGINAL / 'externalknowledgebase' / 'externalKB.nt'}"],
        [((0, 1, 2), {"company": EBAY, "p1": "14.0", "p2": "12.0", "p3": "11.0", "name": "ebay", "loc": "usa"})],
    ),
    "multistreams-powergeneration": (
        "queryMultiStream.q",
        "streamMulti.txt",
        ARRIVAL,
        [
            ((0, 1, 2), {"p1": "34.98861718034252", "p2": "30.234364184884672"}),
            ((3, 7, 8), {"p1": "32.22947245672444", "p2": "30.234364184884672"}),
            ((6, 7, 8), {"p1": "34.98861718034252", "p2": "30.234364184884672"}),
            ((9, 10, 11), {"p1": "32.22947245672444", "p2": "31.46465722874301"}),
        ],
    ),
    "skip-till-next": ("queryFB.q", "streamFB.txt", ARRIVAL, [((0, 2, 3), {"company": EBAY, "vol1": "65.61"})]),
    "strict-contiguity": (
        "queryIF.q",
        "streamIF.txt",
        ARRIVAL,
        [((0, 1, 2), {"p1": "14.0", "p2": "12.0", "p3": "14.0", "vol3": "69.61"})],
    ),
}


def _parts(words: list[str]) -> tuple[dict[str, str], dict[str, Any]]:
    """The --kb files and the stream options among words of the command line."""
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    kb = dict([pairs.pop("--kb").split("=", 1)]) if "--kb" in pairs else {}
    return kb, {key[2:].replace("-", "_"): value for key, value in pairs.items()}


@pytest.mark.parametrize("folder", TESTS)
def test_operator(folder: str) -> None:
    query, streams_file, words, expected = TESTS[folder]
    kb, options = _parts(words)
    compiled = spaseq.compile((ORIGINAL / folder / query).read_text("utf-8"), source=query)
    streams = {spec.iri: spec.source() for spec in parse_streams_file(str(ORIGINAL / folder / streams_file))}
    found = list(compiled.run(streams, kb, **options))
    assert sorted(match.positions for match in found) == sorted(positions for positions, _ in expected)
    by_positions = {match.positions: match for match in found}
    for positions, bindings in expected:
        given = {name: str(term) for name, term in by_positions[positions].bindings.items()}
        assert bindings.items() <= given.items()


@pytest.mark.parametrize("folder", TESTS)
def test_the_command_runs_it(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    query, streams_file, words, expected = TESTS[folder]
    place = ORIGINAL / folder
    code = main(["run", str(place / query), "--streams", str(place / streams_file), "--format", "jsonl", *words])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "") and len(captured.out.splitlines()) == len(expected)


@pytest.mark.parametrize("folder", [name for name in TESTS if name != "multistreams-powergeneration"])
def test_the_naive_evaluator_agrees(folder: str) -> None:
    """Not for several streams by arrival: the naive evaluator takes equal times for one instant."""
    query, streams_file, words, _ = TESTS[folder]
    kb, options = _parts(words)
    text = (ORIGINAL / folder / query).read_text("utf-8")
    specs = parse_streams_file(str(ORIGINAL / folder / streams_file))
    compiled = spaseq.compile(text)
    found = {
        (m.times, frozenset((name, term.n3()) for name, term in m.bindings.items()))
        for m in compiled.run({spec.iri: spec.source() for spec in specs}, kb, **options)
    }
    names = {iri: name for name, iri in compiled.streams}
    events, _ = open_streams([spec.source() for spec in specs], StreamOptions.parse(**options))
    streams: dict[str, list[tuple[int, Any]]] = {name: [] for name in names.values()}
    for event in events:
        streams[names[event.stream]].append((event.time, _graph(event.triples)))
    answers = oracle_spaseq.evaluate(oracle_spaseq_text.read(text), streams, _knowledge(knowledge_of(kb)))
    assert {(times, mapping) for _, _, times, mapping in answers} == found


def _graph(triples: Any) -> oracle_spaseq.Graph:
    return frozenset((s.n3(), p.n3(), o.n3()) for s, p, o in triples)


def _knowledge(knowledge: Knowledge) -> dict[str, oracle_spaseq.Graph]:
    return {f"<{iri}>": _graph(graph) for iri, graph in knowledge.graphs.items()}


def test_the_credit_card_query_names_its_unknown_variable(capsys: pytest.CaptureFixture[str]) -> None:
    path = ORIGINAL / "credit-card" / "queryCardFB.q"
    assert main(["check", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"{path}:26:21: GPM B names the unknown variable ?id1:")
    assert error.endswith("hint: did you mean ?id?\n")


def test_every_other_query_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    refused = {"queryCardFB.q"}
    for path in sorted(ORIGINAL.rglob("*.q")):
        if path.name not in refused:
            assert main(["check", str(path)]) == 0, path
    assert "Traceback" not in capsys.readouterr().err
