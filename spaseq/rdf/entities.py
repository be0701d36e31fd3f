"""Entities of RDF/XML, `<!ENTITY owl "http://www.w3.org/2002/07/owl#">`: bounded before a parser expands them.

The parser puts the text of an entity wherever it is named, also in entities that are declared later: a few hundred
bytes can stand for gigabytes. It never fetches any: an external one is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from spaseq.core.errors import EventError
from spaseq.core.events.unfinished import Fed

LONGEST_ENTITY: Final = 1 << 12
"""Bytes that an entity stands for at most, with those that it names: IRIs are shorter."""
ALL_ENTITIES: Final = 1 << 20
"""Bytes that all entities of a document stand for together."""
_BEGIN: Final = b"<!ENTITY"
_DECLARED: Final = re.compile(rb'<!ENTITY\s*(?:%\s*)?(\S+)\s+"([^"]*)"')
_NAMED: Final = re.compile(rb"&([^;&]*);?")
_ONE: Final = {b"amp", b"lt", b"gt", b"apos", b"quot"}
_SHOWN: Final = 60


def bounded_entities(chunks: Iterable[bytes], source: str, fed: Fed) -> Iterator[bytes]:
    """The bytes of an RDF/XML document. A declaration of an entity is given only once its end is known.

    Declarations are looked for everywhere, as the parser takes them from comments and from behind the first element,
    too. The bytes that entities stand for are added to what a parser was `fed`. EventError for an entity that stands
    for more than LONGEST_ENTITY bytes, or for more than ALL_ENTITIES of them.
    """
    sizes: dict[bytes, int] = {}
    longest = total = 0
    rest = b""
    for chunk in chunks:
        text = rest + chunk
        at = text.find(_BEGIN)
        while at >= 0:
            found = _DECLARED.match(text, at)
            if found is None and len(text) - at <= LONGEST_ENTITY:
                break  # its end is in the next chunk, or it has none
            if found is None:
                raise _refusal(f"{_show(text[at : at + _SHOWN])}… declares no entity, or a long one", source)
            size = _size(found[2], sizes, longest)
            total += size
            if size > LONGEST_ENTITY:
                raise _refusal(f"the entity {_show(found[1])} stands for more than {LONGEST_ENTITY:,} bytes", source)
            if total > ALL_ENTITIES:
                raise _refusal(f"the entities stand for more than {ALL_ENTITIES:,} bytes together", source)
            sizes[found[1]] = size
            longest = max(longest, size)
            at = text.find(_BEGIN, at + len(_BEGIN))
        cut = at if at >= 0 else len(text) - _begun(text)
        fed.add(longest * text.count(b"&", 0, cut))
        yield text[:cut]
        rest = text[cut:]
    yield rest


def _size(value: bytes, sizes: dict[bytes, int], longest: int) -> int:
    """The bytes that the text of an entity stands for. An unknown entity in it counts as the longest."""
    named = _NAMED.findall(value)
    known = (sizes.get(name, 1 if name in _ONE or name.startswith(b"#") else longest) for name in named)
    return len(value) + sum(known)


def _begun(text: bytes) -> int:
    """The number of last bytes that may be the beginning of a declaration."""
    return next((size for size in range(len(_BEGIN) - 1, 0, -1) if text.endswith(_BEGIN[:size])), 0)


def _show(name: bytes) -> str:
    return name[:_SHOWN].decode("utf-8", "replace")


def _refusal(problem: str, source: str) -> EventError:
    hint = "entities may stand for IRIs, and name others that do; write longer texts where they belong"
    return EventError(problem, source=source, hint=hint)
