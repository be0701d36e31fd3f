"""The light on the automaton of a query: from a run of it, or from some of its matches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final

from spaseq.core.automata.cea import Transition
from spaseq.core.automata.diagram import Light
from spaseq.core.engine.progress import Progress
from spaseq.core.errors import OptionError

_MOST: Final = 200
"""The most matches whose ways are computed."""


def give(run: Any) -> Any:
    """The source of the light for `run`: the result of a query's `run`, or else a list of matches.

    Raises `OptionError` for anything else.
    """
    if hasattr(run, "progress"):
        return run
    if hasattr(run, "positions"):
        return [run]
    found = list(run) if isinstance(run, Iterable) and not isinstance(run, str | bytes) else [None]
    if not all(hasattr(match, "positions") for match in found):
        hint = "give it what run(…) gives, one of its matches, or a list of them"
        raise OptionError(f"a {type(run).__name__} is no run of a query", hint)
    return found


def light_of(run: Any, ways: Callable[[Sequence[Any]], Sequence[tuple[Transition, ...]]]) -> Light:
    """The known effects of a run, as from `give`. `ways` finds those of matches.

    The result of a query's `run` is used once more, which reads the events again; twice if there are more than 200
    matches. Raises `OptionError` if events cannot be read again.
    """
    if isinstance(run, list):
        return lit_by(ways(run[:_MOST]), len(run), None)
    used = copy.copy(run)
    found = list(islice(used, _MOST + 1))
    total = len(found) if len(found) <= _MOST else used.count()
    return lit_by(ways(found[:_MOST]), total, used.progress())


def lit_by(ways: Sequence[tuple[Transition, ...]], matches: int, progress: Progress | None) -> Light:
    """The light of these ways, and of how far a run came."""
    if progress is None:
        return Light(ways, matches)
    return Light(ways, matches, progress.reached, frozenset(progress.unmet))
