"""The condition that no event satisfies: FALSE is a value in CEQL and no condition."""

from __future__ import annotations

from typing import Final

from ceql.syntax import ast

__all__ = ["NEVER"]

NEVER: Final = ast.Compare("=", ast.Number(0), ast.Number(1))
