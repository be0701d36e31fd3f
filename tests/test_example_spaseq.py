"""The SPAseq examples: the data is what the generators make, the command gives the expected results, and those are what
the queries mean by the naive evaluator.

Also their vocabularies: labelled, and without a gap that an example shows.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rdflib import OWL, RDF, RDFS, URIRef

from spaseq.cli.main import main
from spaseq.core.events.time import format_time
from spaseq.rdf import EventBy, StreamOptions, StreamSource, load_knowledge, term_key
from tests.support import oracle_spaseq, oracle_spaseq_text
from tests.support.graph_events import open_streams
from tests.support.graph_events_by_definition import instants

ROOT = Path(__file__).resolve().parent.parent
AARHUS = "http://www.insight-centre.org/dataset/SampleEventService#AarhusTrafficData"


@dataclass(frozen=True, slots=True)
class Example:
    """A query of an example with what a user gives it. `streams`: file by stream name. `knowledge`: file by IRI.
    `groups`: the property that connects, by IRI."""

    folder: str
    streams: dict[str, str]
    iris: tuple[str, ...]
    count: int
    ontology: str
    query: str = "query.rq"
    expected: str = "expected.csv"
    knowledge: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    event_by: str | None = None
    time: str | None = None

    @property
    def path(self) -> Path:
        return ROOT / "examples" / self.folder

    def words(self) -> list[str]:
        """The words of the command line, to be said in the example's folder."""
        words = ["run", self.query]
        for name, file in self.streams.items():
            words += ["--stream", f"{name}={file}"]
        words += ["--event-by", self.event_by] if self.event_by else []
        words += ["--time", self.time] if self.time else []
        for iri, file in self.knowledge.items():
            words += ["--kb", f"{iri}={file}"]
        for iri, connects in self.groups.items():
            words += ["--groups", f"{iri}={connects}"]
        return words


_SENSORS = {"S1": "182955.nq", "S2": "195578.nq", "S3": "195446.nq"}
_ROADS = tuple(AARHUS + file.removesuffix(".nq") for file in _SENSORS.values())
_GOOGLE = ("http://stockmarket.org/stocks/google",)
_AT = "http://stockmarket.org/ns#at"


def _shape(name: str, count: int, **more: dict[str, str]) -> Example:
    files = {"query": f"{name}.rq", "expected": f"expected-{name}.csv"}
    stream = {"S1": "google.nt"}
    return Example("stock-patterns", stream, _GOOGLE, count, "stock", **files, event_by="size:3", time=_AT, **more)  # type: ignore[arg-type]


EXAMPLES = {
    "smart grid": Example(
        "smart-grid", {"S1": "power.nq", "S2": "weather.nq", "S3": "storage.nq"},
        tuple(f"http://smartgrid.org/{name}" for name in ("power", "weather", "storage")), 23, "smart-grid",
        knowledge={"http://smartgrid.org/db": "kb.ttl"},
    ),
    "vessels": Example(
        "vessels", {"S1": "boats.nq"}, ("http://harbour.org/boats",), 8, "harbour",
        knowledge={"http://harbour.org/db": "kb.ttl"},
    ),
    "card fraud": Example(
        "card-fraud", {"S1": "withdrawals.nq"}, ("http://creditcard.org/withdrawals",), 7, "card",
        knowledge={"http://creditcard.org/db": "kb.ttl"},
    ),
    "V": _shape("v", 125),
    "W": _shape("w", 11, knowledge={"http://stockmarket.org/db": "kb.ttl"}),
    "head and shoulders": _shape("head-and-shoulders", 3),
    "traffic": Example("traffic", _SENSORS, _ROADS, 7, "traffic"),
    "traffic, as the text has it": Example(
        "traffic", _SENSORS, _ROADS, 23, "traffic", "spread.rq", "expected-spread.csv",
        knowledge={"http://traffic.org/roads": "roads.ttl"},
    ),
    "traffic, each network by itself": Example(
        "traffic", _SENSORS, _ROADS, 16, "traffic", "networks.rq", "expected-networks.csv",
        knowledge={"http://traffic.org/roads": "roads.ttl"},
        groups={"http://traffic.org/roads": "http://traffic.org/ns#connectedTo"},
    ),
}  # fmt: skip


def _expected(example: Example) -> tuple[list[str], list[list[str]]]:
    with (example.path / example.expected).open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


@pytest.mark.parametrize("folder", sorted({example.folder for example in EXAMPLES.values()}))
def test_the_generator_makes_the_files_byte_for_byte(folder: str, tmp_path: Path) -> None:
    home = ROOT / "examples" / folder
    subprocess.run([sys.executable, str(home / "generate.py"), str(tmp_path)], check=True)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made
    for name in made:
        assert (tmp_path / name).read_bytes() == (home / name).read_bytes(), name


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_command_gives_the_expected_result(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    example = EXAMPLES[name]
    monkeypatch.chdir(example.path)
    assert main([*example.words(), "--format", "csv"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.replace("\r\n", "\n") == (example.path / example.expected).read_text("utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_readme_says_what_the_command_prints(name: str) -> None:
    """The command line as it is tested, and the number of results."""
    example = EXAMPLES[name]
    readme = (example.path / "README.md").read_text("utf-8")
    said = re.sub(r"(\\?\s+)+", " ", readme)
    assert "spaseq " + " ".join(example.words()) in said
    header, rows = _expected(example)
    assert len(rows) == example.count and header[0] == "time"


def _graph(triples: object) -> oracle_spaseq.Graph:
    return frozenset((term_key(s), term_key(p), term_key(o)) for s, p, o in triples)  # type: ignore[attr-defined]


def _answers(example: Example) -> set[oracle_spaseq.Answer]:
    """The answers of the naive evaluator, which knows no lists and no aggregates: it gives the values of the last
    round in their place."""
    text = (example.path / example.query).read_text("utf-8")
    text = re.sub(r"\((\?\w+)\+ AS \?\w+\)|\(SUM\(\?\w+\) AS \?\w+\)", lambda match: match[1] or "", text)
    event_by = EventBy.parse(example.event_by) if example.event_by else None
    sources = [
        StreamSource(iri, (str(example.path / file),), event_by)
        for iri, file in zip(example.iris, example.streams.values(), strict=True)
    ]
    events, _ = open_streams(sources, StreamOptions(time=example.time))
    names = dict(zip(example.iris, example.streams, strict=True))
    streams: dict[str, list[tuple[int, oracle_spaseq.Graph]]] = {name: [] for name in example.streams}
    for event in events:
        streams[names[event.stream]].append((event.time, _graph(event.triples)))
    knowledge = {f"<{i}>": _graph(load_knowledge(str(example.path / f))) for i, f in example.knowledge.items()}
    for iri, connects in example.groups.items():
        knowledge[f"<{iri}>"] |= _groups(knowledge[f"<{iri}>"], f"<{connects}>")
    return oracle_spaseq.evaluate(oracle_spaseq_text.read(text), streams, knowledge)


def _groups(graph: oracle_spaseq.Graph, connects: str) -> oracle_spaseq.Graph:
    """Each entity with the least of those that it is connected with."""
    near = {(a, b) for s, p, o in graph if p == connects for a in (s, o) for b in (s, o)}
    while more := {(a, d) for a, b in near for c, d in near if b == c} - near:
        near |= more
    return frozenset((a, "<urn:spaseq:group>", min(d for c, d in near if c == a)) for a, _ in near)


def _text(key: str) -> str:
    """A term as SPARQL's CSV writes it."""
    return key[1:-1] if key.startswith("<") else key[1 : key.rindex('"')]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_expected_result_is_what_the_query_means(name: str) -> None:
    """In the columns that are variables of GPMs; where the last value of a list is one, in that too."""
    example = EXAMPLES[name]
    header, rows = _expected(example)
    answers = _answers(example)
    bound = {variable for *_, solution in answers for variable, _ in solution}
    columns = [column for column in header[1:] if column in bound]
    found = []
    for time, solution in oracle_spaseq.solutions(answers):
        values = {variable: _text(key) for variable, key in solution}
        found.append((format_time(time), *(values[column] for column in columns)))
    places = [0, *(header.index(column) for column in columns)]
    assert sorted(found) == sorted(tuple(row[place] for place in places) for row in rows)
    assert len(columns) >= 3


def test_the_lists_of_the_examples_add_up() -> None:
    """Of each list the last value is the newest, and SUM is the sum of its list."""
    header, rows = _expected(EXAMPLES["card fraud"])
    for row in rows:
        values = dict(zip(header, row, strict=True))
        small = [float(part) for part in values["small"].strip("[]").split(", ")]
        assert abs(sum(small) - float(values["sum"])) < 1e-9
        assert all(10 * amount <= float(values["amount1"]) for amount in small)


def test_the_story_of_the_smart_grid() -> None:
    """Runs of different length, one that waits past a storage report, and storages that directly follow the weather."""
    times = {at for _, _, at, _ in _answers(EXAMPLES["smart grid"])}
    assert len(times) == 17
    found = {tuple(format_time(time)[11:16] for time in at) for at in times}
    assert ("09:33", "09:48", "09:53", "09:55") in found
    assert ("11:00", "11:38", "11:43", "11:48", "11:53", "11:55") in found
    assert {len(at) for at in found} == {4, 5, 6}
    assert not any(at[0] == "08:02" for at in found)


def test_the_instants_of_the_smart_grid_are_as_its_generator_says() -> None:
    example = EXAMPLES["smart grid"]
    files = zip(example.iris, example.streams.values(), strict=True)
    merged, options = open_streams([StreamSource(i, (str(example.path / f),)) for i, f in files], StreamOptions())
    sizes = [len(instant.events) for instant in instants(merged, options)]
    assert len(sizes) == 12 * (6 + 4 + 1)
    assert sum(sizes) == 12 * (6 + 12 + 3)


@pytest.mark.parametrize("name", ["event", "smart-grid", "harbour", "card", "stock", "traffic"])
def test_vocabularies_are_labelled(name: str) -> None:
    ontology = load_knowledge(str(ROOT / "ontologies" / f"{name}.ttl"))
    kinds = {OWL.Class, OWL.ObjectProperty, OWL.DatatypeProperty, OWL.AnnotationProperty, OWL.NamedIndividual}
    terms = {term for kind in kinds for term in ontology.subjects(RDF.type, kind)}
    assert len(terms) >= 6
    for term in terms:
        assert ontology.value(term, RDFS.label), term
        assert ontology.value(term, RDFS.comment), term
    assert not list(ontology.subject_objects(OWL.imports))


def test_a_vocabulary_says_what_kinds_of_vessels_there_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ROOT / "examples" / "vessels"
    monkeypatch.chdir(folder)
    (said,) = re.findall(r"^spaseq (run kinds\.rq .*)$", (folder / "README.md").read_text("utf-8"), re.MULTILINE)
    words = [*said.split(), "--format", "csv"]
    assert main(words) == 0
    expected = (folder / "expected-kinds.csv").read_text("utf-8")
    assert capsys.readouterr().out.replace("\r\n", "\n") == expected and expected.count("\n") == 18
    for without in (",../../ontologies/harbour.ttl", " --entailment rdfs"):
        assert main([*said.replace(without, "").split(), "--format", "csv"]) == 0
        assert capsys.readouterr().out.splitlines() == ["time,vessel,n"]


def test_the_vocabulary_of_events_says_what_is_a_match(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both commands of the README, the first of which writes the stream of the second."""
    folder = ROOT / "examples" / "incidents"
    monkeypatch.chdir(folder)
    found = str(tmp_path / "found.nq")
    readme = (folder / "README.md").read_text("utf-8").replace("found.nq", found)
    first, second = re.findall(r"^spaseq (run .*)$", readme, re.MULTILINE)
    assert main(first.split()) == 0
    assert main([*second.split(), "--format", "csv"]) == 0
    assert capsys.readouterr().out.replace("\r\n", "\n") == (folder / "expected.csv").read_text("utf-8")
    for without in (",../../ontologies/event.ttl", " --entailment rdfs"):
        assert main([*second.replace(without, "").split(), "--format", "csv"]) == 0
        assert capsys.readouterr().out.splitlines() == ["time,line,second"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_use_no_term_that_their_vocabulary_lacks(name: str) -> None:
    example = EXAMPLES[name]
    ontology = load_knowledge(str(ROOT / "ontologies" / f"{example.ontology}.ttl"))
    (home,) = ontology.subjects(RDF.type, OWL.Ontology)
    known = {term for term in ontology.subjects(RDFS.label, None) if str(term).startswith(f"{home}#")}
    used = set()
    for file in (*example.streams.values(), *example.knowledge.values()):
        for triple in load_knowledge(str(example.path / file)):
            used |= {term for term in triple if isinstance(term, URIRef) and str(term).startswith(f"{home}#")}
    assert used and used <= known
