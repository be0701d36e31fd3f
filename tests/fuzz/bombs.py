"""Forged states and bombs: what is small, well-formed at first sight, and stands for what it should not."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import struct
import tempfile
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.fuzz.inputs import Input

__all__ = ["BOMBS"]

MB = 1 << 20
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

# -- snapshots whose sums are right


_ODD: tuple[Any, ...] = (
    None, 0, -1, 1, 2, "", b"", "x", [], (), {}, [None], (0, 0), [(1, 2)], {0: 0}, {"a": 1}, 1.5, True, float("inf"),
    1 << 63, 1 << 70, -(1 << 63), np.zeros(3, np.int64), np.zeros(0, np.int64), np.zeros((2, 3), np.int64),
)  # fmt: skip
_TYPES = (np.int8, np.int32, np.int64, np.float64, np.uint8, np.bool_, np.uint64)


def _changed(value: Any, rng: random.Random) -> Any:
    """A copy of a decoded state in which one part, at any depth, is another value, of any type."""
    parts = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if _has_parts(value) else []
    if parts and rng.random() < 0.85:
        key, part = rng.choice(parts)
        if isinstance(value, dict):
            return {**value, key: _changed(part, rng)}
        return type(value)([*value[:key], _changed(part, rng), *value[key + 1 :]])
    if isinstance(value, np.ndarray) and rng.random() < 0.7:
        with np.errstate(all="ignore"):
            match rng.randrange(4):
                case 0:
                    return value.astype(rng.choice(_TYPES))
                case 1:
                    return value.reshape(-1) if value.ndim > 1 else value.reshape(-1, 1)
                case 2:
                    return value[: rng.randrange(len(value) + 1)]
        changed = value.copy()
        if changed.size:
            changed.reshape(-1)[rng.randrange(changed.size)] = rng.choice((0, 1, 100))
        return changed
    return rng.choice((*_ODD, [value], (value,), [value, value]))


def _has_parts(value: Any) -> bool:
    return type(value) in (list, tuple) and bool(value)


def _snapshot(rng: random.Random) -> Input:
    from spaseq.core.events.batch import INSTANTS
    from spaseq.core.snapshot.codec import decode, encode
    from spaseq.rdf import TERMS
    from tests import test_snapshots

    language = rng.choice(("ceql", "spaseq"))
    kinds = (INSTANTS,) if language == "ceql" else (TERMS,)
    kept = rng.choice(test_snapshots.BY_NAME[language])
    state, _ = _taken(language, kept.name)
    begin, end = test_snapshots.contents_of(state)
    value = decode(state[begin:end], kinds)
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = _changed(value, rng)
    with contextlib.suppress(TypeError, ValueError, OverflowError):  # what cannot be written is not forged either
        state = test_snapshots.with_contents(state, encode(value, kinds))
    return Input("snapshot", (language, kept.name), {"state": state})


@cache
def _taken(language: str, name: str) -> tuple[bytes, Any]:
    from tests import test_snapshots

    (kept,) = (kept for kept in test_snapshots.BY_NAME[language] if kept.name == name)
    found: tuple[bytes, Any] = test_snapshots.broken(kept)
    return found


# -- knowledge that is kept


_LINES = """<urn:a> <urn:p> "x" .
_:b <urn:p> <urn:häus> .
<urn:a> <urn:q> <urn:b> .
<urn:a> <urn:p> "cold"@en .
<urn:a> <urn:n> "010"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:b> <urn:n> "1.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<urn:b> <urn:q> <urn:a> .
"""
_PATTERNS = (
    "?x :q ?v", "?x ?p ?v", "?x :p ?l BIND(UCASE(STR(?l)) AS ?u)", "?x :n ?v FILTER(?v > 1)", "?v :p ?l . ?x :q ?v",
    '?x ?p ?v FILTER(REGEX(STR(?v), "o"))', '?x :p ?l FILTER(LANG(?l) = "en")', "?x :q+ ?v",
    "?x ?p ?l FILTER(isIRI(?l))",
)  # fmt: skip
_QUERY = """PREFIX : <urn:> SELECT * FROM STREAM S <urn:s>
WHERE { SEQ (A) DEFINE GPM A ON S { ?x :at ?y . GRAPH <urn:kb> { %s } } }"""


@cache
def _kept() -> bytes:
    from spaseq.rdf import build_knowledge

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "k.nt").write_text(_LINES, "utf-8")
        return Path(build_knowledge(f"{folder}/k.nt", f"{folder}/k.spaseq-kb").path).read_bytes()


def _knowledge(rng: random.Random) -> Input:
    """A file of knowledge with other bytes in its arrays, or another header with a sum that is right."""
    from spaseq.rdf.columns import kept

    data = bytearray(_kept())
    (length,) = struct.unpack_from("<Q", data, 16)
    about = json.loads(bytes(data[64 : 64 + length]))
    if rng.random() < 0.2:
        made = _changed(about, rng)
        text = json.dumps(made, default=str).encode().ljust(length)[:length]
        data[: 64 + length] = kept._head(text, len(data)) + text
    else:
        for _ in range(rng.choice((1, 1, 2, 9))):
            at, count, _ = about["sections"][rng.choice([*about["sections"], "text"])]
            place = at + rng.randrange(max(count, 1))
            data[place] = rng.choice((0, 1, 0x7F, 0x80, 0xC3, 0xFF, rng.randrange(256)))
    files = {
        "q.rq": (_QUERY % rng.choice(_PATTERNS)).encode(), "k.spaseq-kb": bytes(data),
        "s.nt": b'<urn:a> <urn:at> "1" .\n<urn:b> <urn:at> "2" .\n', "k.nt": _LINES.encode(),
    }  # fmt: skip
    arguments = rng.choice((
        ("spaseq", "run", "q.rq", "--stream", "S=s.nt", "--time-from", "arrival", "--kb", "urn:kb=k.spaseq-kb"),
        ("spaseq", "run", "q.rq", "--stream", "S=s.nt", "--time-from", "arrival", "--kb", "urn:kb=k.spaseq-kb",
         "--gpm", "rdflib"),
        ("spaseq", "knowledge", "info", "k.spaseq-kb"),
        ("spaseq", "knowledge", "build", "k.spaseq-kb", "k.nt", "-o", "o.spaseq-kb"),
    ))  # fmt: skip
    return Input("command", arguments, files)


# -- bombs


def _filled(rng: random.Random) -> int:
    """Bytes that are filled."""
    return rng.choice((1, 8, 40, 150, 400)) * MB


def _text_bomb(rng: random.Random) -> tuple[str, bytes, bytes, bytes]:
    """The suffix of a file, what it begins with, what is repeated, what it ends with."""
    xml = f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="urn:e#">'.encode()
    return rng.choice((
        ("nq", b'<urn:a> <urn:p> "', b"x", b'" <urn:g> .\n'), ("nq", b"", b"<<( <urn:a> <urn:p> ", b""),
        ("nt", b"", b'<urn:a> <urn:p> "x" .\n', b""), ("nt", b'<urn:a> <urn:p> "', b"\\u0041", b'" .'),
        ("ttl", b"<urn:a> <urn:p> ", b"(", b""), ("ttl", b"<urn:a> <urn:p> ", b"[<urn:p> ", b""),
        ("ttl", b"<urn:a> <urn:p> (", b"1 ", b") ."), ("ttl", b'<urn:a> <urn:p> """', b"x\n", b'""" .'),
        ("ttl", b"", b"\n", b""), ("trig", b"<urn:g> { <urn:a> <urn:p> ", b'"1", ', b'"2" }'),
        ("rdf", xml + b"<rdf:Description><e:p>", b"x", b"</e:p></rdf:Description></rdf:RDF>"),
        ("rdf", xml + b'<rdf:Description><e:p rdf:parseType="Literal">', b"<a>", b""),
        ("jsonld", b"", b"[", b""), ("jsonld", b"", b'{"urn:p":', b""),
        ("jsonld", b'[{"@id":"urn:a","urn:p":"', b"x", b'"}]'),
        ("csv", b"type,v\nA,", b"x", b"\n"), ("csv", b'type,v\nA,"', b"x\n", b""), ("csv", b"type,v", b",", b"\n"),
        ("csv", b"type,v\n", b"\n", b""), ("jsonl", b'{"type":"A","v":"', b"x", b'"}\n'),
        ("jsonl", b'{"type":"A","v":', b"[", b""), ("jsonl", b'{"type":"A","v":[', b"[],", b"1]}\n"),
        ("jsonl", b"", b"\n", b""), ("jsonl", b'{"type":"A","v":[', b"1,", b"1]}\n"),
    ))  # fmt: skip


def _entities(rng: random.Random) -> bytes:
    """Entities that name each other."""
    names = [f"e{number}" for number in range(rng.randint(2, 9))]
    times = rng.choice((1, 2, 10, 60))
    declared = "".join(f'<!ENTITY {b} "{f"&{a};" * times}">' for a, b in pairwise(names))
    first = f'<!ENTITY e0 "{"x" * rng.choice((1, 40, 5000))}">'
    return f"""<!DOCTYPE rdf:RDF [{first}{declared}]>
<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="urn:e#"><rdf:Description><e:p>{f"&{names[-1]};" * times}</e:p></rdf:Description>
</rdf:RDF>""".encode()


def _parquet(rng: random.Random) -> bytes:
    rows = rng.choice((1, 1000, 100_000))
    text = "x" * rng.choice((10, 20_000, MB))
    values: Any = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text, "y"]))
    if rng.random() < 0.3:
        values = pa.ListArray.from_arrays([0] * rows + [rows], values)
    elif rng.random() < 0.3:
        values = pa.ListArray.from_arrays([0] * rows + [20 * MB], pa.array(np.zeros(20 * MB, np.int64)))
    out = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"type": ["A"] * rows, "v": values}), out, compression=rng.choice(("zstd", "gzip", "snappy")),
        store_schema=False, dictionary_pagesize_limit=1 << 40, data_page_version=rng.choice(("1.0", "2.0")),
    )  # fmt: skip
    return bytes(out.getvalue())


def _bomb(rng: random.Random) -> Input:
    chance = rng.random()
    if chance < 0.15:
        name, data = "b.rdf", _entities(rng)
    elif chance < 0.3:
        name, data = "b.parquet", _parquet(rng)
    else:
        suffix, head, fill, end = _text_bomb(rng)
        whole = head + fill * (_filled(rng) // len(fill)) + end
        packed = rng.choice((".zst", ".zst", ".gz"))
        name, data = (
            f"b.{suffix}{packed}",
            (zstandard.compress(whole) if packed == ".zst" else gzip.compress(whole, 1, mtime=0)),
        )
    if name.split(".")[1] in ("csv", "jsonl", "parquet"):
        arguments: tuple[str, ...] = ("ceql", "run", "SELECT * WHERE A AS a ; B FILTER a.v = 1", "--events", name)
        return Input("bomb", arguments, {name: data})
    query = ("PREFIX : <urn:> SELECT * FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S "
             "{ ?x :p ?y %s } }")  # fmt: skip
    files = {name: data, "s.nt": b'<urn:a> <urn:p> "1" .\n'}
    arguments = ("spaseq", "run", query % "GRAPH <urn:kb> { ?u :p ?w }", "--stream", "S=s.nt", "--kb", f"urn:kb={name}")
    if name.split(".")[1] in ("nq", "nt", "ttl", "trig") and rng.random() < 0.6:
        arguments = ("spaseq", "run", query % "", "--stream", f"S={name}")
    return Input("bomb", (*arguments, "--time-from", "arrival", "--limit", "3"), files)


BOMBS = {"forged snapshot": _snapshot, "forged knowledge": _knowledge, "bomb": _bomb}
"""By name how a kind is drawn."""
