"""Hints for names that are not known: the known name that one may be a slip for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """The known name that is equal except for upper and lower case, or nearly equal: by `least` of 1; else None."""
    names = {other.casefold(): other for other in known}
    found = difflib.get_close_matches(name.casefold(), names, 1, least)
    return names[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str], form: str = "{}", *, least: float = 0.6) -> str:
    """The hint with the closest name, as `form` writes it; "" if there is none."""
    found = closest(name, known, least)
    return "" if found is None else f"did you mean {form.format(found)}?"
