"""What stands around the contents of a snapshot, and the one error for a snapshot that cannot be gone on from.

    magic (8 bytes) | format version, length of the identity, length of the contents (uint32, uint32, uint64)
    | identity (UTF-8, JSON) | contents (`codec`) | BLAKE2b, 32 bytes, of all before

The *identity* says what the snapshot is of, as named texts: the language and the query, and all else that gives the
contents their meaning. Of each the SHA-256 is kept, and the text as far as a message shows it, so that a snapshot of
something else is refused with what it is of. What may differ between taking and opening stands in no identity: budgets,
and the background knowledge, whose changes count from then on.

The checksum is for accidents. Who can write a snapshot can make one up, so its contents are as trustworthy as whoever
wrote them; see `spaseq.snapshot`. PERF: SHA-256 without instructions for it took half of the time of a snapshot.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from spaseq.errors import OptionError, SpaseqError
from spaseq.snapshot.checks import damaged
from spaseq.snapshot.codec import Kind, Unwritable, decode, encode

__all__ = ["Identity", "seal", "shortened", "unseal"]

Identity = Mapping[str, str]
"""What a snapshot is of: `language` and `query`, and more by names that a message can use ("window", "settings")."""

_MAGIC: Final = b"\x93SPASEQ\n"
_VERSION: Final = 1
_SIZES: Final = struct.Struct("<IIQ")
_FRONT: Final = len(_MAGIC) + _SIZES.size
_CHECK: Final = 32
_SHOWN: Final = 200
_T = TypeVar("_T")


def shortened(text: str, most: int = _SHOWN) -> str:
    """`text` on one line, and no longer than a message should be."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def seal(identity: Identity, contents: Any, kinds: Sequence[Kind] = ()) -> bytes:
    """A snapshot of `contents`, which are plain values and values of `kinds`. O(size).

    Raises `OptionError` for contents that cannot be written: values of other types that events hold.
    """
    try:
        body = encode(contents, kinds)
    except Unwritable as error:
        raise OptionError(str(error), "events of numbers, texts, truths, times and lists of these can be") from error
    said = {name: [_digest(text), shortened(text)] for name, text in identity.items()}
    front = json.dumps(said).encode()
    parts = [_MAGIC, _SIZES.pack(_VERSION, len(front), len(body)), front, body]
    checksum = hashlib.blake2b(digest_size=_CHECK)
    for part in parts:
        checksum.update(part)
    return b"".join([*parts, checksum.digest()])


def unseal(data: Any, identity: Identity, kinds: Sequence[Kind], restore: Callable[[Any], _T]) -> _T:
    """What `restore` makes of the contents of a snapshot of the same identity.

    Raises `OptionError`, which says what is wrong or what differs, for anything else; also where `restore` finds that
    the contents cannot be what was written. `BudgetExceeded` where a budget is too small for them.
    """
    front, body = _opened(data)
    _compare(front, identity)
    try:
        return restore(decode(body, kinds))
    except SpaseqError as error:
        if error.exit_code == 1:
            raise damaged("it holds what no evaluation can be in") from error
        raise
    except Exception as error:  # whatever made-up contents make of the parts that they are given to
        raise damaged("it holds what no evaluation can be in") from error


def _opened(data: Any) -> tuple[dict[str, list[str]], memoryview]:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise OptionError(f"a snapshot is bytes, not a {type(data).__name__}", "open takes what snapshot() gave")
    data = memoryview(data).cast("B")
    if bytes(data[: len(_MAGIC)]) != _MAGIC:
        raise OptionError("this is no snapshot", "open takes what snapshot() of this version gave")
    if len(data) < _FRONT + _CHECK:
        raise damaged(f"it ends after {len(data)} bytes")
    version, front, body = _SIZES.unpack(data[len(_MAGIC) : _FRONT])
    if version != _VERSION:
        other = "a newer" if version > _VERSION else "an older"
        raise OptionError(
            f"this snapshot has format {version}, and this version reads {_VERSION}",
            f"it was taken by {other} version of spaseq: go on with that one, or begin anew",
        )
    if len(data) != _FRONT + front + body + _CHECK:
        raise damaged(f"it has {len(data):,} bytes and should have {_FRONT + front + body + _CHECK:,}")
    if hashlib.blake2b(data[:-_CHECK], digest_size=_CHECK).digest() != data[-_CHECK:]:
        raise damaged("its checksum is not that of its contents")
    return _identity(data[_FRONT : _FRONT + front]), data[_FRONT + front : -_CHECK]


def _identity(front: memoryview) -> dict[str, list[str]]:
    try:
        said = json.loads(bytes(front))
        found = {str(name): [str(digest), str(text)] for name, (digest, text) in said.items()}
    except Exception as error:  # only of what somebody made up
        raise damaged("it does not say what it is of") from error
    return found


def _compare(there: dict[str, list[str]], identity: Identity) -> None:
    """`OptionError` for the first thing in which a snapshot differs from what it is to be opened for."""
    for name, text in identity.items():
        digest, shown = there.get(name, ["", "nothing"])
        if digest != _digest(text):
            other = "another" if name in ("language", "query", "schema", "window") else "other"
            raise OptionError(
                f"this snapshot is of {other} {name}: it was taken of {shown!r}, and this is {shortened(text)!r}",
                "open it with what it was taken with, or begin anew",
            )
    for name in there.keys() - identity.keys():
        raise OptionError(f"this snapshot says {name} {there[name][1]!r}, which is not known here",
                          "open it with what it was taken with, or begin anew")  # fmt: skip


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
