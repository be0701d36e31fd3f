"""Knowledge kept as a file: the same as its sources, and an error that says what to do where it is not."""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdflib import URIRef

import spaseq
from spaseq.cli.main import main
from spaseq.core.errors import EventError, OptionError
from spaseq.rdf import build_knowledge, check_kept, described_kept, open_kept, read_knowledge
from spaseq.rdf.columns import kept
from tests.support.sizes import some

LINES = r"""
<urn:a> <urn:p> "x" .
_:b <urn:p> <urn:h\u00e4us> <urn:graph> .
_:c <urn:q> _:b .
<urn:a> <urn:q> <urn:b> .
<urn:a> <urn:p> "cold"@EN .
<urn:a> <urn:p> "zwei\nZeilen"@de-AT .
<urn:a> <urn:n> "010"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:b> <urn:n> "1.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<urn:b> <urn:q> <urn:a> .
<urn:a> <urn:p> <urn:b> .
"""
TURTLE = "@prefix : <urn:> . :a :p [ :q 1, 1.0, 'h\u00e4'@en ] ; :q ( :a _:b ) . _:b :p :a , [] ; :n true ."
QUERY = """PREFIX : <urn:>
SELECT * FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?x :at ?y . GRAPH <urn:kb> { %s } } }"""
STREAM = "".join(f"<urn:x{i}> <urn:at> <urn:{node}> <urn:g{i}> .\n" for i, node in enumerate("abc"))


def _sources(folder: Path) -> list[str]:
    (folder / "k.nq").write_text(LINES, "utf-8")
    (folder / "k.ttl").write_text(TURTLE, "utf-8")
    return [str(folder / "k.nq"), str(folder / "k.ttl")]


def _built(folder: Path) -> str:
    return build_knowledge(_sources(folder), str(folder / "k.spaseq-kb")).path


@cache
def _compiled(pattern: str) -> spaseq.Query:
    return spaseq.compile(QUERY % pattern)


def _answers(folder: Path, pattern: str, kb: Any) -> list[tuple[Any, ...]]:
    (folder / "s.nq").write_text(STREAM, "utf-8")
    query = _compiled(pattern)
    matches = query.run({"S": str(folder / "s.nq")}, {"urn:kb": kb}, time_from="arrival")
    return [(m.start, sorted((name, term.n3()) for name, term in m.bindings.items())) for m in matches]


# -- the same as its sources


def test_a_built_file_has_what_its_sources_have(tmp_path: Path) -> None:
    path = _built(tmp_path)
    read, opened = read_knowledge(_sources(tmp_path)), read_knowledge(path)
    assert opened.terms.kept == path
    assert list(opened) == list(read) and len(opened) == len(read) == 22
    for predicates in (["urn:p"], ["urn:q", "urn:n"], ["urn:none"], []):
        rows, expected = opened.about(predicates), read.about(predicates)
        mine = [opened.terms.key(number) for number in rows.ravel().tolist()]
        assert mine == [read.terms.key(number) for number in expected.ravel().tolist()]
    keys = [opened.terms.key(number) for number in range(len(opened.terms))]
    assert opened.terms.find_keys([*keys, b"<urn:none>", b'"x"@en']).tolist() == [*range(len(keys)), -1, -1]
    own, theirs, places = opened.terms.literals(), read.terms.literals(), read.terms.find_keys(keys)
    assert (places >= 0).all()
    for name in ("kind", "number", "exact", "whole", "has_whole"):
        np.testing.assert_array_equal(getattr(own, name), getattr(theirs, name)[places])


@pytest.mark.parametrize("way", ["read", "opened"])
def test_rows_are_found_by_their_terms(way: str, tmp_path: Path) -> None:
    graph = read_knowledge(_sources(tmp_path) if way == "read" else _built(tmp_path))
    (predicate,) = graph.numbers(["urn:q"])
    low, high = graph.groups[predicate]
    for place in (0, 2):
        for given in (graph.rows[low:high, place], graph.rows[low : low + 1, place], graph.rows[:, 1], np.zeros(0)):
            terms = np.unique(given).astype(np.int32)
            found = graph.find(predicate, place, terms)
            assert found.tolist() == [r for r in range(low, high) if graph.rows[r, place] in terms]
    assert not len(graph.find(len(graph.terms), 0, terms))


PATTERNS = [
    "?y :q ?z",
    "?z :q ?y",
    "?y :q ?z . ?z :p ?w",
    "?y ?p ?z",
    "?z :p ?y . ?z ?p ?w",
    ":a :n ?n",
    "?z :p :b . ?z :q ?y",
    ":none :n ?n",
    ":a :p 'x' . ?y :n 1.5",
    ":a :q _:w . _:w :q ?y",
    "?y :q ?z . ?z :q :a",
    "?y :n ?n FILTER (?n > 2)",
    "?y :q ?z OPTIONAL { ?z :n ?n }",
    "?y :q+ ?z",
    "?y (:p|:q)* ?z",
    "?y !:q ?z",
    "{ ?y :q ?z } UNION { ?y :p ?z }",
    "?y :p ?z MINUS { ?y :q ?z }",
    "?y :p ?z FILTER (isLiteral(?z) && STRLEN(?z) > 1)",
    "SELECT ?y (COUNT(?z) AS ?n) { ?y :p ?z } GROUP BY ?y",
    "?y :p ?z FILTER NOT EXISTS { ?z :q ?w }",
    "?z :none ?y",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_built_file_gives_the_answers_of_its_sources(pattern: str, tmp_path: Path) -> None:
    built = _built(tmp_path)
    expected = _answers(tmp_path, pattern, _sources(tmp_path))
    assert _answers(tmp_path, pattern, built) == expected
    assert sorted(map(str, _answers(tmp_path, pattern, open_kept(built).graph()))) == sorted(map(str, expected))
    assert expected or "none" in pattern


def test_a_built_file_among_others(tmp_path: Path) -> None:
    """Their triples together; knowledge that is there twice is there once."""
    first, second = _sources(tmp_path)
    built = build_knowledge(first, str(tmp_path / "first.spaseq-kb")).path
    assert set(read_knowledge([built, second])) == set(read_knowledge([first, second]))
    assert list(read_knowledge([built, first])) == list(read_knowledge(first))
    again = build_knowledge([built, second], str(tmp_path / "both.spaseq-kb")).path
    assert set(open_kept(again)) == set(read_knowledge([first, second]))
    build_knowledge(built, built)  # from itself
    assert list(open_kept(built)) == list(read_knowledge(first))


@pytest.mark.parametrize("name", ["k.ttl", "k.nt"])
def test_blank_nodes_of_files_that_have_one_name_stay_different(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Built in two folders, or of one file before and after it was changed, and used together."""
    files = []
    for number, value in enumerate("xyz"):
        folder = tmp_path / f"{min(number, 1)}"
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        Path(name).write_text(f'_:b <urn:p> "{value}" .\n')
        files.append(str(folder / f"{number}.spaseq-kb"))
        build_knowledge(name, files[-1])
    assert len({triple[0] for triple in read_knowledge(files)}) == 3
    assert len({triple[0] for triple in read_knowledge([*files, name])}) == 3  # the last is what was built of it


def test_no_knowledge_is_kept_as_well(tmp_path: Path) -> None:
    (tmp_path / "none.nt").write_text("")
    path = build_knowledge(str(tmp_path / "none.nt"), str(tmp_path / "none.spaseq-kb")).path
    assert list(open_kept(path)) == [] and _answers(tmp_path, "?y :q ?z", path) == []


# -- the file


def test_a_file_depends_on_its_sources_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this hash changes, `kept.VERSION` must: a file of the version before would be read as something else. (Not for
    other names of blank nodes.)"""
    monkeypatch.chdir(tmp_path)
    _sources(Path())
    for name in ("one", "two"):
        build_knowledge(["k.nq", "k.ttl"], f"{name}.spaseq-kb")
    assert Path("one.spaseq-kb").read_bytes() == Path("two.spaseq-kb").read_bytes()
    data = Path("one.spaseq-kb").read_bytes()
    (length,) = struct.unpack_from("<Q", data, 16)
    sections = json.loads(data[64 : 64 + length])["sections"]
    assert kept.VERSION == 1
    assert {name: digest for name, (_, _, digest) in sections.items()} == DIGESTS


DIGESTS = {
    "text": "bde2ff438b3e0e89952405dd4f4e1c4b",
    "hashes": "f0d17afb3b2a038a1f016727c1521054",
    "slots": "575b47648b30a52c4e0b97a4178c85e8",
    "start": "900a91d15737815bf55655138d390907",
    "length": "730c7913afc19d65e44d0fce2bd0b298",
    "kind": "1710e99a2f415acb71f30c23fb2cb343",
    "lexical": "6dddaafccd932182bb43f96681b324f5",
    "datatype": "53991a0154f104c17d51b8117ba7b42f",
    "rows": "eda3b9dc808dded65ef94dc59082a3a5",
    "predicates": "054b0a5fe025e8a3fa9e2486ac28b581",
    "begins": "1770a87ce056f35a5e2b21b6949ecac4",
    "by_subject": "420b3e88c1121105b03a2b95e37239ae",
    "by_object": "a670a55b473f5ec8945caac08ca53a1b",
}


def test_what_is_in_a_file(tmp_path: Path) -> None:
    path = _built(tmp_path)
    about = described_kept(path)
    assert about.triples == 22
    assert about.size == os.path.getsize(path)
    assert about.sources == tuple((name, os.path.getsize(name)) for name in _sources(tmp_path))
    assert about.predicates[0] == ("urn:p", 8) and sum(count for _, count in about.predicates) == 22
    check_kept(path)


def test_a_link_that_waits_where_a_file_is_written_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f"k.spaseq-kb.{os.getpid()}.part").symlink_to(victim)
    path = Path(_built(tmp_path))
    assert victim.read_text() == "mine" and not path.is_symlink()
    path.chmod(0o600)
    assert Path(_built(tmp_path)).stat().st_mode & 0o777 == 0o600


def test_a_file_is_written_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _built(tmp_path)
    before = Path(path).read_bytes()

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(EventError, match="cannot write: No space left on device"):
        build_knowledge(_sources(tmp_path)[0], path)
    assert Path(path).read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["k.nq", "k.spaseq-kb", "k.ttl"]


@pytest.mark.parametrize("name", ["k.kb", "s3a://bucket/k.spaseq-kb"])
def test_a_name_that_nobody_would_recognise_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no name for kept knowledge\nhint: .*NAME\.spaseq-kb"):
        build_knowledge(_sources(tmp_path), name)


# -- files that are none


def _with(at: int, form: str, value: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        struct.pack_into(form, changed, at, value)
        return bytes(changed)

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: b"", "no knowledge kept by spaseq"),
        (lambda data: data[:40], "no knowledge kept by spaseq"),
        (lambda data: LINES.encode() * 9, "no knowledge kept by spaseq"),
        (lambda data: data[:-1], "cut off: "),
        (lambda data: data[: len(data) // 2], "cut off: "),
        (lambda data: data + b"\0", "its header is not what was written"),
        (_with(8, "<I", 2), "knowledge kept in format 2, and this version of spaseq reads 1"),
        (_with(12, "<I", 3), "another byte order"),
        (_with(16, "<Q", 1 << 60), "its header is not what was written"),
        (_with(24, "<Q", 0), "its header is not what was written"),
        (_with(24, "<Q", 1 << 60), "cut off"),
        (_with(100, "<B", 0), "its header is not what was written"),
    ],
)
def test_a_file_that_is_none(change: Callable[[bytes], bytes], problem: str, tmp_path: Path) -> None:
    path = _built(tmp_path)
    Path(path).write_bytes(change(Path(path).read_bytes()))
    for use in (open_kept, described_kept, check_kept, read_knowledge):
        with pytest.raises(EventError) as caught:
            use(path)
        assert problem in caught.value.problem
        assert str(caught.value).endswith(f"hint: build it again: spaseq knowledge build FILE… -o {path}")


def test_a_header_that_was_made_up(tmp_path: Path) -> None:
    """Its hash is right, and what it says is not."""
    path = _built(tmp_path)
    data = Path(path).read_bytes()
    length, size = struct.unpack_from("<QQ", data, 16)
    text = json.loads(data[64 : 64 + length])
    rng = random.Random(5)
    values: list[Any] = [0, -64, 64, 1 << 70, None, "x", 1.5, [], size]
    for _ in range(300):
        made = json.loads(json.dumps(text))
        name = rng.choice(list(made["sections"]))
        what = rng.randrange(4)
        if what < 2:
            made["sections"][name][what] = rng.choice(values)
        elif what == 2:
            made[rng.choice(list(made))] = rng.choice(values)
        else:
            del made["sections"][name]
        header = json.dumps(made).encode().ljust(length)[:length]
        Path(path).write_bytes(kept._head(header, size) + header + data[64 + length :])
        try:
            list(open_kept(path))
        except EventError as error:
            assert "build it again" in error.hint


_TEXTS = [
    "BIND(UCASE(STR(?l)) AS ?u)",
    "FILTER(STRLEN(?l) > 2)",
    'FILTER(REGEX(STR(?l), "a"))',
    "FILTER(LANG(?l) = 'en')",
]


@pytest.mark.parametrize("change", ["text", "kind", "lexical"])
@pytest.mark.parametrize("part", _TEXTS)
def test_texts_of_a_damaged_file_are_not_taken_for_text(tmp_path: Path, part: str, change: str) -> None:
    """Bytes that are no UTF-8, an IRI that is said to be a literal, and one that does not end where it is said to."""
    path = _built(tmp_path)
    data = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data, 16)
    at, count, _ = json.loads(data[64 : 64 + length])["sections"][change]
    changed = bytearray(data)
    if change == "text":
        changed = bytearray(data.replace(b"cold", b"c\x80ld"))
    elif change == "kind":
        changed[at : at + count] = b"\2" * count
    else:
        changed[at : at + 4 * count] = struct.pack("<i", 1) * count
    Path(path).write_bytes(changed)
    with pytest.raises(EventError, match="damaged") as caught:
        _answers(tmp_path, f"?x :p ?l {part}", path)
    assert caught.value.source == path


def test_a_header_of_deep_lists_is_damaged(tmp_path: Path) -> None:
    path = _built(tmp_path)
    data = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data, 16)
    header = b"[" * 200_000
    size = len(data) - length + len(header)
    Path(path).write_bytes(kept._head(header, size) + header + data[64 + length :])
    with pytest.raises(EventError, match="damaged"):
        open_kept(path)


@pytest.mark.parametrize("source", [[["a.nt", "big"]], [["a.nt", []]], [[{}, 5]], [["a.nt"]], "ab"])
def test_a_header_with_odd_sources_is_damaged(tmp_path: Path, source: object) -> None:
    """Its sum is right, and `knowledge info` would show it."""
    path = _built(tmp_path)
    data = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data, 16)
    about = json.loads(data[64 : 64 + length]) | {"sources": source}
    header = json.dumps(about).encode().ljust(length)
    assert len(header) == length
    Path(path).write_bytes(kept._head(header, len(data)) + header + data[64 + length :])
    with pytest.raises(EventError, match="damaged"):
        described_kept(path)


def test_damage_inside_is_an_error_or_a_false_answer(tmp_path: Path) -> None:
    """Nothing is read outside of the arrays (these kernels are interpreted, which checks), and nothing else is raised;
    reading all of it finds what it is."""
    built = _built(tmp_path)
    path = str(tmp_path / "damaged.spaseq-kb")
    data = Path(built).read_bytes()
    (length,) = struct.unpack_from("<Q", data, 16)
    places = {name: (at, count * np.dtype(kept._SECTIONS[name]).itemsize)
              for name, (at, count, _) in json.loads(data[64 : 64 + length])["sections"].items()}  # fmt: skip
    rng, refused, cases = random.Random(7), 0, some(120)
    for number in range(cases):
        changed = bytearray(data)
        at, size = places[rng.choice(list(places))]
        for _ in range(rng.choice((1, 1, 4))):
            changed[at + rng.randrange(size)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        Path(path).write_bytes(changed)
        try:
            _answers(tmp_path, PATTERNS[number % len(PATTERNS)], path)
            list(open_kept(path))
        except EventError as error:
            refused += 1
            assert error.source == path and "build it again" in error.hint
        if changed != data:
            with pytest.raises(EventError):
                check_kept(path)
    assert refused > cases // 6


# -- the command


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    _sources(Path())
    (tmp_path / "s.nq").write_text(STREAM)
    (tmp_path / "q.rq").write_text(QUERY % "?y :q ?z FILTER (isIRI(?z))")
    assert main(["knowledge", "build", "k.*", "-o", "k.spaseq-kb"]) == 0
    assert capsys.readouterr().out.startswith("k.spaseq-kb: 22 triples, ")
    assert main(["knowledge", "info", "--check", "k.spaseq-kb"]) == 0
    told = capsys.readouterr().out
    assert "made of k.nq, " in told and "\n  8  <urn:p>\n" in told and told.endswith("as it was written\n")
    asked = ["run", "q.rq", "--stream", "S=s.nq", "--time-from", "arrival", "--format", "csv", "--kb"]
    assert main([*asked, "urn:kb=k.spaseq-kb"]) == 0
    found = capsys.readouterr().out
    assert main([*asked, "urn:kb=k.nq,k.ttl"]) == 0
    assert capsys.readouterr().out == found and found.count("\n") == 3
    data = bytearray(Path("k.spaseq-kb").read_bytes())
    data[-100] ^= 1
    Path("k.spaseq-kb").write_bytes(data)
    assert main(["knowledge", "info", "--check", "k.spaseq-kb"]) == 3
    assert "k.spaseq-kb: damaged: by_object is not what was written\nhint: build it again" in capsys.readouterr().err
    Path("k.spaseq-kb").write_bytes(data[:-1])
    assert main([*asked, "urn:kb=k.spaseq-kb"]) == 3
    assert "k.spaseq-kb: cut off: " in capsys.readouterr().err


def test_constants_are_found_as_in_the_sources(tmp_path: Path) -> None:
    graph = open_kept(_built(tmp_path))
    assert graph.terms.id_of(URIRef("urn:b")) >= 0 > graph.terms.id_of(URIRef("urn:none"))
