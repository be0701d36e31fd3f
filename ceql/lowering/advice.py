"""Parts of a query that are probably not meant, though they can be run; `ceql check` prints them.

These are events that nothing relates, and repetitions of which every subset is a match.
"""

from __future__ import annotations

from collections.abc import Iterator

from ceql.lowering.lower import Lowered
from ceql.syntax import ast
from spaseq.core import pattern as algebra
from spaseq.core.engine import Choice, Selection
from spaseq.core.pattern import Pattern, Skip
from spaseq.core.trees import children


def advice(tree: ast.Query, lowered: Lowered) -> list[str]:
    """A line for each thing that should be looked at."""
    if lowered.choice not in (Choice(), Choice(Selection.ALL)) or tree.limit is not None or lowered.strict:
        return []
    return [*_subsets(tree), *_unrelated_parts(tree, lowered)]


def _subsets(tree: ast.Query) -> Iterator[str]:
    for node in _outside_not(tree.where):
        if isinstance(node, ast.Repeat) and node.skip is Skip.ANY and node.low <= 1 and node.high is None:
            line, column = node.span.line, node.span.column
            yield (
                f"{line}:{column}: + takes every choice of events, 2^n - 1 of n: SELECT MAX reports the largest, NEXT "
                "the first, and :+ takes events in a row only"
            )


def _outside_not(node: ast.Formula) -> Iterator[ast.Formula]:
    yield node
    for child in () if isinstance(node, ast.Without) else children(node):
        yield from _outside_not(child)


def _unrelated_parts(tree: ast.Query, lowered: Lowered) -> Iterator[str]:
    """Parts that no condition relates, of a formula without choices and conjunctions, whose parts are not all taken."""
    if lowered.partition:
        return
    atoms: list[tuple[algebra.Atom, bool]] = []
    links: list[frozenset[str]] = []
    names: dict[str, set[int]] = {}
    if not _read(lowered.pattern, atoms, links, names, skips=False):
        return
    groups = list(range(len(atoms)))
    for link in links:
        joined = {groups[i] for name in link for i in names.get(name, ())}
        groups = [min(joined) if group in joined else group for group in groups]
    skipped = [i for i, (_, skips) in enumerate(atoms) if skips]
    apart = [i for i in skipped if groups[i] not in groups[:i]]
    if apart:
        shown = [_name(i, atom, names) for i, (atom, _) in enumerate(atoms)]
        others = " and ".join(dict.fromkeys(shown[i] for i in range(len(atoms)) if groups[i] != groups[apart[0]]))
        yield (
            f"nothing relates {shown[apart[0]]} to {others}: each goes with every other in the window. A condition "
            "(a.k = b.k) or PARTITION BY [k] relates them, SELECT NEXT reports one for each end"
        )


def _read(
    node: Pattern, atoms: list[tuple[algebra.Atom, bool]], links: list[frozenset[str]], names: dict[str, set[int]],
    *, skips: bool,
) -> bool:  # fmt: skip
    """Note the atoms, with a flag for each: true if other events may lie before it. Note also the links between
    variables, and the atoms of each variable. False for a pattern that is not supported."""
    first = len(atoms)
    match node:
        case algebra.Atom():
            atoms.append((node, skips))
            for name in node.variables:
                names.setdefault(name, set()).add(first)
            return True
        case algebra.As(child, variable):
            if not _read(child, atoms, links, names, skips=skips):
                return False
            names.setdefault(variable, set()).update(range(first, len(atoms)))
            return True
        case (
            algebra.Filter(child)
            | algebra.Iterate(child)
            | algebra.Optional(child)
            | algebra.Project(child)
            | algebra.Bordered(child)
        ):
            return _read(child, atoms, links, names, skips=skips)
        case algebra.Correlate(child, variables):
            links.append(variables)
            return _read(child, atoms, links, names, skips=skips)
        case algebra.Sequence(left, right, skip):
            if not _read(left, atoms, links, names, skips=skips):
                return False
            return _read(right, atoms, links, names, skips=skip is not Skip.NONE)
    return False


def _name(place: int, atom: algebra.Atom, names: dict[str, set[int]]) -> str:
    """The name of AS that an atom has by itself, else its type."""
    own = [name for name, places in names.items() if places == {place} and name not in atom.variables]
    types = sorted(atom.variables, key=lambda name: (len(name), name))
    return next((name for name in (*own, *types) if "#" not in name), "an event")
