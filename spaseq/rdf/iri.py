"""IRIs of a query: relative to BASE, with escapes, and as prefixed names (SPARQL 1.1 §4.1.1; RFC 3986)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from spaseq.core.slips import closest

_PARTS: Final = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?#]*))?(?P<path>[^?#]*)(?P<rest>.*)", re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.)")


def resolve_iri(base: str, reference: str) -> str:
    """The IRI that `reference` is beside `base`; `reference` itself without a base, and if it has a scheme.

    RFC 3986 §5.2.2, which SPARQL takes without normalisation: an empty fragment or query stays (`#` beside `http://e/x`
    is `http://e/x#`), whatever the scheme. `urllib.parse.urljoin` drops them and joins only schemes it knows.
    """
    relative = _PARTS.fullmatch(reference)
    origin = _PARTS.fullmatch(base)
    if not base or relative is None or origin is None or relative["scheme"] is not None:
        return reference
    authority, path, rest = relative["authority"], relative["path"], relative["rest"]
    if authority is not None:
        path = _without_dots(path)
    else:
        authority = origin["authority"]
        if not path:
            path = origin["path"]
            query = origin["rest"].partition("#")[0]
            rest = rest if rest.startswith("?") else query + rest
        elif path.startswith("/"):
            path = _without_dots(path)
        elif authority is not None and not origin["path"]:
            path = _without_dots("/" + path)
        else:
            path = _without_dots(origin["path"][: origin["path"].rfind("/") + 1] + path)
    scheme = f"{origin['scheme']}:" if origin["scheme"] is not None else ""
    return scheme + (f"//{authority}" if authority is not None else "") + path + rest


def _without_dots(path: str) -> str:
    """`path` with its segments `.` and `..` taken (RFC 3986 §5.2.4)."""
    done: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(done) > 1 or (done and done[0]):
                done.pop()
        elif segment != ".":
            done.append(segment)
    if segments[-1] in (".", ".."):
        done.append("")
    return "/".join(done)


def local_name(written: str) -> str:
    r"""The local part of a prefixed name: `a\,b` is `a,b`."""
    return _ESCAPED.sub(r"\1", written)


def closest_iri(iri: str, known: Iterable[str]) -> str | None:
    """The IRI that `iri` may be a slip for, by the part behind the last `#` or `/`: the namespace may be wrong, too."""
    names = {_behind(other): other for other in sorted(known)}
    found = closest(_behind(iri), names)
    return None if found is None else names[found]


def _behind(iri: str) -> str:
    return iri.replace("#", "/").rstrip("/").rpartition("/")[2]
