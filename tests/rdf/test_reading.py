"""Files, formats and terms: what is read, what is refused, and what the messages say."""

from __future__ import annotations

import gzip
import logging
import pickle
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rdflib import BNode, Literal, URIRef

from spaseq.core.errors import EventError, OptionError
from spaseq.rdf import (
    GENERATED_AT,
    Counters,
    GraphEvent,
    Statement,
    StreamOptions,
    byte_chunks,
    expand_files,
    format_of,
    load_knowledge,
    plain_literal,
    read_statements,
    term_from_key,
    term_key,
)
from tests.support.graph_events import read_stream
from tests.support.sizes import some

XSD = "http://www.w3.org/2001/XMLSchema#"
NQUADS = f"""# power readings
<urn:h1> <urn:watt> "20"^^<{XSD}integer> <urn:g1> .
<urn:g1> <{GENERATED_AT}> "2026-01-01T00:00:10Z"^^<{XSD}dateTime> .

<urn:h1> <urn:watt> "25"^^<{XSD}integer> <urn:g2> .
<urn:g2> <{GENERATED_AT}> "2026-01-01T00:00:15Z"^^<{XSD}dateTime> .
"""
TRIG = f"""@prefix : <urn:> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <{XSD}> .

:g1 prov:generatedAtTime "2026-01-01T00:00:10Z"^^xsd:dateTime .
:g1 {{
    :h1 :watt 20 .
}}
:g2 {{ :h1 :watt 25 . }}
:g2 prov:generatedAtTime "2026-01-01T00:00:15Z"^^xsd:dateTime .
"""


def write(folder: Path, name: str, text: str) -> str:
    """A file of that name in `folder`, compressed if the name says so."""
    data = text.encode()
    if name.endswith(".gz"):
        data = gzip.compress(data)
    elif name.endswith(".zst"):
        data = zstandard.ZstdCompressor().compress(data)
    (folder / name).write_bytes(data)
    return str(folder / name)


def statements(path: str, **more: str) -> list[Statement]:
    return list(read_statements(path, format_of(path), **more))  # type: ignore[arg-type]


class TestFormats:
    @pytest.mark.parametrize("name", ["s.nq", "s.nquads", "s.nq.gz", "s.nq.zst", "s.trig", "s.trig.gz"])
    def test_named_graphs(self, tmp_path: Path, name: str) -> None:
        path = write(tmp_path, name, TRIG if "trig" in name else NQUADS)
        found = list(read_stream("urn:s", [path], StreamOptions()))
        assert [(event.time, str(event.graph)) for event in found] == [
            (1767225610 * 10**9, "urn:g1"),
            (1767225615 * 10**9, "urn:g2"),
        ]
        integer = URIRef(XSD + "integer")
        assert [event.triples for event in found] == [
            ((URIRef("urn:h1"), URIRef("urn:watt"), Literal(watt, datatype=integer)),) for watt in ("20", "25")
        ]
        assert [event.record for event in found] == ([7, 9] if "trig" in name else [2, 5])

    @pytest.mark.parametrize(("name", "text"), [("s.nq", NQUADS), ("s.trig", TRIG), ("s.trig.gz", TRIG)])
    def test_a_byte_order_mark_is_passed_over(self, tmp_path: Path, name: str, text: str) -> None:
        assert statements(write(tmp_path, name, "\ufeff" + text)) == statements(write(tmp_path, "plain." + name, text))

    def test_turtle_is_one_graph_a_file(self, tmp_path: Path) -> None:
        for k in range(3):
            write(tmp_path, f"data_{k}.ttl", f"@prefix : <urn:> .\n\n:a :p {k} ; :q [ :r 1 ] .")
        for by in (None, "graph"):
            found = list(read_stream("urn:s", [str(tmp_path / "data_*.ttl")], StreamOptions.parse(event_by=by)))
            assert [(event.time, len(event.triples)) for event in found] == [(0, 3), (10**6, 3), (2 * 10**6, 3)]
        nodes = {term for event in found for triple in event.triples for term in triple if isinstance(term, BNode)}
        assert len(nodes) == 3

    def test_n_triples_arrives_by_subject_runs(self, tmp_path: Path) -> None:
        path = write(tmp_path, "s.nt", '<urn:a> <urn:p> "1" .\n<urn:a> <urn:q> "1" .\n<urn:b> <urn:p> "1" .')
        options = StreamOptions.parse(interval="2s")
        assert [event.time for event in read_stream("urn:s", [path], options)] == [0, 2 * 10**9]

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(NQUADS.encode())))
        found = list(read_stream("urn:s", ["-"], StreamOptions()))
        assert [event.source for event in found] == ["<stdin>", "<stdin>"]

    def test_an_unknown_extension(self, tmp_path: Path) -> None:
        path = write(tmp_path, "s.dat", NQUADS)
        with pytest.raises(OptionError, match="cannot tell the format"):
            read_stream("urn:s", [path], StreamOptions())
        assert len(list(read_stream("urn:s", [path], StreamOptions.parse(format="nq")))) == 2
        with pytest.raises(OptionError, match="format csv: not known"):
            read_stream("urn:s", [path], StreamOptions.parse(format="csv"))


class TestWrongInput:
    def test_a_truncated_n_quads_file(self, tmp_path: Path) -> None:
        path = write(tmp_path, "s.nq", NQUADS[:-40])
        with pytest.raises(EventError) as error:
            list(read_stream("urn:s", [path], StreamOptions()))
        assert error.value.source == path
        assert error.value.record == 6
        assert str(error.value).startswith(f"{path}:6: not N-Quads at column ")
        assert error.value.hint == "the file ends in the middle of a statement: it seems to be cut off"

    @pytest.mark.parametrize("keep", range(len(NQUADS) - 42, len(NQUADS) - 2))
    def test_cut_anywhere_in_the_last_line(self, tmp_path: Path, keep: int) -> None:
        path = write(tmp_path, "s.nq", NQUADS[:keep])
        with pytest.raises(EventError, match="cut off") as error:
            list(read_stream("urn:s", [path], StreamOptions()))
        assert error.value.record == 6

    def test_a_bad_line(self, tmp_path: Path) -> None:
        lines = NQUADS.splitlines()
        lines[4] = '<urn:h1> watt "3" .'
        path = write(tmp_path, "s.nq", "\n".join(lines))
        with pytest.raises(EventError, match=r":5: not N-Quads at column 10: ") as error:
            statements(path)
        assert error.value.hint == ""

    def test_bad_lines_may_be_dropped_and_are_counted(self, tmp_path: Path) -> None:
        good = '<urn:a> <urn:p> "1" .'
        path = write(tmp_path, "s.nt", "\n".join(["nonsense", good, "# no", "more", "nonsense", good, good, "<urn:a"]))
        counters = Counters()
        found = list(read_statements(path, format_of(path), counters=counters, malformed="drop"))
        assert [statement[4] for statement in found] == [2, 6, 7]
        assert counters.malformed == 4
        assert counters.warnings() == ["4 malformed line(s) or unfinished event(s) dropped"]

    @pytest.mark.parametrize(
        ("text", "kept", "dropped"),
        [
            ('<urn:a> <urn:p>\n<urn:b> <urn:p> "1" .\n', [2], 1),  # a line that was cut off, the next is right
            ('<urn:a> <urn:p> "2"\n\n# no\n<urn:b> <urn:p> "1" .\n<urn:c> <urn:p> "1" .\n', [4, 5], 1),
            ('<urn:a> <urn:p> "2"\n. <urn:b> <urn:p> "1" .\n<urn:c> <urn:p> "1" .\n', [3], 2),
            ('<urn:a> <urn:p> "2" . x\n<urn:c> <urn:p> "1" .\n', [2], 1),  # a whole line is good or bad
            ('<urn:a> <urn:p> "2" .\n<urn:b> <urn:p> "2" . <urn:c>', [1], 1),
        ],
    )
    def test_a_line_is_bad_by_itself(self, tmp_path: Path, text: str, kept: list[int], dropped: int) -> None:
        """The parser tells on a later line that a statement was cut off; it is not that line which is bad."""
        path = write(tmp_path, "s.nt", text)
        counters = Counters()
        found = list(read_statements(path, format_of(path), counters=counters, malformed="drop"))
        assert [statement[4] for statement in found] == kept
        assert (counters.triples, counters.malformed) == (len(kept), dropped)
        with pytest.raises(EventError) as error:
            statements(path)
        assert error.value.record == (2 if kept == [1] else 1)

    @pytest.mark.parametrize(
        ("behind", "kept", "dropped"), [("", [1, 3], 1), (".\n", [1, 4], 2), ("\n# no\n", [1, 5], 1)]
    )
    def test_a_quad_without_its_dot_is_bad(self, tmp_path: Path, behind: str, kept: list[int], dropped: int) -> None:
        """The parser gives it, and misses the dot on a later line, which was dropped in its place."""
        quad = "<urn:a> <urn:p> <urn:b> <urn:g>"
        path = write(tmp_path, "s.nq", f"{quad} .\n{quad}\n{behind}{quad} .\n")
        counters = Counters()
        found = list(read_statements(path, format_of(path), counters=counters, malformed="drop"))
        assert ([statement[4] for statement in found], counters.malformed) == (kept, dropped)
        with pytest.raises(EventError, match="the line ends within a statement") as error:
            statements(path)
        assert error.value.record == 2

    def test_a_truncated_trig_file(self, tmp_path: Path) -> None:
        path = write(tmp_path, "s.trig", TRIG[: TRIG.index("25")])
        with pytest.raises(EventError, match=r"s\.trig:9: not TriG at column \d+: .*\nhint: .*cut off"):
            statements(path)

    def test_text_that_is_not_utf_8(self, tmp_path: Path) -> None:
        (tmp_path / "s.nt").write_bytes(b'<urn:a> <urn:p> "\xff" .\n')
        with pytest.raises(EventError, match=r":1: not N-Triples at column \d+: Invalid UTF-8"):
            statements(str(tmp_path / "s.nt"))

    @pytest.mark.parametrize("name", ["s.nt.gz", "s.nt.zst"])
    def test_compressed_data_cut_off(self, tmp_path: Path, name: str) -> None:
        path = write(tmp_path, name, "\n".join(f'<urn:a{k}> <urn:p> "{k * k}" .' for k in range(5000)))
        data = Path(path).read_bytes()
        Path(path).write_bytes(data[: len(data) // 2])
        with pytest.raises(EventError, match="cannot decompress") as error:
            statements(path)
        assert error.value.source == path
        Path(path).write_bytes(b"plain text")
        with pytest.raises(EventError, match="cannot decompress"):
            statements(path)

    def test_files_that_are_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(EventError, match="no such file"):
            read_stream("urn:s", [str(tmp_path / "no.nq")], StreamOptions())
        with pytest.raises(EventError, match="no file matches"):
            expand_files([str(tmp_path / "*.nq")])
        with pytest.raises(EventError, match="a folder"):
            expand_files([str(tmp_path)])
        with pytest.raises(EventError, match="no such file"):
            list(byte_chunks(str(tmp_path / "no.nq")))

    def test_relative_iris(self, tmp_path: Path) -> None:
        with pytest.raises(EventError, match=r"s\.ttl:2: not Turtle .*No scheme found.*\nhint: .*@base"):
            statements(write(tmp_path, "s.ttl", "\n<a> <b> <c> ."))

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=some(300))
    @given(
        name=st.sampled_from(["s.nq", "s.trig", "s.nq.gz", "s.nq.zst"]),
        edits=st.lists(
            st.tuples(st.floats(0, 1), st.sampled_from([b"", b"<", b'"', b"\xff", b"}", b"\n", b"@", b"\\"]))
        ),
        keep=st.floats(0, 1),
    )
    def test_damage_is_one_clear_error_or_none(
        self, tmp_path: Path, name: str, edits: list[tuple[float, bytes]], keep: float
    ) -> None:
        path = write(tmp_path, name, TRIG if "trig" in name else NQUADS)
        data = bytearray(Path(path).read_bytes())
        for place, piece in edits:
            at = int(place * len(data))
            data[at : at + 1] = piece
        Path(path).write_bytes(data[: int(keep * len(data))])
        try:
            list(read_stream("urn:s", [path], StreamOptions()))
        except EventError as error:
            assert error.source == path
            assert error.problem

    def test_triple_terms_and_directions(self, tmp_path: Path) -> None:
        path = write(tmp_path, "s.nt", "<urn:a> <urn:p> <<( <urn:a> <urn:b> )>> .\n")
        with pytest.raises(EventError, match=r"s\.nt:1: not N-Triples"):
            statements(path)
        path = write(tmp_path, "s.nt", '<urn:a> <urn:p> "x"@en--up .\n')
        with pytest.raises(EventError, match=r"s\.nt:1: not N-Triples"):
            statements(path)


class TestTerms:
    def test_lexical_forms_stay_and_nothing_is_logged(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
    ) -> None:
        forms = [
            f'"10"^^<{XSD}date>',
            f'"010"^^<{XSD}integer>',
            f'"1.50"^^<{XSD}decimal>',
            f'"x"^^<{XSD}double>',
            '"a"@en',
        ]
        path = write(tmp_path, "s.nt", "".join(f"<urn:a> <urn:p> {form} .\n" for form in forms))
        with caplog.at_level(logging.DEBUG):
            found = [statement[2] for statement in statements(path)]
            assert [term_key(term) for term in found] == forms
            events = list(read_stream("urn:s", [path], StreamOptions()))
            assert pickle.loads(pickle.dumps(events)) == events
        assert not caplog.records
        assert capsys.readouterr() == ("", "")
        assert not logging.getLogger("rdflib.term").disabled

    def test_strings_have_one_form(self, tmp_path: Path) -> None:
        path = write(tmp_path, "s.nt", f'<urn:a> <urn:p> "x"^^<{XSD}string> .\n<urn:a> <urn:p> "x" .\n')
        assert [statement[2] for statement in statements(path)] == [Literal("x")] * 2
        assert plain_literal(Literal("x", datatype=URIRef(XSD + "string"))) == Literal("x")
        assert plain_literal(Literal("x", lang="en")) == Literal("x", lang="en")

    @given(
        st.one_of(
            st.from_regex(r"\Aurn:[a-z]{1,5}\Z").map(URIRef),
            st.from_regex(r"\A[a-z]{1,5}\Z").map(BNode),
            st.builds(Literal, st.text()),
            st.builds(Literal, st.text(), lang=st.sampled_from(["en", "de-AT"])),
            st.builds(Literal, st.text(), datatype=st.just(URIRef("urn:type"))),
        )
    )
    def test_keys_are_reversible(self, term: URIRef | BNode | Literal) -> None:
        assert term_from_key(term_key(term)) == term
        assert type(term_from_key(term_key(term))) is type(term)

    def test_events_survive_pickling(self) -> None:
        triple = (BNode("b"), URIRef("urn:p"), Literal("010", datatype=URIRef(XSD + "integer"), normalize=False))
        event = GraphEvent("urn:s", 5, (triple,), URIRef("urn:g"), "f.nq", 3)
        copy = pickle.loads(pickle.dumps(event))
        assert copy == event
        assert str(copy.triples[0][2]) == "010"


class TestKnowledge:
    def test_formats(self, tmp_path: Path) -> None:
        ttl = "@prefix : <urn:> . :h1 :ownerName 'Ada' ; :nearBy :h2 ; :at [ :city :Ghent ] ."
        xml = (
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:x:">'
            '<rdf:Description rdf:about="urn:h1"><u:name>Ada</u:name></rdf:Description></rdf:RDF>'
        )
        assert len(load_knowledge(write(tmp_path, "kb.ttl", ttl))) == 4
        assert len(load_knowledge(write(tmp_path, "kb.ttl.gz", ttl))) == 4
        assert len(load_knowledge(write(tmp_path, "kb.n3", ttl))) == 4
        assert len(load_knowledge(write(tmp_path, "kb.rdf", xml))) == 1
        assert len(load_knowledge(write(tmp_path, "kb.trig", TRIG))) == 4
        assert len(load_knowledge(write(tmp_path, "kb.jsonld", '{"@id": "urn:a", "urn:p": [{"@value": "1"}]}'))) == 1

    def test_blank_nodes_of_two_files_stay_apart(self, tmp_path: Path) -> None:
        paths = [write(tmp_path, f"{k}.nt", '_:b <urn:p> "1" .\n') for k in "ab"]
        assert len(load_knowledge(paths)) == 2

    def test_wrong_knowledge(self, tmp_path: Path) -> None:
        with pytest.raises(EventError, match=r"kb\.ttl:2: not Turtle"):
            load_knowledge(write(tmp_path, "kb.ttl", "@prefix : <urn:> .\n:a :p ?x ."))
        with pytest.raises(EventError, match="no such file"):
            load_knowledge(str(tmp_path / "no.ttl"))
