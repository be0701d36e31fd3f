"""Parts of a query that are probably not meant, though they can be run; `spaseq check` prints them.

These are graph patterns that share nothing, and variables that may be slips.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

from spaseq.language.semantics.check import CheckedQuery

_ALIKE = 0.85
_SHORT = 4
"""Names of fewer letters are not compared."""
_COMPARED: Final = 300
"""More names are not compared: each is with every other, which would take seconds."""


def advice(query: CheckedQuery) -> list[str]:
    """A line for each thing that should be looked at."""
    return [*_unrelated_patterns(query), *_slips(query)]


def _matching(query: CheckedQuery) -> list[str]:
    """The GPMs that match something, in order."""
    parts = (part for element in query.elements for part in element.parts() if not part.negated)
    return list(dict.fromkeys(name for part in parts for c in part.alternatives for name in c))


def _unrelated_patterns(query: CheckedQuery) -> Iterator[str]:
    """GPMs of SEQ that no variable relates: their solutions are combined each with each."""
    names = _matching(query)
    if query.partition or len(names) < 2:
        return
    related = {name: [name] for name in names}
    first: dict[str, str] = {}
    for name in names:
        for variable in query.patterns[name].mentions:
            less, more = sorted((related[name], related[first.setdefault(variable, name)]), key=len)
            if less is not more:
                more += less
                related.update(dict.fromkeys(less, more))
    parts = {id(part): part for part in related.values()}.values()
    if len(parts) > 1:
        place = {name: i for i, name in enumerate(names)}
        said = [" and ".join(sorted(part, key=place.__getitem__)) for part in parts]
        yield (
            f"GPMs: {said[0]} shares no variable with {', '.join(said[1:])}: each solution goes with every other in "
            "the window. A variable in both, a FILTER over both, or PARTITION BY relates them"
        )


def _slips(query: CheckedQuery) -> Iterator[str]:
    """Variables of one GPM alone that are spelt nearly like those of another one alone."""
    own: dict[str, list[str]] = {}
    for name, pattern in query.patterns.items():
        for variable in pattern.binds:
            own.setdefault(variable, []).append(name)
    alone = {variable: names[0] for variable, names in own.items() if len(names) == 1 and len(variable) >= _SHORT}
    for variable in sorted(alone) if len(alone) <= _COMPARED else ():
        others = [other for other in sorted(alone) if other > variable and alone[other] != alone[variable]]
        close = difflib.get_close_matches(variable, others, 1, _ALIKE)
        if close and variable.rstrip("0123456789") != close[0].rstrip("0123456789"):
            first, second = alone[variable], alone[close[0]]
            yield f"?{variable} of GPM {first} and ?{close[0]} of GPM {second} are two variables: is one a slip?"
