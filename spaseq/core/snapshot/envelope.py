"""The envelope of a snapshot: its identity and a checksum. A snapshot that does not fit raises `OptionError`.

    magic (8 bytes) | format version, length of the identity, length of the contents (uint32, uint32, uint64)
    | identity (UTF-8, JSON) | contents (`codec`) | BLAKE2b, 32 bytes, of all before

The *identity* describes the origin of the snapshot, as named texts: the language, the query, and everything else that
gives the contents their meaning. Each is stored as its SHA-256 and its first characters, so that the error for a
snapshot of another query can show that query. The identity leaves out the parts that may change between taking a
snapshot and opening it: budgets, and the background knowledge, whose changes take effect on opening.

The checksum detects accidental changes only: anyone can write a snapshot with a correct one; see
`spaseq.core.snapshot`. PERF: SHA-256 on a processor without instructions for it took half of the time of a snapshot,
hence BLAKE2b.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from spaseq.core.errors import OptionError, QueryError, SpaseqError
from spaseq.core.snapshot.checks import damage_error
from spaseq.core.snapshot.codec import Kind, Unwritable, decode, encode

Identity = Mapping[str, str]
"""The origin of a snapshot: `language`, `query` and more, by names that a message can use ("window", "settings")."""

_MAGIC: Final = b"\x93SPASEQ\n"
_VERSION: Final = 13
_SIZES: Final = struct.Struct("<IIQ")
_FRONT: Final = len(_MAGIC) + _SIZES.size
_CHECK: Final = 32
_SHOWN: Final = 200
_T = TypeVar("_T")


def shorten(text: str, most: int = _SHOWN) -> str:
    """`text` on one line, cut to `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def seal(identity: Identity, contents: Any, kinds: Sequence[Kind] = ()) -> bytes:
    """A snapshot of `contents`, which are plain values and values of `kinds`. O(size).

    Raises `OptionError` if the contents have values of other types, as events may.
    """
    try:
        body = encode(contents, kinds)
    except Unwritable as error:
        raise OptionError(str(error), "it can hold numbers, texts, truth values, times, and lists of these") from error
    said = {name: [_digest(text), shorten(text)] for name, text in identity.items()}
    front = json.dumps(said).encode()
    parts = [_MAGIC, _SIZES.pack(_VERSION, len(front), len(body)), front, body]
    checksum = hashlib.blake2b(digest_size=_CHECK)
    for part in parts:
        checksum.update(part)
    return b"".join([*parts, checksum.digest()])


def unseal(data: Any, identity: Identity, kinds: Sequence[Kind], restore: Callable[[Any], _T]) -> _T:
    """Opens a snapshot: the result of `restore` for its contents.

    Raises `OptionError` if `data` is no snapshot, is damaged or of another format, if its identity is not `identity`,
    and if `restore` fails on the contents. `BudgetExceeded` if a budget is too small for the state.
    """
    front, body = _open(data)
    _compare(front, identity)
    try:
        return restore(decode(body, kinds))
    except SpaseqError as error:
        if error.exit_code == 1 or isinstance(error, QueryError):  # the query was compiled: these contents are forged
            raise damage_error("its contents are no state of an evaluation") from error
        raise
    except Exception as error:  # forged contents may make any part fail in any way
        raise damage_error("its contents are no state of an evaluation") from error


def _open(data: Any) -> tuple[dict[str, list[str]], memoryview]:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise OptionError(f"a snapshot is bytes, not a {type(data).__name__}", "open takes what snapshot() gave")
    data = memoryview(data).cast("B")
    if bytes(data[: len(_MAGIC)]) != _MAGIC:
        raise OptionError("this is no snapshot", "open takes what snapshot() of this version gave")
    if len(data) < _FRONT + _CHECK:
        raise damage_error(f"it ends after {len(data)} bytes")
    version, front, body = _SIZES.unpack(data[len(_MAGIC) : _FRONT])
    if version != _VERSION:
        other = "a newer" if version > _VERSION else "an older"
        raise OptionError(
            f"this snapshot has format {version}, and this version reads {_VERSION}",
            f"it was taken by {other} version of spaseq: go on with that one, or begin anew",
        )
    if len(data) != _FRONT + front + body + _CHECK:
        raise damage_error(f"it has {len(data):,} bytes and should have {_FRONT + front + body + _CHECK:,}")
    if hashlib.blake2b(data[:-_CHECK], digest_size=_CHECK).digest() != data[-_CHECK:]:
        raise damage_error("its checksum does not fit its contents")
    return _identity(data[_FRONT : _FRONT + front]), data[_FRONT + front : -_CHECK]


def _identity(front: memoryview) -> dict[str, list[str]]:
    try:
        said = json.loads(bytes(front))
        found = {str(name): [str(digest), str(text)] for name, (digest, text) in said.items()}
    except Exception as error:  # the checksum fits, so the snapshot was forged
        raise damage_error("its identity cannot be read") from error
    return found


def _compare(there: dict[str, list[str]], identity: Identity) -> None:
    """Raises `OptionError` for the first part in which the identity of the snapshot, `there`, differs."""
    for name, text in identity.items():
        digest, shown = there.get(name, ["", "nothing"])
        if digest != _digest(text):
            other = "another" if name in ("language", "query", "schema", "window") else "other"
            raise OptionError(
                f"this snapshot is of {other} {name}: it was taken of {shown!r}, and this is {shorten(text)!r}",
                "open it with what it was taken with, or begin anew",
            )
    for name in (name for name in there if name not in identity):  # in order, so that the error is one and the same
        if name == "functions":
            problem = f"this snapshot needs functions that are not registered here: {there[name][1]}"
            raise OptionError(problem, "register_function makes them known, before the snapshot is opened")
        raise OptionError(f"this snapshot has the {name} {there[name][1]!r}, and this query has none",
                          "open it with what it was taken with, or begin anew")  # fmt: skip


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
