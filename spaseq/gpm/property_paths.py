"""Property paths as values: the classes of rdflib they are made of, and questions about them that need no graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, Path, SequencePath
from rdflib.term import URIRef

__all__ = [
    "AlternativePath",
    "InvPath",
    "MulPath",
    "NegatedPath",
    "Path",
    "SequencePath",
    "URIRef",
    "inverse",
    "leads_back",
    "negates",
    "parts",
    "repeats",
]


def repeats(path: Any) -> bool:
    """True if a path, or a part of it, has no bound on its length."""
    return any(isinstance(part, MulPath) and part.more for part in parts(path))


def negates(path: Any) -> bool:
    """True if a path is a negated property set, or has one in it."""
    return any(isinstance(part, NegatedPath) for part in parts(path))


def parts(path: Any) -> Iterator[Any]:
    """A path and all paths inside it."""
    yield path
    for inner in (getattr(path, "arg", None), getattr(path, "path", None), *getattr(path, "args", ())):
        if inner is not None:
            yield from parts(inner)


def inverse(path: Any) -> Any:
    """The path the other way, with repetition on the outside."""
    match path:
        case InvPath(arg=arg):
            return arg
        case MulPath(path=inner, mod=mod):
            return MulPath(inverse(inner), mod)
        case SequencePath(args=args):
            return SequencePath(*(inverse(arg) for arg in reversed(args)))
        case AlternativePath(args=args):
            return AlternativePath(*(inverse(arg) for arg in args))
    return InvPath(path)


def leads_back(path: Any) -> bool:
    """True if a path may go each of its predicates both ways, as `p|^p` does."""
    if not isinstance(path, AlternativePath):
        return False
    forward = {arg for arg in path.args if isinstance(arg, URIRef)}
    backward = {arg.arg for arg in path.args if isinstance(arg, InvPath) and isinstance(arg.arg, URIRef)}
    return forward == backward and len(path.args) == len(forward) + len(backward)
