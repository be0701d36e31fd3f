"""Answers that need no language: failures, and the version of the interface."""

from __future__ import annotations

from typing import Any, Final

VERSION: Final = 1
"""Of the HTTP interface."""
NOWHERE: Final[dict[str, Any]] = {"line": None, "column": None, "start": None, "end": None, "expected": []}
"""The place of an error about no place in the query."""


def failure(problem: str, hint: str = "", kind: str = "Failure") -> dict[str, Any]:
    """An answer that is one error."""
    return {"version": VERSION, "errors": [{"kind": kind, "problem": problem, "hint": hint, **NOWHERE}]}
