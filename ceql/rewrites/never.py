"""The condition that no event satisfies. CEQL has no literal for it: FALSE is a value, not a condition."""

from __future__ import annotations

from typing import Final

from ceql.syntax import ast

NEVER: Final = ast.Compare("=", ast.Number(0), ast.Number(1))
