"""Small files that stand for much: refused, or read within bounds."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from spaseq.core import watch
from spaseq.core.engine import Settings
from spaseq.core.errors import EventError, LimitReached
from spaseq.core.events import unfinished
from spaseq.rdf import byte_chunks, files, read_knowledge

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
MB = 1 << 20


def _xml(declarations: str, text: str, behind: str = "") -> str:
    return f"""<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [ {declarations} ]>
<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="urn:e#"><rdf:Description rdf:about="urn:a">{behind}<e:p>{text}</e:p>
</rdf:Description></rdf:RDF>"""


def _objects(path: Path) -> list[str]:
    return [str(o) for _, _, o in read_knowledge(str(path))]


# -- entities


@pytest.mark.parametrize(
    ("declarations", "text", "said"),
    [
        (f'<!ENTITY rdf "{RDF}" > <!ENTITY owl "http://www.w3.org/2002/07/owl#" >', "&owl;Class", "http://www.w3.org/2002/07/owl#Class"),
        ('<!ENTITY base "http://e/"> <!ENTITY k "&base;k#"> <!ENTITY m "&k;m/&amp;/">', "&m;&#65;", "http://e/k#m/&/A"),
        ("<!-- of old --><!ENTITY\n a\n \"A\"\n>", "&a;&lt;", "A<"),
        ("", "&amp;", "&"),
    ],
)  # fmt: skip
def test_entities_that_stand_for_iris_are_read(tmp_path: Path, declarations: str, text: str, said: str) -> None:
    path = tmp_path / "k.rdf"
    path.write_text(_xml(declarations, text))
    assert _objects(path) == [said]
    for size in (1, 7, 60):
        (tmp_path / "part.rdf").write_bytes(b"".join(_recut(path.read_bytes(), size)))
        assert _objects(tmp_path / "part.rdf") == [said]


def _recut(data: bytes, size: int) -> Iterator[bytes]:
    """The document as it is handed on where it comes in small chunks."""
    from spaseq.rdf.entities import bounded_entities

    chunks = (data[at : at + size] for at in range(0, len(data), size))
    return bounded_entities(chunks, "k.rdf", unfinished.Fed("k.rdf"))


_NESTED = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 9))


@pytest.mark.parametrize(
    ("declarations", "behind", "said"),
    [
        ('<!ENTITY e0 "urn:x">' + _NESTED, "", "the entity e3 stands for more than 4,096 bytes"),
        (f'<!ENTITY e0 "{"x" * 4097}">', "", "the entity e0 stands for more than 4,096 bytes"),
        (f'<!ENTITY e0 "&#65;{"x" * 4090}&other;">', "", "declares no entity|stands for more than 4,096 bytes"),
        ("".join(f'<!ENTITY a{n} "{"x" * 4000}">' for n in range(300)), "", "more than 1,048,576 bytes together"),
        (f'<!-- <!ENTITY e0 "urn:x">{_NESTED} -->', "", "the entity e3 stands for"),
        ("", f'<!DOCTYPE x [<!ENTITY e0 "urn:x">{_NESTED}]>', "the entity e3 stands for"),
        (f'<!ENTITY e0 ">{"x" * 9000}">', "", "the entity e0 stands for more than 4,096 bytes"),
        (
            f'<!ENTITY e0 SYSTEM "x"> <!--{"x" * 5000}-->',
            "",
            'ENTITY e0 SYSTEM "x".* declares no entity, or a long one',
        ),
    ],
)
def test_entities_that_stand_for_more_are_refused_before_they_are_parsed(
    tmp_path: Path, declarations: str, behind: str, said: str
) -> None:
    path = tmp_path / "k.rdf"
    path.write_text(_xml(declarations, "&e8;", behind))
    with pytest.raises(EventError, match=said) as caught:
        read_knowledge(str(path))
    assert caught.value.source == str(path)


@pytest.mark.parametrize("declaration", ['<!ENTITY a SYSTEM "secret">', '<!ENTITY % a SYSTEM "secret"> %a;'])
def test_external_entities_are_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declaration: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "k.rdf").write_text(_xml(declaration, "&a;"))
    with pytest.raises(EventError, match="not RDF/XML"):
        read_knowledge("k.rdf")


def test_contexts_elsewhere_are_not_fetched(tmp_path: Path) -> None:
    path = tmp_path / "k.jsonld"
    path.write_text('{"@context": "http://127.0.0.1:9/context", "@id": "urn:a", "p": "1"}')
    with pytest.raises(EventError, match=r"not JSON-LD.* remote contexts"):
        read_knowledge(str(path))


# -- compressed


def test_zstd_is_decompressed_a_block_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "s.nq.zst"
    path.write_bytes(zstandard.compress(b"x" * (64 * MB)))
    assert path.stat().st_size < 10_000
    sizes = [len(chunk) for chunk in byte_chunks(str(path))]
    assert sum(sizes) == 64 * MB and max(sizes) < 2 * MB


@pytest.mark.parametrize("seed", range(20))
def test_zstd_files_are_cut_where_their_blocks_end(tmp_path: Path, seed: int) -> None:
    """Frames with and without sizes, checksums and windows; frames that are skipped; blocks of all kinds."""
    rng = random.Random(seed)
    whole = packed = b""
    for _ in range(rng.randint(1, 4)):
        data = rng.choice((b"", rng.randbytes(rng.choice((5, 300_000))), b"ab" * rng.choice((3, 400_000))))
        level = rng.choice((1, 3, 9))
        if rng.random() < 0.5:
            made = zstandard.ZstdCompressor(
                level=level, write_checksum=rng.random() < 0.5, write_content_size=rng.random() < 0.5
            )
            packed += made.compress(data)
        else:
            stream = zstandard.ZstdCompressor(level=level).compressobj()
            packed += stream.compress(data) + stream.flush()
        whole += data
        if rng.random() < 0.3:
            packed += b"\x5a\x2a\x4d\x18" + rng.choice((b"\0\0\0\0", b"\3\0\0\0abc"))
    path = tmp_path / "s.nq.zst"
    path.write_bytes(packed)
    assert b"".join(byte_chunks(str(path))) == whole
    size = rng.choice((1, 3, 1000))
    pieces = (packed[at : at + size] for at in range(0, len(packed), size))
    assert b"".join(files.unzstd(pieces)) == whole
    if whole and not packed.endswith((b"\0\0\0\0", b"abc")):
        path.write_bytes(packed[:-1])
        with pytest.raises(EventError, match="ends too early"):
            list(byte_chunks(str(path)))


@pytest.mark.parametrize("name", ["k.nq.zst", "k.nq.gz", "k.ttl.zst", "k.jsonld.gz", "k.rdf.zst"])
def test_a_long_text_in_a_small_file_is_bounded(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    head, end = {
        "nq": (b'<urn:a> <urn:p> "', b'" .'),
        "ttl": (b'<urn:a> <urn:p> """\n', b'""" .'),
        "jsonld": (b'[{"@id":"urn:a","urn:p":"', b'"}]'),
        "rdf": tuple(text.encode() for text in _xml("", "|").split("|")),
    }[name.split(".")[1]]
    pack = gzip.compress if name.endswith("gz") else zstandard.compress
    path = tmp_path / name
    path.write_bytes(pack(head + b"x" * (40 * MB) + end))
    monkeypatch.setattr(watch, "resident_bytes", lambda: 0)  # what the reader is about to hold is what counts
    with pytest.raises((EventError, LimitReached)), watch.limited(Settings(memory_limit=100 * MB)):
        read_knowledge(str(path))
    if not name.startswith("k.rdf"):  # whose parser has no bound of its own
        with pytest.raises(EventError, match=r"a (line|term) of more than 16,777,216 bytes"):
            read_knowledge(str(path))


def test_deep_documents_end_with_the_memory_that_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.ttl.zst"
    path.write_bytes(zstandard.compress(b"<urn:a> <urn:p> " + b"(" * (20 * MB)))
    monkeypatch.setattr(unfinished, "available_bytes", lambda: 100 * MB)
    with pytest.raises(MemoryError):
        read_knowledge(str(path))
